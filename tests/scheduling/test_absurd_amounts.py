"""Amounts that no machine has, written by a person or reported by a node, stop no pass."""

from __future__ import annotations

import pytest

from engine.model.quantity import Resources
from engine.scheduling.problem import Problem
from engine.scheduling.solve import solve
from tests.builders import M5_LARGE, existing, pod, pool_state

ABSURD = ["1e30", str(2**63), str(2**63 - 1), "1Ei"]


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_a_node_of_any_size_takes_what_its_other_resources_admit(resource: str, amount: str) -> None:
    room: dict[str, str | int] = {"cpu": "4", "memory": "16Gi", "pods": 10, resource: amount}
    pods = tuple(pod(f"pod-{number}", cpu="1", memory="4Gi") for number in range(6))
    solution = solve(Problem(pods=pods, existing=(existing("huge", M5_LARGE, room=room),), pools=()))
    assert [each.node for each in solution.placements] == ["huge"] * 4
    assert len(solution.unplaced) == 2


@pytest.mark.parametrize("amount", ABSURD)
@pytest.mark.parametrize("resource", ["cpu", "memory"])
def test_a_pod_of_any_size_keeps_no_other_from_its_node(resource: str, amount: str) -> None:
    asked = {"cpu": "1", "memory": "1Gi", resource: amount}
    pods = (pod("absurd", cpu=asked["cpu"], memory=asked["memory"]), pod("sane"))
    solution = solve(Problem(pods=pods, existing=(), pools=(pool_state(types=[M5_LARGE]),)))
    assert [each.pod.name for each in solution.unplaced] == ["absurd"]
    assert [[key.name for key in new.pods] for new in solution.new_nodes] == [["sane"]]


def test_a_pod_as_absurd_as_its_node_leaves_room_for_the_sane_ones() -> None:
    node = existing("huge", M5_LARGE, room={"cpu": "1e30", "memory": "16Gi", "pods": 10})
    pods = (pod("absurd", cpu="9e29"), *(pod(f"sane-{number}", memory="4Gi") for number in range(3)))
    solution = solve(Problem(pods=pods, existing=(node,), pools=()))
    placed = {each.pod.name for each in solution.placements}
    assert placed >= {"sane-0", "sane-1", "sane-2"}
    assert placed | {each.pod.name for each in solution.unplaced} == {each.key.name for each in pods}


def test_a_limit_of_any_size_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.scheduling.packed._QUESTIONS", 0)  # So that each limit is asked about at once.
    pool = pool_state(types=[M5_LARGE], limits=Resources.parse({"cpu": "1e30"}))
    pods = tuple(pod(f"pod-{number}", cpu="1700m") for number in range(2))
    solution = solve(Problem(pods=pods, existing=(), pools=(pool,)))
    assert [len(new.pods) for new in solution.new_nodes] == [1, 1]
