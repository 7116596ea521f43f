"""What became of a request to move a pod off its node."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from engine.model.pod import PodKey


class EvictionStatus(str, Enum):
    """``REFUSED_BY_BUDGET`` is a PodDisruptionBudget that allows no more now, ``SEVERAL_BUDGETS`` a pod matched by two.

    The API server answers them with 429 and 500; the first passes with time, the second needs a person.
    """

    EVICTED = "evicted"
    REFUSED_BY_BUDGET = "refused-by-pdb"
    SEVERAL_BUDGETS = "two-pdbs"
    GONE = "gone"
    FAILED = "failed"


@frozen
class Eviction:
    """One pod's answer; ``message`` is the API server's own, empty where nothing went wrong."""

    pod: PodKey
    status: EvictionStatus
    message: str = ""
