"""Capacity reservations and capacity blocks of the account, and those that other accounts share with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.model.reservation import ACTIVE, CapacityReservation, MatchCriteria, ReservationKind

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


def reservations_of(ec2: EC2Client) -> tuple[CapacityReservation, ...]:
    """All that are active, in id order, whether a class selects them or not."""
    pages = ec2.get_paginator("describe_capacity_reservations").paginate(
        Filters=[{"Name": "state", "Values": [ACTIVE]}]
    )
    found = (_reservation(raw) for page in pages for raw in page["CapacityReservations"])
    return tuple(sorted(found, key=lambda each: each.id))


def _reservation(raw: Any) -> CapacityReservation:
    is_block = raw.get("ReservationType") == ReservationKind.CAPACITY_BLOCK.value
    is_open = raw.get("InstanceMatchCriteria") == MatchCriteria.OPEN.value
    return CapacityReservation(
        id=raw["CapacityReservationId"],
        instance_type=raw["InstanceType"],
        zone=raw["AvailabilityZone"],
        total=raw["TotalInstanceCount"],
        available=raw["AvailableInstanceCount"],
        kind=ReservationKind.CAPACITY_BLOCK if is_block else ReservationKind.DEFAULT,
        match_criteria=MatchCriteria.OPEN if is_open else MatchCriteria.TARGETED,
        owner_id=raw.get("OwnerId", ""),
        state=raw["State"],
        ends_at=raw.get("EndDate"),
        tags={tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])},
    )
