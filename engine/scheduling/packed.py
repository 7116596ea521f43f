"""From pods that need new nodes to the question of packing, and from its answer back to nodes with pods on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import gcd

from attrs import field, frozen

from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind, Make, Offer, Pin, Rung
from engine.scheduling.limits import UNLIMITED, LimitRow
from engine.scheduling.packing.problem import NodeKind, PackClass, Packing, PackingProblem
from engine.scheduling.problem import NodeOption
from engine.scheduling.steps import Steps

# What is added to costs so that, at equal cost, fewer nodes are bought, and nodes in use come before empty ones.
_A_NEW_NODE, _AN_EMPTY_NODE, _A_WASTED_NODE = 1, 1, 10
# A pebibyte of memory: amounts of thousands of pods are added up in 64 bits, and a node may report any. Of more than
# that, a node's room is taken to be so much, and a pod that asks for more to fit nowhere.
_MOST_OF_A_RESOURCE = 2**50

# Limits that an answer breaks are put into the question, and it is asked again: so often, then all are put in.
_QUESTIONS = 3


@frozen(eq=False)
class Wish:
    """Pods of one class that need new nodes of one of the ``rung``'s kinds, with the labels of the ``pin``.

    ``takes`` is what each of them takes of the pseudo-resources by which pods exclude each other on one node.
    """

    pod_class: PodClass
    pods: Sequence[PodKey]
    rung: Rung
    pin: Pin = ()
    takes: tuple[int, ...] = ()


@frozen(eq=False)
class PackedNode:
    """One node to open: a kind, those of its options that will do, and who goes there."""

    kind: Kind
    options: tuple[NodeOption, ...]
    loads: tuple[tuple[PodClass, tuple[PodKey, ...]], ...]


@frozen(eq=False)
class Standing:
    """Nodes that are there already, or on their way, and alike: ``members`` of the world. They cost nothing.

    ``takes`` are the classes that may go there. Other things equal, nodes in use come before empty ones, and last those
    that are wasted on some class: accelerated ones, on pods that ask for no accelerator.
    """

    members: tuple[int, ...]
    room: Resources
    takes: frozenset[PodClass]
    is_empty: bool
    is_wasted: bool


@frozen(eq=False)
class FilledNode:
    """One of the standing nodes, and who goes there."""

    member: int
    loads: tuple[tuple[PodClass, tuple[PodKey, ...]], ...]


@frozen(eq=False)
class Packed:
    """``lower_bound_micros`` is proven for the pods that the nodes hold."""

    nodes: tuple[PackedNode, ...]
    filled: tuple[FilledNode, ...]
    lower_bound_micros: int


def packed_within(
    rows: Sequence[LimitRow],
    wishes: Sequence[Wish],
    rooms: tuple[int, ...],
    standing: Sequence[Standing],
    steps: Steps,
) -> Packed:
    """The cheapest nodes that are found for the wishes, within the rows; as few pods as is found are left out.

    Few limits are ever near, so at first only those are asked about that leave room for no node. ``rooms`` is what an
    empty node has of each pseudo-resource.
    """
    question = Question(wishes, rooms, standing)

    def within(asked: Sequence[LimitRow]) -> Packed:
        return question.answered(asked, steps)

    asked = tuple(row for row in rows if question.is_shut_by(row))
    for _ in range(_QUESTIONS):
        answer = within(asked)
        broken = tuple(row for row in rows if _is_broken(row, answer))
        if not broken:
            return answer
        asked = tuple(row for row in rows if row in asked or row in broken)
    return within(rows)


def _is_broken(row: LimitRow, answer: Packed) -> bool:
    return sum(row.taken_by(node.kind) for node in answer.nodes) > row.left


# A make of node, and what of its room may be filled.
_Filled = tuple[Make, Resources]
# Rungs of the same kinds and options are one ground to pack on, however many pods their nodes hold of one class or the
# other: the first of them stands for all, by its identity.
_Ground = int
# Which options are open to a wish: those of an offer, by identity, with the labels of a pin.
_Asked = tuple[int, Pin]


@frozen(eq=False)
class _Offered:
    """A make of node and what of its room may be filled, with the options that are open to who ``asked`` for it, and
    the ``places`` of their copies in the problem."""

    kind: Kind
    room: Resources
    asked: dict[_Asked, tuple[NodeOption, ...]] = field(factory=dict)
    places: dict[_Asked, list[int]] = field(factory=dict)


@frozen(eq=False)
class _Copy:
    """A kind, cut down to what of its ``room`` may be filled, and to those of its options that are open to the same
    askers. ``index`` is its place in the problem."""

    kind: Kind
    room: Resources
    options: tuple[NodeOption, ...]
    index: int


@frozen(eq=False)
class _Alike:
    """Wishes that packing cannot tell apart, with the kinds that they may go to."""

    wishes: list[Wish] = field(factory=list)

    @property
    def count(self) -> int:
        return sum(len(wish.pods) for wish in self.wishes)


class Question:
    """The wishes, laid out once; it may be asked with some limits, and again with more of them."""

    def __init__(self, wishes: Sequence[Wish], rooms: tuple[int, ...], standing: Sequence[Standing]) -> None:
        """``rooms`` is what an empty node has of each pseudo-resource."""
        self._rooms, self._standing = rooms, standing
        self._alike = _grouped(wishes, standing)
        self._resources = sorted({name for each in self._alike for name in each.wishes[0].pod_class.requests})
        self._kinds: list[_Copy] = []
        self._grounds = _grounds(each.wishes[0].rung for each in self._alike)
        # By the ground: each offer's options, by identity, and the places of the copies for who asks for them.
        self._open_to: dict[_Ground, list[tuple[int, dict[_Asked, list[int]]]]] = {}
        self._lay_out()
        self._classes = tuple(self._pack_classes())

    def is_shut_by(self, row: LimitRow) -> bool:
        """Whether the row is about some kind, and any such takes more than is left of it."""
        taken = [amount for each in self._kinds if (amount := row.taken_by(each.kind)) > 0]
        return bool(taken) and min(taken) > row.left

    def answered(self, rows: Sequence[LimitRow], steps: Steps) -> Packed:
        """The cheapest nodes that are found in those steps, within the rows; as few pods as is found are left out."""
        answer = steps.pack(self._problem(rows))
        nodes, filled = self._nodes(answer)
        return Packed(nodes, filled, max(0, answer.lower_bound_micros - self._most_added_micros))

    def _lay_out(self) -> None:
        """Each make of node once, or once for each set of options that the same wishes may have."""
        offered: dict[_Filled, _Offered] = {}
        known: dict[tuple[int, int], _Offered] = {}
        offering: dict[_Ground, list[tuple[Offer, _Offered]]] = {}
        asking = {(self._ground(each.wishes[0]), each.wishes[0].pin): each.wishes[0].rung for each in self._alike}
        for (ground, pin), rung in asking.items():
            if ground not in offering:
                offering[ground] = [(offer, _offered_by(offer, offered, known)) for offer in rung]
            for offer, found in offering[ground]:
                found.asked[id(offer.options), pin] = offer.options
        for each in sorted(offered.values(), key=lambda it: it.kind.order):
            for open_to, options in _by_who_may(each.kind, each.asked).items():
                for asked in open_to:
                    each.places.setdefault(asked, []).append(len(self._kinds))
                self._kinds.append(_Copy(each.kind, each.room, options, len(self._kinds)))
        self._open_to = {
            ground: [(id(offer.options), found.places) for offer, found in pairs] for ground, pairs in offering.items()
        }

    def _pack_classes(self) -> Iterator[PackClass]:
        homes: dict[tuple[_Ground, Pin], frozenset[int]] = {}
        for each in self._alike:
            wish = each.wishes[0]
            key = (self._ground(wish), wish.pin)
            if key not in homes:
                homes[key] = frozenset(self._homes(wish))
            there = [
                len(self._kinds) + place for place, group in enumerate(self._standing) if wish.pod_class in group.takes
            ]
            asked = _amounts(wish.pod_class.requests, self._resources, _MOST_OF_A_RESOURCE + 1)
            # The very same set where it is the same, so that nobody compares them.
            own = homes[key].union(there) if there else homes[key]
            yield PackClass((*asked, *(wish.takes or self._nothing)), each.count, own)

    def _problem(self, rows: Sequence[LimitRow]) -> PackingProblem:
        taken = [[row.taken_by(copy.kind) for copy in self._kinds] for row in rows]
        # In the largest unit that loses nothing: solvers reckon in floating point.
        units = [gcd(*amounts) or 1 for amounts in taken]
        kinds = [
            NodeKind(
                room=(*_amounts(copy.room, self._resources), *self._rooms),
                micros_per_hour=copy.kind.cost.micros + _A_NEW_NODE,
                takes=tuple(amounts[copy.index] // unit for amounts, unit in zip(taken, units, strict=True)),
            )
            for copy in self._kinds
        ]
        kinds += [
            NodeKind(
                room=(*_amounts(group.room, self._resources), *self._nothing),
                micros_per_hour=_A_WASTED_NODE * group.is_wasted + _AN_EMPTY_NODE * group.is_empty,
                most=len(group.members),
                takes=(0,) * len(rows),
            )
            for group in self._standing
        ]
        limits = tuple(min(row.left // unit, UNLIMITED) for row, unit in zip(rows, units, strict=True))
        return PackingProblem(self._classes, tuple(kinds), limits)

    def _ground(self, wish: Wish) -> _Ground:
        return self._grounds[id(wish.rung)]

    @property
    def _nothing(self) -> tuple[int, ...]:
        return (0,) * len(self._rooms)

    def _homes(self, wish: Wish) -> Iterable[int]:
        pin = wish.pin
        homes = [places.get((options, pin), ()) for options, places in self._open_to[self._ground(wish)]]
        return chain.from_iterable(homes)

    @property
    def _most_added_micros(self) -> int:
        """By how much what was added to costs may have raised the bound: no answer needs more nodes than pods."""
        return _A_WASTED_NODE * sum(each.count for each in self._alike)

    def _nodes(self, answer: Packing) -> tuple[tuple[PackedNode, ...], tuple[FilledNode, ...]]:
        """The nodes one by one, with pods in the order of the wishes."""
        queues = [_pods_in_order(each.wishes) for each in self._alike]
        members = [iter(group.members) for group in self._standing]
        bought, filled = [], []
        for found in answer.nodes:
            for _ in range(found.nodes):
                loads = _taken(queues, found.pods)
                if found.kind < len(self._kinds):
                    copy = self._kinds[found.kind]
                    bought.append(PackedNode(copy.kind, copy.options, loads))
                else:
                    filled.append(FilledNode(next(members[found.kind - len(self._kinds)]), loads))
        return tuple(bought), tuple(filled)


def _taken(
    queues: Sequence[Iterator[tuple[PodClass, PodKey]]], counts: Iterable[tuple[int, int]]
) -> tuple[tuple[PodClass, tuple[PodKey, ...]], ...]:
    loads: dict[PodClass, list[PodKey]] = {}
    for place, count in counts:
        for pod_class, pod in islice(queues[place], count):
            loads.setdefault(pod_class, []).append(pod)
    return tuple((pod_class, tuple(pods)) for pod_class, pods in loads.items())


def _grouped(wishes: Iterable[Wish], standing: Sequence[Standing]) -> list[_Alike]:
    groups: dict[tuple[object, ...], _Alike] = {}
    for wish in wishes:
        there = tuple(wish.pod_class in group.takes for group in standing)
        key = (wish.pod_class.requests, id(wish.rung), wish.pin, wish.takes, there)
        groups.setdefault(key, _Alike()).wishes.append(wish)
    return list(groups.values())


def _grounds(rungs: Iterable[Rung]) -> Mapping[int, _Ground]:
    """Of each rung, by identity."""
    known: dict[tuple[int, ...], _Ground] = {}
    found: dict[int, _Ground] = {}
    for rung in rungs:
        if id(rung) not in found:
            content = [what for each in rung for what in (id(each.kind), id(each.options), id(each.fillable))]
            found[id(rung)] = known.setdefault(tuple(content), id(rung))
    return found


def _by_who_may(
    kind: Kind, asked: Mapping[_Asked, tuple[NodeOption, ...]]
) -> Mapping[frozenset[_Asked], tuple[NodeOption, ...]]:
    """The options by those who may have them; options that nobody may have are left out."""
    if len(asked) == 1:
        [(only, options)] = asked.items()
        if not only[1]:
            return {frozenset(asked): options}
    among = {each: {id(option) for option in options} for each, options in asked.items()}
    every = {id(option): option for options in asked.values() for option in options}
    groups: dict[frozenset[_Asked], list[NodeOption]] = {}
    for option in sorted(every.values(), key=lambda each: each.offering.key):
        may = frozenset(each for each, ids in among.items() if id(option) in ids and _meets(option, kind, each[1]))
        if may:
            groups.setdefault(may, []).append(option)
    return {may: tuple(options) for may, options in groups.items()}


def _offered_by(offer: Offer, offered: dict[_Filled, _Offered], known: dict[tuple[int, int], _Offered]) -> _Offered:
    """The same for offers of one make and room. Rungs by the dozen offer those, and comparing rooms takes time."""
    identity = (id(offer.kind.make), id(offer.fillable))
    found = known.get(identity)
    if found is None:
        key, new = (offer.kind.make, offer.fillable), _Offered(offer.kind, offer.fillable)
        found = known[identity] = offered.setdefault(key, new)
    return found


def _meets(option: NodeOption, kind: Kind, pin: Pin) -> bool:
    if not pin:
        return True
    labels = kind.labels_of(option)
    return all(labels.get(key) == value for key, value in pin)


def _amounts(of: Resources, resources: Sequence[str], most: int = _MOST_OF_A_RESOURCE) -> tuple[int, ...]:
    return tuple(min(max(0, of.amount(name)), most) for name in resources)


def _pods_in_order(wishes: Sequence[Wish]) -> Iterator[tuple[PodClass, PodKey]]:
    return ((wish.pod_class, pod) for wish in wishes for pod in wish.pods)
