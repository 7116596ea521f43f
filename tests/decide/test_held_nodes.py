"""Which cordons count: ours while a node comes up, or a person's."""

from __future__ import annotations

from itertools import product

import pytest
from attrs import evolve

from engine.decide.held_nodes import as_if_open
from engine.model import labels as keys
from engine.model.node import Node
from tests.builders import minutes, node, node_pool, pod, snapshot, taint
from tests.decide.world import World, policy

CORDON = taint("node.kubernetes.io/unschedulable")
GPU = taint("gpu")
CORDONED = evolve(node("n", taints=[GPU, CORDON]), unschedulable=True)
HELD = evolve(CORDONED, labels={keys.HELD: "true"})


def seen(there: Node) -> Node:
    [found] = as_if_open(snapshot(nodes=[there])).nodes
    return found


def test_a_held_node_counts_as_open() -> None:
    assert (seen(HELD).unschedulable, seen(HELD).taints) == (False, (GPU,))


def test_a_taint_that_outlives_its_cordon_counts_for_nothing() -> None:
    assert seen(evolve(CORDONED, unschedulable=False)).taints == (GPU,)


@pytest.mark.parametrize("closed", [CORDONED, evolve(HELD, taints=(*HELD.taints, taint(keys.DISRUPTED_TAINT)))])
def test_a_persons_cordon_and_a_mark_stand(closed: Node) -> None:
    assert seen(closed) == closed


@pytest.mark.parametrize(
    ("held", "cordoned", "disrupted", "deleting"), list(product((False, True), repeat=4)), ids=lambda flag: str(flag)[0]
)
def test_no_node_that_counts_as_open_bears_a_cordons_taint(
    held: bool, cordoned: bool, disrupted: bool, deleting: bool
) -> None:
    """So that no later step has to look for one."""
    taints = (GPU, CORDON, *([taint(keys.DISRUPTED_TAINT)] if disrupted else []))
    labels = {keys.HELD: "true"} if held else {}
    found = seen(evolve(node("n"), labels=labels, taints=taints, unschedulable=cordoned, deleting=deleting))
    assert found.unschedulable or CORDON not in found.taints


def test_nothing_is_bought_beside_a_node_whose_cordon_has_just_been_lifted() -> None:
    world = World(policy(node_pool()), [pod("first", gpu=1)])
    world.turn()
    world.turn(minutes(1))
    world.finish(list(world.pods.values()))
    [(name, there)] = world.nodes.items()
    world.nodes[name] = evolve(there, taints=(*there.taints, CORDON))
    late = pod("late", gpu=1)
    world.pods[late.key] = late
    plan = world.decide()
    assert (plan.launches, [(each.pod.name, each.node) for each in plan.placements]) == ((), [("late", name)])


def test_a_world_without_held_nodes_is_not_copied() -> None:
    world = snapshot(nodes=[node("n"), CORDONED])
    assert as_if_open(world) is world
