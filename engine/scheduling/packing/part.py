"""A problem made ready: in an order of its own, without kinds that another beats, in parts that share nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from attrs import evolve, field, frozen

from engine.scheduling.packing.problem import NodeKind, PackingProblem
from engine.scheduling.packing.search import Ints

UNLIMITED = 2**62
# Quotients in floating point are no further apart from the exact ones.
_ROUGHLY = 1 + 1e-9
# Pods of one class on a node, by the place of the class in its part.
Load = tuple[int, ...]


@frozen(eq=False)
class Part:
    """Classes and kinds that have nothing to do with those of other parts, all of them placeable but for limits.

    ``class_indices`` and ``kind_indices`` are those of the problem. Arrays: ``requests`` by class and resource,
    ``rooms`` by kind and resource, ``allowed`` by kind and class, ``takes`` by kind and limit. A kind's own ``most``
    is one of the limits here.
    """

    class_indices: tuple[int, ...]
    kind_indices: tuple[int, ...]
    requests: Ints
    counts: Ints
    rooms: Ints
    prices: Ints
    allowed: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    takes: Ints
    limits: Ints
    fits: Ints = field(init=False)

    @fits.default
    def _pods_of_one_class(self) -> Ints:
        """By kind and class, how many pods of nothing but the class a node of the kind holds."""
        fits = np.full(self.allowed.shape, UNLIMITED, np.int64)
        for resource in range(self.requests.shape[1]):
            # Classes by the hundred ask for a few different amounts, and dividing is what takes time.
            amounts, of_class = np.unique(self.requests[:, resource], return_inverse=True)
            held = np.where(amounts > 0, self.rooms[:, resource, None] // np.maximum(amounts, 1), UNLIMITED)
            np.minimum(fits, held[:, of_class], out=fits)
        return np.where(self.allowed, fits, 0)

    def least_prices(self, resource: int) -> Sequence[tuple[Ints, Fraction]]:
        """What one unit of a resource costs where it is cheapest, in micro-dollars, for the classes, by place, that ask
        for it; those that may go to the same kinds together."""
        return self._least_prices[resource]

    @cached_property
    def _least_prices(self) -> tuple[tuple[tuple[Ints, Fraction], ...], ...]:
        patterns, of_class = np.unique(self.allowed, axis=1, return_inverse=True)
        found = []
        for resource in range(self.requests.shape[1]):
            asking = self.requests[:, resource] > 0
            priced = []
            for pattern in np.unique(of_class[asking]).tolist():
                places = np.flatnonzero(asking & (of_class == pattern))
                priced.append((places, self._least_price(resource, np.flatnonzero(patterns[:, pattern]))))
            found.append(tuple(priced))
        return tuple(found)

    def _least_price(self, resource: int, kinds: Ints) -> Fraction:
        rooms, prices = self.rooms[kinds, resource], self.prices[kinds]
        with np.errstate(divide="ignore"):
            about = np.where(rooms > 0, prices / rooms, np.inf)
        near = np.flatnonzero(about <= about.min() * _ROUGHLY)
        return min(Fraction(int(prices[each]), int(rooms[each])) for each in near.tolist())


_Homes = dict[int, frozenset[int]]


def parts_of(problem: PackingProblem) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """The parts, in an order that does not depend on the problem's; and the classes that no kind holds, by index."""
    homes = _homes_of(problem)
    problem = _with_room_for_all(problem, homes)
    homeless = tuple(index for index, kinds in sorted(homes.items()) if not kinds)
    homes = {index: kinds for index, kinds in homes.items() if kinds}
    kinds = _undominated(problem, homes)
    made = [_part(problem, members, among, homes) for members, among in _components(problem, homes, kinds) if members]
    return tuple(made), homeless


