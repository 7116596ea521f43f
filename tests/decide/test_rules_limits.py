"""Limit rules in a pass: what a ceiling lets be launched, what it tells, and what it leaves alone."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.plan import LimitUse, Plan, VerdictOutcome
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.refusal import CeilingReached, LimitReached
from engine.model.rule import ActionClass, AnyRule, LimitedResource
from engine.policy.rules.ceilings import Amount, base_amount
from tests.builders import minutes, node, node_pool, pod, requirement, usd
from tests.decide.rule_values import AUDIT, GPUS, NO_INT, NODES, USD, WARN, limit, of_team
from tests.decide.world import World, policy

SMALLEST = requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge")
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")
TEAM = 'pod.labels["team"]'


def small_pool(name: str = "gpu", **more: object) -> NodePool:
    """One GPU at a dollar an hour on each node."""
    return node_pool(name, requirements=[SMALLEST, ON_DEMAND], **more)  # type: ignore[arg-type]


def world(*rules: AnyRule, pods: list[Pod], pools: tuple[NodePool, ...] = (small_pool(),)) -> World:
    return World(policy(*pools, rules=tuple(sorted(rules, key=lambda each: each.name))), pods)


def one_gpu(count: int, team: str = "vision") -> list[Pod]:
    return [of_team(f"{team}-{number}", team) for number in range(count)]


def reached(plan: Plan) -> set[CeilingReached]:
    return {
        evolve(each.refusal, message="")
        for unplaced in plan.unplaced
        for each in unplaced.refusals
        if isinstance(each.refusal, CeilingReached)
    }


def test_a_pools_ceiling_trims_the_launches_and_names_rule_group_and_amounts() -> None:
    plan = world(limit("2"), pods=one_gpu(3)).decide()
    assert len(plan.launches) == 2
    assert reached(plan) == {CeilingReached("ceiling", "gpu", GPUS, limit=2, used=0, planned=2, needed=1)}
    assert plan.limits == (LimitUse("gpu", "gpus", limit=2, used=0, planned=2, rule="ceiling", group="gpu"),)


def test_a_refusal_by_a_ceiling_has_the_rules_message_for_the_group() -> None:
    of_teams = evolve(limit("2", by=TEAM), message="too many GPUs")
    plan = world(of_teams, pods=one_gpu(3)).decide()
    assert [each.refusal.message for each in plan.unplaced[0].refusals if isinstance(each.refusal, CeilingReached)] == [
        "too many GPUs"
    ]


def test_a_ceiling_counts_what_runs_and_what_is_launching_from_pass_to_pass() -> None:
    there = world(limit("3"), pods=one_gpu(2))
    there.apply(there.decide())
    there.pods |= {each.key: each for each in one_gpu(4, "text")}
    assert len(there.decide().launches) == 1
    there.settle()
    plan = there.turn()
    assert len(plan.launches) == 1
    assert there.turn().is_empty


def test_a_ceiling_below_what_runs_removes_nothing_and_launches_nothing() -> None:
    there = world(limit("3"), pods=one_gpu(3))
    there.turn()
    there.policy = evolve(there.policy, rules=(limit("1"),))
    there.pods |= {each.key: each for each in one_gpu(1, "text")}
    plan = there.turn()
    assert not plan.launches
    assert not plan.removals
    assert reached(plan) == {CeilingReached("ceiling", "gpu", GPUS, limit=1, used=3, planned=0, needed=1)}


def test_dollars_an_hour_are_counted_exactly() -> None:
    plan = world(limit("2.99", USD), pods=one_gpu(3)).decide()
    assert plan.usd_per_hour_after == usd("2")
    assert reached(plan) == {
        CeilingReached("ceiling", "gpu", USD, limit=2_990_000, used=0, planned=2_000_000, needed=1_000_000)
    }


def test_a_ceiling_may_read_its_pool_and_holds_for_each_apart() -> None:
    pools = (small_pool("core"), small_pool("elastic"))
    rule = limit('nodePool.name == "core" ? 1 : 2', NODES)
    plan = world(rule, pods=one_gpu(5), pools=pools).decide()
    assert sorted(launch.claim.node_pool for launch in plan.launches) == ["core", "elastic", "elastic"]


def test_a_group_of_pools_is_counted_together() -> None:
    pools = (small_pool("core", labels={"tier": "gold"}), small_pool("elastic", labels={"tier": "gold"}))
    plan = world(limit("3", by='nodePool.labels["tier"]'), pods=one_gpu(5), pools=pools).decide()
    assert len(plan.launches) == 3
    assert plan.limits == (LimitUse("", "gpus", limit=3, used=0, planned=3, rule="ceiling", group="gold"),)


def test_a_rule_about_one_pool_leaves_the_others_alone() -> None:
    pools = (small_pool("core"), small_pool("elastic"))
    plan = world(limit("1", pools=("core",)), pods=one_gpu(4), pools=pools).decide()
    assert len(plan.launches) == 4


def test_the_least_of_rules_and_the_pools_own_limit_holds() -> None:
    pools = (small_pool(limits={"nvidia.com/gpu": 2}),)
    plan = world(limit("3", name="a"), limit("1", name="b"), pods=one_gpu(3), pools=pools).decide()
    assert len(plan.launches) == 1
    assert {each.rule for each in reached(plan)} == {"b"}
    plan = world(limit("3", name="a"), pods=one_gpu(3), pools=pools).decide()
    assert {type(each.refusal) for one in plan.unplaced for each in one.refusals} == {LimitReached}


def test_each_team_has_its_own_ceiling_which_reads_the_group() -> None:
    rule = limit('group == "vision" ? 1 : 2', by=TEAM)
    plan = world(rule, pods=[*one_gpu(3), *one_gpu(3, "text")]).decide()
    teams = sorted(str(pod.name).split("-")[0] for launch in plan.launches for pod in launch.pods)
    assert teams == ["text", "text", "vision"]
    assert {(each.group, each.limit, each.planned) for each in reached(plan)} == {("vision", 1, 1), ("text", 2, 2)}


def test_a_teams_bound_pods_count_and_stay() -> None:
    there = world(limit("2", by=TEAM), pods=one_gpu(2))
    there.turn()
    there.pods |= {each.key: each for each in [*one_gpu(2, "text"), of_team("vision-9", "vision")]}
    plan = there.decide()
    assert len(plan.launches) == 2
    assert not plan.removals
    assert reached(plan) == {CeilingReached("ceiling", "vision", GPUS, limit=2, used=2, planned=0, needed=1)}


def test_a_teams_pods_go_onto_what_stands_whatever_the_ceiling_says() -> None:
    there = world(limit("0", by=TEAM), pods=[])
    there.nodes["free"] = evolve(node("free"), labels={**node("free").labels})
    there.pods = {each.key: each for each in one_gpu(2)}
    plan = there.decide()
    assert [placement.node for placement in plan.placements] == ["free"]
    assert not plan.launches
    assert {(each.used, each.planned) for each in reached(plan)} == {(0, 1)}


def test_a_node_counts_in_full_to_every_team_that_has_a_pod_on_it() -> None:
    pool = node_pool(requirements=[requirement(keys.INSTANCE_TYPE, "In", "g5.12xlarge"), ON_DEMAND])
    pods = [of_team("a", "vision", 2), of_team("b", "text", 2)]
    there = world(limit("6.0", USD, by=TEAM), pods=pods, pools=(pool,))
    there.turn()
    assert len(there.running()) == 1
    there.pods |= {each.key: each for each in [of_team("c", "vision", 1), of_team("d", "text", 1)]}
    plan = there.decide()
    assert not plan.launches
    assert {(each.group, each.used, each.needed) for each in reached(plan)} == {
        ("vision", 5_700_000, 5_700_000),
        ("text", 5_700_000, 5_700_000),
    }


def test_pods_on_their_way_to_a_machine_count_once() -> None:
    there = world(limit("2", NODES, by=TEAM), pods=one_gpu(1))
    there.apply(there.decide())
    there.pods |= {each.key: each for each in one_gpu(3)}
    plan = there.decide()
    assert len(plan.launches) == 1
    assert reached(plan) == {CeilingReached("ceiling", "vision", NODES, limit=2, used=1, planned=1, needed=1)}


def test_a_selection_of_pods_without_groups_is_counted_in_each_pool() -> None:
    rule = limit("1", labels={"team": "vision"})
    pools = (small_pool("core"), small_pool("elastic"))
    plan = world(rule, pods=[*one_gpu(4), *one_gpu(2, "text")], pools=pools).decide()
    teams = [pod.name.split("-")[0] for launch in plan.launches for pod in launch.pods]
    assert sorted(teams) == ["text", "text", "vision", "vision"]
    assert {each.group for each in reached(plan)} == {"core", "elastic"}


def test_priority_decides_whose_pods_a_ceiling_lets_in() -> None:
    low, high = of_team("a", "vision"), evolve(of_team("z", "vision"), priority=100)
    plan = world(limit("1", by=TEAM), pods=[low, high]).decide()
    assert [pod.name for launch in plan.launches for pod in launch.pods] == ["z"]


def test_a_ceiling_that_errs_lets_nothing_be_added_and_is_told() -> None:
    there = world(limit("9"), pods=one_gpu(1))
    there.turn()
    there.policy = evolve(there.policy, rules=(limit(NO_INT),))
    there.pods |= {each.key: each for each in one_gpu(2, "text")}
    plan = there.decide()
    assert not plan.launches
    assert not plan.removals
    (told,) = reached(plan)
    assert (told.limit, told.used, bool(told.error)) == (1, 1, True)
    (verdict,) = plan.verdicts
    assert (verdict.outcome, verdict.blocked) == (VerdictOutcome.ERROR, (ActionClass.ADD,))


def test_a_pod_whose_group_cannot_be_told_gets_nothing_new_and_the_others_do() -> None:
    stray = pod("stray", gpu=1)
    plan = world(limit("5", by=TEAM), pods=[stray, *one_gpu(2)]).decide()
    assert len(plan.launches) == 2
    (told,) = reached(plan)
    assert told.error
    assert told.limit == 0
    assert [each.pod.name for each in plan.unplaced] == ["stray"]


def test_a_rule_that_warns_or_counts_only_tells() -> None:
    rules = (limit("1", name="warns", enforcement=WARN), limit("2", name="audits", enforcement=AUDIT))
    plan = world(*rules, pods=one_gpu(3)).decide()
    assert len(plan.launches) == 3
    assert [(each.rule, each.outcome, each.blocked) for each in plan.verdicts] == [
        ("audits", VerdictOutcome.VIOLATED, ()),
        ("warns", VerdictOutcome.VIOLATED, ()),
    ]
    assert not world(limit("3", enforcement=WARN), pods=one_gpu(3)).decide().verdicts


def test_cores_and_memory_are_ceilings_too() -> None:
    cores = limit("4", LimitedResource.CPU)
    assert len(world(cores, pods=one_gpu(3)).decide().launches) == 1
    memory = limit("32 * 1024 * 1024 * 1024", LimitedResource.MEMORY)
    assert len(world(memory, pods=one_gpu(3)).decide().launches) == 2


def test_base_capacity_stops_at_a_ceiling_and_says_so() -> None:
    plan = world(limit("1", NODES), pods=[], pools=(small_pool(min_nodes=3),)).decide()
    assert len(plan.launches) == 1
    (short,) = plan.base_shortfalls
    assert isinstance(short.refusal, CeilingReached)


def test_a_machine_that_may_still_run_counts() -> None:
    there = world(limit("1"), pods=one_gpu(1))
    there.turn()
    there.finish(list(there.pods.values()))
    there.keeps = lambda claim: True
    while there.document is not None and list(there.document.claims):
        there.turn(minutes(20))
    there.pods = {each.key: each for each in one_gpu(1, "text")}
    plan = there.decide()
    assert not plan.launches
    assert {each.used for each in reached(plan)} == {1}


def test_an_infinite_ceiling_is_an_error() -> None:
    plan = world(limit('nodePool.name == "gpu" ? 1.0 / 0.0 : 1.0', USD), pods=one_gpu(2)).decide()
    assert not plan.launches
    assert plan.verdicts[0].outcome is VerdictOutcome.ERROR


@pytest.mark.parametrize(
    ("resource", "value"), [(LimitedResource.USD_PER_HOUR, 1.0e300), (LimitedResource.CPU, 2**63 - 1)]
)
def test_a_ceiling_beyond_64_bits_is_as_high_as_they_hold(resource: LimitedResource, value: float) -> None:
    assert base_amount(resource, value) == Amount(2**63 - 1)
