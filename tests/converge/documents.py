"""Small desired documents for the tests of converging."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import evolve

from engine.model import labels
from engine.model.claim import Claim, ClaimInputs
from engine.model.document import DesiredDocument, Foundation, LaunchTemplate, RemovalRecord, node_sets
from engine.model.environment import Cluster, Environment, Network, NetworkMode
from engine.model.money import UsdPerHour
from engine.model.policy import BlockDevice, MetadataOptions
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2", "us-east-1c": "use1-az4"}
TEMPLATE = "test-gpu-0123456789"
ROLE = "test-node"
ONE_GPU = Resources.parse({"cpu": "4", "memory": "16Gi", "pods": 58, "nvidia.com/gpu": 1})


def claim(name: str, *, pool: str = "gpu", zone: str = "us-east-1a", stack: str = "test", **inputs: object) -> Claim:
    """An on-demand g5.xlarge; ``inputs`` are fields of ClaimInputs."""
    fields: dict[str, object] = {
        "instance_type": "g5.xlarge",
        "zone": zone,
        "capacity_type": labels.ON_DEMAND,
        "launch_template": TEMPLATE,
        "tags": {labels.TAG_CLAIM: name, labels.TAG_NODE_POOL: pool, labels.TAG_ENVIRONMENT: "test"},
        **inputs,
    }
    return Claim(
        name=name,
        node_pool=pool,
        node_class="default",
        stack=stack,
        inputs=ClaimInputs(**fields),  # type: ignore[arg-type]
        usd_per_hour=UsdPerHour.parse("1.006"),
        capacity=ONE_GPU,
        allocatable=ONE_GPU,
        created_at=NOON,
    )


def template(name: str = TEMPLATE, *, pool: str = "gpu", **more: object) -> LaunchTemplate:
    fields: dict[str, object] = {
        "image_id": "ami-12345678",
        "user_data": "#!/bin/sh\n",
        "block_devices": (BlockDevice(device_name="/dev/xvda", volume_size_gib=100, is_root=True),),
        "metadata_options": MetadataOptions(),
        "role": ROLE,
        "instance_profile": None,
        "tags": {"team": "inference"},
        **more,
    }
    return LaunchTemplate(name=name, node_pool=pool, node_class="default", **fields)  # type: ignore[arg-type]


def foundation(templates: Iterable[LaunchTemplate] | None = None, **more: object) -> Foundation:
    fields: dict[str, object] = {
        "network_mode": NetworkMode.OWNED,
        "cidr": "10.0.0.0/16",
        "zones": ZONES,
        "discovery_tags": {"karpenter.sh/discovery": "test"},
        "roles": (ROLE,),
        "role_policies": ("arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",),
        "launch_templates": tuple(templates) if templates is not None else (template(),),
        **more,
    }
    return Foundation(**fields)  # type: ignore[arg-type]


def document(
    *claims: Claim,
    version: int = 1,
    removals: Iterable[RemovalRecord] = (),
    on: Foundation | None = None,
    environment: str = "test",
) -> DesiredDocument:
    return DesiredDocument(
        environment=environment,
        version=version,
        foundation=on or foundation(),
        node_sets=node_sets(claims),
        removals=tuple(removals),
    )


def removal(name: str, pool: str = "gpu", stack: str = "") -> RemovalRecord:
    return RemovalRecord(
        claim=name,
        node_pool=pool,
        reason=DisruptionReason.EMPTY,
        rule="gpu: consolidateAfter 5m",
        since=NOON,
        usd_per_hour=UsdPerHour.parse("1.006"),
        stack=stack,
    )


def environment(name: str = "test", endpoint_url: str | None = None, **more: object) -> Environment:
    fields: dict[str, object] = {
        "region": "us-east-1",
        "cluster": Cluster(
            name="test-cluster",
            endpoint="https://127.0.0.1:6443",
            certificate_authority="Q0E=",
            service_cidr="10.1.0.0/16",
        ),
        "network": Network(mode=NetworkMode.OWNED, zones=ZONES),
        **more,
    }
    return Environment(name=name, endpoint_url=endpoint_url, **fields)  # type: ignore[arg-type]


def later(of: DesiredDocument, *claims: Claim, removals: Iterable[RemovalRecord] = ()) -> DesiredDocument:
    """The next version: these claims instead, these removals more."""
    return evolve(of, version=of.version + 1, node_sets=node_sets(claims), removals=(*of.removals, *removals))
