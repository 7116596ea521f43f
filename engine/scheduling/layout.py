"""An estate as packing sees it: classes of pods by number, and kinds of node that take them.

It knows room, labels, taints, prices, and what keeps pods apart on one node; nothing of what ties them otherwise, nor
of limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from operator import le

from attrs import field, frozen

from engine.model.constraint import Taint
from engine.model.money import UsdPerHour
from engine.model.pod import Pod, PodKey
from engine.model.quantity import Resources
from engine.scheduling.estate import Estate
from engine.scheduling.groups import PodClass, on_terms, pod_classes
from engine.scheduling.kinds import Kind, Make, Rung
from engine.scheduling.market import Market
from engine.scheduling.movable import MovableNode, NodeName
from engine.scheduling.offers import PoolOffers
from engine.scheduling.places import Place, dislikes_of
from engine.scheduling.problem import ExistingNode
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.topology.host_dimensions import HostDimensions, host_dimensions
from engine.scheduling.topology.neighbourhood import Neighbourhood, couplings

# How many pods of which class.
_Load = frozenset[tuple[int, int]]


@frozen(eq=False)
class Vacant:
    """Movable nodes that packing cannot tell apart once their pods are off them. ``takes`` are the classes that
    kube-scheduler would bind there."""

    takes: frozenset[int]
    room: Resources
    micros: int
    nodes: list[MovableNode] = field(factory=list)


@frozen(eq=False)
class Offered:
    """A kind of node that can be bought, ``most``: no more than so many of it. It is made for the classes that it
    ``takes``."""

    takes: frozenset[int]
    room: Resources
    micros: int
    most: int | None


@frozen(eq=False)
class Remaining:
    """So many nodes that stay in any case, with the room that is left on each."""

    takes: frozenset[int]
    room: Resources
    count: int


@frozen(eq=False)
class Standing:
    """A node as it is, with the room that its pods leave, by the names that the problem has for it."""

    name: NodeName
    takes: frozenset[int]
    room: Resources


@frozen(eq=False, slots=False)
class Layout:
    """Of all pods on movable nodes, as if none of them were anywhere."""

    estate: Estate

    def alone(self, node: MovableNode) -> UsdPerHour | None:
        """What new nodes for this node's pods alone would cost: one that holds all of them, or some for each class.

        None where none can be bought for some of them.
        """
        load = frozenset(Counter(self.class_of[pod.key] for pod in node.pods).items())
        if load not in self._alone:
            asked = [sum(self.requests[at][place] * count for at, count in load) for place in range(len(self._asked))]
            classes = {at for at, _ in load}
            holding = [
                each.micros
                for each in self.offered
                if classes <= each.takes and all(map(le, asked, self.amounts(each.room)))
            ]
            by_class = [self._apart(at, count) for at, count in load]
            if None not in by_class:
                holding.append(sum(price for price in by_class if price is not None))
            cheapest = min(holding, default=None)
            self._alone[load] = None if cheapest is None else UsdPerHour(cheapest)
        return self._alone[load]

    def _apart(self, at: int, count: int) -> int | None:
        """What so many pods of a class cost on nodes of one kind, in micro-dollars."""
        liked = self._liked(self.classes[at])
        prices = (offer.kind.cost.micros * -(-count // offer.pods_per_node) for offer in liked)
        return min(prices, default=None)

    def _liked(self, pod_class: PodClass) -> Rung:
        """What policy prefers for the class before all else; nothing where none can be bought."""
        return next(iter(self._market.rungs(pod_class)), ())

    def worth(self, node: MovableNode) -> float:
        """What the node's pods would cost at the least elsewhere, in micro-dollars, were all on their nodes alike."""
        return sum(self._least[self.class_of[pod.key]] for pod in node.pods)

    def amounts(self, of: Resources) -> tuple[int, ...]:
        """Of each resource that any pod asks for."""
        return tuple(max(0, of.amount(name)) for name in self._asked)

    @cached_property
    def classes(self) -> tuple[PodClass, ...]:
        problem = self.estate.problem
        found = pod_classes(self._pods, problem.rulings, self._neighbourhood.coupling_of)
        return tuple(on_terms(found, problem.terms))

    @cached_property
    def class_of(self) -> Mapping[PodKey, int]:
        return {pod: number for number, each in enumerate(self.classes) for pod in each.pods}

    @cached_property
    def requests(self) -> list[tuple[int, ...]]:
        """Of a pod of each class."""
        return [self.amounts(each.requests) for each in self.classes]

    @cached_property
    def on_hosts(self) -> HostDimensions:
        """What keeps pods apart on one node, as room."""
        return host_dimensions(
            self._neighbourhood, [each.coupling for each in self.classes], [len(each.pods) for each in self.classes]
        )

    @cached_property
    def offered(self) -> list[Offered]:
        """Of what policy prefers only."""
        takes: dict[Make, set[int]] = {}
        kinds: dict[Make, Kind] = {}
        for at, pod_class in enumerate(self.classes):
            for offer in self._liked(pod_class):
                kinds.setdefault(offer.kind.make, offer.kind)
                takes.setdefault(offer.kind.make, set()).add(at)
        return [Offered(frozenset(takes[make]), kind.room, kind.cost.micros, kind.most) for make, kind in kinds.items()]

    @cached_property
    def vacant(self) -> list[Vacant]:
        """In the order of their first nodes."""
        existing = {(each.node, each.claim): each for each in self.estate.problem.existing}
        found: dict[tuple[frozenset[int], Resources, int], Vacant] = {}
        for node in self.estate.movable:
            there = existing[node.name]
            takes, room = self._admitted(there.labels, there.taints), _room_without_pods(there, node)
            micros = node.usd_per_hour.micros
            found.setdefault((takes, room, micros), Vacant(takes, room, micros)).nodes.append(node)
        return list(found.values())

    @cached_property
    def remaining(self) -> list[Remaining]:
        """Those on which any pod fits."""
        movable = {each.name for each in self.estate.movable}
        found: Counter[tuple[frozenset[int], Resources]] = Counter()
        for each in self.estate.problem.existing:
            if (each.node, each.claim) not in movable:
                admitted = self._admitted(each.labels, each.taints)
                fitting = frozenset(at for at in admitted if self.classes[at].requests.fits_in(each.room))
                found.update([(fitting, each.room)] if fitting else [])
        ordered = sorted(found.items(), key=lambda pair: (sorted(pair[0][0]), tuple(pair[0][1].items())))
        return [Remaining(takes, room, count) for (takes, room), count in ordered]

    @cached_property
    def standing(self) -> list[Standing]:
        """All that are there, in the order of their names."""
        ordered = sorted(self.estate.problem.existing, key=lambda each: (each.node or "", each.claim or ""))
        return [
            Standing((each.node, each.claim), self._admitted(each.labels, each.taints), each.room) for each in ordered
        ]

    def _admitted(self, labels: Mapping[str, str], taints: tuple[Taint, ...]) -> frozenset[int]:
        """The classes whose pods kube-scheduler would bind to such a node, room apart."""
        own = canonical_labels(labels)
        shown = (tuple(own.get(key) for key in self._keys), taints)
        if shown not in self._admits:
            place = Place(own, taints, False, False, ("", "", "", ""), ())
            self._admits[shown] = frozenset(
                at for at, each in enumerate(self.classes) if dislikes_of(each.demand, place) is not None
            )
        return self._admits[shown]

    @cached_property
    def _pods(self) -> list[Pod]:
        return [pod for node in self.estate.movable for pod in node.pods]

    @cached_property
    def _neighbourhood(self) -> Neighbourhood:
        problem = self.estate.without(self.estate.movable)
        return couplings(problem.pods, problem.standing, problem.namespaces)

    @cached_property
    def _market(self) -> Market:
        problem = self.estate.problem
        states = sorted(problem.pools, key=lambda each: each.pool.name)
        return Market([PoolOffers(state, problem.daemon_sets, self._keys) for state in states])

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(sorted({key for each in self.classes for key in each.demand.keys}))

    @cached_property
    def _least(self) -> list[float]:
        """What a pod of each class costs at the least where all on the node are such."""
        least = []
        for pod_class in self.classes:
            prices = [offer.kind.cost.micros / offer.pods_per_node for offer in self._liked(pod_class)]
            # What cannot be bought is not given up.
            least.append(min(prices, default=float("inf")))
        return least

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        return tuple(sorted({name for each in self.classes for name in each.requests}))

    @cached_property
    def _admits(self) -> dict[tuple[object, ...], frozenset[int]]:
        return {}

    @cached_property
    def _alone(self) -> dict[_Load, UsdPerHour | None]:
        return {}


def _room_without_pods(there: ExistingNode, node: MovableNode) -> Resources:
    amounts = dict(there.room)
    for pod in node.pods:
        for name, amount in pod.placing.requests.items():
            amounts[name] = amounts.get(name, 0) + amount
    return Resources(amounts)
