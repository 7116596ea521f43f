"""Pods that are tied to others: cases that went wrong elsewhere, and why such pods get nothing."""

from __future__ import annotations

from collections import Counter

from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import offering_key
from engine.model.constraint import HostPort
from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.ledger import Ledger, Unavailable
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.quantity import Resources
from engine.model.refusal import LimitReached, OfferingsUnavailable, Refusal, RequirementMismatch
from engine.report.affinity_notes import affinity_notes
from tests.builders import M5_LARGE, NOON, catalog, daemon_set, minutes, node, node_pool, requirement
from tests.decide.world import World, policy
from tests.scheduling.tied_pods import WEB, spread, term, tied

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ONE_CPU_TYPE = catalog([M5_LARGE], capacity_types=[keys.ON_DEMAND])
FULL = Resources.parse({"cpu": "0", "memory": "0", "pods": "0"})


def _pool(name: str = "general", *zones: str, **more: object) -> NodePool:
    return node_pool(name, requirements=[requirement(keys.ZONE, "In", *zones)] if zones else [], **more)  # type: ignore[arg-type]


def _world(pods: list[Pod], *pools: NodePool, nodes: tuple[Node, ...] = (), **more: object) -> World:
    world = World(policy(*(pools or (_pool(),))), pods, sold=ONE_CPU_TYPE, **more)  # type: ignore[arg-type]
    world.nodes = {each.name: each for each in nodes}
    return world


def _full(name: str, zone: str) -> Node:
    """A node where nobody finds room any more."""
    return evolve(node(name, M5_LARGE, zone=zone), allocatable=FULL)


def _refusals(plan: Plan) -> set[Refusal]:
    return {each.refusal for unplaced in plan.unplaced for each in unplaced.refusals}


def _zones(plan: Plan) -> Counter[str]:
    """How many pods the launches are for, by zone."""
    found: Counter[str] = Counter()
    for launch in plan.launches:
        found[launch.claim.inputs.zone] += len(launch.pods)
    return found


# --- 1: two pods that exclude each other's host, in a pool of one node


def test_a_pool_of_one_node_gives_pods_that_exclude_each_other_one_node_and_the_limit_as_the_reason() -> None:
    pods = [tied(name, apart=[term(keys.HOSTNAME)]) for name in ("web-1", "web-2")]
    world = _world(pods, _pool(limits=Resources({"nodes": 1})))
    plan = world.turn()
    assert [len(launch.pods) for launch in plan.launches] == [1]
    assert _refusals(plan) == {LimitReached("nodes", limit=1, used=0, planned=1, needed=1)}
    after = world.turn()
    assert after.launches == ()
    assert _refusals(after) == {LimitReached("nodes", limit=1, used=1, planned=0, needed=1)}


# --- 34: a zone that does not exist


def test_a_zone_that_is_not_sold_is_no_domain_to_spread_over() -> None:
    pods = [tied(f"web-{index}", spreads=[spread(keys.ZONE)], selector={keys.NODE_POOL: "a"}) for index in range(6)]
    plan = _world(pods, _pool("a", A, B), _pool("b", "us-east-1z")).decide()
    assert plan.unplaced == ()
    assert _zones(plan) == {A: 3, B: 3}


# --- 36: a zone label without a value


def test_an_empty_zone_label_is_no_domain_to_spread_over() -> None:
    pods = [tied(f"web-{index}", spreads=[spread(keys.ZONE)]) for index in range(4)]
    plan = _world(pods, _pool("general", A, B), nodes=(node("odd", M5_LARGE, zone=""),)).decide()
    assert plan.unplaced == ()
    assert plan.placements == (), "the pod that went to the node without a zone would be counted in no domain"
    assert _zones(plan) == {A: 2, B: 2}


# --- 40: one of several terms that no new node meets


def test_a_term_that_no_new_node_meets_is_ignored_with_a_warning_and_the_other_is_used() -> None:
    beyond, in_a = [requirement("karpenter.sh/x", "In", "1")], [requirement(keys.ZONE, "In", A)]
    world = _world([tied("web", affinity=[beyond, in_a]), tied("web-2", affinity=[beyond, in_a])])
    plan = world.decide()
    assert _zones(plan) == {A: 2}
    assert [str(note) for note in affinity_notes(world.snapshot())] == [
        "Ignored of 2 pods (default/web, default/web-2): the affinity term karpenter.sh/x In 1: "
        "no new node has karpenter.sh/x. The other terms hold"
    ]


def test_a_pod_of_which_no_term_can_be_met_is_refused_and_nothing_is_ignored() -> None:
    world = _world([tied("web", affinity=[[requirement("karpenter.sh/x", "In", "1")]])])
    assert {type(each) for each in _refusals(world.decide())} == {RequirementMismatch}
    assert list(affinity_notes(world.snapshot())) == []


