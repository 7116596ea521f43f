"""From the scheduler's new nodes to claims: names, frozen inputs, and the launch templates that they boot from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from engine.decide.attaching import without_volumes
from engine.decide.fleet import Fleet
from engine.decide.lanes import Lanes
from engine.model import labels as keys
from engine.model.claim import Claim, ClaimInputs
from engine.model.document import LaunchTemplate
from engine.model.environment import Environment, NetworkMode
from engine.model.money import FREE
from engine.model.plan import Launch, LaunchReason
from engine.model.pod import PodKey
from engine.model.policy import NodeClass, NodePool, Policy
from engine.model.reservation import ReservationKind
from engine.model.snapshot import Snapshot
from engine.policy.launch_template import image_variant, launch_template
from engine.scheduling.problem import NewNode, NodeOption


@frozen
class Launches:
    """The launches of a plan in claim order, and the launch templates that they need. ``held`` wait: they need a
    template that is not published yet, and the stack that would make it is busy."""

    launches: tuple[Launch, ...]
    templates: tuple[LaunchTemplate, ...]
    held: tuple[NewNode, ...] = ()


@frozen
class Replaced:
    """Whose place new nodes take: ``displaced`` are pods that run, each with its claim; ``short`` are claims of base
    capacity, by pool, in the order in which others take over from them."""

    displaced: Mapping[PodKey, str] = field(factory=dict)
    short: Mapping[str, tuple[str, ...]] = field(factory=dict)


NOBODY = Replaced()


def launches(
    new_nodes: Iterable[NewNode],
    fleet: Fleet,
    snapshot: Snapshot,
    policy: Policy,
    environment: Environment,
    replaced: Replaced = NOBODY,
) -> Launches:
    """A claim for each new node, of a version one above the published document's."""
    lanes = Lanes(fleet, snapshot, environment)
    forge = _Forge(lanes, snapshot, policy, environment, replaced)
    numbered = list(enumerate(sorted(new_nodes, key=_order)))
    held = tuple(new for _, new in numbered if not (lanes.is_main_idle or forge.has_published_template(new)))
    made = [forge.launch(ordinal, new) for ordinal, new in numbered if new not in held]
    templates = sorted(forge.templates.values(), key=lambda each: each.name)
    return Launches(
        launches=tuple(sorted(made, key=lambda each: (each.claim.node_pool, each.claim.name))),
        templates=tuple(templates),
        held=held,
    )


def _order(new: NewNode) -> tuple[str, str, bool, tuple[str, ...]]:
    """Nodes that are alike in all of this are interchangeable."""
    pods = tuple(sorted(map(str, (*new.pods, *new.spares))))
    return (new.node_pool, new.option.offering.key, new.for_base_capacity, pods)


def _reason(new: NewNode) -> LaunchReason:
    if new.for_base_capacity:
        return LaunchReason.BASE_CAPACITY
    return LaunchReason.HEADROOM if new.spares and not new.pods else LaunchReason.PENDING_PODS


def _kind_of_reservation(option: NodeOption) -> ReservationKind | None:
    told = option.labels.get(keys.CAPACITY_RESERVATION_TYPE)
    return ReservationKind(told) if option.offering.reservation_id and told is not None else None


