"""How a simulated world begins where none was recorded: empty, in a cloud where every selector finds something."""

from __future__ import annotations

from datetime import datetime

from engine.model.catalog import Catalog
from engine.model.environment import Environment, NetworkMode
from engine.model.pod import DaemonSet
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts, ResolvedSubnet, Snapshot
from engine.policy.launch_template import image_variant

# As many as a subnet of /20 has.
_ADDRESSES = 4091


def empty_world(
    environment: Environment, policy: Policy, catalog: Catalog, at: datetime, daemon_sets: tuple[DaemonSet, ...] = ()
) -> Snapshot:
    """No node, no pod, nothing published; images, subnets and security groups for every node class."""
    return Snapshot(
        environment=environment.name,
        taken_at=at,
        daemon_sets=daemon_sets,
        cloud=supposed_cloud(environment, policy, catalog),
    )


def supposed_cloud(environment: Environment, policy: Policy, catalog: Catalog) -> CloudFacts:
    """What EC2 would answer about node classes if everything they select were there."""
    classes = [each.name for each in policy.node_classes]
    variants = sorted({image_variant(kind) for kind in catalog.instance_types})
    is_looked_up = environment.network.mode is NetworkMode.EXISTING
    subnets = tuple(ResolvedSubnet(f"subnet-{zone}", zone, _ADDRESSES) for zone in sorted(environment.network.zones))
    return CloudFacts(
        subnets=dict.fromkeys(classes, subnets) if is_looked_up else {},
        security_group_ids=dict.fromkeys(classes, ("sg-supposed",)) if is_looked_up else {},
        images={name: {variant: f"ami-{variant}" for variant in variants} for name in classes},
    )