# --- Reasons


def test_a_pod_that_its_spread_keeps_out_is_told_the_counts() -> None:
    bound = [tied(f"web-{index}", node="in-a") for index in range(2)]
    pods = [*bound, tied("late", spreads=[spread(keys.ZONE)])]
    plan = _world(pods, _pool("general", A), nodes=(_full("in-a", A), _full("in-b", B))).decide()
    assert plan.launches == ()
    assert _refusals(plan) == {SpreadUnsatisfiable(keys.ZONE, 1, counts=((A, 2), (B, 0)), reachable=(A,))}


def test_a_pod_that_finds_no_company_is_told_where_it_is() -> None:
    pods = [tied("db", "db", node="in-b"), tied("web", near=[term(keys.ZONE, (requirement("app", "In", "db"),))])]
    plan = _world(pods, _pool("general", A), nodes=(_full("in-b", B),)).decide()
    assert _refusals(plan) == {
        AffinityUnsatisfiable(keys.ZONE, (requirement("app", "In", "db"),), pods=1, domains=(B,))
    }


def test_a_pod_that_must_share_a_full_host_is_told_which() -> None:
    standing = evolve(_full("in-a", A), labels={**_full("in-a", A).labels, keys.HOSTNAME: "in-a"})
    pods = [tied("db", "db", node="in-a"), tied("web", near=[term(keys.HOSTNAME, (requirement("app", "In", "db"),))])]
    plan = _world(pods, nodes=(standing,)).decide()
    assert plan.launches == ()
    [refusal] = _refusals(plan)
    assert refusal == AffinityUnsatisfiable(keys.HOSTNAME, (requirement("app", "In", "db"),), 1, ("in-a",))


def test_a_pod_that_no_zone_is_free_for_is_told_who_is_there() -> None:
    bound = [tied(f"web-{zone}", node=f"in-{zone}") for zone in (A, B)]
    shy = tied("shy", "db", apart=[term(keys.ZONE, WEB)])
    plan = _world([*bound, shy], _pool("general", A, B), nodes=(_full(f"in-{A}", A), _full(f"in-{B}", B))).decide()
    assert _refusals(plan) == {AntiAffinityInTheWay(keys.ZONE, A, f"default/web-{A}", domains=2)}


def test_a_pod_that_another_excludes_is_told_that_the_term_is_the_others() -> None:
    lonely = tied("lonely", "db", apart=[term(keys.ZONE, WEB)], node="in-a")
    plan = _world([lonely, tied("web")], _pool("general", A), nodes=(_full("in-a", A),)).decide()
    assert _refusals(plan) == {AntiAffinityInTheWay(keys.ZONE, A, "default/lonely", is_its_own=True)}


def test_a_pod_of_this_plan_is_named_where_it_is_in_the_way() -> None:
    pods = [tied(name, apart=[term(keys.ZONE)]) for name in ("web-1", "web-2")]
    plan = _world(pods, _pool("general", C)).decide()
    assert [launch.pods for launch in plan.launches] == [(pods[0].key,)]
    assert _refusals(plan) == {AntiAffinityInTheWay(keys.ZONE, C, "default/web-1")}


def test_a_host_port_that_a_daemon_has_on_every_node_is_named_with_the_daemon() -> None:
    agent = daemon_set("agent")
    agent = evolve(agent, placing=evolve(agent.placing, host_ports=(HostPort(9100),)))
    plan = _world([tied("web", ports=[HostPort(9100)])], daemon_sets=[agent]).decide()
    assert plan.launches == ()
    assert _refusals(plan) == {HostPortTaken(9100, "TCP", "agent")}


def test_what_ties_close_is_said_before_a_limit_that_is_reached_too() -> None:
    pods = [tied("db", "db", node="in-b"), tied("web", near=[term(keys.ZONE, (requirement("app", "In", "db"),))])]
    pool = _pool("general", A, limits=Resources({"nodes": 0}))
    plan = _world(pods, pool, nodes=(_full("in-b", B),)).decide()
    assert {type(each) for each in _refusals(plan)} == {AffinityUnsatisfiable}


def test_only_the_offerings_that_ties_leave_open_are_waited_for() -> None:
    pods = [tied("db", "db", node="in-b"), tied("web", near=[term(keys.ZONE, (requirement("app", "In", "db"),))])]
    world = _world(pods, _pool("general", A, B), nodes=(_full("in-b", B),))
    out = Unavailable(until=NOON + minutes(5), refusals=2, code="NoRoom")
    world.ledger = Ledger(unavailable={offering_key("m5.large", B, keys.ON_DEMAND): out})
    assert _refusals(world.decide()) == {OfferingsUnavailable(1, NOON + minutes(5), 2, "NoRoom")}
