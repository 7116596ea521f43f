"""Drift: in what ways a machine is other than what its pool would launch today, for the same offering.

What is compared are the inputs of a launch as they come out in the end: the image that a selector finds, the launch
template's content, the subnets and groups that selectors match. So a change without effect on a machine is no drift.
Nor is what only bears on later launches or on how nodes go: weights, limits, budgets, startup taints, whether new nodes
are held. What is not known today, such as an image that no selector finds, is no difference.

Source of the list: Karpenter's (nodeclaim/disruption/drift.go, and pkg/cloudprovider/drift.go of its AWS provider).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, frozen

from engine.disruption.change import Change
from engine.model import labels as keys
from engine.model.canonical import digest
from engine.model.catalog import Catalog, InstanceType
from engine.model.claim import Claim
from engine.model.constraint import Taint
from engine.model.document import LaunchTemplate
from engine.model.environment import Environment, NetworkMode
from engine.model.policy import BlockDevice, NodeClass, NodePool, Policy
from engine.model.snapshot import Snapshot
from engine.policy.launch_template import image_variant, launch_template

_OF_A_CLAIM = frozenset(
    {keys.TAG_NAME, keys.TAG_CLAIM, keys.TAG_NODE_POOL, keys.TAG_ENVIRONMENT, keys.TAG_DOCUMENT_VERSION}
)
_NO_POOLS_OWN = keys.WELL_KNOWN | {keys.NODE_CLASS, keys.HOSTNAME, keys.OS, *keys.ALIASES}
_DIGITS = 8


@frozen(eq=False)
class _Known:
    """What is known of a claim: ``template`` and ``changes``, held against that pool."""

    claim: Claim
    pool: NodePool
    template: str
    changes: tuple[Change, ...]


class Drift:
    """Compares claims of one snapshot with its policy and catalog; what they share is worked out once."""

    @classmethod
    def after(
        cls, last: Drift | None, policy: Policy, catalog: Catalog, environment: Environment, snapshot: Snapshot
    ) -> Drift:
        """One that knows what the last pass found, as far as nothing has changed that it follows from."""
        made = cls(policy, catalog, environment, snapshot)
        if last is not None and last._is_like(made):
            made._before = last._found
        return made

    def __init__(self, policy: Policy, catalog: Catalog, environment: Environment, snapshot: Snapshot) -> None:
        self._policy, self._catalog = policy, catalog
        self._before: Mapping[str, _Known] = {}
        self._found: dict[str, _Known] = {}
        self._environment, self._cloud = environment, snapshot.cloud
        self._classes = {each.name: each for each in policy.node_classes}
        self._types = {each.name: each for each in catalog.instance_types}
        templates = snapshot.document.foundation.launch_templates if snapshot.document is not None else ()
        self._published = {each.name: each for each in templates}
        self._today: dict[tuple[str, str, str, tuple[Taint, ...]], tuple[LaunchTemplate, ...]] = {}
        self._reservations = {each.id: each for each in snapshot.cloud.reservations}

    def _is_like(self, other: Drift) -> bool:
        """A catalog is large, so only the very same one is taken for equal."""
        mine, theirs = self._cloud, other._cloud
        return (
            self._catalog is other._catalog
            and (self._policy, self._environment) == (other._policy, other._environment)
            and self._published == other._published
            and (mine.images, mine.subnets, mine.security_group_ids, mine.reservations)
            == (theirs.images, theirs.subnets, theirs.security_group_ids, theirs.reservations)
        )

    def template(self, claim: Claim, pool: NodePool) -> str:
        """The name of the launch template that its like would boot from today; empty where that is not known."""
        return self._known(claim, pool).template

    def changes(self, claim: Claim, pool: NodePool) -> tuple[Change, ...]:
        """Every difference, what a person would look at first in front."""
        return self._known(claim, pool).changes

    def _known(self, claim: Claim, pool: NodePool) -> _Known:
        known = self._found.get(claim.name) or self._before.get(claim.name)
        if known is None or known.claim is not claim or known.pool is not pool:
            known = _Known(claim, pool, self._template(claim, pool), self._changes(claim, pool))
        self._found[claim.name] = known
        return known

    def _template(self, claim: Claim, pool: NodePool) -> str:
        node_class, kind = self._classes.get(pool.node_class), self._types.get(claim.inputs.instance_type)
        today = self._templates(claim, pool, node_class, kind) if node_class is not None and kind is not None else ()
        return today[0].name if today else ""

    def _changes(self, claim: Claim, pool: NodePool) -> tuple[Change, ...]:
        node_class, kind = self._classes.get(pool.node_class), self._types.get(claim.inputs.instance_type)
        found = [*self._of_pool(claim, pool, kind)]
        if node_class is None:
            return tuple(found)
        if kind is not None:
            found += self._of_template(claim, self._templates(claim, pool, node_class, kind), bool(found))
        found += self._of_network(claim, node_class)
        found += self._of_reservation(claim, node_class)
        return tuple(found)

    def _of_pool(self, claim: Claim, pool: NodePool, kind: InstanceType | None) -> Iterator[Change]:
        if claim.node_class != pool.node_class:
            yield Change("node class", claim.node_class, pool.node_class)
        if kind is None and self._types:
            yield Change("instance type", claim.inputs.instance_type, "")
        for key, value in sorted(pool.labels.items()):
            if claim.labels.get(key) != value:
                yield Change(f"label {key}", claim.labels.get(key, ""), value)
        required = {keys.ALIASES.get(each.key, each.key) for each in pool.requirements}
        own = required | pool.labels.keys() | (kind.labels.keys() if kind is not None else set()) | _NO_POOLS_OWN
        for key in sorted(claim.labels.keys() - own):
            yield Change(f"label {key}", claim.labels[key], "")
        if set(claim.taints) != set(pool.taints):
            yield Change("taints", _taints(claim.taints), _taints(pool.taints))
        for each in pool.requirements:
            key = keys.ALIASES.get(each.key, each.key)
            is_told = key in claim.labels or (key in keys.WELL_KNOWN and kind is not None)
            if is_told and not each.admits(claim.labels.get(key)):
                yield Change(f"requirement {each}", claim.labels.get(key, ""), str(each))

    def _templates(
        self, claim: Claim, pool: NodePool, node_class: NodeClass, kind: InstanceType
    ) -> tuple[LaunchTemplate, ...]:
        """Those that the machine could boot from today: with new nodes held, and not."""
        variant = image_variant(kind)
        known = (pool.name, claim.inputs.capacity_type, variant, claim.startup_taints)
        if known not in self._today:
            image = self._cloud.images.get(node_class.name, {}).get(variant)
            like = evolve(pool, startup_taints=claim.startup_taints)
            self._today[known] = (
                tuple(
                    launch_template(like, node_class, each, image, claim.inputs.capacity_type, variant)
                    for each in _held_and_not(self._environment)
                )
                if image is not None
                else ()
            )
        return self._today[known]

    def _of_template(self, claim: Claim, today: tuple[LaunchTemplate, ...], is_told: bool) -> Iterator[Change]:
        name = claim.inputs.launch_template
        if not today or name in {each.name for each in today}:
            return
        before = self._published.get(name)
        if before is None:
            yield Change("launch template", name, today[0].name)
            return
        after = next((each for each in today if each.user_data == before.user_data), today[0])
        texts = {
            "image": (before.image_id, after.image_id),
            "volumes": (_volumes(before.block_devices), _volumes(after.block_devices)),
            "metadata options": _both(before.metadata_options, after.metadata_options),
            "role": (before.role or "", after.role or ""),
            "instance profile": (before.instance_profile or "", after.instance_profile or ""),
            "detailed monitoring": (_switch(before.detailed_monitoring), _switch(after.detailed_monitoring)),
        }
        if before.block_devices != after.block_devices and texts["volumes"][0] == texts["volumes"][1]:
            texts["volumes"] = _both(before.block_devices, after.block_devices)
        yield from (Change(what, *both) for what, both in texts.items() if both[0] != both[1])
        yield from _tags(before.tags, after.tags)
        # Labels and taints are in the user data, and told already.
        if before.user_data != after.user_data and not is_told:
            yield Change("user data", *_both(before.user_data, after.user_data))

    def _of_network(self, claim: Claim, node_class: NodeClass) -> Iterator[Change]:
        inputs = claim.inputs
        if inputs.associate_public_ip_address != node_class.associate_public_ip_address:
            before, after = inputs.associate_public_ip_address, node_class.associate_public_ip_address
            yield Change("public address", _switch(before), _switch(after))
        if self._environment.network.mode is NetworkMode.OWNED:
            return
        subnets = {each.id for each in self._cloud.subnets.get(node_class.name, ()) if each.zone == inputs.zone}
        if subnets and inputs.subnet_id not in subnets:
            yield Change("subnet", inputs.subnet_id or "", ", ".join(sorted(subnets)))
        groups = tuple(sorted(self._cloud.security_group_ids.get(node_class.name, ())))
        if groups and inputs.security_group_ids != groups:
            yield Change("security groups", ", ".join(inputs.security_group_ids or ()), ", ".join(groups))

    def _of_reservation(self, claim: Claim, node_class: NodeClass) -> Iterator[Change]:
        own = claim.inputs.capacity_reservation_id
        if own is None:
            return
        reservation = self._reservations.get(own)
        if reservation is None or not any(
            term.selects(reservation) for term in node_class.capacity_reservation_selector_terms
        ):
            yield Change("reservation", own, "")


def _held_and_not(environment: Environment) -> tuple[Environment, Environment]:
    """Today's first."""
    held = environment.holds_new_nodes
    return environment, evolve(environment, run=evolve(environment.run, hold_new_nodes=not held))


def _switch(is_on: bool | None) -> str:
    """As a policy file has it; None: it says nothing."""
    return "" if is_on is None else "true" if is_on else "false"


def _taints(taints: Iterable[Taint]) -> str:
    return ", ".join(sorted(map(str, taints)))


def _volumes(devices: Iterable[BlockDevice]) -> str:
    named = (f"{each.device_name} {each.volume_size_gib or '?'}Gi {each.volume_type}" for each in devices)
    return ", ".join(named)


def _both(before: object, after: object) -> tuple[str, str]:
    """Two contents that are too long to be told."""
    return digest(before)[:_DIGITS], digest(after)[:_DIGITS]


def _tags(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key) and key not in _OF_A_CLAIM:
            yield Change(f"tag {key}", before.get(key, ""), after.get(key, ""))
