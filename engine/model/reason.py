"""Why a node leaves."""

from __future__ import annotations

from enum import Enum


class DisruptionReason(str, Enum):
    EMPTY = "Empty"
    UNDERUTILIZED = "Underutilized"
    DRIFTED = "Drifted"
    EXPIRED = "Expired"
    INTERRUPTED = "Interrupted"
    UNHEALTHY = "Unhealthy"
    # Ours: the machine is gone already (Lost), never came (LaunchRefused), did not become a whole node
    # in time (NotInitialized), or a person asked (Destroyed). No budget names these.
    LOST = "Lost"
    LAUNCH_REFUSED = "LaunchRefused"
    NOT_INITIALIZED = "NotInitialized"
    DESTROYED = "Destroyed"


# By choice: these ask budgets, and rules. Karpenter's own budgets leave expiry out.
VOLUNTARY_REASONS = (
    DisruptionReason.EMPTY,
    DisruptionReason.UNDERUTILIZED,
    DisruptionReason.DRIFTED,
    DisruptionReason.EXPIRED,
)
