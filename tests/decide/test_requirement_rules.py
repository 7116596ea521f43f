"""Requirement rules in a whole pass, evaluated by the engines that ship."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from engine.model.canonical import canonical_json
from engine.model.plan import Plan, Verdict, VerdictOutcome
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.refusal import RuleForbids
from engine.model.rule import Enforcement, Expression, RequirementRule, RuleKind, Selection
from engine.policy.cel.engines import ENGINES
from engine.policy.rules import memo
from tests.builders import SOMEWHERE, minutes, node_pool, pod, requirement
from tests.decide.world import World, policy

ON_DEMAND = requirement("karpenter.sh/capacity-type", "In", "on-demand")


@pytest.fixture(autouse=True, params=sorted(ENGINES))
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    memo.forget()
    yield str(request.param)
    memo.forget()


def text(source: str) -> Expression:
    return Expression(source, SOMEWHERE)


def rule(name: str, require: str = "", prefer: str = "", told: str = "", **more: object) -> RequirementRule:
    return RequirementRule(
        name=name,
        position=SOMEWHERE,
        require=text(require) if require else None,
        prefer=text(prefer) if prefer else None,
        message=f"{name} says so",
        message_expression=text(told) if told else None,
        **more,  # type: ignore[arg-type]
    )


def ruled(engine: str, *rules: RequirementRule) -> Policy:
    return policy(node_pool(requirements=[ON_DEMAND]), rules=rules, cel_engine=engine)


def tiered(name: str = "llm", tier: str = "gold", **labels: str) -> Pod:
    return evolve(pod(name, gpu=1), labels={"tier": tier, **labels})


def types(plan: Plan) -> list[str]:
    return sorted(launch.claim.inputs.instance_type for launch in plan.launches)


def planned(engine: str, *rules: RequirementRule, pods: tuple[Pod, ...] = (tiered(),)) -> Plan:
    return World(ruled(engine, *rules), pods).decide()


GOLD = Selection(pod_labels=(requirement("tier", "In", "gold"),))


def test_a_rule_decides_what_is_launched_for_whom(engine: str) -> None:
    floor = rule("floor", "instanceType.vcpus >= params.least", params={"least": 8}, match=GOLD)
    plan = planned(engine, floor, pods=(tiered("gold"), tiered("free", tier="free")))
    told = {launch.claim.inputs.instance_type: [key.name for key in launch.pods] for launch in plan.launches}
    assert told == {"g5.2xlarge": ["gold"], "g5.xlarge": ["free"]}


def test_a_rule_that_errs_on_some_types_leaves_the_others(engine: str) -> None:
    odd = rule("odd", "100 / (instanceType.vcpus - 4) > 0")
    plan = planned(engine, odd)
    assert types(plan) == ["g5.2xlarge"]
    ((verdict),) = plan.verdicts
    assert (verdict.rule, verdict.outcome, verdict.pods, verdict.types) == ("odd", VerdictOutcome.ERROR, 1, 1)
    assert verdict.error


def test_a_rule_that_warns_is_told_with_its_counts_and_changes_nothing_that_is_done(engine: str) -> None:
    floor = rule("floor", "instanceType.vcpus >= 8", enforcement=Enforcement.WARN)
    pods = (tiered("a"), tiered("b"))
    plan = planned(engine, floor, pods=pods)
    assert types(plan) == ["g5.xlarge", "g5.xlarge"]
    expected = Verdict(
        rule="floor",
        kind=RuleKind.REQUIREMENT_RULE,
        enforcement=Enforcement.WARN,
        outcome=VerdictOutcome.VIOLATED,
        message="floor says so",
        pods=2,
        types=3,
    )
    assert plan.verdicts == (expected,)


def test_preferences_sum_and_price_breaks_ties(engine: str) -> None:
    big = rule("big", prefer='instanceType.family == "g5" && instanceType.vcpus >= 8 ? 1.0 : 0.0', weight=2.0)
    assert types(planned(engine, big)) == ["g5.2xlarge"]
    most = rule("most", prefer="instanceType.gpuCount == 4 ? 0.5 : 0.0")
    assert types(planned(engine, big, most)) == ["g5.12xlarge"]


@pytest.mark.parametrize("enforcement", [Enforcement.DENY, Enforcement.AUDIT])
def test_a_preference_that_errs_is_not_told_to_keep_pods_from_types(engine: str, enforcement: Enforcement) -> None:
    plan = planned(engine, rule("odd", prefer="double(instanceType.vcpus)", enforcement=enforcement))
    assert types(plan) == ["g5.xlarge"]
    (verdict,) = plan.verdicts
    assert (verdict.outcome, verdict.pods, verdict.types) == (VerdictOutcome.ERROR, 0, 0)
    assert verdict.error.endswith(", which is not between 0.0 and 1.0")


def test_the_refusal_names_the_rule_and_tells_its_message_of_each_pod(engine: str) -> None:
    none = rule("none", "instanceType.gpuMemoryGiB > 1000", told='pod.name + " gets no " + instanceType.name')
    plan = planned(engine, none, pods=(tiered("a"), tiered("b")))
    assert not plan.launches
    told = {each.pod.name: each.refusals[0].refusal for each in plan.unplaced}
    assert told == {
        "a": RuleForbids("none", "a gets no g5.xlarge", types=4, example="g5.xlarge/on-demand"),
        "b": RuleForbids("none", "b gets no g5.xlarge", types=4, example="g5.xlarge/on-demand"),
    }


def test_a_second_pass_with_all_remembered_gives_the_identical_plan(engine: str) -> None:
    rules = (
        rule("floor", "instanceType.vcpus >= 8", match=GOLD),
        rule("likes", prefer='"team" in pod.labels && instanceType.gpuCount == 4 ? 0.5 : 0.0'),
        rule("odd", "100 / (instanceType.vcpus - 4) > 0", enforcement=Enforcement.AUDIT),
    )
    pods = (tiered("a"), tiered("b", team="x"), tiered("c", tier="free"))
    world = World(ruled(engine, *rules), pods)
    cold = canonical_json(world.decide())
    assert canonical_json(world.decide()) == cold
    memo.forget()
    assert canonical_json(world.decide()) == cold


def test_the_order_of_pods_and_rules_changes_nothing(engine: str) -> None:
    rules = (rule("a", "instanceType.vcpus >= 8", match=GOLD), rule("b", prefer="instanceType.price / 1000.0"))
    pods = (tiered("a"), tiered("b", tier="free"), tiered("c"))
    forth = planned(engine, *rules, pods=pods)
    memo.forget()
    back = planned(engine, *reversed(rules), pods=tuple(reversed(pods)))
    assert canonical_json(forth) == canonical_json(back)


def test_an_error_that_comes_up_while_a_machine_is_on_its_way_keeps_its_pod_there(engine: str) -> None:
    world = World(policy(node_pool(requirements=[ON_DEMAND]), cel_engine=engine), [tiered()], registers=lambda _: False)
    world.turn()
    world.policy = ruled(engine, rule("odd", '"x" == pod.labels["no-such-label"]'))
    plan = world.decide()
    assert [each.pod.name for each in plan.placements] == ["llm"]
    assert (plan.launches, plan.removals) == ((), ())


def test_a_node_that_stands_keeps_its_pods_and_takes_more_whatever_rules_say(engine: str) -> None:
    world = World(policy(node_pool(requirements=[ON_DEMAND]), cel_engine=engine), [tiered()])
    world.turn()
    world.policy = ruled(engine, rule("none", "instanceType.vcpus < 0"))
    world.now += minutes(1)
    small = evolve(pod("small", cpu="1", memory="1Gi"), labels={"tier": "gold"})
    world.pods[small.key] = small
    plan = world.decide()
    assert [each.pod.name for each in plan.placements] == ["small"]
    assert (plan.launches, plan.removals, plan.unplaced) == ((), (), ())


def test_without_requirement_rules_nothing_is_told(engine: str) -> None:
    assert planned(engine).verdicts == ()
