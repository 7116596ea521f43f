"""minValues of a pool's requirements.

Karpenter's rule (reference, 1.7): the nodes that a launch could have been, with all of its pods on one, show together
at least so many different values of the key. Where they do not, the pool launches none, or, if it does what it can,
tells that the launch has fewer. Nodes that cannot be bought now are not counted. What a pool launches because it
promises nodes, for no pod, is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Launch, Plan
from engine.model.pod import Pod
from engine.model.policy import NodeClass, NodePool, Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.amounts import daemons_to_come, overdrawn
from tests.scheduling.checker.launches import barred_offerings, zones_of
from tests.scheduling.checker.node_labels import meets, value_of
from tests.scheduling.checker.placing import accepts
from tests.scheduling.checker.shapes import allocatable_of, capacity_of
from tests.scheduling.checker.violation import Violation


def shown_values(
    snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment, catalog: Catalog
) -> Iterator[Violation]:
    """Each launch of a pool that asks for minValues."""
    pods = {pod.key: pod for pod in snapshot.pods}
    barred = barred_offerings(snapshot, plan)
    for launch in plan.launches:
        pool = policy.node_pool(launch.claim.node_pool)
        node_class = policy.node_class(pool.node_class) if pool else None
        if pool is None or node_class is None or launch.reason.value in ("BaseCapacity", "Headroom"):
            continue
        if not any(each.min_values for each in pool.requirements):
            continue
        there = [pods[key] for key in (*launch.pods, *launch.displaced) if key in pods]
        if launch.reason.value == "Replacement" and not there:
            # In place of base capacity, and as much for nobody.
            continue
        choices = list(_choices(launch, there, pool, node_class, snapshot, environment, catalog, barred))
        for each in pool.requirements:
            values = {value_of(labels, each.key) for labels in choices} - {None}
            told = pool.min_values_best_effort and any(relaxed.key == each.key for relaxed in launch.relaxed)
            if each.min_values is not None and len(values) < each.min_values and not told:
                facts = f"{len(values)} of {each.min_values} values of {each.key}"
                yield Violation("min-values", launch.claim.name, facts)


def _choices(
    launch: Launch,
    there: list[Pod],
    pool: NodePool,
    node_class: NodeClass,
    snapshot: Snapshot,
    environment: Environment,
    catalog: Catalog,
    barred: frozenset[str],
) -> Iterator[Mapping[str, str]]:
    """The labels of each node that the launch could have been."""
    kinds = {kind.name: kind for kind in catalog.instance_types}
    zones = zones_of(node_class, snapshot, environment)
    of_type = kinds[launch.claim.inputs.instance_type].labels if launch.claim.inputs.instance_type in kinds else {}
    own = {key: value for key, value in launch.claim.labels.items() if key not in of_type}
    for offering in catalog.offerings:
        if offering.key in barred or offering.usd_per_hour is None or offering.zone not in zones:
            continue
        kind = kinds[offering.instance_type]
        labels = {
            **own,
            **kind.labels,
            "topology.kubernetes.io/zone": offering.zone,
            "karpenter.sh/capacity-type": offering.capacity_type,
        }
        labels.pop("topology.k8s.aws/zone-id", None)
        if not all(meets(each, labels) for each in pool.requirements):
            continue
        if any(fault for pod in there for fault in accepts(pod, labels, pool.taints)):
            continue
        allocatable = allocatable_of(capacity_of(kind, node_class, environment))
        daemons = daemons_to_come(snapshot.daemon_sets, labels, pool.taints, ())
        if not any(overdrawn(allocatable, daemons, there)):
            yield labels
