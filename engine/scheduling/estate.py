"""The nodes that may be vacated and the problem around them, as it is and as it will be once some are gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from attrs import evolve, field, frozen

from engine.model import labels as keys
from engine.model.environment import Caps
from engine.model.money import FREE, UsdPerHour, total
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NODES, NOTHING, Resources
from engine.scheduling.daemons import daemon_overhead
from engine.scheduling.movable import MovableNode, NodeName
from engine.scheduling.problem import ExistingNode, NewNode, PoolState, Problem, Reservation, Solution
from engine.scheduling.topology.neighbourhood import StandingNode

# Caps are of one pass; a repacking may take several.
_UNCAPPED = Caps(launches=10**9, removals=10**9, added_usd_per_hour=UsdPerHour(10**15))
_ONE_NODE = Resources({NODES: 1})
# No node has such a name: those have no spaces. A number follows.
_NEW = "new node "

NOWHERE: Mapping[PodKey, NodeName] = {}


@frozen(eq=False)
class Estate:
    """``movable`` are the nodes that may go, in claim order, each among the problem's existing ones.

    ``bought`` are those of them that are only planned, by the names that they have here. ``moved`` is where pods have
    gone so far, by a node's name and its claim's.
    """

    problem: Problem
    movable: tuple[MovableNode, ...]
    bought: Mapping[str, NewNode] = field(factory=dict)
    moved: Mapping[PodKey, NodeName] = field(factory=dict)

    @classmethod
    def of(cls, problem: Problem, movable: Iterable[MovableNode]) -> Estate:
        """Order changes nothing. A movable node that the problem does not have is none."""
        there = {(each.node, each.claim) for each in problem.existing}
        known = (each for each in movable if each.name in there)
        return cls(evolve(problem, caps=_UNCAPPED), tuple(sorted(known, key=lambda each: each.claim)))

    @property
    def price(self) -> UsdPerHour:
        """Of all movable nodes."""
        return total(each.usd_per_hour for each in self.movable)

    def without(self, going: Sequence[MovableNode], expected: Mapping[PodKey, NodeName] = NOWHERE) -> Problem:
        """The problem once these nodes are gone: their pods are pending, some of them ``expected`` somewhere, and
        limits count the nodes no more."""
        problem = vacated(self.problem, going)
        held = tuple(
            Reservation(pod.key, *expected[pod.key]) for each in going for pod in each.pods if pod.key in expected
        )
        return evolve(problem, reservations=held)

    def settled(self, answer: Solution) -> Estate:
        """Once pods that wait are bound where the answer has them, and nobody waits any more. Nodes that it buys are no
        part of it: they come in any case, and what they leave free is not known by name yet; but limits count them."""
        pools = _pools_with(self.problem.pools, answer.new_nodes)
        settled = self._with_pods_at(answer, evolve(self.problem, pools=pools))
        return evolve(settled, moved={})

    def after(self, going: Sequence[MovableNode], answer: Solution) -> Estate:
        """Once these nodes are gone and the answer is carried out: what it buys is there, too. A pod that it does not
        place is gone."""
        problem = self.without(going)
        gone = {each.claim for each in going}
        first = 1 + max((_number(each.claim) for each in self.movable), default=0)
        new = {f"{_NEW}{first + number:06d}": node for number, node in enumerate(answer.new_nodes)}
        pods = {pod.key: pod for pod in problem.pods}
        made = [self._made(name, node, [pods[key] for key in node.pods if key in pods]) for name, node in new.items()]
        there = evolve(
            problem,
            existing=(*problem.existing, *(existing for existing, _, _ in made)),
            standing=(*problem.standing, *(standing for _, standing, _ in made)),
            pools=_pools_with(problem.pools, answer.new_nodes),
        )
        left = (each for each in self.movable if each.claim not in gone)
        movable = sorted([*left, *(each for _, _, each in made)], key=lambda each: each.claim)
        bought = {name: node for name, node in chain(self.bought.items(), new.items()) if name not in gone}
        return evolve(self, movable=tuple(movable), bought=bought)._with_pods_at(answer, there)

    def _made(self, name: str, node: NewNode, pods: Sequence[Pod]) -> tuple[ExistingNode, StandingNode, MovableNode]:
        """A node that is bought, as one that is there with its pods."""
        state = next(each for each in self.problem.pools if each.pool.name == node.node_pool)
        labels = {**node.labels, keys.HOSTNAME: name}
        overhead = daemon_overhead(self.problem.daemon_sets, node.labels, state.pool.taints)
        price = node.option.usd_per_hour or FREE
        existing = ExistingNode(
            node=name,
            claim=name,
            labels=labels,
            taints=state.pool.taints,
            room=(node.option.allocatable - overhead).less_each(pod.placing.requests for pod in pods),
            is_accelerated=node.option.instance_type.is_accelerated,
            is_empty=not pods,
            usd_per_hour=price,
        )
        movable = MovableNode(
            node=name,
            claim=name,
            node_pool=node.node_pool,
            capacity_type=node.option.offering.capacity_type,
            capacity=node.option.capacity + _ONE_NODE,
            usd_per_hour=price + state.pool.node_cost,
            pods=tuple(pods),
        )
        return existing, StandingNode(name, labels, state.pool.taints, tuple(pods)), movable

    def _with_pods_at(self, answer: Solution, problem: Problem) -> Estate:
        """With pending pods bound by the answer's placements, and nobody waiting."""
        pods = {pod.key: pod for pod in problem.pods}
        came: dict[NodeName, list[Pod]] = {}
        moved = dict(self.moved)
        for each in answer.placements:
            if each.pod in pods:
                came.setdefault((each.node, each.claim), []).append(pods[each.pod])
                moved[each.pod] = (each.node, each.claim)
        for name, node in self.bought.items():
            moved.update((pod, (name, name)) for pod in node.pods if pod in pods)
        on_nodes = {node: arrived for (node, _), arrived in came.items() if node is not None}
        return evolve(
            self,
            problem=evolve(
                problem,
                pods=(),
                reservations=(),
                existing=tuple(_with_less_room(each, came) for each in problem.existing),
                standing=tuple(
                    evolve(each, pods=(*each.pods, *on_nodes[each.name])) if each.name in on_nodes else each
                    for each in problem.standing
                ),
            ),
            movable=tuple(
                evolve(each, pods=(*each.pods, *came[each.name])) if each.name in came else each
                for each in self.movable
            ),
            moved=moved,
        )


