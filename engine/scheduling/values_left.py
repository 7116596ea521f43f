"""What a new node could still be instead: a pool with minValues wants so many different ones for all pods of a node.

Source: Karpenter's SatisfiesMinValues (pkg/cloudprovider/types.go), asked of a claim with each pod that is added. Where
a pool does its best only, the first pod may lower what is asked, and those that are added never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve, frozen

from engine.model.quantity import NOTHING, Resources
from engine.scheduling.groups import PodClass, Shape
from engine.scheduling.kinds import Offer, Rung
from engine.scheduling.offers import PoolOffers

# The labels of a node under the pool's keys with minValues, in the order of the keys.
_Values = tuple[str | None, ...]


@frozen(eq=False)
class _Way:
    """A node that can be bought: its room, and what it shows."""

    room: Resources
    values: _Values


@frozen(eq=False)
class _Node:
    """Nodes that hold alike: what they hold, and which options, by identity, would hold it; ``ways`` None: any.

    ``least`` is how many values each key must keep, None until a pod is there.
    """

    pool: PoolOffers
    taken: Resources
    ways: frozenset[int] | None = None
    least: tuple[int, ...] | None = None


class ValuesLeft:
    """Told of each node of such a pool that a draft opens, and of each pod that is put there."""

    def __init__(self, pools: Iterable[PoolOffers]) -> None:
        self._fresh = {pool.name: _Node(pool, NOTHING) for pool in pools if pool.min_values}
        self._on: dict[int, _Node] = {}
        self._open: dict[tuple[str, Shape], Mapping[int, _Way]] = {}
        self._most: dict[tuple[_Node, Shape], int] = {}
        self._after: dict[tuple[_Node, Shape, int], _Node] = {}
        self._packable: dict[tuple[int, Shape], tuple[Rung, Rung]] = {}

    def join(self, member: int, pool: str) -> None:
        """A new node, still empty."""
        if pool in self._fresh:
            self._on[member] = self._fresh[pool]

    def admitted(self, pod_class: PodClass, member: int, most: int) -> int:
        """How many pods of the class may be put there, ``most`` at most."""
        node = self._on.get(member)
        return most if node is None else min(most, self._most_on(node, pod_class))

    def on_new(self, pod_class: PodClass, pool: str, most: int) -> int:
        """The same of a new node of the pool."""
        node = self._fresh.get(pool)
        return most if node is None else min(most, self._most_on(node, pod_class))

    def put(self, pod_class: PodClass, member: int, pods: int) -> None:
        """So many pods of the class are there from now on."""
        node = self._on.get(member)
        if node is None:
            return
        key = (node, pod_class.shape, pods)
        if key not in self._after:
            requests = pod_class.requests
            ways = self._ways(node, pod_class)
            self._after[key] = _Node(
                pool=node.pool,
                taken=node.taken + requests * pods,
                ways=frozenset(ways),
                least=self._least(node, _held(node, pod_class, ways.values())),
            )
        self._on[member] = self._after[key]

    def packable(self, pod_class: PodClass, rung: Rung) -> Rung:
        """The offers with as much of their room as enough others have too: packing may fill that as it likes."""
        if not any(offer.kind.pool in self._fresh for offer in rung):
            return rung
        key = (id(rung), pod_class.shape)
        if key not in self._packable:
            cut = [self._cut(pod_class, offer) for offer in rung]
            left = _worth_packing([offer for offer in cut if offer is not None])
            all_are_whole = len(left) == len(rung) and all(a is b for a, b in zip(left, rung, strict=True))
            # With the rung itself, whose identity must stay its own; and where all is left, it tells that to others.
            self._packable[key] = (rung, rung if all_are_whole else left)
        return self._packable[key][1]

    def _cut(self, pod_class: PodClass, offer: Offer) -> Offer | None:
        """The offer with what of its room as many others have as are asked for: those that have most of it."""
        node, room = self._fresh.get(offer.kind.pool), offer.kind.room
        if node is None:
            return offer
        held = _held(node, pod_class, self._ways(node, pod_class).values())
        wanted = _Wanted(self._least(node, held))
        ways = [(min(count, offer.pods_per_node), way) for count, way in held if count]
        parts = {id(way): _part_of(room, way.room) for _, way in ways}
        for _, way in sorted(ways, key=lambda pair: (-pair[0], -parts[id(pair[1])])):
            if wanted.are_shown:
                break
            wanted.show(way.values)
            room = room if way.room is room else _common(room, way.room)
        if not wanted.are_shown:
            return None
        return offer if room == offer.kind.room else evolve(offer, fillable=room)

    def _most_on(self, node: _Node, pod_class: PodClass) -> int:
        key = (node, pod_class.shape)
        if key not in self._most:
            held = _held(node, pod_class, self._ways(node, pod_class).values())
            self._most[key] = _most(held, self._least(node, held))
        return self._most[key]

    def _ways(self, node: _Node, pod_class: PodClass) -> Mapping[int, _Way]:
        """The options that the node's pods and one of the class leave, room apart."""
        pool, key = node.pool, (node.pool.name, pod_class.shape)
        if key not in self._open:
            rulings = pod_class.rulings
            self._open[key] = {
                id(option): _Way(kind.room, tuple(labels.get(name) for name in pool.min_values))
                for kind in pool.permitted(pod_class.demand)
                if rulings.bar(pool.name, kind.type_at) is None
                for option in kind.buyable
                for labels in ({**option.labels_once_up, **dict(kind.added_labels)},)
            }
        every = self._open[key]
        return every if node.ways is None else {each: way for each, way in every.items() if each in node.ways}

    @staticmethod
    def _least(node: _Node, held: Sequence[tuple[int, _Way]]) -> tuple[int, ...]:
        if node.least is not None:
            return node.least
        asked = tuple(node.pool.min_values.values())
        if not node.pool.state.pool.min_values_best_effort:
            return asked
        shown = [{way.values[at] for count, way in held if count} - {None} for at in range(len(asked))]
        return tuple(min(least, len(values)) for least, values in zip(asked, shown, strict=True))


