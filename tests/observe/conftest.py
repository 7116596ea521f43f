"""What moto's EC2 lacks."""

from __future__ import annotations

from typing import Any

import pytest

from engine.observe import ec2


@pytest.fixture(autouse=True)
def _account_without_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    """moto answers DescribeCapacityReservations with an exception; tests/sandbox reads some from an endpoint."""

    def none(client: Any) -> tuple[()]:
        return ()

    monkeypatch.setattr(ec2, "reservations_of", none)
