"""A label that a pool leaves open, from its file to a node of the cluster with the value that a pod asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.environment import Running
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.reconcile.hands import chores_of, nominate_and_register
from engine.reconcile.up import up
from engine.sandbox.first_boot import first_boot
from tests.builders import environment, minutes, pod, toleration
from tests.decide.world import World
from tests.policy.texts import CLASS, POOL, added, policy_of
from tests.reconcile.world_ports import Watcher, WorldPorts

TEAM = "example.com/team"


def leaving_open(requirement: str) -> Policy:
    line = f"        - {{key: {TEAM}, {requirement}}}"
    return policy_of(added(POOL, "      requirements:", line).text, CLASS)


def asking(name: str, team: str | None = None) -> Pod:
    """It does not tolerate the taint that a node registers with."""
    return pod(name, gpu=1, selector={TEAM: team} if team else {}, tolerations=[toleration("nvidia.com/gpu")])


class Kubelets:
    """Nodes that come with what their launch template tells their kubelet, and keep what is done to them since."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.came: set[str] = set()

    def __call__(self, claim: Claim, node: Node) -> Node:
        assert self.world is not None
        if node.name in self.came:
            return evolve(self.world.nodes[node.name], ready=True)
        self.came.add(node.name)
        assert self.world.document is not None
        [template] = [
            each
            for each in self.world.document.foundation.launch_templates
            if each.name == claim.inputs.launch_template
        ]
        boot = first_boot(template.user_data)
        return evolve(node, labels=boot.labels, taints=boot.taints)


def world_of(policy: Policy, *pods: Pod, holds: bool = True) -> World:
    kubelets = Kubelets()
    stack = environment(run=Running(hold_new_nodes=holds))
    kubelets.world = World(policy, pods, stack=stack, reports=kubelets)
    return kubelets.world


@pytest.mark.parametrize("requirement", ["operator: In, values: [a, b, c]", "operator: Exists"])
def test_a_pod_gets_a_node_with_the_value_that_it_selects(requirement: str, tmp_path: Path) -> None:
    world = world_of(leaving_open(requirement), asking("of-b", team="b"))
    ports = WorldPorts(world, tmp_path)

    world.turn(passing=minutes(1))
    # The one who would look at the new node is away for a while: nothing runs on it before it is labelled.
    world.settle()
    [node] = world.nodes.values()
    assert node.ready
    assert TEAM not in node.labels
    assert keys.UNREGISTERED_TAINT in {taint.key for taint in node.taints}
    assert world.pods[asking("of-b").key].node_name is None

    seen = world.snapshot()
    nominate_and_register(ports.ports, chores_of(world.decide(), seen))
    world.settle()

    [node] = world.nodes.values()
    assert node.labels[TEAM] == "b"
    assert keys.UNREGISTERED_TAINT not in {taint.key for taint in node.taints}
    assert world.pods[asking("of-b").key].node_name == node.name


def test_values_share_a_launch_template_and_no_node() -> None:
    world = world_of(
        leaving_open("operator: In, values: [a, b, c]"),
        asking("of-b", team="b"),
        asking("of-c", team="c"),
        asking("of-nobody"),
    )
    plan = world.decide()
    team_of = {name.name: launch.claim.labels[TEAM] for launch in plan.launches for name in launch.pods}
    assert (team_of["of-b"], team_of["of-c"]) == ("b", "c")
    assert len({launch.claim.inputs.launch_template for launch in plan.launches}) == 1


def test_a_value_that_was_chosen_is_not_chosen_again_while_its_node_comes(tmp_path: Path) -> None:
    world = world_of(leaving_open("operator: In, values: [a, b, c]"), asking("of-b", team="b"))
    ports = WorldPorts(world, tmp_path)
    up(ports.ports, Watcher())

    plan = world.decide()

    assert plan.launches == ()
    assert len(plan.placements) == 1


def test_a_value_that_the_pool_does_not_permit_is_refused_with_those_that_it_does() -> None:
    world = world_of(leaving_open("operator: In, values: [a, b]"), asking("of-d", team="d"))
    [told] = world.decide().unplaced
    assert (told.refusals[0].refusal.code, getattr(told.refusals[0].refusal, "offered", "")) == (
        "requirement-mismatch",
        "a, b",
    )
