"""Rules about who may go: candidates, windows, how many at once and per opening; and errors, which let nothing go."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engine.disruption.candidates import Choice
from engine.disruption.machine import Machine
from engine.disruption.said import BudgetState
from engine.model.document import BudgetUse
from engine.model.plan import Verdict, VerdictOutcome
from engine.model.policy import Budget, Disruption
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import ActionClass, Enforcement, RuleKind, Selection
from engine.model.stay import BudgetExhausted, OutsideWindow, RuleKeeps
from tests.builders import NOON, minutes, node_pool, pod
from tests.disruption.rule_world import HOUR, asked, chosen, going, gone_at, known, rule, standings, window
from tests.disruption.test_empty import machine, marked

UNBOUND = node_pool(disruption=Disruption(budgets=()))
DRIFTED = DisruptionReason.DRIFTED
NEVER = "reason == 'NoReason'"
DIVIDES_BY_NOTHING = "1 / (nodePool.nodes - nodePool.nodes)"


def machines(count: int, pool: object = UNBOUND) -> list[Machine]:
    return [machine(f"gpu-{number}", pool) for number in range(count)]  # type: ignore[arg-type]


def only_stay(choice: Choice) -> object:
    (stay,) = set(choice.stays.values())
    return stay


# --- candidates


def test_a_node_that_is_no_candidate_stays_with_the_rules_message() -> None:
    young = rule(candidate="node.age > duration('2h')", message_expression=None)
    choice = chosen(machines(1), asked(young))
    assert only_stay(choice) == RuleKeeps(rule="slow-drain", message="slow-drain says so")
    assert choice.verdicts == ()


def test_a_candidate_reads_the_node_its_pods_and_the_reason() -> None:
    by_pods = rule(candidate="node.pods.all(p, p.priority < 1000) && reason == 'Empty' && nodePool.nodes == 2")
    on = {"gpu-0": (pod("calm", priority=5),), "gpu-1": (pod("high", priority=1000),)}
    choice = chosen(machines(2), asked(by_pods, pods=on))
    assert going(choice) == ["gpu-0"]
    assert going(chosen(machines(2), asked(by_pods, pods=on), reason=DRIFTED)) == []


def test_what_is_counted_of_pods_is_there_for_rules_that_read_no_pod() -> None:
    counted = rule(candidate="node.gpusUsed == 2 && !node.empty && !node.doNotDisrupt")
    on = {"gpu-0": (pod("one", gpu=1), pod("two", gpu=1)), "gpu-1": (pod("one", gpu=1, do_not_disrupt=True),)}
    assert going(chosen(machines(2), asked(counted, pods=on))) == ["gpu-0"]


def test_a_candidate_that_errs_keeps_the_node_and_says_so() -> None:
    choice = chosen(machines(2), asked(rule(candidate="node.labels.tier == 'gold'")))
    kept = only_stay(choice)
    assert isinstance(kept, RuleKeeps)
    assert kept.error
    (verdict,) = choice.verdicts
    assert (verdict.outcome, verdict.blocked) == (VerdictOutcome.ERROR, (ActionClass.REMOVE,))
    assert verdict.error.startswith("candidate: ")


def test_a_marked_node_is_held_where_a_candidate_says_no_meanwhile() -> None:
    choice = chosen([marked(machine("gpu-0", UNBOUND))], asked(rule(candidate=NEVER)))
    assert choice.stays == {"gpu-0": RuleKeeps(rule="slow-drain", message="slow-drain says so")}


# --- windows


def test_outside_its_windows_a_rule_lets_nothing_go_and_tells_when_the_next_opens() -> None:
    night = window("night", "0 22 * * *", zone="Europe/Berlin")
    choice = chosen(machines(2), asked(rule(windows=["night"]), windows=[night]))
    opens = datetime(2026, 11, 30, 21, tzinfo=UTC)
    assert only_stay(choice) == OutsideWindow(rule="slow-drain", windows=("night",), opens=opens)
    assert going(chosen(machines(2), asked(rule(windows=["night"]), windows=[night], at=opens), at=opens)) == [
        "gpu-0",
        "gpu-1",
    ]


def test_any_of_several_windows_is_enough() -> None:
    both = [window("day"), window("night", "0 22 * * *")]
    assert len(going(chosen(machines(3), asked(rule(windows=["day", "night"]), windows=both)))) == 3


def test_a_rule_that_ignores_what_is_outside_its_windows_says_nothing_there() -> None:
    night = window("night", "0 22 * * *")
    ignoring = rule(windows=["night"], blocks_outside=False, candidate=NEVER, budget="0")
    assert len(going(chosen(machines(2), asked(ignoring, windows=[night])))) == 2
    within = NOON + 11 * HOUR
    assert going(chosen(machines(2), asked(ignoring, windows=[night], at=within), at=within)) == []


def test_a_rule_whose_condition_is_false_says_nothing_and_one_whose_condition_errs_holds() -> None:
    assert len(going(chosen(machines(2), asked(rule(budget="0", only_if="nodePool.nodes > 9"))))) == 2
    assert going(chosen(machines(2), asked(rule(budget="0", only_if=f"{DIVIDES_BY_NOTHING} > 0")))) == []


# --- at once


def test_the_least_of_the_pools_own_budgets_and_all_rules_decides() -> None:
    pool = node_pool(disruption=Disruption(budgets=(Budget(nodes=3),)))
    rules = asked(rule("a", budget="nodePool.nodes / 2"), rule("b", budget="2"))
    choice = chosen(machines(8, pool), rules)
    assert len(going(choice)) == 2
    assert choice.removals[-1].record.budget == BudgetUse(budget="b", base=8, allowed=2, used=2)
    assert only_stay(choice) == BudgetExhausted(budget="b", allowed=2, used=2)


def test_what_is_out_already_counts_and_its_window_is_named() -> None:
    fleet = [
        *machines(4),
        marked(machine("gpu-8", UNBOUND, workload=1)),
        machine("gpu-9", UNBOUND, is_initialized=False),
    ]
    choice = chosen(fleet, asked(rule(budget="3", windows=["day"]), windows=[window()]), stay=["gpu-8", "gpu-9"])
    (removal,) = choice.removals
    assert removal.record.budget == BudgetUse(budget="slow-drain, window day", base=6, allowed=3, used=3)


def test_a_percentage_is_the_authors_arithmetic_and_rounds_down() -> None:
    assert len(going(chosen(machines(19), asked(rule(budget="nodePool.nodes * 10 / 100"))))) == 1


def test_a_negative_number_is_none() -> None:
    choice = chosen(machines(2), asked(rule(budget="nodePool.nodes - 5")))
    assert only_stay(choice) == BudgetExhausted(budget="slow-drain", allowed=0, used=0)


def test_a_number_that_errs_lets_nothing_go() -> None:
    choice = chosen(machines(2), asked(rule(budget=DIVIDES_BY_NOTHING)))
    kept = only_stay(choice)
    assert isinstance(kept, BudgetExhausted)
    assert (kept.allowed, kept.error.startswith("budget: ")) == (0, True)
    assert [verdict.outcome for verdict in choice.verdicts] == [VerdictOutcome.ERROR]


@pytest.mark.parametrize("reason", VOLUNTARY_REASONS)
def test_a_rule_without_reasons_is_about_every_reason_that_is_by_choice(reason: DisruptionReason) -> None:
    assert going(chosen(machines(2), asked(rule(budget="0")), reason=reason)) == []
    others = tuple(each for each in VOLUNTARY_REASONS if each is not reason)
    assert len(going(chosen(machines(2), asked(rule(budget="0", reasons=others)), reason=reason))) == 2


def test_a_rule_is_about_the_pools_that_it_selects() -> None:
    elsewhere = rule(budget="0", match=Selection(node_pools=("other",)))
    assert len(going(chosen(machines(2), asked(elsewhere)))) == 2


# --- per opening


def test_no_more_go_in_one_opening_than_the_rule_has_it() -> None:
    opened = NOON - 3 * HOUR
    gone = known({"old-1": gone_at(opened), "old-2": gone_at(opened - minutes(1)), "old-3": gone_at(opened, "other")})
    choice = chosen(machines(5), asked(rule(most="3", windows=["day"]), windows=[window()], gone=gone))
    assert len(going(choice)) == 2
    assert choice.removals[-1].record.budget == BudgetUse("slow-drain, in one opening of day", 5, 3, 3)
    assert only_stay(choice) == BudgetExhausted(budget="slow-drain, in one opening of day", allowed=3, used=3)


def test_what_goes_for_reasons_that_the_rule_does_not_name_is_not_counted() -> None:
    gone = known({"old-1": gone_at(NOON - HOUR, reason=DRIFTED), "old-2": gone_at(NOON - HOUR)})
    drifted_only = rule(most="2", windows=["day"], reasons=(DRIFTED,))
    choice = chosen(machines(5), asked(drifted_only, windows=[window()], gone=gone), reason=DRIFTED)
    assert len(going(choice)) == 1


def test_a_node_marked_in_this_opening_is_not_counted_twice_when_it_is_released() -> None:
    gone = known({"gpu-0": gone_at(NOON - HOUR), "gpu-1": gone_at(NOON - HOUR)})
    drained = [marked(each) for each in machines(2)]
    choice = chosen(
        [*drained, machine("gpu-9", UNBOUND)], asked(rule(most="2", windows=["day"]), windows=[window()], gone=gone)
    )
    assert going(choice) == ["gpu-0", "gpu-1"]


def test_a_node_marked_in_an_earlier_opening_counts_in_the_one_in_which_it_goes() -> None:
    gone = known({"gpu-0": gone_at(NOON - 24 * HOUR), "gpu-1": gone_at(NOON - 24 * HOUR)})
    drained = [marked(each) for each in machines(2)]
    choice = chosen(drained, asked(rule(most="1", windows=["day"]), windows=[window()], gone=gone))
    assert going(choice) == ["gpu-0"]


@pytest.mark.parametrize(("since", "number"), [(NOON - 3 * HOUR, 2), (NOON - 3 * HOUR + minutes(1), 0), (None, 0)])
def test_where_the_ledger_does_not_know_what_went_in_this_opening_nothing_goes(
    since: datetime | None, number: int
) -> None:
    rules = asked(rule(most="2", windows=["day"]), windows=[window()], gone=known(since=since))
    choice = chosen(machines(5), rules)
    assert len(going(choice)) == number
    if not number:
        kept = only_stay(choice)
        assert isinstance(kept, BudgetExhausted)
        assert kept.error == "how many have gone since 2026-11-30 09:00 UTC is not known"


def test_windows_that_overlap_are_one_opening() -> None:
    early = window("early", "0 7 * * *", lasts=3 * HOUR)
    (asked_rule,) = asked(rule(most="1", windows=["day", "early"]), windows=[window(), early]).on(
        standings(machines(1))["gpu"]
    )
    assert asked_rule.said.opened_at == NOON - 5 * HOUR


# --- enforcement


@pytest.mark.parametrize("enforcement", [Enforcement.WARN, Enforcement.AUDIT])
@pytest.mark.parametrize("fields", [{"candidate": NEVER}, {"budget": "0"}, {"windows": ["night"]}])
def test_what_only_tells_keeps_nothing_and_names_what_it_would_keep(
    enforcement: Enforcement, fields: dict[str, object]
) -> None:
    telling = rule(enforcement=enforcement, **fields)  # type: ignore[arg-type]
    choice = chosen(machines(5), asked(telling, windows=[window("night", "0 22 * * *")]))
    assert len(going(choice)) == 5
    (verdict,) = choice.verdicts
    assert verdict == Verdict(
        rule="slow-drain",
        kind=RuleKind.DISRUPTION_BUDGET,
        enforcement=enforcement,
        outcome=VerdictOutcome.VIOLATED,
        message="would keep node-gpu-0, node-gpu-1, node-gpu-2 and 2 more: slow-drain says so",
    )


def test_a_warning_rule_with_room_tells_only_of_those_beyond_it() -> None:
    choice = chosen(machines(3), asked(rule(budget="2", enforcement=Enforcement.WARN)))
    assert [verdict.message for verdict in choice.verdicts] == ["would keep node-gpu-2: slow-drain says so"]


def test_what_is_not_asked_or_shut_says_so() -> None:
    standing = standings(machines(1))["gpu"]
    night = window("night", "0 22 * * *")
    rules = asked(
        rule("a", budget="1", only_if="nodePool.nodes < 0"),
        rule("b", budget="1", windows=["night"]),
        rule("c", budget="1", windows=["night"], blocks_outside=False),
        rule("d", budget="1"),
        windows=[night],
    )
    assert [each.said.state for each in rules.on(standing)] == [
        BudgetState.UNASKED,
        BudgetState.BLOCKING,
        BudgetState.SHUT,
        BudgetState.ACTIVE,
    ]
