"""Claims: the machines that we asked for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from engine.model.catalog import offering_key
from engine.model.constraint import Taint
from engine.model.money import UsdPerHour
from engine.model.quantity import Resources
from engine.model.reservation import OpenReservations, ReservationKind


@frozen
class ClaimInputs:
    """What a claim's instance is launched with. Never changes while the claim lives.

    ``launch_template`` is named by its content and has one version, 1, so a name pins everything that boots.
    ``subnet_id`` None means the subnet that the environment itself owns in ``zone``; ``security_group_ids`` None
    means the security group that it owns. ``tags`` are the instance's, claim tag included.
    ``capacity_reservation_kind`` comes with ``capacity_reservation_id``; ``open_reservations`` is what EC2 is told of
    reservations that the launch does not aim at, and None tells it nothing.
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
    capacity_reservation_kind: ReservationKind | None = None
    open_reservations: OpenReservations | None = None

    @property
    def offering_key(self) -> str:
        """The ledger's key of the offering that is bought."""
        return offering_key(self.instance_type, self.zone, self.capacity_type, self.capacity_reservation_id or "")


@frozen
class Claim:
    """One machine: one offering, a name that is never reused, inputs that never change.

    ``stack`` is the Pulumi stack that holds it (the environment's own, or a further lane). ``labels``, ``taints``
    and ``allocatable`` tell what its node will be, before there is one. ``usd_per_hour`` is the price at launch, EBS
    included. ``replaces`` are the claims whose place it was launched to take, in name order.
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
    replaces: tuple[str, ...] = ()
