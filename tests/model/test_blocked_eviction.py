"""Which pods their budgets hold on their nodes, as the eviction API would answer."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from attrs import evolve

from engine.model.blocked_eviction import BlockedEviction
from engine.model.eviction import EvictionStatus
from engine.model.pod import Owner, Pod, PodPhase
from engine.model.snapshot import Snapshot
from engine.model.workload import ObjectKey, PodDisruptionBudget, Workload
from tests.builders import NOON, pod, requirement, toleration

LLM = (requirement("app", "In", "llm"),)


def running(name: str = "llm-1", *, ready_at: datetime | None = NOON, **more: Any) -> Pod:
    made = evolve(pod(name), node_name="node-1", phase=PodPhase.RUNNING, labels={"app": "llm"}, ready_at=ready_at)
    return evolve(made, **more)


def budget(name: str = "llm", *, namespace: str = "default", **more: Any) -> PodDisruptionBudget:
    fields: dict[str, Any] = {"selector": LLM, "is_observed": True, **more}
    return PodDisruptionBudget(ObjectKey(namespace, name), **fields)


def blocked(pods: list[Pod], *budgets: PodDisruptionBudget) -> dict[str, BlockedEviction]:
    seen = Snapshot("prod", NOON, pods=tuple(pods), workload=Workload(disruption_budgets=budgets))
    return {key.name: each for key, each in seen.blocked_evictions.items()}


def test_a_budget_that_allows_nothing_now_holds_its_pods_by_name() -> None:
    assert blocked([running()], budget()) == {
        "llm-1": BlockedEviction(EvictionStatus.REFUSED_BY_BUDGET, (ObjectKey("default", "llm"),))
    }


def test_a_budget_that_allows_one_holds_none() -> None:
    assert not blocked([running("llm-1"), running("llm-2")], budget(disruptions_allowed=1))


def test_a_budget_that_its_controller_has_not_seen_yet_holds() -> None:
    assert blocked([running()], budget(disruptions_allowed=1, is_observed=False))


def test_two_budgets_hold_a_pod_however_much_they_allow() -> None:
    found = blocked([running()], budget("b", disruptions_allowed=9), budget("a", disruptions_allowed=9))

    assert found["llm-1"].status is EvictionStatus.SEVERAL_BUDGETS
    assert "2 PodDisruptionBudgets select it (default/a, default/b)" in str(found["llm-1"])


@pytest.mark.parametrize(
    ("more", "is_blocked"),
    [
        ({}, True),
        ({"evicts_unhealthy": True}, False),
        ({"healthy": 2, "wanted_healthy": 2}, False),
        ({"healthy": 1, "wanted_healthy": 2}, True),
        ({"healthy": 0, "wanted_healthy": 0}, True),
        ({"evicts_unhealthy": True, "is_observed": False}, False),
    ],
)
def test_a_pod_that_is_not_ready_goes_by_the_unhealthy_pod_policy(more: dict[str, Any], is_blocked: bool) -> None:
    assert bool(blocked([running(ready_at=None)], budget(**more))) is is_blocked


def test_no_policy_lets_a_ready_pod_go() -> None:
    assert blocked([running()], budget(evicts_unhealthy=True, healthy=5, wanted_healthy=2))


@pytest.mark.parametrize(
    "unasked",
    [
        pytest.param(running(phase=PodPhase.SUCCEEDED), id="it has finished"),
        pytest.param(running(phase=PodPhase.PENDING), id="it has not started"),
        pytest.param(running(deleting=True), id="it is going"),
        pytest.param(running(node_name=None), id="it is on no node"),
        pytest.param(running(labels={"app": "web"}), id="no budget selects it"),
        pytest.param(running(owner=Owner("Node", "node-1")), id="it is the node's own"),
        pytest.param(
            evolve(running(), placing=pod("any", tolerations=(toleration("karpenter.sh/disrupted"),)).placing),
            id="it tolerates the mark",
        ),
    ],
)
def test_a_pod_that_no_budget_is_asked_about_is_not_held(unasked: Pod) -> None:
    assert not blocked([unasked], budget())


def test_a_budget_is_of_its_own_namespace() -> None:
    assert not blocked([running()], budget(namespace="elsewhere"))


def test_a_budget_without_a_selector_holds_nothing_and_an_empty_one_all() -> None:
    assert not blocked([running()], budget(selector=None))
    assert blocked([running()], budget(selector=()))
