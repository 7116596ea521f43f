"""Which nodes would stay were all of them packed anew: a question of packing in which what stands is a kind of node.

It decides what to try, no more. It knows room, labels, taints and prices, and nothing of what ties pods to each other
or of limits: where the pods can go, and what then is bought, the scheduler is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from operator import le

from attrs import field, frozen

from engine.model.money import UsdPerHour
from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.scheduling.estate import Estate
from engine.scheduling.groups import PodClass, on_terms, pod_classes
from engine.scheduling.kinds import Make
from engine.scheduling.market import Market
from engine.scheduling.movable import MovableNode
from engine.scheduling.offers import PoolOffers
from engine.scheduling.packing.pack import pack
from engine.scheduling.packing.problem import NodeKind, PackClass, PackingProblem
from engine.scheduling.places import Place, dislikes_of
from engine.scheduling.problem import ExistingNode
from engine.scheduling.requirements import canonical_labels

# So much a standing node is cheaper for the packing than it is: of two equals the one that stands is kept.
_STANDS_ALREADY = 1

# How many pods of which class, by number.
_Load = frozenset[tuple[int, int]]


@frozen(eq=False)
class Target:
    """``going`` are the nodes that the packing does without; ``lower_bound`` is proven for the pods on movable ones:
    they cost no less on such nodes and on those that policy prefers, what others leave free taken for nothing.

    ``steps`` is how many were used.
    """

    going: tuple[MovableNode, ...]
    lower_bound: UsdPerHour
    steps: int


@frozen(eq=False)
class _Vacant:
    """Movable nodes that packing cannot tell apart once they are vacated."""

    takes: frozenset[int]
    room: Resources
    micros: int
    nodes: list[MovableNode] = field(factory=list)


@frozen(eq=False)
class _Offered:
    """What can be bought; ``most``: no more than so many of it."""

    takes: frozenset[int]
    room: Resources
    micros: int
    most: int | None


@frozen(eq=False, slots=False)
class Layout:
    """An estate laid out for packing. Classes of pods go by number."""

    estate: Estate

    def target(self, steps: int) -> Target:
        """The cheapest packing that is found in so many steps."""
        bought = [NodeKind(self._amounts(each.room), each.micros, each.most) for each in self._offered]
        vacant = [
            NodeKind(self._amounts(each.room), max(0, each.micros - _STANDS_ALREADY), len(each.nodes))
            for each in self._vacant
        ]
        others = [NodeKind(self._amounts(room), 0, count) for (_, room), count in self._others]
        takers = [each.takes for each in (*self._offered, *self._vacant)] + [takes for (takes, _), _ in self._others]
        answer = pack(PackingProblem(self._asking(takers), (*bought, *vacant, *others)), steps)
        kept = Counter[int]()
        for found in answer.nodes:
            kept[found.kind] += found.nodes
        going: list[MovableNode] = []
        for at, each in enumerate(self._vacant, start=len(bought)):
            # Those stay whose pods would cost most elsewhere.
            ranked = sorted(each.nodes, key=lambda node: (self._worth(node), node.claim))
            going += ranked[: len(ranked) - kept[at]]
        going.sort(key=lambda node: node.claim)
        return Target(tuple(going), UsdPerHour(answer.lower_bound_micros), answer.steps)

    def alone(self, node: MovableNode) -> UsdPerHour | None:
        """The price of the cheapest new node that holds all pods of this one; None where none does."""
        load = frozenset(Counter(self._class_of[pod.key] for pod in node.pods).items())
        if load not in self._alone:
            asked = [0] * len(self._asked)
            for at, count in load:
                for place, amount in enumerate(self._requests[at]):
                    asked[place] += amount * count
            classes = {at for at, _ in load}
            holding = (
                each.micros
                for each in self._offered
                if classes <= each.takes and all(map(le, asked, self._amounts(each.room)))
            )
            cheapest = min(holding, default=None)
            self._alone[load] = None if cheapest is None else UsdPerHour(cheapest)
        return self._alone[load]

    def _asking(self, takers: list[frozenset[int]]) -> tuple[PackClass, ...]:
        """The classes, with the kinds that take them; those that packing cannot tell apart are one."""
        homes: list[set[int]] = [set() for _ in self._classes]
        for kind, takes in enumerate(takers):
            for at in takes:
                homes[at].add(kind)
        alike: Counter[tuple[tuple[int, ...], frozenset[int]]] = Counter()
        for at, each in enumerate(self._classes):
            alike[self._requests[at], frozenset(homes[at])] += len(each.pods)
        return tuple(PackClass(asked, count, may) for (asked, may), count in alike.items())

    def _worth(self, node: MovableNode) -> float:
        return sum(self._least[self._class_of[pod.key]] for pod in node.pods)

    @cached_property
    def _classes(self) -> tuple[PodClass, ...]:
        problem = self.estate.problem
        pods = [pod for node in self.estate.movable for pod in node.pods]
        return tuple(on_terms(pod_classes(pods, problem.rulings), problem.terms))

    @cached_property
    def _class_of(self) -> Mapping[PodKey, int]:
        return {pod: number for number, each in enumerate(self._classes) for pod in each.pods}

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        return tuple(sorted({key for each in self._classes for key in each.demand.keys}))

    @cached_property
    def _market(self) -> Market:
        problem = self.estate.problem
        states = sorted(problem.pools, key=lambda each: each.pool.name)
        return Market([PoolOffers(state, problem.daemon_sets, self._keys) for state in states])

    @cached_property
    def _offered(self) -> list[_Offered]:
        """Of what policy prefers only."""
        takes: dict[Make, set[int]] = {}
        kinds = {}
        for at, pod_class in enumerate(self._classes):
            rungs = self._market.rungs(pod_class)
            for offer in rungs[0] if rungs else ():
                kinds.setdefault(offer.kind.make, offer.kind)
                takes.setdefault(offer.kind.make, set()).add(at)
        return [
            _Offered(frozenset(takes[make]), kind.room, kind.cost.micros, kind.most) for make, kind in kinds.items()
        ]

    @cached_property
    def _least(self) -> list[float]:
        """What a pod of each class costs at the least where all on the node are such."""
        least = [0.0] * len(self._classes)
        for at, pod_class in enumerate(self._classes):
            rungs = self._market.rungs(pod_class)
            prices = [offer.kind.cost.micros / offer.pods_per_node for offer in (rungs[0] if rungs else ())]
            # What cannot be bought cannot be given up.
            least[at] = min(prices, default=float("inf"))
        return least

    @cached_property
    def _vacant(self) -> list[_Vacant]:
        existing = {(each.node, each.claim): each for each in self.estate.problem.existing}
        found: dict[tuple[frozenset[int], Resources, int], _Vacant] = {}
        for node in self.estate.movable:
            there = existing[node.name]
            takes, room, micros = self._may_go_to(there), _room_without_pods(there, node), node.usd_per_hour.micros
            found.setdefault((takes, room, micros), _Vacant(takes, room, micros)).nodes.append(node)
        return list(found.values())

    @cached_property
    def _others(self) -> list[tuple[tuple[frozenset[int], Resources], int]]:
        """Nodes that stay in any case, with the room that is left there: who of them fits, room, how many."""
        movable = {each.name for each in self.estate.movable}
        found: Counter[tuple[frozenset[int], Resources]] = Counter()
        for each in self.estate.problem.existing:
            if (each.node, each.claim) not in movable:
                fitting = (at for at in self._may_go_to(each) if self._classes[at].requests.fits_in(each.room))
                found[frozenset(fitting), each.room] += 1
        return sorted(
            ((key, count) for key, count in found.items() if key[0]),
            key=lambda pair: (sorted(pair[0][0]), tuple(pair[0][1].items())),
        )

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        return tuple(sorted({name for each in self._classes for name in each.requests}))

    @cached_property
    def _requests(self) -> list[tuple[int, ...]]:
        return [self._amounts(each.requests) for each in self._classes]

    @cached_property
    def _admitted(self) -> dict[tuple[object, ...], frozenset[int]]:
        return {}

    @cached_property
    def _alone(self) -> dict[_Load, UsdPerHour | None]:
        return {}

    def _amounts(self, of: Resources) -> tuple[int, ...]:
        return tuple(max(0, of.amount(name)) for name in self._asked)

    def _may_go_to(self, node: ExistingNode) -> frozenset[int]:
        """The classes whose pods kube-scheduler would bind there, room apart."""
        labels = canonical_labels(node.labels)
        shown = (tuple((key, labels.get(key)) for key in self._keys), node.taints)
        if shown not in self._admitted:
            place = Place(labels, node.taints, node.is_accelerated, False, ("", "", "", ""), ())
            self._admitted[shown] = frozenset(
                at for at, each in enumerate(self._classes) if dislikes_of(each.demand, place) is not None
            )
        return self._admitted[shown]


def _room_without_pods(there: ExistingNode, node: MovableNode) -> Resources:
    amounts = dict(there.room)
    for pod in node.pods:
        for name, amount in pod.placing.requests.items():
            amounts[name] = amounts.get(name, 0) + amount
    return Resources(amounts)
