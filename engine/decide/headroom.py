"""Devices that pools keep spare for pods to come.

Each is a pod that nobody has: it asks for one device in its pool, and in its zone, after every real pod that may start
nodes. So what is free on nodes that stand, or are on their way, counts first, then nodes are launched; a real pod takes
what it needs of them, and the next pass makes up for that. What pods hold that start no nodes themselves counts as
free: any other pod that comes may take their place, and nothing is launched for them by way of headroom either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from attrs import evolve, frozen

from engine.decide.fillers import filling_classes
from engine.decide.fleet import Fleet
from engine.model import labels as keys
from engine.model.constraint import Toleration
from engine.model.environment import Environment
from engine.model.plan import HeadroomUse
from engine.model.pod import Placing, Pod, PodKey
from engine.model.policy import NodePool, Policy, Spare
from engine.model.quantity import PODS, Resources
from engine.model.refusal import FoundationBusy, Refusal
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import NewNode, PoolState, Problem, Solution
from engine.scheduling.terms import is_spare, spare_key

# Kubernetes' priorities are 32-bit.
_BELOW_EVERY_POD = -(2**31) - 1
_ANY_TAINT = Toleration(exists=True)


@frozen
class _Wanted:
    """``devices`` of a resource in a pool, in one ``zone`` of it or, where that is empty, anywhere; ``lent`` are held
    by pods that make way."""

    pool: str
    zone: str
    resource: str
    devices: int
    lent: int

    @property
    def keys(self) -> tuple[PodKey, ...]:
        """Of the devices that have to be free."""
        missing = max(0, self.devices - self.lent)
        return tuple(spare_key(self.pool, self.zone, self.resource, f"{number:04}") for number in range(missing))


def wants_headroom(policy: Policy) -> bool:
    return any(pool.headroom for pool in policy.node_pools)


def spare_pods(states: Iterable[PoolState], fleet: Fleet, snapshot: Snapshot) -> tuple[Pod, ...]:
    """The pods that stand for what is to be free, in the order of pools, resources and zones."""
    return tuple(
        Pod(
            key=key,
            placing=Placing(
                requests=Resources({wanted.resource: 1, PODS: 1}),
                node_selector={keys.NODE_POOL: wanted.pool} | ({keys.ZONE: wanted.zone} if wanted.zone else {}),
                tolerations=(_ANY_TAINT,),
            ),
            created_at=snapshot.taken_at,
            priority=_BELOW_EVERY_POD,
        )
        for wanted in _wanted(states, fleet, snapshot)
        for key in wanted.keys
    )


def without_spares(solution: Solution) -> Solution:
    """The solution for real pods; new nodes say what they keep spare."""
    if not any(map(is_spare, _mentioned(solution))):
        return solution
    return evolve(
        solution,
        placements=tuple(each for each in solution.placements if not is_spare(each.pod)),
        unplaced=tuple(each for each in solution.unplaced if not is_spare(each.pod)),
        new_nodes=tuple(map(_told_apart, solution.new_nodes)),
    )


def spares_by_claim(solution: Solution) -> Mapping[str, int]:
    """How many devices each machine that is there, or on its way, keeps free."""
    counts: dict[str, int] = {}
    for each in solution.placements:
        if each.claim is not None and is_spare(each.pod):
            counts[each.claim] = counts.get(each.claim, 0) + 1
    return counts


def headroom_uses(
    problem: Problem,
    fleet: Fleet,
    snapshot: Snapshot,
    solution: Solution,
    held: Iterable[NewNode],
    environment: Environment,
) -> tuple[HeadroomUse, ...]:
    """What is kept spare once the plan is done, and why no more is; ``held`` are new nodes that wait, told apart."""
    refused: dict[PodKey, Refusal] = {key: FoundationBusy(stack=environment.name) for new in held for key in new.spares}
    for each in solution.unplaced:
        if is_spare(each.pod):
            own = _pool_of(each.pod)
            refused[each.pod] = next(
                (told.refusal for told in each.refusals if told.node_pool == own), each.refusals[0].refusal
            )
    return tuple(_use(wanted, refused) for wanted in _wanted(problem.pools, fleet, snapshot))


def _pool_of(spare: PodKey) -> str:
    """The pool that a spare device is for."""
    return spare.name.partition("/")[0]


def _use(wanted: _Wanted, refused: Mapping[PodKey, Refusal]) -> HeadroomUse:
    missing = [refused[key] for key in wanted.keys if key in refused]
    return HeadroomUse(
        node_pool=wanted.pool,
        zone=wanted.zone,
        resource=wanted.resource,
        wanted=wanted.devices,
        spare=wanted.devices - len(missing),
        refusals=tuple(dict.fromkeys(missing)),
    )


def _wanted(states: Iterable[PoolState], fleet: Fleet, snapshot: Snapshot) -> Iterator[_Wanted]:
    filling = filling_classes(snapshot.workload)
    for state in sorted(states, key=lambda each: each.pool.name):
        for spare in state.pool.headroom:
            for zone in _zones(spare, state):
                lent = _lent(state.pool, spare.resource, zone, fleet, snapshot, filling) if filling else 0
                yield _Wanted(state.pool.name, zone, spare.resource, spare.devices, lent)


def _zones(spare: Spare, state: PoolState) -> Sequence[str]:
    """Those that the pool can buy in; where it can buy nothing, the pool as a whole."""
    zones = sorted({option.offering.zone for option in state.options}) if spare.in_each_zone else []
    return zones or [""]


def _lent(pool: NodePool, resource: str, zone: str, fleet: Fleet, snapshot: Snapshot, filling: Set[str]) -> int:
    return sum(
        pod.placing.requests.amount(resource)
        for node in snapshot.nodes
        if node.labels.get(keys.NODE_POOL) == pool.name and zone in ("", node.labels.get(keys.ZONE))
        for pod in fleet.pods_by_node.get(node.name, ())
        if pod.priority_class in filling
    )


def _mentioned(solution: Solution) -> Iterator[PodKey]:
    yield from (each.pod for each in solution.placements)
    yield from (each.pod for each in solution.unplaced)
    yield from (pod for new in solution.new_nodes for pod in new.pods)


def _told_apart(new: NewNode) -> NewNode:
    spares = tuple(pod for pod in new.pods if is_spare(pod))
    return evolve(new, pods=tuple(pod for pod in new.pods if not is_spare(pod)), spares=spares) if spares else new
