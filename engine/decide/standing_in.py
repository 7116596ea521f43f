"""Nodes that came to take the place of others which are still there: idle to look at, and for whom they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.decide.fleet import Sighting
from engine.disruption.replacing import Replacing
from engine.model.claim import Claim
from engine.model.plan import Removal
from engine.model.pod import PodKey
from engine.model.replacement import AwaitsReplacement, StandsIn
from engine.model.stay import BelowConsolidateAfter, InUse, NotInitialized, StayReason


class StandIns:
    """Who stands in for whom in one pass. ``sightings`` are all machines, ``stays`` why those that do not go stay."""

    def __init__(
        self,
        sightings: Iterable[Sighting],
        removals: Iterable[Removal],
        stays: Mapping[str, StayReason],
        replacing: Replacing | None,
    ) -> None:
        self._nodes = {each.claim.name: each.node.name if each.node is not None else None for each in sightings}
        waiting = {name for name, reason in stays.items() if isinstance(reason, AwaitsReplacement)}
        self._going = waiting.union(removal.record.claim for removal in removals)
        self._moving: dict[str, list[PodKey]] = {}
        displaced = replacing.displaced if replacing is not None else {}
        for place in replacing.answer.placements if replacing is not None and displaced else ():
            if place.claim is not None and place.pod in displaced:
                self._moving.setdefault(place.claim, []).append(place.pod)

    def told(self, claim: Claim, reason: StayReason) -> StayReason:
        """Why the machine stays: for whom, if what it would be told with is that nobody is on it."""
        going = tuple(sorted(name for name in claim.replaces if name in self._going and name in self._nodes))
        if not going:
            return reason
        stand_in = StandsIn(going, self._named(going), tuple(sorted(self._moving.get(claim.name, ()))))
        match reason:
            case NotInitialized():
                return NotInitialized(stand_in)
            case BelowConsolidateAfter():
                return stand_in
            case InUse(pods=0) if stand_in.pods:
                return stand_in
            case _:
                return reason

    def _named(self, claims: Sequence[str]) -> tuple[str, ...]:
        return tuple(self._nodes[name] or name for name in claims)
