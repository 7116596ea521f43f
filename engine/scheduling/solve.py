"""Where pending pods go: onto what is there, else onto the cheapest new nodes, else nowhere and why.

Pure and deterministic: the order of the input changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from functools import partial
from itertools import groupby

from attrs import evolve

from engine.model.plan import BaseShortfall, Placement, Unplaced
from engine.model.pod import PodKey
from engine.scheduling.ceilings import Counts
from engine.scheduling.company import Parting, companies
from engine.scheduling.daemons import Daemons
from engine.scheduling.draft import Draft
from engine.scheduling.existing import World
from engine.scheduling.groups import PodClass, by_name, on_terms, pod_classes, sharing
from engine.scheduling.launching import Launching
from engine.scheduling.market import Market
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import ExistingNode, Problem, Reservation, Solution
from engine.scheduling.proof import packing_bound
from engine.scheduling.refusals import base_refusal, refusals
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.steps import MOST_STEPS, Steps
from engine.scheduling.tie_refusals import TieRefusals
from engine.scheduling.tied import Load, kept_by_ties
from engine.scheduling.topology.neighbourhood import Neighbourhood, couplings
from engine.scheduling.topology.topology import Topology
from engine.scheduling.unrelated import unrelated
from engine.scheduling.whereabouts import Whereabouts

# How a draft places classes.
_Way = Callable[[Draft, Sequence[PodClass]], Draft]
# Up to so many classes, groups of nodes that are alike, and pods, several ways are tried and the best is kept.
_FEW_CLASSES, _FEW_NODES, _FEW_PODS = 60, 60, 2_000


def solve(problem: Problem, most_steps: int = MOST_STEPS) -> Solution:
    """Places every pending pod, or says why not; keeps pools' base capacity.

    Pods that are expected on a node already stay there. Others fill what is there, and new nodes are bought for the
    rest so that all of them together cost as little as is found. Of pods that cannot all be placed those of higher
    priority are.
    """
    neighbourhood = couplings(problem.pods, problem.standing, problem.namespaces)
    every = sharing(pod_classes(problem.pods, problem.rulings, neighbourhood.coupling_of), problem.ceilings)
    every = on_terms(every, problem.terms)
    decisive = frozenset(neighbourhood.topology_keys).union(*(each.demand.keys for each in every))
    pools = [
        PoolOffers(state, problem.daemon_sets, decisive)
        for state in sorted(problem.pools, key=lambda each: each.pool.name)
    ]
    existing = sorted(problem.existing, key=_node_order)
    market = Market(pools)
    there = _world_of(problem, existing, every, neighbourhood)
    offered = there.copy()
    for pod_class in every:
        if offered.topology is not None and pod_class.coupling is not None:
            offered.topology.offer(pod_class.coupling, market.labels(pod_class))

    steps = Steps(most_steps)

    def best(reservations: Iterable[Reservation], world: World) -> Draft:
        start = world.copy()
        classes = _keep_reserved(reservations, every, existing, start)

        def draft() -> Draft:
            return Draft(
                market, problem.pools, problem.caps, problem.ceilings, start, neighbourhood, len(existing), steps
            )

        return _best(classes, draft, start, market)

    settled = best(problem.reservations, offered)
    if settled.unplaced and offered.size <= _FEW_NODES:
        held = [each for each in problem.reservations if each.holds_regardless_of_room]
        if len(held) < len(problem.reservations):
            # Where pods are only expected, not waited for, may be the only place that others have.
            settled = min(settled, best(held, offered), key=lambda each: each.rank)
        if neighbourhood.couplings:
            # A domain that no node is in yet bars nobody from the others: kube-scheduler does not know of it.
            bold = best(problem.reservations, there)
            settled = min(settled, bold, key=lambda each: each.rank) if bold.holds_ties else settled
    return Solution(
        placements=_placements(existing, settled.world),
        new_nodes=Launching(market, every).new_nodes(settled),
        unplaced=_unplaced(problem, pools, settled, _ties(problem, existing, settled.world, neighbourhood)),
        base_shortfalls=_base_shortfalls(problem, pools, settled),
        limits=(*settled.headroom.limit_uses(), *settled.world.counts.uses()),
        packing=packing_bound(settled, market, every, problem.pools),
    )


def _best(classes: Sequence[PodClass], draft: Callable[[], Draft], there: World, market: Market) -> Draft:
    """The best of some drafts; the first of equals."""
    together = draft().placed_packed(classes).finished()
    if not (together.unplaced or together.new_nodes.opened):
        return together
    ways = _ways(together, classes, there)
    if len(ways) == 1:
        return together
    drafts = [together, *(way(draft(), classes).finished() for way in ways[1:])]
    # Each way is judged for each of those who have nothing to do with each other: what spoils it for one is no matter
    # to the others.
    best_for = [
        (part, min(range(len(ways)), key=lambda at: drafts[at].rank_of(part, pools)))
        for part, pools in unrelated(classes, market)
    ]
    if len({at for _, at in best_for}) > 1:
        mixed = draft()
        for part, at in best_for:
            mixed = ways[at](mixed, part)
        drafts.append(mixed.finished())
    return min(drafts, key=_merit)


def _ways(together: Draft, classes: Sequence[PodClass], there: World) -> Sequence[_Way]:
    """The ways to try; the first is that of ``together``."""
    ways: list[_Way] = [Draft.placed_packed]
    pods = sum(len(each.pods) for each in classes)
    if len(classes) <= _FEW_CLASSES and there.size <= _FEW_NODES and pods <= _FEW_PODS:
        ways.append(Draft.placed_one_by_one)
        if there.size:
            ways.append(Draft.placed_all_at_once)
        if there.size and together.unplaced:
            ways.append(Draft.placed_choosy_first)
        if together.unplaced:
            ways.append(Draft.placed_tied_on_new)
        ways += [partial(_in_company, parting) for parting in _partings(classes, there)]
    elif together.unplaced and companies(classes):
        ways.append(partial(_in_company, Parting.CHEAPEST))
    if together.unplaced and len({each.priority for each in classes}) > 1:
        # Together, a pod of low priority may have taken what one of high priority was to have.
        ways += [partial(_in_tiers, way) for way in ways]
    return ways


def _merit(draft: Draft) -> tuple[object, ...]:
    """The rank; of drafts that leave out as few, first those that come about whoever is bound first."""
    left_out, cost_micros = draft.rank
    return left_out, not draft.comes_together, cost_micros


def _in_company(parting: Parting, draft: Draft, classes: Sequence[PodClass]) -> Draft:
    return draft.placed_in_company(parting, classes)


def _partings(classes: Sequence[PodClass], there: World) -> Iterable[Parting]:
    """What nodes that stand have room for, no price tells."""
    if not companies(classes):
        return ()
    return Parting if there.size else (Parting.CHEAPEST,)


def _in_tiers(way: _Way, draft: Draft, classes: Sequence[PodClass]) -> Draft:
    for _, alike in groupby(classes, key=lambda each: each.priority):
        draft = way(draft, list(alike))
    return draft


def _world_of(
    problem: Problem, existing: Sequence[ExistingNode], classes: Sequence[PodClass], neighbourhood: Neighbourhood
) -> World:
    names = [(node.node, node.claim) for node in existing]
    counts = Counts.of(problem.ceilings, names, [node.usd_per_hour for node in existing])
    asked = frozenset(key for pod_class in classes for key in pod_class.demand.keys)
    topology = Topology(neighbourhood) if neighbourhood.couplings else None
    # A hostname would make each node another: who minds hosts knows nodes by number.
    world = World(asked.union(neighbourhood.topology_keys[1:]), counts, topology)
    with_ports = [daemon for daemon in problem.daemon_sets if topology is not None and daemon.placing.host_ports]
    for member, node in enumerate(existing):
        in_flight = node.node is None
        place = world.place_of(
            canonical_labels(node.labels), node.taints, is_accelerated=node.is_accelerated, in_flight=in_flight
        )
        # Those of daemons that are there already are among those of the node's pods: saying them twice is no harm.
        ports = Daemons(with_ports, node.taints).host_ports(canonical_labels(node.labels)) if with_ports else ()
        is_empty = node.is_empty or in_flight
        world.add(place, node.room, member, is_empty=is_empty, name=node.node, daemon_ports=ports)
    return world


def _keep_reserved(
    reservations: Iterable[Reservation],
    classes: Sequence[PodClass],
    existing: Sequence[ExistingNode],
    world: World,
) -> Sequence[PodClass]:
    """Puts pods where they are expected already; the classes of those that are left.

    Those for whom others make room come first, of any class: what they leave is what the rest may have.
    """
    members = {(node.node, node.claim): member for member, node in enumerate(existing)}
    reserved = {each.pod: each for each in reservations if (each.node, each.claim) in members}
    if not reserved:
        return classes
    stayed: set[PodKey] = set()
    for holds in (True, False):
        expected: list[Load] = []
        for pod_class in classes:
            of_class: dict[int, list[PodKey]] = {}
            for pod in pod_class.pods if not pod_class.unsupported else ():
                found = reserved.get(pod)
                if found is not None and found.holds_regardless_of_room is holds:
                    of_class.setdefault(members[found.node, found.claim], []).append(pod)
            expected += [(pod_class, tuple(pods), member) for member, pods in sorted(of_class.items())]
        for pod_class, pods, member in kept_by_ties(_with_room(expected, holds, world), world.topology):
            stayed.update(pods)
            stayed.difference_update(world.reserve(pod_class, pods, member, regardless_of_room=holds))
    return _without(stayed, classes)


def _with_room(expected: Iterable[Load], holds: bool, world: World) -> Iterable[Load]:
    """Those of the pods that their nodes take, ties apart: who is expected where there is no room is no company."""
    if world.topology is None:
        return expected
    trial, found = world.copy(), []
    for pod_class, pods, member in expected:
        left = set(trial.reserve(pod_class, pods, member, regardless_of_room=holds))
        staying = tuple(pod for pod in pods if pod not in left)
        found += [(pod_class, staying, member)] if staying else []
    return found


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


def _ties(
    problem: Problem, existing: Sequence[ExistingNode], world: World, neighbourhood: Neighbourhood
) -> TieRefusals | None:
    if world.topology is None:
        return None
    return TieRefusals(world.topology, Whereabouts(problem, neighbourhood, existing, world, world.topology))


def _unplaced(
    problem: Problem, pools: Sequence[PoolOffers], settled: Draft, ties: TieRefusals | None
) -> tuple[Unplaced, ...]:
    told = []
    for pod_class, pods in settled.unplaced.items():
        why = refusals(pod_class, pools, settled.headroom, settled.world.counts, ties)
        told += [Unplaced(pod, why) for pod in pods]
    return tuple(sorted(told, key=lambda each: by_name(each.pod)))


def _base_shortfalls(problem: Problem, pools: Sequence[PoolOffers], settled: Draft) -> tuple[BaseShortfall, ...]:
    new_nodes = settled.new_nodes
    return tuple(
        BaseShortfall(
            node_pool=pool.name,
            wanted=pool.state.pool.base_nodes,
            have=new_nodes.nodes_of(pool),
            refusal=base_refusal(pool, settled.headroom),
        )
        for pool in pools
        if new_nodes.nodes_of(pool) < pool.state.pool.base_nodes
    )
