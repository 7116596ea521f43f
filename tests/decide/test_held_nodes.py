"""Which cordons count: ours while a node comes up, or a person's."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.decide.held_nodes import as_if_open
from engine.model import labels as keys
from engine.model.node import Node
from tests.builders import node, snapshot, taint

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


def test_a_world_without_held_nodes_is_not_copied() -> None:
    world = snapshot(nodes=[node("n"), CORDONED])
    assert as_if_open(world) is world