def _homes_of(problem: PackingProblem) -> _Homes:
    """For each class with pods, the kinds that hold one of them."""
    rooms = np.array([kind.room for kind in problem.kinds], np.int64)
    is_there = np.array([kind.most != 0 for kind in problem.kinds], np.bool_)
    known: dict[tuple[tuple[int, ...], frozenset[int]], frozenset[int]] = {}
    homes: _Homes = {}
    for index, each in enumerate(problem.classes):
        if each.count:
            asked = (each.requests, each.kinds)
            if not each.kinds:
                known[asked] = each.kinds
            elif asked not in known:
                kinds = np.array(sorted(each.kinds), np.int64)
                holds = is_there[kinds] & (rooms[kinds] >= np.array(each.requests, np.int64)).all(axis=1)
                known[asked] = frozenset(kinds[holds].tolist())
            homes[index] = known[asked]
    return homes


def _with_room_for_all(problem: PackingProblem, homes: _Homes) -> PackingProblem:
    """The same, no kind with more room than all of its guests together ask for: so much larger ones are alike."""
    asked = np.array([[amount * each.count for amount in each.requests] for each in problem.classes], object)
    total: dict[frozenset[int], tuple[int, ...]] = {}
    kinds = list(problem.kinds)
    for index, guests in _guests(homes).items():
        if guests not in total:
            total[guests] = tuple(asked[sorted(guests)].sum(axis=0).tolist())
        room = tuple(map(min, kinds[index].room, total[guests]))
        if room != kinds[index].room:
            kinds[index] = evolve(kinds[index], room=room)
    return evolve(problem, kinds=tuple(kinds))


def _undominated(problem: PackingProblem, homes: _Homes) -> tuple[int, ...]:
    """Kinds that hold anything, and of which no other gives as much to as many for as little and takes no more."""
    guests = _guests(homes)
    # Kinds by content, so that no index decides.
    places = {
        content: place for place, content in enumerate(sorted({_content(problem.kinds[kind]) for kind in guests}))
    }
    place_of = {kind: places[_content(problem.kinds[kind])] for kind in guests}
    home_of = {kinds: sorted(map(place_of.__getitem__, kinds)) for kinds in set(homes.values())}
    held = {
        index: (problem.classes[index].requests, problem.classes[index].count, home_of[kinds])
        for index, kinds in homes.items()
    }
    held_by = {each: sorted(held[index] for index in each) for each in set(guests.values())}

    def order(kind: int) -> tuple[object, ...]:
        return place_of[kind], -len(guests[kind]), held_by[guests[kind]]

    ordered = sorted(guests, key=order)
    bearing = _Bearing.of(problem.kinds[kind] for kind in ordered)
    kept: list[int] = []
    for place, kind in enumerate(ordered):
        if not any(guests[ordered[other]] >= guests[kind] for other in bearing.beaten_by(place, kept)):
            kept.append(place)
    return tuple(ordered[place] for place in kept)


def _guests(homes: _Homes) -> dict[int, frozenset[int]]:
    alike: dict[frozenset[int], list[int]] = {}
    for index, kinds in homes.items():
        alike.setdefault(kinds, []).append(index)
    guests: dict[int, list[int]] = {}
    for kinds, indices in alike.items():
        for kind in kinds:
            guests.setdefault(kind, []).extend(indices)
    # Most kinds have the same guests as many others: one object for them.
    known: dict[tuple[int, ...], frozenset[int]] = {}
    return {kind: known.setdefault(tuple(each), frozenset(each)) for kind, each in guests.items()}


def _content(kind: NodeKind) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    """For sorting: cheap ones first, then what has more room, so that what beats another comes before it."""
    most = UNLIMITED if kind.most is None else kind.most
    return kind.micros_per_hour, tuple(-each for each in kind.room), kind.takes, -most


