"""Whether every node takes the pods that the plan puts on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.model.catalog import Catalog, InstanceType
from engine.model.constraint import Taint
from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import ACCELERATORS
from engine.model.replacement import AwaitsReplacement
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.amounts import daemons_to_come, overdrawn
from tests.scheduling.checker.machines import Machine, machines
from tests.scheduling.checker.node_labels import unmet
from tests.scheduling.checker.taints import untolerated
from tests.scheduling.checker.unplaceable import unjudged
from tests.scheduling.checker.violation import Violation


def placings(snapshot: Snapshot, plan: Plan, policy: Policy, catalog: Catalog) -> Iterator[Violation]:
    """Of the nodes that stand, the claims in flight and the launches."""
    pods = {pod.key: pod for pod in snapshot.pods}
    yield from _on_machines(snapshot, plan, policy, pods)
    yield from _on_launches(snapshot, plan, policy, catalog, pods)


def accepts(pod: Pod, labels: Mapping[str, str], taints: Iterable[Taint]) -> Iterator[Violation]:
    """Everything but room that keeps a pod off a node."""
    name = str(pod.key)
    for kind in unjudged(pod):
        yield Violation("unsupported", name, f"has {kind}, which nobody judged, and is placed")
    for taint in untolerated(pod.placing.tolerations, taints):
        yield Violation("taints", name, f"does not tolerate {taint}")
    for what in unmet(pod.placing, labels):
        yield Violation("node-labels", name, what)


def asks_for_accelerators(pod: Pod) -> bool:
    return any(pod.placing.requests.get(resource, 0) > 0 for resource in ACCELERATORS)


def overfilled(
    machine: Machine, planned: list[Pod], snapshot: Snapshot, daemon_labels: Mapping[str, str] | None = None
) -> list[str]:
    """What a machine has too little of for its bound pods, its daemons and those planned.

    Pods that are nominated there by pre-emption count without those that make room for them: the ones that are going,
    and those of lower priority ("Pod Priority and Preemption").
    """
    nominated = [pod for pod in planned if machine.node and pod.nominated_node_name == machine.node]
    rank = max((pod.priority for pod in nominated), default=None)
    there = [pod for pod in machine.pods if rank is None or not (pod.deleting or pod.priority < rank)]
    daemons = daemons_to_come(snapshot.daemon_sets, daemon_labels or machine.labels, machine.taints, machine.pods)
    return list(overdrawn(machine.allocatable, [*(pod.placing.requests for pod in there), *daemons], planned))


def _on_machines(snapshot: Snapshot, plan: Plan, policy: Policy, pods: Mapping[PodKey, Pod]) -> Iterator[Violation]:
    known = {(each.node, each.claim): each for each in machines(snapshot, plan, policy)}
    planned: dict[tuple[str | None, str | None], list[Pod]] = {}
    for placement in plan.placements:
        pod = pods.get(placement.pod)
        if pod is None:
            yield Violation("answered", str(placement.pod), "is placed, and nobody knows it")
            continue
        planned.setdefault((placement.node, placement.claim), []).append(pod)
    for where, there in planned.items():
        machine = known.get(where)
        if machine is None:
            yield Violation("placed-nowhere", str(there[0].key), f"is placed on {where}, which is no machine")
            continue
        if machine.closed:
            yield Violation("closed", str(there[0].key), f"is placed on {machine.name}: {machine.closed}")
        for pod in there:
            yield from accepts(pod, machine.labels, machine.taints)
        for what in overfilled(machine, there, snapshot):
            yield Violation("room", machine.name, what)


def _on_launches(
    snapshot: Snapshot, plan: Plan, policy: Policy, catalog: Catalog, pods: Mapping[PodKey, Pod]
) -> Iterator[Violation]:
    kinds = {kind.name: kind for kind in catalog.instance_types}
    replacing = {
        name for kept in plan.kept if isinstance(kept.reason, AwaitsReplacement) for name in kept.reason.claims
    }
    for launch in plan.launches:
        claim = launch.claim
        # Pods that run elsewhere, and move here once it is up, need room here as much.
        there = [pods[key] for key in (*launch.pods, *launch.displaced) if key in pods]
        for pod in there:
            yield from accepts(pod, claim.labels, claim.taints)
        daemons = daemons_to_come(snapshot.daemon_sets, claim.labels, claim.taints, ())
        for what in overdrawn(claim.allocatable, daemons, there):
            yield Violation("room", claim.name, what)
        pool = policy.node_pool(claim.node_pool)
        is_base = launch.reason.value in ("BaseCapacity", "Headroom")
        if not there and not (is_base or launch.claim.name in replacing):
            yield Violation("for-somebody", claim.name, "is launched for no pod, base capacity or headroom")
        if pool is None or is_base or pool.open_to_all_pods or (not there and claim.name in replacing):
            continue
        if _is_wasted(kinds.get(claim.inputs.instance_type), there):
            yield Violation("accelerated", claim.name, "is accelerated, and none of its pods asks for that")


def _is_wasted(kind: InstanceType | None, there: list[Pod]) -> bool:
    return kind is not None and kind.is_accelerated and not any(asks_for_accelerators(pod) for pod in there)
