"""A problem made ready: in an order of its own, without kinds that another beats, in parts that share nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from engine.scheduling.packing import compiled
from engine.scheduling.packing.part import UNLIMITED, Part
from engine.scheduling.packing.problem import PackingProblem
from engine.scheduling.packing.search import Ints

Bools = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
# In big-endian bytes whole numbers that are not negative compare as they do themselves.
_IN_ORDER = ">i8"


@frozen(eq=False)
class _Ground:
    """The problem as arrays. ``homes`` are the sets of kinds that classes may go to, each once: by home and kind;
    ``home_of`` is the class's, -1 where it has no pods. ``most`` is UNLIMITED where as many may be had as one likes."""

    requests: Ints
    counts: Ints
    rooms: Ints
    prices: Ints
    takes: Ints
    most: Ints
    limits: Ints
    homes: Bools
    home_of: Ints

    @property
    def has_pods(self) -> Bools:
        return self.home_of >= 0

    def members_of(self, homes: Bools) -> Ints:
        """The classes with one of these homes."""
        among = np.flatnonzero(self.has_pods)
        members: Ints = among[homes[self.home_of[among]]]
        return members


def parts_of(problem: PackingProblem) -> tuple[tuple[Part, ...], tuple[int, ...]]:
    """The parts, in an order that does not depend on the problem's; and the classes that no kind holds, by index."""
    if not (problem.classes and problem.kinds):
        return (), tuple(index for index, each in enumerate(problem.classes) if each.count)
    ground = _with_room_for_all(_ground(problem))
    homeless = tuple(ground.members_of(~_any(ground.homes)).tolist())
    kinds = _undominated(ground)
    return tuple(_part(ground, members, among) for members, among in _components(ground, kinds)), homeless


def _ground(problem: PackingProblem) -> _Ground:
    classes, kinds, limits = problem.classes, problem.kinds, len(problem.limits)
    requests = np.array([each.requests for each in classes], np.int64).reshape(len(classes), -1)
    rooms = np.array([kind.room for kind in kinds], np.int64).reshape(len(kinds), -1)
    most = np.array([UNLIMITED if kind.most is None else kind.most for kind in kinds], np.int64)
    takes = np.array([kind.takes for kind in kinds], np.int64).reshape(len(kinds), limits)
    # Of what takes more than a limit leaves, not even one is to be had.
    is_to_be_had = (most > 0) & (takes <= np.array(problem.limits, np.int64)).all(axis=1)
    named: dict[frozenset[int], Bools] = {}
    asked: dict[tuple[tuple[int, ...], frozenset[int]], int] = {}
    holding: dict[tuple[int, int], Bools] = {}
    rows: dict[bytes, int] = {}
    home_of = np.full(len(classes), -1, np.int64)
    for index, each in enumerate(classes):
        if not each.count:
            continue
        key = (each.requests, each.kinds)
        if key not in asked:
            if each.kinds not in named:
                own = np.fromiter(each.kinds, np.int64, len(each.kinds))
                named[each.kinds] = is_to_be_had & np.isin(np.arange(len(kinds)), own)
            holds = named[each.kinds].copy()
            # Classes by the hundred ask for a few different amounts of each resource.
            for of in [(resource, amount) for resource, amount in enumerate(each.requests) if amount]:
                if of not in holding:
                    holding[of] = rooms[:, of[0]] >= of[1]
                holds &= holding[of]
            asked[key] = rows.setdefault(holds.tobytes(), len(rows))
        home_of[index] = asked[key]
    return _Ground(
        requests=requests,
        counts=np.array([each.count for each in classes], np.int64),
        rooms=rooms,
        prices=np.array([kind.micros_per_hour for kind in kinds], np.int64),
        takes=takes,
        most=most,
        limits=np.array(problem.limits, np.int64),
        homes=np.array([np.frombuffer(row, np.bool_) for row in rows], np.bool_).reshape(len(rows), len(kinds)),
        home_of=home_of,
    )


def _guests(ground: _Ground) -> tuple[Bools, Ints]:
    """The sets of homes that kinds are in, each once: by set and home; and the set of each kind."""
    rows: dict[bytes, int] = {}
    columns = np.ascontiguousarray(ground.homes.T)
    set_of = np.array([rows.setdefault(column.tobytes(), len(rows)) for column in columns], np.int64)
    sets = np.array([np.frombuffer(row, np.bool_) for row in rows], np.bool_)
    return sets.reshape(len(rows), len(ground.homes)), set_of


