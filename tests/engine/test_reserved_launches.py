"""Launches into reservations, and on-demand ones that say what they do with open ones, through the real engine."""

from __future__ import annotations

import pytest

from engine.model import labels
from engine.model.outcome import OutcomeStatus
from engine.model.reservation import OpenReservations, ReservationKind
from engine.sandbox.ec2 import RESERVATIONS_FILE
from engine.sandbox.reservations import SandboxReservation, write_reservations
from tests.engine.converge_fixtures import World, attached_plugin, statuses, world  # noqa: F401 (fixtures)

pytestmark = pytest.mark.engine


def test_a_claim_runs_in_its_reservation_and_one_too_many_is_refused(world: World) -> None:  # noqa: F811
    there = SandboxReservation("cr-0e1", "g5.xlarge", "us-east-1a", 1, "capacity-block")
    write_reservations(world.sandbox.state / RESERVATIONS_FILE, (there,))
    aimed = {
        "capacity_type": labels.RESERVED,
        "capacity_reservation_id": there.id,
        "capacity_reservation_kind": ReservationKind.CAPACITY_BLOCK,
    }
    document = world.document(
        world.claim("gpu-1", **aimed),
        world.claim("gpu-2", **aimed),
        world.claim("gpu-3", open_reservations=OpenReservations.LEAVE),
        world.claim("gpu-4", open_reservations=OpenReservations.USE),
    )
    outcome, _ = world.converge(document)
    told = statuses(outcome)
    assert told["gpu-3"] == told["gpu-4"] == OutcomeStatus.CREATED
    assert {told["gpu-1"], told["gpu-2"]} == {OutcomeStatus.CREATED, OutcomeStatus.FAILED_CAPACITY}
    (refused,) = [one for one in outcome.claims if one.status is OutcomeStatus.FAILED_CAPACITY]
    assert (refused.code, refused.offering) == (
        "ReservationCapacityExceeded",
        "g5.xlarge/us-east-1a/reserved/cr-0e1",
    )
