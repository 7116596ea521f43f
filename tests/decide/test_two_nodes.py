"""A machine that goes by two Nodes: it came back under another name, or a Node claims to be what it is not."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.decide.fleet import Sighting, match
from engine.model.node import Node
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Pod
from engine.model.policy import Disruption
from engine.model.snapshot import CloudFacts
from engine.model.stay import SeveralNodes
from tests.builders import NOON, document, minutes, node, node_pool, pod, snapshot
from tests.decide.test_bring_up import ASKED, SHORT, UP, seen
from tests.decide.test_fleet import ONE, instance
from tests.decide.world import World, policy

OLD = node("old", instance_id="i-1", created=NOON)
NEW = node("new", instance_id="i-1", created=NOON + minutes(5))


def sighting(*nodes: Node, pods: tuple[Pod, ...] = ()) -> Sighting:
    cloud = CloudFacts(instances=(instance(),))
    (found,) = match(snapshot(nodes=nodes, pods=pods, cloud=cloud, document=document(ONE))).sightings
    return found


@pytest.mark.parametrize("where", ["old", "new"])
def test_pods_bound_to_any_node_of_a_machine_count_as_its_workload(where: str) -> None:
    guarded = evolve(pod("work", node=where), do_not_disrupt=True)
    found = sighting(OLD, NEW, pods=(guarded,))
    assert [each.key for each in found.workload] == [each.key for each in found.pods] == [guarded.key]
    assert found.guarded_by == guarded.key


def test_pods_are_planned_on_the_newest_node_that_is_ready() -> None:
    assert sighting(OLD, NEW).node == sighting(NEW, OLD).node == NEW
    assert sighting(OLD, evolve(NEW, ready=False)).node == OLD
    assert sighting(OLD, evolve(NEW, deleting=True)).node == OLD
    gone = evolve(NEW, ready=False)
    assert sighting(evolve(OLD, ready=False), gone).node == gone


def empty_machine() -> tuple[World, Node]:
    """A world with one machine that stands empty and may go at once, and its node."""
    one = World(policy(node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=()))), [pod("llm", gpu=1)])
    one.turn()
    one.finish(list(one.pods.values()))
    (real,) = one.nodes.values()
    return one, real


def stays(plan: Plan) -> list[object]:
    return [] if plan.removals else [kept.reason for kept in plan.kept]


def test_an_empty_machine_is_neither_marked_nor_let_go_while_it_has_two_nodes() -> None:
    one, real = empty_machine()
    twin = evolve(real, name="zz-twin", created_at=real.created_at + minutes(1))
    why = SeveralNodes(nodes=(real.name, "zz-twin"))
    assert [removal.phase for removal in one.decide().removals] == [RemovalPhase.MARK]
    one.nodes["zz-twin"] = twin
    assert stays(one.decide()) == [why]
    one.mark(real.name)
    assert stays(one.decide()) == [why]
    one.nodes["zz-twin"] = evolve(twin, ready=False)
    assert stays(one.decide()) == [why]
    del one.nodes["zz-twin"]
    assert [removal.phase for removal in one.decide().removals] == [RemovalPhase.RELEASE]


def test_a_machine_with_two_nodes_does_not_fail_to_come_up() -> None:
    known = evolve(ASKED, accelerators_short_since=NOON)
    assert seen(21, SHORT, before=known).is_failed
    assert not seen(21, SHORT, evolve(UP, name="twin", ready=False), before=known).is_failed
