"""One way to answer a problem: who goes onto what is there, which nodes are opened, who gets nothing.

Several drafts are made of a problem and the best is kept, so the ways need not each be right for every problem: they
all hold every constraint, and differ in whom they leave out and in what they cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from engine.model.environment import Caps
from engine.model.pod import PodKey
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.company import Parting, companies
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass
from engine.scheduling.limits import Headroom
from engine.scheduling.market import Market
from engine.scheduling.new_nodes import NewNodes
from engine.scheduling.packed import Standing, Wish, packed_within
from engine.scheduling.problem import PoolState
from engine.scheduling.steps import Steps
from engine.scheduling.tied import Load, are_kept, kept_by_ties, wishes_by_domain
from engine.scheduling.together import Hosts, put_company
from engine.scheduling.topology.host_dimensions import host_dimensions
from engine.scheduling.topology.neighbourhood import Neighbourhood


class _Proven(NamedTuple):
    """So many ``pods`` that got a place cost ``least_micros``, in millionths of a dollar an hour, at the least."""

    least_micros: int
    pods: int


_NOTHING_PROVEN = _Proven(0, 0)


class Draft:
    """Made step by step: some classes after others are ``placed`` in one of the ways, then it is ``finished``."""

    def __init__(
        self,
        market: Market,
        pools: Sequence[PoolState],
        caps: Caps,
        ceilings: Sequence[Ceiling],
        there: World,
        neighbourhood: Neighbourhood,
        first_member: int,
        steps: Steps,
    ) -> None:
        """``there`` is the world before anybody new is placed; it is not changed. ``steps`` are those that all drafts
        of a problem have together."""
        self._market = market
        self._neighbourhood = neighbourhood
        self._steps = steps
        self.headroom = Headroom(pools, caps, ceilings)
        self.new_nodes = NewNodes(market, self.headroom, first_member)
        self.world = there.copy()
        self.world.values_left = self.new_nodes.values_left
        # Of what it has bought together: what these pods cost at the least, as far as that is proven, and how many.
        self.lower_bound_micros = self.proven_pods = 0
        self._left: dict[PodClass, Sequence[PodKey]] = {}
        # The nodes of a static pool come whether pods want them or not, so pods may as well have them.
        for pool in market.pools:
            if pool.state.pool.is_static:
                self.new_nodes.open_base(pool, self.world)

    @property
    def unplaced(self) -> Mapping[PodClass, Sequence[PodKey]]:
        """Of each class the pods that got nothing, in the order of the classes."""
        return {pod_class: pods for pod_class, pods in self._left.items() if pods}

    @property
    def cost_micros(self) -> int:
        """What the opened nodes cost an hour, what pools say that a node costs besides included."""
        return sum(opened.kind.cost.micros for opened in self.new_nodes.opened.values())

    @property
    def rank(self) -> tuple[tuple[int, ...], int]:
        """The smaller the better: fewer pods left out, those of high priority first; then less cost.

        Nothing is bought for pods that start no nodes, so none of these counts.
        """
        return self._rank(self._left, self.cost_micros)

    def rank_of(self, classes: Iterable[PodClass], pools: Set[str]) -> tuple[tuple[int, ...], int]:
        """The rank, were there no others than these classes, and nodes of these pools."""
        opened = self.new_nodes.opened.values()
        return self._rank(classes, sum(each.kind.cost.micros for each in opened if each.kind.pool in pools))

    def _rank(self, classes: Iterable[PodClass], cost_micros: int) -> tuple[tuple[int, ...], int]:
        left_out: dict[int, int] = {}
        for pod_class in classes:
            if not pod_class.terms.fills_only:
                left = len(self._left[pod_class])
                left_out[-pod_class.priority] = left_out.get(-pod_class.priority, 0) + left
        return tuple(left_out[priority] for priority in sorted(left_out)), cost_micros

    @property
    def holds_ties(self) -> bool:
        """Whether each pod could stay where it is, were it the last to be bound."""
        return self.world.topology is None or are_kept(set(self._tied()), self.world.topology)

    @property
    def comes_together(self) -> bool:
        """Whether all who need company find it whoever is bound first."""
        if self.world.topology is None:
            return True
        placed = Counter((pod_class.coupling, member) for pod_class, member in self._tied())
        tied = [(coupling, member, pods) for (coupling, member), pods in placed.items() if coupling is not None]
        return self.world.topology.come_together(tied)

    def _tied(self) -> Sequence[tuple[PodClass, int]]:
        """Each pod of a tied class that is on a node."""
        classes = {pod: pod_class for pod_class in self._left for pod in pod_class.pods if pod_class.is_tied}
        return [(classes[pod], member) for member, pods in self.world.pods.items() for pod in pods if pod in classes]

    def placed_one_by_one(self, classes: Iterable[PodClass]) -> Draft:
        """Class by class, in their order: onto what is there, else onto the nodes that serve the class the cheapest."""
        for pod_class in classes:
            self._fill(pod_class, pod_class.pods)
            self._open(pod_class)
        return self

    def placed_packed(self, classes: Sequence[PodClass]) -> Draft:
        """Onto what is there; all that are left onto the new nodes that cost least for all of them together."""
        return self._packed(classes, fills_first=True)

    def placed_all_at_once(self, classes: Sequence[PodClass]) -> Draft:
        """The same, with what is there as a part of the question of packing."""
        return self._packed(classes, fills_first=False)

    def placed_choosy_first(self, classes: Sequence[PodClass]) -> Draft:
        """As `placed_packed`, but those for whom no node can be bought have what is there first."""
        return self.placed_packed(sorted(classes, key=lambda each: bool(self._market.rungs(each))))

    def placed_tied_on_new(self, classes: Sequence[PodClass]) -> Draft:
        """As `placed_packed`, but pods that are tied to others get new nodes of their own first: what stands, or what
        others of this plan leave, may have room for the first of them only, and keep the rest from where they could be
        together."""
        tied = [each for each in classes if each.is_tied]
        for pod_class in tied:
            self._left[pod_class] = pod_class.pods
            self._open(pod_class)
        self.placed_packed([each for each in classes if each not in tied])
        for pod_class in tied:
            self._fill(pod_class, self._left[pod_class])
        return self

    def placed_in_company(self, parting: Parting, classes: Sequence[PodClass]) -> Draft:
        """As `placed_packed`, but pods that others must share a host with get nodes that hold those others too."""
        self._left.update((each, each.pods) for each in classes)
        for company in companies(classes):
            went = put_company(company, parting, self._left, self.world, self.new_nodes, Hosts(self._market))
            for pod_class in company.classes:
                self._left[pod_class] = [pod for pod in self._left[pod_class] if pod not in went]
        return self.placed_packed(classes)

    def _packed(self, classes: Sequence[PodClass], *, fills_first: bool) -> Draft:
        for pod_class in classes:
            self._left.setdefault(pod_class, pod_class.pods)
            if fills_first or pod_class.is_tied:
                self._fill(pod_class, self._left[pod_class])
        apart = [each for each in self._parts(classes) if each] if fills_first else [classes]
        rung = 0
        while any(self._left[each] and rung < len(self._market.rungs(each)) for each in classes) or not rung:
            # Parts share no node, so what each costs at the least adds up; with those of another rung they may share.
            proven = [self._buy_for(part, rung, with_standing=not fills_first) for part in apart]
            least = sum(each.least_micros for each in proven)
            if least > self.lower_bound_micros:
                self.lower_bound_micros, self.proven_pods = least, sum(each.pods for each in proven)
            rung += 1
        waiting, before = classes, 0
        while waiting and len(waiting) != before:
            before = len(waiting)
            for pod_class in waiting:
                if pod_class.is_tied:
                    # Where others have gone by now may open what was closed to it.
                    self._fill(pod_class, self._left[pod_class])
                self._open(pod_class)
            waiting = [each for each in waiting if self._left[each] and each.is_tied]
        return self

    def _parts(self, classes: Sequence[PodClass]) -> tuple[Sequence[PodClass], Sequence[PodClass]]:
        """Those that ask for accelerators, with all who could share a new node with them, and the others.

        The first come first: the others may have what these leave, and buy nothing for that.
        """
        makes = {each.shape: self._market.kinds(each).keys() for each in classes}
        asked_for = {make for each in classes if each.accelerators for make in makes[each.shape]}
        apart = {shape: own for shape, own in makes.items() if asked_for.isdisjoint(own)}
        while True:
            shared = {make for shape, own in makes.items() if shape not in apart for make in own}
            still = {shape: own for shape, own in apart.items() if shared.isdisjoint(own)}
            if len(still) == len(apart):
                break
            apart = still
        first = [each for each in classes if each.accelerators or each.shape not in apart]
        return first, [each for each in classes if not each.accelerators and each.shape in apart]

    def _buy_for(self, classes: Sequence[PodClass], rung: int, *, with_standing: bool) -> _Proven:
        wishes, rooms, all_is_asked = self._wishes(classes, rung)
        if with_standing and not rung:
            wishes += self._without_new_nodes(classes)
        if not wishes:
            return _NOTHING_PROVEN
        proven = self._buy(wishes, rooms, self._standing_for(wishes) if with_standing else ())
        for pod_class, pods in self.unplaced.items():
            self._fill(pod_class, pods)
        return proven if all_is_asked else _NOTHING_PROVEN

    def _wishes(self, classes: Sequence[PodClass], rung: int) -> tuple[list[Wish], tuple[int, ...], bool]:
        """What is left of each class at its offers of that rung, what an empty node has of pseudo-resources, and
        whether each has all of its offers whole: else what is found to be the least is none.

        Pods that are tied to others come in parts, by the domains that they go to. Those whose ties on one node cannot
        be told as room are left out: they are placed one by one.
        """
        asking = [
            pod_class
            for pod_class in classes
            if self._left[pod_class] and not pod_class.unsupported and rung < len(self._market.rungs(pod_class))
        ]
        counts = [len(self._left[pod_class]) for pod_class in asking]
        on_hosts = host_dimensions(self._neighbourhood, [each.coupling for each in asking], counts)
        # Each pod is counted in the domain where it is to go, before it is known on which node.
        foreseen = self.world.topology.copy() if self.world.topology is not None else None
        wishes: list[Wish] = []
        all_is_asked = True
        for place, pod_class in enumerate(asking):
            if place not in on_hosts.too_tangled:
                every, takes = self._market.rungs(pod_class)[rung], on_hosts.takes[place]
                offers = every
                if self.world.values_left is not None:
                    offers = self.world.values_left.packable(pod_class, every)
                    all_is_asked = all_is_asked and offers is every
                if offers:
                    wish = Wish(pod_class, self._left[pod_class], offers, takes=takes)
                    wishes += wishes_by_domain(wish, foreseen, self._market)
        return wishes, on_hosts.rooms, all_is_asked

    def finished(self) -> Draft:
        """Opens what base capacity is missing, lets who got nothing have what others left, gives up idle nodes."""
        for pool in self._market.pools:
            self.new_nodes.open_base(pool, self.world)
        for pod_class, pods in self.unplaced.items():
            self._fill(pod_class, pods)
        if self.new_nodes.without_idle(self.world) and self.unplaced:
            # What an idle node held of the limits may serve a pod that got nothing.
            for pod_class in self.unplaced:
                self._open(pod_class)
        return self

    def _fill(self, pod_class: PodClass, pods: Sequence[PodKey]) -> None:
        if pods and not pod_class.unsupported and self.world.size:
            pods = self.world.fill(pod_class, pods, self._market.by_offering(pod_class))
        self._left[pod_class] = pods

    def _open(self, pod_class: PodClass) -> None:
        pods = self._left[pod_class]
        if pods and not pod_class.unsupported:
            opened = self.new_nodes.open_apart if pod_class.is_tied else self.new_nodes.open_for
            self._left[pod_class] = opened(pod_class, pods, self.world)

    def _without_new_nodes(self, classes: Sequence[PodClass]) -> list[Wish]:
        """The wishes of those for whom no node can be bought: they can only have what is there."""
        return [
            Wish(pod_class, self._left[pod_class], ())
            for pod_class in classes
            if self._left[pod_class]
            and not (pod_class.unsupported or pod_class.is_tied or self._market.rungs(pod_class))
        ]

    def _standing_for(self, wishes: Iterable[Wish]) -> tuple[Standing, ...]:
        return self.world.groups_for(wish.pod_class for wish in wishes if not wish.pod_class.is_tied)

    def _buy(self, wishes: Sequence[Wish], rooms: tuple[int, ...], standing: Sequence[Standing]) -> _Proven:
        """Nothing is proven where something kept some of its pods out."""
        answer = packed_within(self.headroom.rows(), wishes, rooms, standing, self._steps)
        # Where a cap ends the launching, those come first who serve the most important pods, then the most pods.
        nodes = sorted(
            answer.nodes,
            key=lambda node: (-max(each.priority for each, _ in node.loads), -sum(len(pods) for _, pods in node.loads)),
        )
        went: list[Load] = []
        for filled in answer.filled:
            went += [(pod_class, pods, filled.member) for pod_class, pods in filled.loads]
        for node in nodes:
            member = self.new_nodes.open_packed(node, self.world)
            if member is not None:
                went += [(pod_class, pods, member) for pod_class, pods in node.loads]
        gone: set[PodKey] = set()
        for pod_class, pods, member in kept_by_ties(went, self.world.topology):
            gone.update(self.world.put_packed(pod_class, pods, member))
        for pod_class in dict.fromkeys(wish.pod_class for wish in wishes):
            self._left[pod_class] = [pod for pod in self._left[pod_class] if pod not in gone]
        loads = [load for filled in answer.filled for load in filled.loads] + [
            load for node in nodes for load in node.loads
        ]
        asked = sum(len(pods) for _, pods in loads)
        return _Proven(answer.lower_bound_micros, asked) if len(gone) == asked else _NOTHING_PROVEN
