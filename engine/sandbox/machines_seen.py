"""The machines of one environment as its kubelets know them: from EC2, from their user data, from their type."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from attrs import frozen

from engine.catalog.build import build_catalog
from engine.catalog.data import EBS_FILE, TYPES_FILE, ZONES_FILE, parse_catalog_data
from engine.catalog.node_shape import NodeShape, node_shape
from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.diagnostic import Position
from engine.model.environment import Cluster, Environment, Network, NetworkMode, Pricing
from engine.model.policy import BlockDevice, NodeClass
from engine.sandbox.first_boot import FirstBoot, first_boot

_NOWHERE = Position("user data", 1, 1)
_THERE = ("pending", "running", "stopping", "stopped")
# Only its share of memory that the hypervisor takes is read: the default, as in every environment that sets none.
_ANY_ENVIRONMENT = Environment(
    name="sandbox",
    region="",
    cluster=Cluster(name="", endpoint="", certificate_authority="", service_cidr=""),
    network=Network(NetworkMode.OWNED, {}),
)


@frozen
class SandboxMachine:
    """An instance of EC2's answer that is there: pending, running or stopped."""

    instance_id: str
    instance_type: str
    zone: str
    private_dns_name: str
    state: str


class MachinesSeen:
    """Asks EC2, by a boto3 client. What its methods raise is what that client raises."""

    def __init__(self, ec2: Any, environment: str) -> None:
        self._ec2 = ec2
        self._environment = environment
        self._types = instance_types(ec2.meta.region_name)
        self._zone_ids: Mapping[str, str] | None = None

    def all(self) -> Iterator[SandboxMachine]:
        """Those that are there: pending, running or stopped."""
        return self._asked({"instance-state-name": _THERE})

    def booting(self, known: Collection[str]) -> Iterator[SandboxMachine]:
        """Those that are pending, and those of ``known`` ids that are there. Cheap, whatever else there is."""
        yield from self._asked({"instance-state-name": ("pending",)})
        if known:
            yield from self._asked({"instance-id": tuple(known), "instance-state-name": _THERE[1:]})

    def _asked(self, filters: Mapping[str, Sequence[str]]) -> Iterator[SandboxMachine]:
        # The owner's tag comes last, since EC2's stand-in looks at filters in this order and at tags slowest.
        every = {**filters, f"tag:{keys.TAG_ENVIRONMENT}": (self._environment,)}
        asked = [{"Name": name, "Values": list(values)} for name, values in every.items()]
        for page in self._ec2.get_paginator("describe_instances").paginate(Filters=asked):
            for instance in (one for group in page["Reservations"] for one in group["Instances"]):
                yield SandboxMachine(
                    instance_id=instance["InstanceId"],
                    instance_type=instance["InstanceType"],
                    zone=instance["Placement"]["AvailabilityZone"],
                    private_dns_name=instance.get("PrivateDnsName", ""),
                    state=instance["State"]["Name"],
                )

    def first_boot(self, machine: SandboxMachine) -> FirstBoot:
        """Raises ValueError for user data that no machine could read."""
        answer = self._ec2.describe_instance_attribute(InstanceId=machine.instance_id, Attribute="userData")
        encoded = answer.get("UserData", {}).get("Value", "")
        return first_boot(base64.b64decode(encoded).decode(errors="replace"))

    def shape(self, machine: SandboxMachine, boot: FirstBoot) -> NodeShape:
        """What its node can hold, by its type, its volumes and its kubelet's settings."""
        volumes = self._ec2.describe_volumes(
            Filters=[{"Name": "attachment.instance-id", "Values": [machine.instance_id]}]
        )["Volumes"]
        node_class = NodeClass(
            name="",
            position=_NOWHERE,
            ami_family=boot.family,
            ami_selector_terms=(),
            block_devices=tuple(
                BlockDevice(volume["Attachments"][0]["Device"], volume["Size"])
                for volume in volumes
                if volume.get("Attachments")
            ),
            kubelet=boot.kubelet,
            instance_store_raid0=boot.instance_store_raid0,
        )
        return node_shape(self._types[machine.instance_type], node_class, _ANY_ENVIRONMENT)

    def labels(self, machine: SandboxMachine) -> dict[str, str]:
        """What the kubelet finds out about its machine by itself, and what the cloud's node controller adds."""
        region = self._ec2.meta.region_name
        if self._zone_ids is None:
            zones = self._ec2.describe_availability_zones()["AvailabilityZones"]
            self._zone_ids = {zone["ZoneName"]: zone["ZoneId"] for zone in zones if zone.get("ZoneId")}
        zone_id = self._zone_ids.get(machine.zone)
        return {
            keys.ARCH: self._types[machine.instance_type].arch,
            keys.OS: "linux",
            keys.INSTANCE_TYPE: machine.instance_type,
            keys.REGION: region,
            keys.ZONE: machine.zone,
        } | ({keys.ZONE_ID: zone_id} if zone_id else {})


def instance_types(region: str) -> dict[str, InstanceType]:
    """Every instance type that the package knows, by name."""
    folder = resources.files("engine.catalog") / "data"
    types, zones, ebs = ((folder / name).read_bytes() for name in (TYPES_FILE, ZONES_FILE, EBS_FILE))
    catalog = build_catalog(region, {}, parse_catalog_data(types, zones, ebs), Pricing())
    return {each.name: each for each in catalog.instance_types}