@frozen(eq=False)
class _Bearing:
    """What decides between kinds, who may go there apart, side by side for many at once."""

    prices: Ints
    rooms: Ints
    takes: Ints
    is_endless: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    @classmethod
    def of(cls, kinds: Iterable[NodeKind]) -> _Bearing:
        every = list(kinds)
        return cls(
            np.array([kind.micros_per_hour for kind in every], np.int64),
            np.array([kind.room for kind in every], np.int64),
            np.array([kind.takes for kind in every], np.int64).reshape(len(every), len(every[0].takes) if every else 0),
            np.array([kind.most is None for kind in every], np.bool_),
        )

    def beaten_by(self, place: int, among: Sequence[int]) -> list[int]:
        """Those that cost no more, have as much room and take as little; of one that is limited in number, none."""
        others = np.array(among, np.int64)
        beats = self.is_endless[others] & (self.prices[others] <= self.prices[place])
        beats &= (self.rooms[others] >= self.rooms[place]).all(axis=1)
        beats &= (self.takes[others] <= self.takes[place]).all(axis=1)
        found: list[int] = others[beats].tolist()
        return found


def _components(problem: PackingProblem, homes: _Homes, kinds: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """Classes and kinds that hang together by who may go where, or by a limit."""
    leader = {kind: kind for kind in kinds}
    place_of = {kind: place for place, kind in enumerate(kinds)}

    def led_by(kind: int) -> int:
        while leader[kind] != kind:
            kind = leader[kind]
        return kind

    together = [[kind for kind in kinds if kind in allowed] for allowed in dict.fromkeys(homes.values())]
    together += [[kind for kind in kinds if problem.kinds[kind].takes[limit]] for limit in range(len(problem.limits))]
    for joined in together:
        for kind in joined[1:]:
            first, second = led_by(joined[0]), led_by(kind)
            leader[max(first, second, key=place_of.__getitem__)] = min(first, second, key=place_of.__getitem__)
    for head in kinds:
        if leader[head] == head:
            among = [kind for kind in kinds if led_by(kind) == head]
            theirs = frozenset(among)
            yield [index for index, allowed in homes.items() if not theirs.isdisjoint(allowed)], among


def _part(problem: PackingProblem, members: Sequence[int], kinds: Sequence[int], homes: _Homes) -> Part:
    allowed = {
        home: tuple(place for place, kind in enumerate(kinds) if kind in home)
        for home in {homes[index] for index in members}
    }
    is_allowed = {home: np.isin(np.arange(len(kinds)), places) for home, places in allowed.items()}

    def order(index: int) -> tuple[object, ...]:
        asked = tuple(-each for each in problem.classes[index].requests)
        return asked, allowed[homes[index]], problem.classes[index].count

    ordered = sorted(members, key=order)
    asked = [
        resource
        for resource in range(len(problem.kinds[kinds[0]].room))
        if any(problem.classes[index].requests[resource] for index in ordered)
    ]
    requests = [[problem.classes[index].requests[resource] for resource in asked] for index in ordered]
    rooms = [[problem.kinds[kind].room[resource] for resource in asked] for kind in kinds]
    if not all(any(each) for each in requests):
        # A pod that asks for nothing still needs a node. Room to count them by keeps the searches bounded.
        requests = [[*each, 1] for each in requests]
        rooms = [[*each, sum(problem.classes[index].count for index in ordered)] for each in rooms]
    own = [kind for kind in kinds if problem.kinds[kind].most is not None]
    takes = [(*problem.kinds[kind].takes, *(int(kind == each) for each in own)) for kind in kinds]
    limits = [*problem.limits, *(problem.kinds[kind].most or 0 for kind in own)]
    return Part(
        class_indices=tuple(ordered),
        kind_indices=tuple(kinds),
        requests=np.array(requests, np.int64),
        counts=np.array([problem.classes[index].count for index in ordered], np.int64),
        rooms=np.array(rooms, np.int64),
        prices=np.array([problem.kinds[kind].micros_per_hour for kind in kinds], np.int64),
        allowed=np.stack([is_allowed[homes[index]] for index in ordered], axis=1),
        takes=np.array(takes, np.int64).reshape(len(kinds), len(limits)),
        limits=np.array(limits, np.int64),
    )
