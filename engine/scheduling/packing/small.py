"""All loads that matter, where they are few: then nothing is left to search for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from engine.scheduling.packing.master import Column
from engine.scheduling.packing.part import Load, Part

_MOST_LOADS = 1_000
_MOST_VISITS = 2_000
# From so many classes in one kind the visits run out in any case: a stop at each of them, and for each of them its pod
# alone, with a stop at each that follows.
_TOO_MANY_GUESTS = 62


def all_full_loads(part: Part) -> tuple[tuple[Column, ...], int]:
    """Each load of each kind that no pod can be added to, and the steps that took; no loads if they are too many."""
    if int(part.allowed.sum(axis=1).max()) >= _TOO_MANY_GUESTS:
        return (), 0
    visits, found = 0, []
    for kind in range(len(part.prices)):
        for load in islice(_loads(part, kind), _MOST_VISITS - visits):
            visits += 1
            if load is not None:
                found.append(Column(kind, load))
        if visits >= _MOST_VISITS or len(found) > _MOST_LOADS:
            return (), visits
    return tuple(found), visits


def _loads(part: Part, kind: int) -> Iterator[Load | None]:
    """Full loads, and None for each other stop on the way."""
    requests: list[list[int]] = part.requests.tolist()
    counts: list[int] = part.counts.tolist()
    guests = [place for place, allowed in enumerate(part.allowed[kind].tolist()) if allowed]

    def fits(place: int, left: list[int]) -> int:
        within = [room // each for room, each in zip(left, requests[place], strict=True) if each]
        return min(counts[place], *within)

    def filled(depth: int, left: list[int], load: dict[int, int]) -> Iterator[Load | None]:
        if depth == len(guests):
            is_full = not any(load.get(place, 0) < counts[place] and fits(place, left) for place in guests)
            yield tuple(load.items()) if is_full else None
            return
        place = guests[depth]
        for pods in range(fits(place, left), -1, -1):
            yield None
            after = [room - pods * each for room, each in zip(left, requests[place], strict=True)]
            yield from filled(depth + 1, after, {**load, place: pods} if pods else load)

    yield from filled(0, part.rooms[kind].tolist(), {})
