"""A read that shows no pod at all lets no machine go."""

from __future__ import annotations

from attrs import evolve

from engine.model.pod import DaemonSet, Owner, Placing
from engine.model.policy import Disruption
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from engine.model.stay import DoNotDisrupt, PodsUnseen
from tests.builders import minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.disruption.going_world import of, served, stay

AT_ONCE = node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=()))
LOGS = DaemonSet("logs", Placing(Resources.parse({"cpu": "100m", "pods": 1})))


def running(*daemon_sets: DaemonSet) -> World:
    """One machine with a pod on it."""
    one = World(policy(AT_ONCE), [pod("llm", gpu=1, owner=Owner("ReplicaSet", "llm"))], daemon_sets=daemon_sets)
    one.turn()
    one.turn()
    return one


def test_no_machine_is_marked_nor_let_go_by_a_read_that_shows_no_pod_where_daemons_must_run() -> None:
    one = running(LOGS)
    (node,) = one.nodes
    blind = one.decide(pods=())
    assert (blind.removals, stay(blind, node)) == ((), PodsUnseen(nodes=1))
    assert one.decide(pods=(pod("logs-1", node=node, owner=Owner("DaemonSet", "logs")),)).removals


def test_without_a_daemonset_for_its_nodes_a_cluster_may_well_have_no_pod() -> None:
    assert running().decide(pods=()).removals
    elsewhere = evolve(LOGS, placing=evolve(LOGS.placing, node_selector={"disk": "there"}))
    assert running(elsewhere).decide(pods=()).removals


def test_once_every_node_is_marked_its_daemons_may_be_gone() -> None:
    one = running(LOGS)
    (node,) = one.nodes
    one.mark(node)
    assert one.decide(pods=()).removals


def test_nothing_is_launched_for_a_marked_node_whose_pod_must_not_be_disrupted() -> None:
    one = of(served("llm", gpu=1)).started()
    (node,) = one.nodes
    one.new_image()
    key = next(iter(one.pods))
    one.pods[key] = evolve(one.pods[key], do_not_disrupt=True)
    one.mark(node)
    one.nodes[node] = evolve(one.nodes[node], marked_for=DisruptionReason.DRIFTED)
    plan = one.decide()
    assert (plan.launches, stay(plan, node)) == ((), DoNotDisrupt(pod=str(key)))
    one.pods[key] = evolve(one.pods[key], do_not_disrupt=False)
    plan = one.decide()
    assert len(plan.launches) == 1, stay(plan, node)
