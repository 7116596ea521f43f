"""Guardrails on the finished plan: what they block, what is told, and what a hold still does."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.canonical import canonical_json, from_json
from engine.model.plan import Plan, RemovalPhase, VerdictOutcome
from engine.model.pod import Owner
from engine.model.policy import Budget, Disruption, NodePool
from engine.model.quantity import NODES as NODES_RESOURCE
from engine.model.reason import DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.rule import ActionClass, AnyRule, NamedExpression
from engine.model.upkeep import Upkeep
from tests.builders import minutes, node_pool, pod, requirement
from tests.decide.rule_values import ADD, AUDIT, GPUS, NO_BOOL, NO_INT, REMOVE, WARN, guardrail, limit, text
from tests.decide.world import World, policy

NEVER, ALWAYS = "plan.launchCount < 0", "plan.launchCount >= 0"
FIVE = Disruption(consolidate_after=minutes(5), budgets=(Budget(percent=100),))
SMALLEST = requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge")
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")


def small_pool(name: str = "gpu", **more: object) -> NodePool:
    fields: dict[str, object] = {"requirements": [SMALLEST, ON_DEMAND], "disruption": FIVE, **more}
    return node_pool(name, **fields)  # type: ignore[arg-type]


def world(*rules: AnyRule, pods: int = 0, pools: tuple[NodePool, ...] = (small_pool(),)) -> World:
    return World(policy(*pools, rules=rules), [pod(f"p{number}", gpu=1) for number in range(pods)])


def with_rules(there: World, *rules: AnyRule) -> World:
    there.policy = evolve(there.policy, rules=rules)
    return there


def standing(pods: int, *rules: AnyRule) -> World:
    """So many pods that run, each on a machine of its own."""
    there = world(pods=pods)
    there.turn()
    return with_rules(there, *rules)


def emptied(there: World, pods: int) -> World:
    """So many of the machines are empty for long enough to go."""
    there.finish(list(there.pods.values())[:pods])
    there.ledger = evolve(there.ledger, empty_since={each.claim: there.now - minutes(60) for each in there.running()})
    return there


def blocked_by(plan: Plan) -> set[str]:
    """The guardrails that pods got nothing for."""
    every = (each.refusal for unplaced in plan.unplaced for each in unplaced.refusals)
    return {each.rule for each in every if isinstance(each, GuardrailBlocks)}


def stays_for(plan: Plan) -> set[str]:
    return {each.reason.rule for each in plan.kept if isinstance(each.reason, GuardrailBlocks)}


def by_choice(plan: Plan) -> list[str]:
    return [each.record.claim for each in plan.removals if each.record.reason is DisruptionReason.EMPTY]


def test_a_guardrail_of_replacements_holds_nothing_else() -> None:
    plan = world(guardrail(NEVER, ActionClass.REPLACE), pods=1).decide()
    [verdict] = plan.verdicts
    assert len(plan.launches) == 1
    assert (verdict.outcome, verdict.blocked) == (VerdictOutcome.VIOLATED, (ActionClass.REPLACE,))


def test_a_guardrail_of_replacements_keeps_what_drifted_and_lets_empty_nodes_go() -> None:
    there = emptied(standing(2, guardrail(NEVER, ActionClass.REPLACE)), 1)
    there.pods = {key: evolve(each, owner=Owner("ReplicaSet", "llm")) for key, each in there.pods.items()}
    pool = small_pool(labels={"team": "search"}, upkeep=Upkeep(canaries=0))
    there.policy = evolve(there.policy, node_pools=(pool,))
    plan = there.decide()
    assert len(by_choice(plan)) == 1
    assert plan.launches == ()
    assert stays_for(plan) == {"guard"}


def test_a_condition_that_errs_is_told_with_what_the_guardrail_blocks_for_it() -> None:
    erring = NamedExpression("few", text("plan.pools[7].before < 3"))
    plan = world(evolve(guardrail(NEVER), match_conditions=(erring,)), pods=1).decide()
    (verdict,) = plan.verdicts
    assert (verdict.outcome, verdict.blocked, plan.launches) == (VerdictOutcome.VIOLATED, (ADD,), ())
    assert verdict.message.startswith("guard says no (condition few errs and so counts as met: ")


def test_a_plan_that_holds_is_done_and_the_verdict_is_told() -> None:
    plan = world(guardrail("plan.launchCount <= 2"), pods=2).decide()
    assert len(plan.launches) == 2
    (verdict,) = plan.verdicts
    assert (verdict.rule, verdict.outcome, verdict.message, verdict.blocked) == ("guard", VerdictOutcome.HOLDS, "", ())


def test_a_violated_guardrail_drops_the_launches_and_names_itself_to_every_pod() -> None:
    rule = guardrail(
        "cost.hourlyAfter <= 1.5", ADD, name="spend", told='"plan launches " + string(plan.launchCount) + " machines"'
    )
    plan = world(rule, pods=2).decide()
    assert not plan.launches
    assert plan.usd_per_hour_after == plan.usd_per_hour_before
    assert {each.refusal for one in plan.unplaced for each in one.refusals} == {
        GuardrailBlocks("spend", "plan launches 2 machines")
    }
    (verdict,) = plan.verdicts
    assert (verdict.outcome, verdict.blocked) == (VerdictOutcome.VIOLATED, (ADD,))
    assert verdict.message == "plan launches 2 machines"


def test_launches_that_are_blocked_leave_removals_alone_and_the_other_way_round() -> None:
    there = emptied(standing(2, guardrail("plan.launchCount == 0", ADD)), 1)
    there.pods |= {each.key: each for each in [pod("big", gpu=1, cpu="3500m")]}
    there.pods |= {each.key: each for each in [pod("more", gpu=1)]}
    plan = there.decide()
    assert not plan.launches
    there = emptied(standing(2, guardrail("plan.launchCount == 0", ADD)), 1)
    assert len(by_choice(there.decide())) == 1

    there = emptied(standing(2, guardrail("plan.removalCount == 0", REMOVE)), 2)
    there.pods = {each.key: each for each in [pod("cpu", gpu=1, cpu="100m"), pod("b", gpu=1), pod("c", gpu=1)]}
    plan = there.decide()
    assert not by_choice(plan)
    assert len(plan.launches) == 1


def test_a_machine_that_a_guardrail_keeps_says_so() -> None:
    plan = emptied(standing(2, guardrail("plan.removalCount == 0", REMOVE, name="night")), 1).decide()
    assert not plan.removals
    assert stays_for(plan) == {"night"}
    assert not plan.verdicts[0].error


def test_a_marked_machine_is_held_where_it_is() -> None:
    there = emptied(standing(1), 1)
    there.apply(there.decide())
    plan = with_rules(there, guardrail("plan.removalCount == 0", REMOVE)).decide()
    assert not plan.removals
    assert stays_for(plan) == {"guard"}
    released = with_rules(there).decide()
    assert [each.phase for each in released.removals] == [RemovalPhase.RELEASE]


def test_a_lost_machine_leaves_whatever_a_guardrail_says() -> None:
    there = standing(1, guardrail(NEVER, ADD, REMOVE))
    there.lose(there.running()[0].claim)
    plan = there.decide()
    assert [each.record.reason for each in plan.removals] == [DisruptionReason.LOST]


def test_a_guardrail_that_errs_blocks_what_it_names_and_removals_always() -> None:
    there = emptied(standing(2, guardrail(NO_BOOL, ADD)), 1)
    there.pods |= {each.key: each for each in [pod("a", gpu=1), pod("b", gpu=1)]}
    plan = there.decide()
    assert not plan.launches
    assert blocked_by(plan) == {"guard"}
    plan = emptied(standing(2, guardrail(NO_BOOL, ADD)), 1).decide()
    assert not plan.removals
    (verdict,) = plan.verdicts
    assert (verdict.outcome, verdict.blocked) == (VerdictOutcome.ERROR, (ADD, REMOVE))
    assert "zero" in verdict.error


def test_a_guardrail_about_removals_that_errs_leaves_launches_alone() -> None:
    plan = world(guardrail(NO_BOOL, REMOVE), pods=1).decide()
    assert len(plan.launches) == 1


def test_a_second_failure_holds() -> None:
    """Without the launches the removals are too many: what is left is neither."""
    there = emptied(
        standing(
            3,
            guardrail("cost.hourlyAdded == 0.0", ADD, name="a-spend"),
            guardrail("plan.removalCount == 0 || plan.launchCount > 0", REMOVE, name="b-size"),
        ),
        1,
    )
    there.policy = evolve(there.policy, node_pools=(small_pool(), small_pool("other")))
    there.pods |= {each.key: each for each in [pod("sel", gpu=1, selector={keys.NODE_POOL: "other"})]}
    plan = there.decide()
    assert not plan.launches
    assert not plan.removals
    assert blocked_by(plan) == {"a-spend"}
    assert stays_for(plan) == {"b-size"}
    assert [(each.rule, each.blocked) for each in plan.verdicts] == [("a-spend", (ADD,)), ("b-size", (REMOVE,))]


def test_a_cap_that_is_passed_already_still_lets_machines_go() -> None:
    plan = emptied(standing(3, guardrail("cost.hourlyAfter <= 1.0", ADD)), 1).decide()
    assert len(by_choice(plan)) == 1
    assert plan.verdicts[0].outcome is VerdictOutcome.VIOLATED


def test_guardrails_that_warn_or_count_change_nothing() -> None:
    rules = (guardrail(NEVER, name="a", enforcement=WARN), guardrail(NO_BOOL, name="b", enforcement=AUDIT))
    plan = world(*rules, pods=1).decide()
    assert len(plan.launches) == 1
    assert [(each.outcome, each.blocked) for each in plan.verdicts] == [
        (VerdictOutcome.VIOLATED, ()),
        (VerdictOutcome.ERROR, ()),
    ]
    assert plan.verdicts[0].message == "a says no"


def test_the_verdicts_are_part_of_the_plans_hash_and_come_back_from_its_json() -> None:
    quiet, warned = (world(guardrail(text, enforcement=WARN), pods=1).decide() for text in (ALWAYS, NEVER))
    assert quiet.hash != warned.hash
    assert from_json(Plan, canonical_json(warned)) == warned


# --- lost machines are replaced


def lost_one(there: World) -> World:
    there.lose(there.running()[0].claim)
    return there


def test_under_a_guardrail_that_errs_a_lost_machine_is_replaced_once_in_its_pool() -> None:
    there = lost_one(standing(3, guardrail(NO_BOOL, ADD)))
    there.pods |= {each.key: each for each in [pod("new", gpu=1)]}
    plan = there.turn()
    assert len(plan.launches) == 1
    assert len(there.running()) == 3
    for _ in range(5):
        assert not there.turn().launches
    assert len(there.running()) == 3


def test_it_is_replaced_too_where_its_pods_come_to_wait_only_later() -> None:
    there = standing(3, guardrail(NO_BOOL, ADD))
    there.turn()
    there.lose(there.running()[0].claim)
    late = {key: each for key, each in there.pods.items() if each.node_name is None}
    there.pods = {key: each for key, each in there.pods.items() if key not in late}
    assert not there.turn().launches
    for _ in range(10):
        there.turn()
    there.pods |= late
    assert len(there.turn().launches) == 1


def test_a_replacement_has_no_more_accelerators_than_what_was_lost() -> None:
    there = standing(2, guardrail(NO_BOOL, ADD))
    there.policy = evolve(there.policy, node_pools=(small_pool(requirements=[ON_DEMAND]),))
    there = lost_one(there)
    there.pods = {key: each for key, each in there.pods.items() if each.node_name is not None}
    there.pods |= {each.key: each for each in [pod("big", gpu=4)]}
    plan = there.decide()
    assert not plan.launches
    assert blocked_by(plan) == {"guard"}


def test_a_replacement_that_is_refused_is_tried_again() -> None:
    there = lost_one(standing(2, guardrail(NO_BOOL, ADD)))
    there.refuses = lambda claim: claim.inputs.zone == "us-east-1a"
    for _ in range(4):
        there.turn()
    assert len(there.running()) == 2


def test_a_guardrail_that_says_no_to_the_replacement_forbids_it() -> None:
    there = lost_one(standing(3, guardrail("plan.launchCount == 0", ADD)))
    plan = there.decide()
    assert not plan.launches
    assert blocked_by(plan) == {"guard"}


def test_what_went_by_choice_is_not_brought_back_under_a_hold() -> None:
    there = emptied(standing(3), 1)
    for _ in range(4):
        there.turn()
    assert len(there.running()) == 2
    with_rules(there, guardrail(NO_BOOL, ADD))
    there.pods |= {each.key: each for each in [pod("a", gpu=1)]}
    assert not there.turn().launches


def test_a_loss_that_nobody_missed_is_forgotten() -> None:
    there = lost_one(standing(2))
    there.finish([each for each in there.pods.values() if each.node_name is None])
    there.turn(minutes(5))
    assert there.ledger.owed["gpu"].capacity.amount(NODES_RESOURCE) == 1
    there.turn(minutes(30))
    there.turn(minutes(5))
    assert not there.ledger.owed
    with_rules(there, guardrail(NO_BOOL, ADD))
    there.pods |= {each.key: each for each in [pod("a", gpu=1)]}
    assert not there.turn().launches


def test_a_ledger_that_is_lost_costs_the_replacement_and_nothing_else() -> None:
    there = standing(3, guardrail(NO_BOOL, ADD))
    pods = dict(there.pods)
    lost_one(there)
    there.pods = {key: each for key, each in pods.items() if there.pods[key].node_name is not None}
    there.turn()
    there.ledger = evolve(there.ledger, owed={})
    there.pods |= {key: evolve(pod(key.name, gpu=1)) for key in pods if key not in there.pods}
    assert not there.turn().launches


def test_under_a_ceiling_that_errs_a_lost_machine_is_replaced_too() -> None:
    for by in ("", "pod.namespace"):
        there = lost_one(standing(3, limit(NO_INT, by=by)))
        there.pods |= {each.key: each for each in [pod("new", gpu=1)]}
        plan = there.turn()
        assert len(plan.launches) == 1
        assert not there.turn().launches
        assert len(there.running()) == 3


# --- no files at all


def test_with_all_policy_deleted_nothing_is_launched_and_nothing_removed() -> None:
    there = emptied(standing(2), 1)
    there.policy = evolve(there.policy, node_pools=(), node_classes=(), rules=())
    there.pods |= {each.key: each for each in [pod("a", gpu=1), pod("b", gpu=1)]}
    for _ in range(3):
        before = there.document
        plan = there.turn(minutes(60))
        assert plan.is_empty
        assert there.document is before
    assert len(there.running()) == 2
    assert {each.reason.code for each in plan.kept} == {"pool-unknown"}


def test_with_all_rules_deleted_the_pools_files_hold_as_they_are() -> None:
    there = standing(2, guardrail(NO_BOOL, ADD), limit("1", resource=GPUS))
    there = with_rules(there)
    there.pods |= {each.key: each for each in [pod("a", gpu=1)]}
    assert len(there.decide().launches) == 1
