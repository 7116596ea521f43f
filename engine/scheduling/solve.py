"""Where pending pods go: onto what is there, else onto the cheapest new nodes, else nowhere and why.

A first fit that is right rather than optimal. Pure and deterministic: the order of the input changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from attrs import evolve, frozen

from engine.model.plan import BaseShortfall, Placement, Unplaced
from engine.model.pod import PodKey
from engine.scheduling.ceilings import Ceiling, Counts
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass, by_name, on_terms, pod_classes, sharing
from engine.scheduling.limits import Headroom
from engine.scheduling.new_nodes import NewNodes, Opened, node_labels
from engine.scheduling.offers import Market, PoolOffers
from engine.scheduling.problem import ExistingNode, NewNode, Problem, Solution
from engine.scheduling.refusals import base_refusal, refusals
from engine.scheduling.requirements import canonical_labels

# A plan settles in two rounds nearly always; the bound keeps a strange case from going round for ever.
_ROUNDS = 8


@frozen(eq=False)
class _Round:
    world: World
    unplaced: Mapping[PodClass, Sequence[PodKey]]


def solve(problem: Problem) -> Solution:
    """Places every pending pod, or says why not; keeps pools' base capacity.

    Pods that are expected on a node already stay there. Then classes of pods go in the order of priority, then
    scarcity. Each fills the nodes that are there, then those that
    this plan opens, then opens more. Then the same question is asked again of the world as planned, until that world
    needs no further node: so the next pass, with nothing changed, launches nothing.
    """
    every = sharing(pod_classes(problem.pods, problem.rulings), problem.ceilings)
    every = on_terms(every, problem.terms)
    pools = [PoolOffers(state, problem.daemon_sets) for state in sorted(problem.pools, key=lambda each: each.pool.name)]
    existing = sorted(problem.existing, key=_node_order)
    headroom = Headroom(problem.pools, problem.caps, problem.ceilings)
    market = Market(pools)
    new_nodes = NewNodes(market, headroom, first_member=len(existing))
    there = _world_of(existing, every, problem.ceilings)
    classes = _keep_reserved(problem, every, existing, there)
    for rounds_left in reversed(range(_ROUNDS)):
        opened_before = len(new_nodes.opened)
        settled = _one_round(classes, market, new_nodes, there.copy())
        grew = len(new_nodes.opened) > opened_before
        if not rounds_left:
            break
        shrank = new_nodes.without_idle(settled.world)
        # What an idle node held of the limits may serve a pod that got nothing.
        if not grew and not (shrank and settled.unplaced):
            break
    return Solution(
        placements=_placements(existing, settled.world),
        new_nodes=_launches(new_nodes, settled.world),
        unplaced=_unplaced(problem, pools, headroom, settled),
        base_shortfalls=_base_shortfalls(problem, pools, headroom, new_nodes),
        limits=(*headroom.limit_uses(), *settled.world.counts.uses()),
    )


def _one_round(classes: Sequence[PodClass], market: Market, new_nodes: NewNodes, world: World) -> _Round:
    """Fills the world, opened nodes included, and opens what is still needed."""
    new_nodes.join(world)
    for pool in market.pools:
        # The nodes of a static pool come whether pods want them or not, so pods may as well have them.
        if pool.state.pool.is_static:
            new_nodes.open_base(pool, world)
    unplaced: dict[PodClass, Sequence[PodKey]] = {}
    for pod_class in classes:
        waiting: Sequence[PodKey] = pod_class.pods
        if not pod_class.unsupported:
            waiting = world.fill(pod_class, waiting, market.by_offering(pod_class))
            waiting = new_nodes.open_for(pod_class, waiting, world)
        if waiting:
            unplaced[pod_class] = waiting
    for pool in market.pools:
        new_nodes.open_base(pool, world)
    return _Round(world, _with_what_is_left(unplaced, market, world))


def _with_what_is_left(
    unplaced: Mapping[PodClass, Sequence[PodKey]], market: Market, world: World
) -> Mapping[PodClass, Sequence[PodKey]]:
    """Lets those that got nothing have what later classes leave of the nodes that were opened for them; who gets
    nothing even so."""
    still: dict[PodClass, Sequence[PodKey]] = {}
    for pod_class, pods in unplaced.items():
        waiting = pods if pod_class.unsupported else world.fill(pod_class, pods, market.by_offering(pod_class))
        if waiting:
            still[pod_class] = waiting
    return still


def _world_of(existing: Sequence[ExistingNode], classes: Sequence[PodClass], ceilings: Sequence[Ceiling]) -> World:
    names = [(node.node, node.claim) for node in existing]
    counts = Counts.of(ceilings, names, [node.usd_per_hour for node in existing])
    world = World(frozenset(key for pod_class in classes for key in pod_class.demand.keys), counts)
    for member, node in enumerate(existing):
        in_flight = node.node is None
        place = world.place_of(
            canonical_labels(node.labels), node.taints, is_accelerated=node.is_accelerated, in_flight=in_flight
        )
        world.add(place, node.room, member, is_empty=node.is_empty or in_flight)
    return world


def _keep_reserved(
    problem: Problem, classes: Sequence[PodClass], existing: Sequence[ExistingNode], world: World
) -> Sequence[PodClass]:
    """Puts pods where they are expected already; the classes of those that are left.

    Those for whom others make room come first, of any class: what they leave is what the rest may have.
    """
    if not problem.reservations:
        return classes
    members = {(node.node, node.claim): member for member, node in enumerate(existing)}
    reserved = {each.pod: each for each in problem.reservations if (each.node, each.claim) in members}
    stayed: set[PodKey] = set()
    for holds in (True, False):
        for pod_class in classes:
            if pod_class.unsupported:
                continue
            expected: dict[int, list[PodKey]] = {}
            for pod in pod_class.pods:
                found = reserved.get(pod)
                if found is not None and found.holds_regardless_of_room is holds:
                    expected.setdefault(members[found.node, found.claim], []).append(pod)
            for member, pods in sorted(expected.items()):
                stayed.update(pods)
                stayed.difference_update(world.reserve(pod_class, pods, member, regardless_of_room=holds))
    return _without(stayed, classes)


def _without(pods: Set[PodKey], classes: Sequence[PodClass]) -> Sequence[PodClass]:
    left = []
    for pod_class in classes:
        waiting = tuple(pod for pod in pod_class.pods if pod not in pods)
        if len(waiting) == len(pod_class.pods):
            left.append(pod_class)
        elif waiting:
            left.append(evolve(pod_class, pods=waiting))
    return left


def _node_order(node: ExistingNode) -> tuple[str, str]:
    return node.node or "", node.claim or ""


def _placements(existing: Sequence[ExistingNode], world: World) -> tuple[Placement, ...]:
    placements = [
        Placement(pod, node.node, node.claim)
        for member, node in enumerate(existing)
        for pod in world.pods.get(member, ())
    ]
    return tuple(sorted(placements, key=lambda placement: by_name(placement.pod)))


def _launches(new_nodes: NewNodes, world: World) -> tuple[NewNode, ...]:
    launches = [_launch(opened, world) for opened in new_nodes.opened.values()]
    return tuple(sorted(launches, key=_launch_order))


def _launch(opened: Opened, world: World) -> NewNode:
    pods = tuple(sorted(world.pods.get(opened.member, ()), key=by_name))
    return NewNode(
        node_pool=opened.kind.pool,
        option=opened.option,
        pods=pods,
        for_base_capacity=opened.for_base_capacity or not pods,
        lost=opened.lost,
        labels=node_labels(opened.kind, opened.option),
    )


def _launch_order(launch: NewNode) -> tuple[object, ...]:
    pods = [by_name(pod) for pod in launch.pods]
    return launch.node_pool, launch.option.offering.key, pods, sorted(launch.labels.items())


def _unplaced(
    problem: Problem,
    pools: Sequence[PoolOffers],
    headroom: Headroom,
    settled: _Round,
) -> tuple[Unplaced, ...]:
    told = []
    for pod_class, pods in settled.unplaced.items():
        why = refusals(pod_class, pools, headroom, problem.unavailable, settled.world.counts)
        told += [Unplaced(pod, why) for pod in pods]
    return tuple(sorted(told, key=lambda each: by_name(each.pod)))


def _base_shortfalls(
    problem: Problem, pools: Sequence[PoolOffers], headroom: Headroom, new_nodes: NewNodes
) -> tuple[BaseShortfall, ...]:
    return tuple(
        BaseShortfall(
            node_pool=pool.name,
            wanted=pool.state.pool.base_nodes,
            have=new_nodes.nodes_of(pool),
            refusal=base_refusal(pool, headroom, problem.unavailable),
        )
        for pool in pools
        if new_nodes.nodes_of(pool) < pool.state.pool.base_nodes
    )
