"""What ``explain`` answers about pods, nodes and rules, with the values that decide."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.canonical import canonical_json
from engine.model.fault import Fault
from engine.model.policy import ConsolidationPolicy, Disruption
from engine.model.refusal import LostOffering
from engine.model.rule import Enforcement
from engine.policy.cel.port import Answer, Observed, Span
from engine.reconcile.explaining import Asked, asked
from engine.reconcile.explaining_nodes import explain_node
from engine.reconcile.explaining_pods import explain_pod
from engine.reconcile.explaining_rules import explain_rule
from engine.reconcile.workspace import Workspace
from engine.report.explain_report import Step
from engine.report.explain_report_json import budgets_json, explanation_json
from engine.report.explain_report_text import render_explanation
from engine.report.explain_steps import steps_of
from tests.builders import node_pool, pod, requirement, usd
from tests.decide.world import World
from tests.decide.world import policy as policy_of
from tests.disruption.rule_world import rule as budget_rule
from tests.disruption.rule_world import window
from tests.reconcile.policy_repository import (
    MEMORY_RULE,
    QUIET,
    SIZE_GUARDRAIL,
    TEAM_LIMIT,
    a_moment,
    replicas,
    repository,
)
from tests.report.golden_text import printed


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = repository(tmp_path / "project", memory=MEMORY_RULE, size=SIZE_GUARDRAIL, limit=TEAM_LIMIT, quiet=QUIET)
    return Workspace(made.root)


@pytest.fixture
def moment(workspace: Workspace) -> Asked:
    """Two gold pods of team ml wait."""
    return seen(workspace, *replicas(2, "llm", tier="gold", team="ml"))


WHEN_EMPTY = Disruption(consolidation_policy=ConsolidationPolicy.WHEN_EMPTY)


def seen(workspace: Workspace, *pods: object) -> Asked:
    file = workspace.root / "moment.json"
    file.write_bytes(canonical_json(a_moment(pods)))  # type: ignore[arg-type]
    return asked(workspace, None, file, None)


def test_a_pods_machine_is_named_with_the_losers_and_how_much_dearer_they_are(moment: Asked) -> None:
    found = explain_pod(moment, "ml/llm-0")
    assert found.outcome.startswith("A new g6e.xlarge on-demand in us-east-1b is launched for it in pool gpu, at $2.0")
    assert found.losers[0].startswith("g6e.2xlarge on-demand in us-east-1b at $2.5")
    assert found.losers[0].endswith("$0.5000/h dearer for the same pods")
    assert (found.workload, found.asks) == ("Deployment ml/llm", "cpu 1, memory 1Gi, nvidia.com/gpu 1")


def test_an_affinity_term_that_no_new_node_meets_is_told_as_ignored(workspace: Workspace) -> None:
    terms = [[requirement("karpenter.sh/x", "In", "1")], [requirement(keys.ZONE, "In", "us-east-1b")]]
    found = explain_pod(seen(workspace, pod("picky", gpu=1, affinity=terms)), "picky")
    assert found.ignored == (
        "the affinity term karpenter.sh/x In 1: no new node has karpenter.sh/x. The other terms hold",
    )
    assert "Ignored: the affinity term karpenter.sh/x In 1" in printed(render_explanation(found))


def test_a_rules_verdict_on_the_nearest_types_has_the_values_that_decided_it(moment: Asked) -> None:
    [pool] = explain_pod(moment, "llm-0").pools
    barred, also_barred, let_through = pool.rules
    assert (barred.rule, barred.about, barred.outcome) == ("gold-memory", "g6.xlarge on-demand", "false")
    assert barred.message == "gold pods need a large GPU"
    assert barred.steps == (Step("instanceType.gpuMemoryGiB >= params.minMem", "22 >= 40", "false"),)
    assert (also_barred.about, also_barred.outcome) == ("g6.2xlarge on-demand", "false")
    assert (let_through.about, let_through.outcome) == ("g6e.xlarge on-demand", "true")
    assert "instanceType.gpuMemoryGiB >= params.minMem: 22 >= 40 = false" in printed(
        render_explanation(explain_pod(moment, "llm-0"))
    )


def test_a_pod_that_gets_nothing_has_every_pools_refusal_with_its_numbers(workspace: Workspace) -> None:
    found = explain_pod(seen(workspace, pod("huge", cpu="64", gpu=1, namespace="ml", tolerations=())), "huge")
    assert found.outcome == "It gets nothing: no pool has, or may make, a node for it now."
    [pool] = found.pools
    assert (pool.node_pool, pool.words) == (
        "gpu",
        "the pod does not tolerate the pool's taint nvidia.com/gpu:NoSchedule",
    )
    assert pool.rules == ()


def test_a_refusal_of_any_pool_is_the_answer_and_no_pool_then_claims_to_have_types(workspace: Workspace) -> None:
    [llm] = replicas(1, "llm", team="ml")
    without_claim = evolve(llm, placing=evolve(llm.placing, volume_claims=("data",)))
    found = explain_pod(seen(workspace, without_claim), "llm-0")
    assert found.outcome == "It gets nothing of any pool: volume claim data: it does not exist."
    assert json.loads(explanation_json(found))["outcome"] == found.outcome
    [pool] = found.pools
    assert pool.words.startswith("would have ")


def test_a_cheaper_loser_is_told_without_a_minus_and_without_a_preference_that_nobody_stated(moment: Asked) -> None:
    key = moment.plan.launches[0].pods[0]
    launches = tuple(
        evolve(each, lost=(LostOffering("g5.xlarge/us-east-1b/spot", usd("0.8"), usd("0.8") - usd("1.0012")),))
        for each in moment.plan.launches
    )
    moment.plan = evolve(moment.plan, launches=launches)
    assert explain_pod(moment, str(key)).losers == (
        "g5.xlarge spot in us-east-1b at $0.8000/h: $0.2012/h cheaper, but a preference or the plan for other pods "
        "decided",
    )


def test_a_ceiling_that_blocks_a_pod_is_told_with_what_is_planned_of_it(workspace: Workspace) -> None:
    of = seen(workspace, *replicas(5, "llm", team="ml"))
    [blocked, *_] = of.plan.unplaced
    [pool] = explain_pod(of, str(blocked.pod)).pools
    assert pool.words.startswith(("limit rule team-gpus: 3 of 3 GPUs by ml", "guardrail plan-size"))


def test_a_ceilings_group_and_number_are_told_with_their_values_before_the_requirement_rules(
    tmp_path: Path,
) -> None:
    limit = TEAM_LIMIT.replace('"3"', "\"group == 'ml' ? 1 : 3\"")
    made = repository(tmp_path / "limited", memory=MEMORY_RULE, limit=limit)
    of = seen(Workspace(made.root), *replicas(3, "llm", tier="gold", team="ml"))
    [blocked, *_] = of.plan.unplaced

    found = explain_pod(of, str(blocked.pod))
    [pool] = found.pools
    group, ceiling, requirement, *_ = pool.rules

    assert pool.words == "limit rule team-gpus: 1 of 1 GPUs by ml, this needs 1 more: the team has its GPUs"
    assert (group.rule, group.about, group.outcome) == ("team-gpus", "groupBy", '"ml"')
    assert (ceiling.rule, ceiling.about, ceiling.outcome) == ("team-gpus", "ceiling", "1")
    assert ceiling.message == "the team has its GPUs"
    assert Step("group == 'ml'", "\"ml\" == 'ml'", "true") in ceiling.steps
    assert requirement.rule == "gold-memory"


def test_a_name_that_is_nearly_a_pods_is_answered_with_the_pods(moment: Asked) -> None:
    with pytest.raises(Fault, match="there is no pod 'ml/lm-0'") as told:
        explain_pod(moment, "ml/lm-0")
    assert told.value.hints == ("did you mean ml/llm-0?",)


@pytest.mark.parametrize(("name", "nearest"), [("gold-memry", "gold-memory"), ("plan-sise", "plan-size")])
def test_a_name_that_is_nearly_a_rules_is_answered_with_the_rules(
    moment: Asked, workspace: Workspace, name: str, nearest: str
) -> None:
    with pytest.raises(Fault) as told:
        explain_rule(moment, name, workspace)
    assert told.value.hints == (f"did you mean {nearest}?",)


def test_a_requirement_rule_tells_its_place_its_parameters_and_whom_it_keeps_from_what(
    moment: Asked, workspace: Workspace
) -> None:
    found = explain_rule(moment, "gold-memory", workspace)
    assert found.place == "policies/rules/memory.yaml:3"
    assert [(each.environment, each.enforcement, dict(each.params)) for each in found.in_force] == [
        ("test", Enforcement.DENY, {"minMem": 40})
    ]
    assert found.expressions == {"require": "instanceType.gpuMemoryGiB >= params.minMem"}
    assert found.matches == {"pools": 1, "nodes": 0, "pods": 2, "waiting_pods": 2, "kinds_of_pods": 1}
    assert found.now == ("keeps 2 pods from 2 types, as the first rule that does",)
    assert (found.errors, found.sample) == (0, "")


def test_a_rule_that_errs_is_told_with_how_often_and_a_sample(tmp_path: Path) -> None:
    erring = MEMORY_RULE.replace("params.minMem", "int(pod.labels['floor']) + params.minMem - params.minMem")
    workspace = Workspace(repository(tmp_path / "erring", memory=erring).root)
    found = explain_rule(seen(workspace, *replicas(1, tier="gold")), "gold-memory", workspace)
    assert found.errors == 4
    assert "floor" in found.sample


def test_a_limit_rule_tells_each_groups_use_and_ceiling(moment: Asked, workspace: Workspace) -> None:
    found = explain_rule(moment, "team-gpus", workspace)
    assert found.now == ("ml: 0 used and 2 planned of 3 GPUs",)
    assert found.expressions["ceiling"] == "3"


def test_a_guardrail_tells_its_verdict_and_the_values_of_the_plan(moment: Asked, workspace: Workspace) -> None:
    found = explain_rule(moment, "plan-size", workspace)
    [said] = found.said
    assert found.now == ("holds for the plan of this moment",)
    assert said.steps == (Step("plan.launchCount <= 2", "2 <= 2", "true"),)


def test_a_guardrail_that_blocks_is_told_with_the_values_of_the_plan_that_it_blocked(
    tmp_path: Path,
) -> None:
    made = repository(tmp_path / "project", size=SIZE_GUARDRAIL)
    moment = seen(Workspace(made.root), *replicas(3))
    found = explain_rule(moment, "plan-size", Workspace(made.root))
    [said] = found.said
    assert found.now == ("violated, and blocks add: too many nodes at once",)
    assert said.about == "the plan without guardrails"
    assert said.steps == (Step("plan.launchCount <= 2", "3 <= 2", "false"),)
    assert moment.plan.launches == ()


def test_what_of_a_rule_is_no_cel_is_told_too(moment: Asked, workspace: Workspace) -> None:
    told = {
        name: dict(explain_rule(moment, name, workspace).settings) for name in ("gold-memory", "plan-size", "quiet")
    }
    assert told == {
        "gold-memory": {"match.pods.selector": "tier In gold"},
        "plan-size": {"blocks": "add"},
        "quiet": {"reasons": "Empty"},
    }


def a_node(*rules: object, **more: object) -> tuple[Asked, str]:
    """One empty node of a pool that would let it go at once, but for these rules."""
    world = World(policy_of(node_pool(), rules=rules, **more), [pod("llm", gpu=1)])
    world.turn()
    world.turn()
    world.pods.clear()
    [name] = world.nodes
    return Asked(world.environment, world.policy, world.catalog, world.snapshot()), name


def test_a_node_that_leaves_says_by_which_rule_and_budget() -> None:
    of, name = a_node()
    found = explain_node(of, name)
    assert found.outcome.startswith("It is cordoned and drained, and then let go: Empty, by gpu: consolidateAfter")
    assert "budget 10% of 1 node: 1 of 1 in gpu" in found.outcome


def test_a_node_that_a_candidate_expression_keeps_says_which_values_keep_it() -> None:
    of, name = a_node(budget_rule("quiet", candidate="node.age > duration('24h')"))
    found = explain_node(of, name)
    [said] = found.rules
    assert found.outcome == "It stays: could go, but disruption budget quiet keeps it: quiet says so."
    assert found.to_change == "Rule quiet would have to take it for a candidate: see below."
    assert (said.rule, said.outcome, said.message) == ("quiet", "it may not go", "quiet says so")
    assert "Empty" in said.about
    assert said.steps[0].text == "node.age > duration('24h')"
    assert said.steps[0].outcome == "false"


def test_a_candidate_that_errs_is_no_answer_and_keeps_the_node() -> None:
    of, name = a_node(budget_rule("broken", candidate="node.labels['no-such'] == 'x'"))
    [said] = explain_node(of, name).rules
    assert said.outcome.startswith("error: ")
    assert "no-such" in said.outcome


def test_a_node_outside_of_a_window_says_when_that_opens() -> None:
    night = window("night", "0 22 * * *", lasts=timedelta(hours=4))
    of, name = a_node(budget_rule("nightly", windows=("night",)), windows=(night,))
    found = explain_node(of, name)
    assert found.to_change == "Window night would have to open, at 2026-11-30 22:00 UTC."
    assert [said.outcome for said in found.rules] == ["lets nothing go outside its windows"]


def test_another_time_is_supposed_where_one_is_given() -> None:
    night = window("night", "0 22 * * *", lasts=timedelta(hours=4))
    of, name = a_node(budget_rule("nightly", windows=("night",)), windows=(night,))
    later = of.snapshot.taken_at.replace(hour=23, minute=0)
    moved = Asked(of.environment, of.policy, of.catalog, evolve(of.snapshot, taken_at=later))
    assert explain_node(moved, name).outcome.startswith("It is cordoned")


def test_a_node_with_pods_says_how_many_keep_it() -> None:
    world = World(policy_of(node_pool(disruption=WHEN_EMPTY)), [pod("llm", gpu=1)])
    world.turn()
    world.turn()
    [name] = world.nodes
    of = Asked(world.environment, world.policy, world.catalog, world.snapshot())
    found = explain_node(of, name)
    assert (found.outcome, found.to_change) == (
        "It stays: runs 1 pod.",
        "Its 1 pod would have to end or go elsewhere first.",
    )


def test_a_claim_is_known_by_its_name_and_a_strangers_node_is_told_apart() -> None:
    of, name = a_node()
    claim = explain_node(of, name).claim
    assert explain_node(of, claim).node == name
    with pytest.raises(Fault, match="no node or machine"):
        explain_node(of, "nobody")


def test_programs_get_the_kind_the_schema_and_the_steps(moment: Asked, workspace: Workspace) -> None:
    pod_report = json.loads(explanation_json(explain_pod(moment, "ml/llm-0")))
    rule_report = json.loads(explanation_json(explain_rule(moment, "quiet", workspace)))
    of, name = a_node()
    node_report = json.loads(explanation_json(explain_node(of, name)))
    budget_report = json.loads(budgets_json(explain_node(of, name).budgets))

    assert {each["schema"] for each in (pod_report, rule_report, node_report, budget_report)} == {
        "nodewright.dev/explain/v1"
    }
    assert pod_report["pools"][0]["rules"][0]["steps"][0]["values"] == "22 >= 40"
    assert (rule_report["kind"], rule_report["rule_kind"]) == ("rule", "DisruptionBudget")
    assert [each["reason"] for each in rule_report["budgets"]] == ["Empty"]
    assert node_report["budgets"][0]["node_pool"] == "gpu"
    assert len(budget_report["budgets"]) == 4


def test_values_stand_in_their_places_whatever_stands_around_them() -> None:
    text = "size(a) > b && a == 'x>y'"
    observed = (
        Observed(Span(0, 25), text, (Answer(False),), is_bool=True),
        Observed(Span(0, 11), "size(a) > b", (Answer(True),), is_bool=True),
        Observed(Span(0, 7), "size(a)", (Answer(3),), is_bool=False),
        Observed(Span(5, 6), "a", (Answer("xyz"),), is_bool=False),
        Observed(Span(10, 11), "b", (Answer(2.5),), is_bool=False),
        Observed(Span(15, 25), "a == 'x>y'", (Answer(False),), is_bool=True),
        Observed(Span(15, 16), "a", (Answer("xyz"),), is_bool=False),
    )
    assert steps_of(observed) == (
        Step(text, "", "false"),
        Step("size(a) > b", "3 > 2.5", "true"),
        Step("a == 'x>y'", "\"xyz\" == 'x>y'", "false"),
    )


def test_an_error_and_the_turns_of_a_loop_are_told_as_such() -> None:
    turns = tuple(Answer(value) for value in (True, False, True, True, True))
    observed = (
        Observed(Span(0, 5), "x > y", (Answer(error="no such key: y"),), is_bool=True),
        Observed(Span(0, 5), "each", turns, is_bool=True),
    )
    assert [each.outcome for each in steps_of(observed)] == ["error: no such key: y", "true, false, true and 2 more"]
