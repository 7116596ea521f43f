"""Whatever budgets and rules there are, at whatever time: no more nodes are out than the least of them allows."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.disruption.budgets import said_by_pool
from engine.disruption.said import least_allowed
from engine.model.policy import Budget
from engine.model.policy import Disruption as PoolDisruption
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import DisruptionBudget
from engine.model.stay import BudgetExhausted, OutsideWindow, RuleKeeps
from tests.builders import NOON, minutes, node_pool
from tests.disruption.rule_world import HOUR, asked, chosen, gone_at, known, rule, standings, window
from tests.disruption.test_empty import machine, marked

REASONS = st.lists(st.sampled_from(VOLUNTARY_REASONS), max_size=2, unique=True).map(tuple)
WINDOWS = (window("day"), window("night", "0 22 * * 1-5", zone="America/New_York"))
NUMBERS = (
    "nodePool.nodes / 2",
    "3",
    "nodePool.nodes - 4",
    "1 / (nodePool.nodes - nodePool.nodes)",
    "windows.day ? 1 : 5",
)
ERRING = "nodePool.nodes / (nodePool.nodes - nodePool.nodes)"


@st.composite
def budgets(draw: st.DrawFn) -> Budget:
    percent = draw(st.none() | st.sampled_from([0, 10, 33, 100]))
    nodes = None if percent is not None else draw(st.integers(0, 6))
    schedule = draw(st.none() | st.sampled_from(["0 9 * * 1-5", "*/30 * * * *", "0 0 31 2 *", "0 0 */2 * 1"]))
    duration = timedelta(hours=draw(st.integers(1, 30))) if schedule is not None else None
    return Budget(nodes=nodes, percent=percent, reasons=draw(REASONS), schedule=schedule, duration=duration)


@st.composite
def rules(draw: st.DrawFn, name: str) -> DisruptionBudget:
    windows = draw(st.sampled_from([(), ("day",), ("night",), ("day", "night")]))
    return rule(
        name,
        budget=draw(st.none() | st.sampled_from(NUMBERS)),
        candidate=draw(st.none() | st.sampled_from(["node.name != 'node-gpu-1'", "node.labels.nothing == 'x'"])),
        most=draw(st.none() | st.sampled_from(NUMBERS)) if windows else None,
        windows=windows,
        reasons=draw(REASONS),
        blocks_outside=draw(st.booleans()),
    )


MOMENTS = st.integers(0, 14 * 24 * 4).map(lambda quarter: NOON + quarter * minutes(15))
RULES = st.integers(0, 2).flatmap(lambda count: st.tuples(*(rules(f"rule-{number}") for number in range(count))))


@settings(max_examples=150, deadline=None)
@given(
    own=st.lists(budgets(), max_size=3),
    acting=RULES,
    reason=st.sampled_from(VOLUNTARY_REASONS),
    at=MOMENTS,
    fresh=st.integers(0, 6),
    drained=st.integers(0, 3),
    others_out=st.integers(0, 3),
    went=st.integers(0, 3),
    is_known=st.booleans(),
)
def test_no_more_nodes_are_out_than_the_least_allowance(
    own: list[Budget],
    acting: tuple[DisruptionBudget, ...],
    reason: DisruptionReason,
    at: datetime,
    fresh: int,
    drained: int,
    others_out: int,
    went: int,
    is_known: bool,
) -> None:
    pool = node_pool(disruption=PoolDisruption(budgets=tuple(own)))
    fleet = [machine(f"gpu-{number}", pool) for number in range(fresh)]
    old = [marked(machine(f"old-{number}", pool)) for number in range(drained)]
    broken = [machine(f"ill-{number}", pool, is_initialized=False) for number in range(others_out)]
    everyone = [*fleet, *old, *broken]
    if not everyone:
        return
    gone = {f"went-{number}": gone_at(at - HOUR * number, "gpu", reason) for number in range(went)}
    asked_now = asked(*acting, windows=WINDOWS, gone=known(gone, at - 9 * 24 * HOUR if is_known else at), at=at)
    choice = chosen(everyone, asked_now, reason=reason, stay=[each.claim.name for each in broken], at=at)

    standing = standings(everyone)["gpu"]
    about = [each for each in asked_now.on(standing) if each.is_about(reason)]
    said = (*said_by_pool(pool, reason, standing.base, at), *(each.said for each in about))
    least = least_allowed(said)
    going = {removal.record.claim for removal in choice.removals}
    # Marked machines that are held back are out, too, and nobody can help that; new ones go only where there is room.
    out_before = len(broken) + len(old)
    newly = going - {each.claim.name for each in old}
    if least is not None:
        assert not newly or out_before + len(newly) <= least
        assert len(going) <= least
    for each in about:
        if each.said.holds and each.said.per_opening is not None:
            assert len(each.said.begun | going) <= max(each.said.per_opening, len(each.said.begun))
        if each.said.holds and each.said.error:
            assert not going
    # And the other way round: who stays is kept by something that says so.
    assert all(isinstance(kept, BudgetExhausted | OutsideWindow | RuleKeeps) for kept in choice.stays.values())
    assert going | choice.stays.keys() == {each.claim.name for each in (*fleet, *old)}


@settings(max_examples=60, deadline=None)
@given(acting=st.tuples(rules("a"), rules("b")), at=MOMENTS, broken=st.sampled_from(["budget", "candidate", "only_if"]))
def test_an_error_in_a_rule_never_lets_a_node_go_that_the_rule_as_it_was_kept(
    acting: tuple[DisruptionBudget, DisruptionBudget], at: datetime, broken: str
) -> None:
    pool = node_pool(disruption=PoolDisruption(budgets=()))
    fleet = [machine(f"gpu-{number}", pool) for number in range(6)]
    one, other = acting
    erring = rule("a", **{broken: f"{ERRING} > 0" if broken != "budget" else ERRING})
    changed = evolve(
        one,
        budget=erring.budget or one.budget,
        candidate=erring.candidate or one.candidate,
        match_conditions=erring.match_conditions,
    )
    reason = DisruptionReason.EMPTY
    before = chosen(fleet, asked(one, other, windows=WINDOWS, at=at), reason=reason, at=at)
    after = chosen(fleet, asked(changed, other, windows=WINDOWS, at=at), reason=reason, at=at)
    assert {each.record.claim for each in after.removals} <= {each.record.claim for each in before.removals}