def _with_room_for_all(ground: _Ground) -> _Ground:
    """The same, no kind with more room than all of its guests together ask for: so much larger ones are alike."""
    sets, set_of = _guests(ground)
    # Amounts of thousands of pods may be more than 64 bits hold.
    asked = np.zeros((len(ground.homes), ground.requests.shape[1]), object)
    for index in np.flatnonzero(ground.has_pods).tolist():
        asked[ground.home_of[index]] += ground.requests[index].astype(object) * int(ground.counts[index])
    total = np.array([np.minimum(asked[guests].sum(axis=0), UNLIMITED) for guests in sets], object)
    return evolve(ground, rooms=np.minimum(ground.rooms, total.reshape(len(sets), -1).astype(np.int64)[set_of]))


def _undominated(ground: _Ground) -> Ints:
    """Kinds that hold anything, and of which no other gives as much to as many for as little and takes no more."""
    sets, set_of = _guests(ground)
    content = _ranks_of(
        [
            # The cheap ones first, then what has more room, so that what beats another comes before it.
            (price, *(-each for each in room), *takes, -most)
            for price, room, takes, most in zip(
                ground.prices.tolist(), ground.rooms.tolist(), ground.takes.tolist(), ground.most.tolist(), strict=True
            )
        ]
    )
    # No index decides: what is at home in a set stands for it.
    at_home = [_in_order(content[home]) for home in ground.homes]
    among = np.flatnonzero(ground.has_pods).tolist()
    class_rank = np.zeros(len(ground.counts), np.int64)
    class_rank[among] = _ranks_of(
        [
            (*ground.requests[index].tolist(), int(ground.counts[index]), at_home[ground.home_of[index]])
            for index in among
        ]
    )
    held = [class_rank[ground.members_of(guests)] for guests in sets]
    set_rank = _ranks_of([(-len(each), _in_order(each)) for each in held])
    order = np.lexsort((set_rank[set_of], content))
    order = order[_any(sets)[set_of[order]]]
    # Whoever is a guest of the one is one of the other.
    covers = ~(sets[None, :, :] & ~sets[:, None, :]).any(axis=2)
    kept = compiled.unbeaten(
        ground.prices[order],
        ground.rooms[order],
        ground.takes[order],
        ground.most[order] == UNLIMITED,
        set_of[order],
        covers,
    )
    kinds: Ints = order[kept]
    return kinds


def _any(of: Bools) -> Bools:
    """By row, whether any is true."""
    found: Bools = np.asarray(of.any(axis=1))
    return found


def _ranks_of(contents: Sequence[tuple[object, ...]]) -> Ints:
    """The place of each among the different ones, in order."""
    places = {content: place for place, content in enumerate(sorted(set(contents)))}
    return np.array([places[content] for content in contents], np.int64)


def _in_order(ranks: Ints) -> bytes:
    return np.sort(ranks).astype(_IN_ORDER).tobytes()


def _components(ground: _Ground, kinds: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Classes and kinds that hang together by who may go where, or by a limit."""
    homes = ground.homes[:, kinds]
    label = np.arange(len(kinds))
    for joined in (*homes, *(ground.takes[kinds].T > 0)):
        labels = label[joined]
        if len(labels) and (labels != labels[0]).any():
            label[np.isin(label, labels)] = labels.min()
    for head in np.unique(label):
        members = ground.members_of(_any(homes[:, label == head]))
        if len(members):
            yield members, kinds[label == head]


def _part(ground: _Ground, members: Ints, kinds: Ints) -> Part:
    homes = ground.homes[:, kinds]
    places = {home: tuple(np.flatnonzero(homes[home]).tolist()) for home in set(ground.home_of[members].tolist())}

    def order(index: int) -> tuple[object, ...]:
        asked = tuple((-ground.requests[index]).tolist())
        return asked, places[int(ground.home_of[index])], int(ground.counts[index])

    ordered = np.array(sorted(members.tolist(), key=order), np.int64)
    asked = (ground.requests[ordered] > 0).any(axis=0)
    requests, rooms = ground.requests[ordered][:, asked], ground.rooms[kinds][:, asked]
    counts = ground.counts[ordered]
    if not (requests > 0).any(axis=1).all():
        # A pod that asks for nothing still needs a node. Room to count them by keeps the searches bounded.
        requests = np.concatenate([requests, np.ones((len(requests), 1), np.int64)], axis=1)
        rooms = np.concatenate([rooms, np.full((len(rooms), 1), counts.sum())], axis=1)
    own = np.flatnonzero(ground.most[kinds] != UNLIMITED)
    is_own = np.zeros((len(kinds), len(own)), np.int64)
    is_own[own, np.arange(len(own))] = 1
    return Part(
        class_indices=tuple(ordered.tolist()),
        kind_indices=tuple(kinds.tolist()),
        requests=np.ascontiguousarray(requests),
        counts=counts,
        rooms=np.ascontiguousarray(rooms),
        prices=ground.prices[kinds],
        allowed=np.ascontiguousarray(homes[ground.home_of[ordered]].T),
        takes=np.concatenate([ground.takes[kinds], is_own], axis=1),
        limits=np.concatenate([ground.limits, ground.most[kinds][own]]),
    )