class _Wanted:
    """How many values of each key are to be seen, and which were."""

    def __init__(self, least: tuple[int, ...]) -> None:
        self._least = least
        self._shown: list[set[str]] = [set() for _ in least]

    def show(self, values: _Values) -> None:
        for seen, value in zip(self._shown, values, strict=True):
            if value is not None:
                seen.add(value)

    @property
    def are_shown(self) -> bool:
        return all(len(seen) >= enough for seen, enough in zip(self._shown, self._least, strict=True))


def _held(node: _Node, pod_class: PodClass, ways: Iterable[_Way]) -> list[tuple[int, _Way]]:
    """How many pods of the class each of the ways holds beside what is there."""
    counts: dict[Resources, int] = {}
    held = []
    for way in ways:
        if way.room not in counts:
            counts[way.room] = pod_class.requests.times_in(way.room - node.taken)
        held.append((counts[way.room], way))
    return held


def _most(held: Iterable[tuple[int, _Way]], least: tuple[int, ...]) -> int:
    """The most pods with which those that hold them show enough values of each key."""
    wanted = _Wanted(least)
    for count, way in sorted(held, key=lambda pair: -pair[0]):
        if not count:
            break
        wanted.show(way.values)
        if wanted.are_shown:
            return count
    return 0


def _part_of(room: Resources, other: Resources) -> float:
    """How much of a room another has, resource by resource: as many as there are resources where it has all."""
    return sum(min(1.0, other.amount(name) / room.amount(name)) for name in sorted(room) if room.amount(name) > 0)


def _common(one: Resources, other: Resources) -> Resources:
    return Resources({name: min(one.amount(name), other.amount(name)) for name in one})


def _worth_packing(offers: Sequence[Offer]) -> Rung:
    """Without those of which no more may be filled than of a cheaper one that takes no more of any limit."""
    kept: list[Offer] = []
    for offer in sorted(offers, key=lambda each: (each.kind.cost.micros, each.kind.order)):
        if offer.fillable is offer.kind.room or not any(_is_as_good(other, offer) for other in kept):
            kept.append(offer)
    ids = {id(offer) for offer in kept}
    return tuple(offer for offer in offers if id(offer) in ids)


def _is_as_good(other: Offer, offer: Offer) -> bool:
    one, another = other.kind, offer.kind
    if one.pool != another.pool or one.reservation or one.probes or one.daemon_ports != another.daemon_ports:
        return False
    if not (offer.fillable.fits_in(other.fillable) and one.capacity.fits_in(another.capacity)):
        return False
    zones = {option.offering.zone for option in other.options}
    has_all_zones = zones.issuperset(option.offering.zone for option in offer.options)
    return has_all_zones and one.added_labels == another.added_labels