def _number(claim: str) -> int:
    return int(claim.removeprefix(_NEW)) if claim.startswith(_NEW) else 0


def vacated(problem: Problem, going: Sequence[MovableNode]) -> Problem:
    """A problem without nodes that are to go: their pods are pending, and limits count the nodes no more.

    What rules' ceilings count stays as it was: they were asked about a world that has the nodes, so they may admit
    less than they would once these are gone.
    """
    if not going:
        return problem
    names = {(each.node, each.claim) for each in going}
    nodes = {each.node for each in going if each.node is not None}
    moved = {pod.key for each in going for pod in each.pods}
    return evolve(
        problem,
        pods=(*problem.pods, *(pod for each in going for pod in each.pods)),
        existing=tuple(each for each in problem.existing if (each.node, each.claim) not in names),
        pools=tuple(_pool_without(state, going) for state in problem.pools),
        standing=tuple(_without_pods(each, moved) for each in problem.standing if each.name not in nodes),
    )


def _without_pods(node: StandingNode, moved: set[PodKey]) -> StandingNode:
    staying = tuple(pod for pod in node.pods if pod.key not in moved)
    return node if len(staying) == len(node.pods) else evolve(node, pods=staying)


def _pool_without(state: PoolState, going: Iterable[MovableNode]) -> PoolState:
    own = [each for each in going if each.node_pool == state.pool.name]
    if not own:
        return state
    return evolve(state, used=state.used - _sum(each.capacity for each in own), nodes=state.nodes - len(own))


def _pools_with(states: Iterable[PoolState], new_nodes: Sequence[NewNode]) -> tuple[PoolState, ...]:
    return tuple(
        _pool_with(state, [each for each in new_nodes if each.node_pool == state.pool.name]) for state in states
    )


def _pool_with(state: PoolState, own: Sequence[NewNode]) -> PoolState:
    if not own:
        return state
    taken = _sum(each.option.capacity + _ONE_NODE for each in own)
    return evolve(state, used=state.used + taken, nodes=state.nodes + len(own))


def _sum(amounts: Iterable[Resources]) -> Resources:
    return sum(amounts, NOTHING)


def _with_less_room(node: ExistingNode, came: Mapping[NodeName, Sequence[Pod]]) -> ExistingNode:
    arrived = came.get((node.node, node.claim))
    if not arrived:
        return node
    return evolve(node, room=node.room.less_each(pod.placing.requests for pod in arrived), is_empty=False)
