"""What becomes of capacity reservations when EC2 does not tell of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from engine.model.ledger import Ledger
from engine.model.policy import Policy, SelectorTerm
from engine.model.reservation import CapacityReservation, ReservationTerm
from engine.model.snapshot import CloudFacts
from engine.observe import ec2
from engine.observe.ec2 import Ec2Reader
from engine.observe.failure import ObservationFailed
from tests import builders

IMAGE = (SelectorTerm(id="ami-11111111111111111"),)
SELECTING = builders.node_class(
    ami_selector_terms=IMAGE, capacity_reservation_selector_terms=(ReservationTerm(id="cr-1"),)
)
PLAIN = builders.node_class(ami_selector_terms=IMAGE)


@pytest.fixture(autouse=True)
def _fake_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    with mock_aws():
        yield


def read(*classes: Any) -> CloudFacts:
    policy = Policy(node_pools=(), node_classes=classes)
    return Ec2Reader(None, "us-east-1").read(builders.environment(), policy, None, Ledger())


def refuse(client: Any) -> tuple[CapacityReservation, ...]:
    raise ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeCapacityReservations")


def test_reservations_are_read_whether_a_class_selects_them_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    there = (CapacityReservation("cr-1", "g5.xlarge", "us-east-1a", 5, 5),)
    monkeypatch.setattr(ec2, "reservations_of", lambda client: there)
    assert read(PLAIN).reservations == there


def test_no_answer_is_taken_for_none_while_no_class_selects_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ec2, "reservations_of", refuse)
    assert read(PLAIN).reservations == ()


def test_no_answer_fails_the_reading_where_a_class_selects_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ec2, "reservations_of", refuse)
    with pytest.raises(ObservationFailed, match="refused capacity reservations with UnauthorizedOperation"):
        read(PLAIN, SELECTING)
