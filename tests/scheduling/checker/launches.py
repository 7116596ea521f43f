"""Whether every launch can be bought, is what its pool permits, and is told as it will be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.claim import Claim
from engine.model.constraint import Requirement
from engine.model.environment import Environment
from engine.model.money import UsdPerHour
from engine.model.plan import Plan
from engine.model.policy import NodeClass, NodePool, Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.node_labels import meets, value_of
from tests.scheduling.checker.shapes import allocatable_of, capacity_of, is_plain, usd_micros_of
from tests.scheduling.checker.violation import Violation

# By the zone, the image, the node class and the reservation.
_ALSO_GIVEN = (
    "topology.k8s.aws/zone-id",
    "kubernetes.io/os",
    "karpenter.k8s.aws/ec2nodeclass",
    "karpenter.k8s.aws/capacity-reservation-id",
    "karpenter.k8s.aws/capacity-reservation-type",
)


def purchases(
    snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment, catalog: Catalog
) -> Iterator[Violation]:
    """Each launch against the catalog, the ledger, its pool and its node class."""
    sold = {each.key: each for each in catalog.offerings}
    kinds = {kind.name: kind for kind in catalog.instance_types}
    barred = barred_offerings(snapshot, plan)
    published = snapshot.document
    names = {claim.name for claim in published.claims} if published else set()
    names |= {record.claim for record in published.removals} if published else set()
    for launch in plan.launches:
        claim, inputs = launch.claim, launch.claim.inputs
        key = _key_of(claim)
        if claim.name in names:
            yield Violation("new-name", claim.name, "is the name of another claim")
        names.add(claim.name)
        offering, kind = sold.get(key), kinds.get(inputs.instance_type)
        if inputs.capacity_reservation_id is not None:
            # Paid for already, and sold by nobody's list.
            offering = Offering(inputs.instance_type, inputs.zone, inputs.capacity_type, UsdPerHour(0))
        if offering is None or kind is None or offering.usd_per_hour is None:
            yield Violation("offering", claim.name, f"{key} is not sold, or has no price")
            continue
        if key in barred:
            yield Violation("unavailable", claim.name, f"{key} refused a launch lately")
        pool = policy.node_pool(claim.node_pool)
        node_class = policy.node_class(pool.node_class) if pool else None
        if pool is None or node_class is None:
            yield Violation("pool", claim.name, f"{claim.node_pool} is no pool, or has no node class")
            continue
        yield from _may_launch(claim, pool, snapshot)
        yield from _is_permitted(claim, pool, kind, launch.reason.value in ("BaseCapacity", "Replacement"))
        yield from _is_labelled(claim, pool, kind, catalog)
        yield from _has_its_shape(claim, kind, node_class, environment)
        yield from _has_its_price(claim, offering, node_class, catalog)
        if inputs.zone not in zones_of(node_class, snapshot, environment):
            yield Violation("zone", claim.name, f"no subnet of {node_class.name} is in {inputs.zone}")


def barred_offerings(snapshot: Snapshot, plan: Plan) -> frozenset[str]:
    """Offerings that refused a launch and are out: by the ledger before this pass, where none came up since, by the
    refusals that this pass learns of, and by the ledger after it."""
    now, before = snapshot.taken_at, snapshot.ledger
    claims = snapshot.document.claims if snapshot.document else ()
    of_claim = {claim.name: _key_of(claim) for claim in claims}
    came = {
        of_claim[each.claim]
        for each in snapshot.cloud.instances
        if each.is_alive and each.claim in of_claim and each.claim not in before.instance_ids
    }
    came |= {
        of_claim[name]
        for name, each in plan.ledger.milestones.items()
        if name in of_claim and each.initialized_at == now
    }
    out = {key for key, each in before.unavailable.items() if now < each.until} - came
    out |= {key for key, each in plan.ledger.unavailable.items() if now < each.until}
    alive = {each.claim for each in snapshot.cloud.instances if each.is_alive}
    refused = {
        of_claim[each.claim]
        for each in before.outcomes
        if each.status.value == "failed-capacity" and each.claim in of_claim and each.claim not in alive
        if not each.instance_id and each.claim not in before.instance_ids
    }
    return frozenset(out | refused)


def _key_of(claim: Claim) -> str:
    """How the ledger names what a claim buys: its reservation is a part of it."""
    inputs = claim.inputs
    parts = (inputs.instance_type, inputs.zone, inputs.capacity_type, inputs.capacity_reservation_id)
    return "/".join(part for part in parts if part)


def zones_of(node_class: NodeClass, snapshot: Snapshot, environment: Environment) -> frozenset[str]:
    """Where a node of the class can be: the zones of the environment's own network, or of the class's subnets."""
    if environment.network.mode.value == "owned":
        return frozenset(environment.network.zones)
    return frozenset(subnet.zone for subnet in snapshot.cloud.subnets.get(node_class.name, ()))


def closed_pool(pool: NodePool, snapshot: Snapshot) -> str:
    """Why a pool launches nothing, whoever asks; empty: it may."""
    if pool.paused:
        return "it is paused"
    if snapshot.karpenter.is_live and pool.name in snapshot.karpenter.node_pools:
        return "a live Karpenter owns it"
    return ""


def forbids(pool: NodePool, labels: Mapping[str, str]) -> Requirement | None:
    """The first requirement of the pool that a node with these labels does not meet."""
    return next((each for each in pool.requirements if not meets(each, labels)), None)


def _may_launch(claim: Claim, pool: NodePool, snapshot: Snapshot) -> Iterator[Violation]:
    closed = closed_pool(pool, snapshot)
    if closed:
        yield Violation("pool", claim.name, f"{pool.name} launches: {closed}")


def _is_permitted(claim: Claim, pool: NodePool, kind: InstanceType, is_base: bool) -> Iterator[Violation]:
    broken = forbids(pool, claim.labels)
    if broken is not None:
        yield Violation("pool-requirements", claim.name, f"{broken} of {pool.name} is not met")
    if pool.replicas is not None and not is_base:
        yield Violation("static", claim.name, f"{pool.name} is static, and launches for pods")
    if (claim.taints, claim.startup_taints) != (pool.taints, pool.startup_taints):
        yield Violation("claim-taints", claim.name, f"its taints are not those of {pool.name}")
    if claim.node_class != pool.node_class:
        yield Violation("pool", claim.name, f"its class is {claim.node_class}, its pool's {pool.node_class}")


def _is_labelled(claim: Claim, pool: NodePool, kind: InstanceType, catalog: Catalog) -> Iterator[Violation]:
    expected = {
        **kind.labels,
        **pool.labels,
        "node.kubernetes.io/instance-type": kind.name,
        "topology.kubernetes.io/zone": claim.inputs.zone,
        "topology.kubernetes.io/region": catalog.region,
        "karpenter.sh/capacity-type": claim.inputs.capacity_type,
        "karpenter.sh/nodepool": pool.name,
    }
    for key, value in expected.items():
        if value_of(claim.labels, key) != value:
            yield Violation("claim-labels", claim.name, f"{key} is {claim.labels.get(key)}, and will be {value}")
    chosen = {each.key for each in pool.requirements}
    for key in claim.labels.keys() - expected.keys() - chosen:
        if key not in _ALSO_GIVEN:
            yield Violation("claim-labels", claim.name, f"nothing gives its node the label {key}")


def _has_its_shape(
    claim: Claim, kind: InstanceType, node_class: NodeClass, environment: Environment
) -> Iterator[Violation]:
    if not is_plain(node_class):
        return
    capacity = capacity_of(kind, node_class, environment)
    told, usable = _without_volumes(claim.capacity), _without_volumes(claim.allocatable)
    if told != dict(capacity):
        yield Violation("capacity", claim.name, f"{told} is told, {dict(capacity)} will be there")
    if usable != dict(allocatable_of(capacity)):
        will_be = dict(allocatable_of(capacity))
        yield Violation("allocatable", claim.name, f"{usable} is told, {will_be} will be there")


def _without_volumes(amounts: Mapping[str, int]) -> dict[str, int]:
    """What is no count of attachable volumes, which is CSINode's to say and not the Node's."""
    return {key: amount for key, amount in amounts.items() if not key.startswith("attachable-volumes-")}


def _has_its_price(claim: Claim, offering: Offering, node_class: NodeClass, catalog: Catalog) -> Iterator[Violation]:
    expected = usd_micros_of(offering, node_class, catalog)
    if all(each.volume_type == "gp3" for each in node_class.block_devices) and claim.usd_per_hour.micros != expected:
        yield Violation("price", claim.name, f"{claim.usd_per_hour.micros} is told, {expected} will be paid")
