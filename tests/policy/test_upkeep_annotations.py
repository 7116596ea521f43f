"""What a NodePool's annotations say of how its nodes are replaced: what is taken and what is not."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from attrs import evolve

from engine.model import labels
from engine.model.diagnostic import Diagnostic
from engine.model.money import UsdPerHour
from engine.model.upkeep import Upkeep
from tests.policy.texts import CLASS, POOL, added, findings_of, policy_of


def annotated(annotation: str, value: str) -> str:
    return added(POOL, "metadata:", f"  annotations: {{{annotation}: '{value}'}}").text


def upkeep_with(annotation: str, value: str) -> Upkeep:
    return policy_of(annotated(annotation, value), CLASS).node_pools[0].upkeep


def refused(annotation: str, value: str) -> Diagnostic:
    [found] = [each for each in findings_of(annotated(annotation, value), CLASS) if each.rule == "bad-annotation"]
    assert found.position.line == 4, "it is told where it stands"
    return found


def test_a_pool_that_says_nothing_has_the_plain_settings() -> None:
    assert policy_of(POOL, CLASS).node_pools[0].upkeep == Upkeep()


@pytest.mark.parametrize(
    ("annotation", "written", "field", "value"),
    [
        (labels.SURGE, "0", "surge", 0),
        (labels.SURGE, "1", "surge", 1),
        (labels.ROLLOUT_CANARY, "0", "canaries", 0),
        (labels.ROLLOUT_CANARY, "1000", "canaries", 1000),
        (labels.ROLLOUT_SOAK, "1h30m", "soak", timedelta(minutes=90)),
        (labels.MIN_SPOT_SAVING, "20%", "spot_share", Decimal("0.2")),
        (labels.REPAID_WITHIN, "2h", "repaid_within", timedelta(hours=2)),
        (labels.MIN_NODE_LIFE, "0s", "node_life", timedelta(0)),
        (labels.WARM_UP, "5m", "warm_up", timedelta(minutes=5)),
        (labels.RETURN_TO_PREFERRED, "true", "returns", True),
        (labels.QUIET_DESTINATIONS, "true", "quiet_destinations", True),
    ],
)
def test_what_a_pool_says_is_taken(annotation: str, written: str, field: str, value: object) -> None:
    assert upkeep_with(annotation, written) == evolve(Upkeep(), **{field: value})


@pytest.mark.parametrize(
    ("written", "amount", "share"),
    [("0.05", "0.05", "0"), ("10%", "0", "0.1"), ("0.05,10%", "0.05", "0.1"), ("12.5% , 1", "1", "0.125")],
)
def test_a_least_saving_is_an_amount_a_share_or_both(written: str, amount: str, share: str) -> None:
    found = upkeep_with(labels.MIN_SAVING, written)
    assert (found.least_saving, found.least_share) == (UsdPerHour.parse(amount), Decimal(share))


@pytest.mark.parametrize(
    ("annotation", "written"),
    [
        (labels.SURGE, "2"),
        (labels.SURGE, ""),
        (labels.ROLLOUT_CANARY, "-1"),
        (labels.ROLLOUT_CANARY, "1001"),
        (labels.ROLLOUT_CANARY, "all"),
        (labels.ROLLOUT_SOAK, "ten minutes"),
        (labels.ROLLOUT_SOAK, "169h"),
        (labels.MIN_SAVING, "lots"),
        (labels.MIN_SAVING, "1,2"),
        (labels.MIN_SAVING, "101%"),
        (labels.MIN_SPOT_SAVING, "0.2"),
        (labels.WARM_UP, "25h"),
        (labels.RETURN_TO_PREFERRED, "yes"),
        (labels.QUIET_DESTINATIONS, "True"),
    ],
)
def test_what_no_pool_can_mean_is_told(annotation: str, written: str) -> None:
    found = refused(annotation, written)
    assert annotation in found.message
    assert found.hint
