"""A pod whose budget keeps it on a node that is to leave is told of: once, and once that it is over."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from engine.model.blocked_eviction import BlockedEviction
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.fault import Fault
from engine.model.pod import Owner, Pod
from engine.model.workload import ObjectKey
from engine.reconcile.passes import apply, propose
from engine.reconcile.refused_evictions import RefusedEvictions
from engine.reconcile.troubles import Troubles
from tests.builders import node_pool, pod
from tests.decide.world import World, policy
from tests.reconcile.loop_world import LoopPorts
from tests.reconcile.loops import EMPTY_AT_ONCE

SET = Owner("ReplicaSet", "llm")
BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."


class _Heard:
    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def say(self, line: str) -> None:
        raise AssertionError(line)

    def warn(self, fault: Fault) -> None:
        self.faults.append(fault)


def held_from(seconds: float, folder: Path, status: EvictionStatus = EvictionStatus.REFUSED_BY_BUDGET) -> LoopPorts:
    """Three machines with a pod each. From then on one pod is finished, and another, held, is on a marked node."""
    pods = [pod(f"llm-{number}", gpu=1, owner=SET) for number in range(3)]
    loop = LoopPorts(World(policy(node_pool(disruption=EMPTY_AT_ONCE)), pods), folder)

    def happen() -> None:
        loop.world.finish([named(loop, "llm-2")])
        loop.world.mark(named(loop, "llm-0").node_name or "")
        refuse(loop, status, f"{BUDGET} It needs 2 healthy pods and has 2")

    loop.at(seconds, happen)
    return loop


def named(loop: LoopPorts, name: str) -> Pod:
    return next(each for each in loop.world.pods.values() if each.key.name == name)


def refuse(loop: LoopPorts, status: EvictionStatus, words: str) -> None:
    key = named(loop, "llm-0").key
    loop.held_pods = {key: Eviction(key, status, words)}


def test_a_refusal_is_told_once_however_often_the_pod_is_asked(tmp_path: Path) -> None:
    loop = held_from(20.0, tmp_path)
    loop.at(150.0, lambda: refuse(loop, EvictionStatus.REFUSED_BY_BUDGET, f"{BUDGET} It needs 2 and has 1"))
    _, heard = loop.run(until=400.0)

    node = named(loop, "llm-0").node_name
    assert len(loop.evicted) > 3
    assert heard.warned == [
        f"pod default/llm-0 stays on node {node}, which is to leave: {BUDGET} It needs 2 healthy pods and has 2"
    ]
    assert [(each.node, each.answer.pod.name) for each in heard.reports[-1].refused_evictions] == [(node, "llm-0")]


def test_another_kind_of_refusal_is_told_anew(tmp_path: Path) -> None:
    loop = held_from(20.0, tmp_path)
    loop.at(150.0, lambda: refuse(loop, EvictionStatus.SEVERAL_BUDGETS, "two budgets select it"))
    _, heard = loop.run(until=400.0)

    assert [words.partition("leave: ")[2] for words in heard.warned] == [
        f"{BUDGET} It needs 2 healthy pods and has 2",
        "two budgets select it",
    ]


def test_several_budgets_on_one_pod_are_named_with_what_to_do() -> None:
    key = pod("llm-0").key
    several = BlockedEviction(EvictionStatus.SEVERAL_BUDGETS, (ObjectKey("default", "a"), ObjectKey("default", "b")))
    heard = _Heard()
    refused = RefusedEvictions(Troubles(heard))
    refused.look(World(policy(node_pool()), []).decide(), {key: several})
    refused.answered("node-1", [Eviction(key, EvictionStatus.SEVERAL_BUDGETS, "more than one PodDisruptionBudget")])

    assert [str(each) for each in heard.faults] == [
        "pod default/llm-0 stays on node node-1, which is to leave: 2 PodDisruptionBudgets select it "
        "(default/a, default/b), and the eviction API wants one at most"
    ]
    assert heard.faults[0].hints == ("let one PodDisruptionBudget alone select the pod",)


def test_its_end_is_told_once_the_pod_may_leave(tmp_path: Path) -> None:
    loop = held_from(20.0, tmp_path)
    loop.at(150.0, lambda: setattr(loop, "held_pods", {}))
    _, heard = loop.run(until=400.0)

    node = named(loop, "llm-0").node_name
    assert [line for line in heard.said if "llm-0" in line] == [f"pod default/llm-0 does not hold node {node} any more"]
    assert len(heard.warned) == 1
    assert heard.reports[-1].refused_evictions == ()


def test_its_end_is_told_once_the_pod_has_finished_by_itself(tmp_path: Path) -> None:
    loop = held_from(20.0, tmp_path)
    loop.at(150.0, lambda: loop.world.finish([named(loop, "llm-0")]))
    _, heard = loop.run(until=400.0)

    assert len([line for line in heard.said if "pod default/llm-0 does not hold node" in line]) == 1
    assert heard.reports[-1].refused_evictions == ()
    assert len(loop.world.running()) == 1


@pytest.mark.parametrize(
    ("status", "told"),
    [(EvictionStatus.REFUSED_BY_BUDGET, 1), (EvictionStatus.FAILED, 1), (EvictionStatus.GONE, 0)],
)
def test_a_single_pass_tells_refusals_too(tmp_path: Path, status: EvictionStatus, told: int) -> None:
    loop = held_from(20.0, tmp_path, status)
    loop.run(until=20.5)
    lines: list[str] = []
    ports = evolve(loop.ports, now=loop.time.now)
    apply(ports, propose(ports), lines.append, lambda event: None)

    assert len([line for line in lines if line.startswith("pod default/llm-0 stays on node")]) == told
