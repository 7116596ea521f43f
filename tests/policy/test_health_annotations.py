"""A pool's word on machines that may soon be taken, and on how many sick nodes are too many to be taken down."""

from __future__ import annotations

import pytest

from engine.model.policy import OnRebalance, UnhealthyLimit
from engine.policy.findings import Findings, ObjectFindings
from engine.policy.located import Fields, Place, Source
from engine.policy.node_pool_annotations import read_on_rebalance, read_unhealthy_limit

LIMIT, REBALANCE = "nodewright.dev/unhealthy-limit", "nodewright.dev/on-rebalance"


def findings() -> ObjectFindings:
    return ObjectFindings(Findings(), Source("policies/gpu.yaml", ()), Fields(Place(1, 1)))


@pytest.mark.parametrize(
    ("annotations", "of_ten"),
    [({}, 2), ({LIMIT: "50%"}, 5), ({LIMIT: "15%"}, 2), ({LIMIT: "3"}, 3), ({LIMIT: "0"}, 0), ({LIMIT: "100%"}, 10)],
)
def test_the_limit_is_a_count_or_a_share_rounded_up(annotations: dict[str, str], of_ten: int) -> None:
    assert read_unhealthy_limit(annotations, findings()).of(10) == of_ten


@pytest.mark.parametrize("text", ["", "%", "-1", "1.5", "101%", "20 %", "²", "9999999"])
def test_what_is_no_limit_is_told_and_the_default_holds(text: str) -> None:
    told = findings()
    assert read_unhealthy_limit({LIMIT: text}, told) == UnhealthyLimit()
    assert told.findings.has_errors


def test_a_recommendation_is_ignored_where_nothing_is_written() -> None:
    assert read_on_rebalance({}, findings()) is OnRebalance.IGNORE
    assert read_on_rebalance({REBALANCE: "replace"}, findings()) is OnRebalance.REPLACE
