"""What each lane of an environment stands at, and which have to converge now."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation, RemovalRecord
from engine.model.lane import stack_of
from engine.model.outcome import Outcome
from engine.reconcile.back_off import BackOff
from engine.reconcile.host import Host
from engine.reconcile.settledness import unsettled_lanes


@frozen
class Part:
    """What a document says of one stack; ``foundation`` None in all but the environment's own."""

    foundation: Foundation | None = None
    claims: tuple[Claim, ...] = ()
    records: tuple[RemovalRecord, ...] = ()

    def asks_no_more_than(self, standing: Part) -> bool:
        """Whether a lane that stands at ``standing`` has nothing to do for this: records may have been done with."""
        done = {record.claim: record for record in standing.records}
        return (
            self.claims == standing.claims
            and self.foundation == standing.foundation
            and all(done.get(record.claim) == record for record in self.records)
        )


def parts_of(document: DesiredDocument) -> Mapping[str, Part]:
    """What the document says of each stack, the environment's own first."""
    main = document.environment
    claims: dict[str, list[Claim]] = {main: []}
    records: dict[str, list[RemovalRecord]] = {}
    for claim in document.claims:
        claims.setdefault(claim.stack, []).append(claim)
    for record in document.removals:
        records.setdefault(stack_of(record, main), []).append(record)
    return {
        stack: Part(
            document.foundation if stack == main else None,
            tuple(claims.get(stack, ())),
            tuple(records.get(stack, ())),
        )
        for stack in sorted(claims.keys() | records.keys(), key=lambda stack: (stack != main, stack))
    }


class LaneBook:
    """Compares values in memory, never digests: a fleet's digest would cost more than the decision."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._standing: dict[str, Part] = {}
        self._tried: dict[str, Part] = {}
        self._back_offs: dict[str, BackOff] = {}
        self._ended_at: dict[str, float] = {}
        self._document: DesiredDocument | None = None
        self._parts: Mapping[str, Part] = {}

    def learn(self, document: DesiredDocument | None, outcomes: Mapping[str, Outcome]) -> None:
        """Start from what the store tells: the lanes whose last outcome is of what the document says now."""
        unsettled = set(unsettled_lanes(document, outcomes))
        self._standing = {stack: part for stack, part in self.parts(document).items() if stack not in unsettled}

    def parts(self, document: DesiredDocument | None) -> Mapping[str, Part]:
        if document is not self._document:
            self._document, self._parts = document, parts_of(document) if document else {}
        return self._parts

    def unsettled(self, document: DesiredDocument | None) -> tuple[str, ...]:
        """The stacks that have not converged to the document, the main one first."""
        return tuple(stack for stack, part in self.parts(document).items() if not self._is_settled(stack, part))

    def due(self, document: DesiredDocument | None, busy: Collection[str]) -> tuple[str, ...]:
        """Of those, the stacks that may begin now: not at work, and not waiting after a failure at the same."""
        now = self._host.monotonic()
        return tuple(
            stack for stack in self.unsettled(document) if stack not in busy and self._due_at(stack, document) <= now
        )

    def due_at(self, document: DesiredDocument | None, busy: Collection[str]) -> float:
        """When the next one of them may begin, on the monotonic clock."""
        waiting = (self._due_at(stack, document) for stack in self.unsettled(document) if stack not in busy)
        return min(waiting, default=float("inf"))

    def ended_at(self, stack: str) -> float:
        """When it last converged, on the monotonic clock."""
        return self._ended_at.get(stack, float("-inf"))

    def ended(self, stack: str, part: Part, at: float, *, is_settled: bool) -> None:
        """It has converged to that part, or has failed to."""
        back_off = self._back_offs.setdefault(stack, BackOff(self._host))
        self._ended_at[stack], self._tried[stack] = at, part
        if is_settled:
            self._standing[stack] = part
            back_off.succeeded()
        else:
            self._standing.pop(stack, None)
            back_off.failed()

    def _is_settled(self, stack: str, part: Part) -> bool:
        standing = self._standing.get(stack)
        return standing is not None and part.asks_no_more_than(standing)

    def _due_at(self, stack: str, document: DesiredDocument | None) -> float:
        back_off = self._back_offs.get(stack)
        if back_off is None:
            return float("-inf")
        if self.parts(document)[stack] != self._tried.get(stack):
            # Other work than what failed: worth a try now, but never in a tight circle.
            return min(back_off.due_at, self.ended_at(stack) + 1.0 if back_off.failures else float("-inf"))
        return back_off.due_at
