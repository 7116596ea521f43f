"""Machines that did not come up in time leave, in two passes where there is a node and in one where there is none.

No budget holds that back, since they never served anybody; the cap on removals of one pass does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from engine.decide.bring_up import BringUp
from engine.model.document import RemovalRecord
from engine.model.plan import Removal, RemovalPhase
from engine.model.reason import DisruptionReason
from engine.model.stay import RemovalCap, StayReason


@frozen
class Failures:
    """What leaves, and why each other machine that failed stays, by claim."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason]

    def count(self, phase: RemovalPhase) -> int:
        return sum(removal.phase is phase for removal in self.removals)


def failures(brought: Iterable[BringUp], *, cap: int, released: int) -> Failures:
    """Those that failed, in claim order. ``released`` of the cap's releases are spent already."""
    passing = {RemovalPhase.MARK: cap, RemovalPhase.RELEASE: cap - released}
    removals: list[Removal] = []
    stays: dict[str, StayReason] = {}
    for each in sorted(brought, key=lambda one: one.sighting.claim.name):
        phase = _next_phase(each)
        if phase is None:
            continue
        if passing[phase] <= 0:
            stays[each.sighting.claim.name] = RemovalCap(cap=cap)
            continue
        passing[phase] -= 1
        removals.append(Removal(record=_record(each), phase=phase))
    return Failures(removals=tuple(removals), stays=stays)


def _next_phase(each: BringUp) -> RemovalPhase | None:
    """None where it did not fail, and while pods run there, or may: they came before the mark, and keep it."""
    node = each.sighting.node
    if each.milestones.failed_at is None or each.sighting.workload or each.may_have_node:
        return None
    return RemovalPhase.MARK if node is not None and not node.is_marked else RemovalPhase.RELEASE


def _record(each: BringUp) -> RemovalRecord:
    claim, node = each.sighting.claim, each.sighting.node
    return RemovalRecord(
        claim=claim.name,
        node_pool=claim.node_pool,
        reason=DisruptionReason.NOT_INITIALIZED,
        rule=f"{claim.node_pool}: {each.lateness}",
        since=each.milestones.failed_at or claim.created_at,
        usd_per_hour=claim.usd_per_hour,
        node=node.name if node else None,
        capacity=claim.capacity,
        stack=claim.stack,
    )