class _Forge:
    """Makes claims one by one, no name twice and no subnet fuller than it needs to be."""

    def __init__(
        self, lanes: Lanes, snapshot: Snapshot, policy: Policy, environment: Environment, replaced: Replaced
    ) -> None:
        self._displaced = replaced.displaced
        self._short = {pool: list(claims) for pool, claims in replaced.short.items()}
        self._lanes = lanes
        self._snapshot = snapshot
        self._policy = policy
        self._environment = environment
        document = snapshot.document
        self._base_version = document.version if document else 0
        self._taken = {claim.name for claim in document.claims} if document else set()
        self._taken |= {record.claim for record in document.removals} if document else set()
        self._taken |= {instance.claim for instance in snapshot.cloud.instances}
        self._published = {each.name for each in document.foundation.launch_templates} if document else set()
        self._planned_on: dict[str, int] = {}
        self.templates: dict[tuple[str, str, str], LaunchTemplate] = {}

    def launch(self, ordinal: int, new: NewNode) -> Launch:
        pool, node_class = self._origin(new)
        displaced = tuple(sorted(pod for pod in new.pods if pod in self._displaced))
        replaces = self._replaces(new, displaced)
        pods = tuple(sorted(pod for pod in new.pods if pod not in self._displaced))
        return Launch(
            claim=evolve(self._claim(self._name(ordinal, new), new, pool, node_class), replaces=replaces),
            reason=LaunchReason.REPLACEMENT if replaces and not pods else _reason(new),
            pods=pods,
            displaced=displaced,
            lost=new.lost,
            next_best=new.next_best,
            gpus_wasted=new.gpus_wasted,
            relaxed=new.relaxed,
        )

    def _replaces(self, new: NewNode, displaced: Iterable[PodKey]) -> tuple[str, ...]:
        found = {self._displaced[pod] for pod in displaced}
        waiting = self._short.get(new.node_pool)
        if new.for_base_capacity and waiting:
            found.add(waiting.pop(0))
        return tuple(sorted(found))

    def has_published_template(self, new: NewNode) -> bool:
        """Whether the launch needs nothing new of the foundation."""
        return self._template(new, *self._origin(new)).name in self._published

    def _origin(self, new: NewNode) -> tuple[NodePool, NodeClass]:
        pool = self._policy.node_pool(new.node_pool)
        node_class = self._policy.node_class(pool.node_class) if pool else None
        if pool is None or node_class is None:
            raise LookupError(f"the scheduler launched from pool {new.node_pool}, which has no file or no node class")
        return pool, node_class

    def _claim(self, name: str, new: NewNode, pool: NodePool, node_class: NodeClass) -> Claim:
        option, offering = new.option, new.option.offering
        template = self._template(new, pool, node_class)
        return Claim(
            name=name,
            node_pool=pool.name,
            node_class=node_class.name,
            stack=self._lanes.take(template.name),
            inputs=ClaimInputs(
                instance_type=offering.instance_type,
                zone=offering.zone,
                capacity_type=offering.capacity_type,
                launch_template=template.name,
                subnet_id=self._subnet(node_class, offering.zone),
                security_group_ids=self._security_groups(node_class),
                associate_public_ip_address=node_class.associate_public_ip_address,
                tags=self._tags(name, pool, node_class),
                capacity_reservation_id=offering.reservation_id or None,
                capacity_reservation_kind=_kind_of_reservation(option),
                open_reservations=pool.open_reservations if offering.capacity_type == keys.ON_DEMAND else None,
            ),
            usd_per_hour=option.usd_per_hour or FREE,
            capacity=option.capacity,
            allocatable=without_volumes(option.allocatable),
            created_at=self._snapshot.taken_at,
            labels=new.labels or option.labels,
            taints=pool.taints,
            startup_taints=pool.startup_taints,
        )

    def _name(self, ordinal: int, new: NewNode) -> str:
        """Of what is decided, and on what: no other decision gives the name, since a version is published only once.

        Time is left out, so that looking again at an unchanged world gives the very plan that was reviewed.
        """
        published = self._snapshot.document
        parts = (
            self._environment.name,
            str(self._base_version),
            published.plan_hash if published else "",
            new.node_pool,
            str(ordinal),
            new.option.offering.key,
        )
        attempt = 0
        while True:
            content = "\n".join((*parts, str(attempt)))
            name = f"{new.node_pool}-{hashlib.sha256(content.encode()).hexdigest()[:10]}"
            if name not in self._taken:
                self._taken.add(name)
                return name
            attempt += 1

    def _template(self, new: NewNode, pool: NodePool, node_class: NodeClass) -> LaunchTemplate:
        variant = image_variant(new.option.instance_type)
        capacity_type = new.option.offering.capacity_type
        needed = (pool.name, capacity_type, variant)
        if needed not in self.templates:
            image = self._snapshot.cloud.images[node_class.name][variant]
            self.templates[needed] = launch_template(pool, node_class, self._environment, image, capacity_type, variant)
        return self.templates[needed]

    def _subnet(self, node_class: NodeClass, zone: str) -> str | None:
        """The subnet with the most addresses left once this plan's launches have theirs; None: the one we own."""
        if self._environment.network.mode is NetworkMode.OWNED:
            return None
        candidates = [each for each in self._snapshot.cloud.subnets.get(node_class.name, ()) if each.zone == zone]
        planned = self._planned_on
        chosen = min(candidates, key=lambda each: (planned.get(each.id, 0) - each.available_ip_count, each.id))
        planned[chosen.id] = planned.get(chosen.id, 0) + 1
        return chosen.id

    def _security_groups(self, node_class: NodeClass) -> tuple[str, ...] | None:
        if self._environment.network.mode is NetworkMode.OWNED:
            return None
        return tuple(sorted(self._snapshot.cloud.security_group_ids.get(node_class.name, ())))

    def _tags(self, name: str, pool: NodePool, node_class: NodeClass) -> dict[str, str]:
        own = {
            keys.TAG_NAME: name,
            keys.TAG_CLAIM: name,
            keys.TAG_NODE_POOL: pool.name,
            keys.TAG_ENVIRONMENT: self._environment.name,
            # EKS and the cloud provider know a cluster's own machines by this tag.
            f"{keys.TAG_CLUSTER_PREFIX}{self._environment.cluster.name}": "owned",
            keys.TAG_DOCUMENT_VERSION: str(self._base_version + 1),
        }
        return {**self._environment.tags, **node_class.tags, **own}
