"""Claims: the machines that we asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from engine.model.constraint import Taint
from engine.model.money import UsdPerHour
from engine.model.quantity import Resources


@frozen
class ClaimInputs:
    """What a claim's instance is launched with. Never changes while the claim lives.

    ``launch_template`` is named by its content and has one version, 1, so a name pins everything that boots.
    ``subnet_id`` None means the subnet that the environment itself owns in ``zone``; ``security_group_ids`` None
    means the security group that it owns. ``tags`` are the instance's, claim tag included.
    """

    instance_type: str
    zone: str
    capacity_type: str
    launch_template: str
    subnet_id: str | None = None
    security_group_ids: tuple[str, ...] | None = None
    associate_public_ip_address: bool | None = None
    capacity_reservation_id: str | None = None
    tags: Mapping[str, str] = field(factory=dict)


@frozen
class Claim:
    """One machine: one offering, a name that is never reused, inputs that never change.

    ``stack`` is the Pulumi stack that holds it (the environment's own, or a further lane). ``labels``, ``taints``
    and ``allocatable`` tell what its node will be, before there is one. ``usd_per_hour`` is the price at launch, EBS
    included.
    """

    name: str
    node_pool: str
    node_class: str
    stack: str
    inputs: ClaimInputs
    usd_per_hour: UsdPerHour
    capacity: Resources
    allocatable: Resources
    created_at: datetime
    labels: Mapping[str, str] = field(factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
