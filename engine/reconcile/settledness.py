"""Which lanes of an environment stand as its published document says, and which have still to be converged."""

from __future__ import annotations

from collections.abc import Mapping

from engine.model.document import DesiredDocument
from engine.model.lane import lane_slice, stacks_of
from engine.model.outcome import Outcome


def unsettled_lanes(document: DesiredDocument | None, outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """The stacks that nothing shows to be converged, the main one first. ``outcomes`` are the last ones, by stack."""
    if document is None:
        return ()
    return tuple(stack for stack in stacks_of(document) if not _is_settled(document, stack, outcomes.get(stack)))


def _is_settled(document: DesiredDocument, stack: str, outcome: Outcome | None) -> bool:
    if outcome is None or not outcome.is_settled:
        return False
    if outcome.slice_digest:
        return outcome.slice_digest == lane_slice(document, stack, document.environment)
    # The version alone would take a document that came back from a backup for the one that was converged.
    return (outcome.version, outcome.plan_hash) == (document.version, document.plan_hash)
