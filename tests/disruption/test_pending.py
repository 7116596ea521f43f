"""What a machine that stays is to go for is told beside what keeps it, whatever that is."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.model.plan import Kept, Plan
from engine.model.policy import Budget, NodePool
from engine.model.reason import DisruptionReason
from engine.model.replacement import RolloutWaits
from engine.model.stay import BudgetExhausted, DoNotDisrupt, OutsideWindow
from engine.model.upkeep import Upkeep
from tests.builders import NOON, minutes, node_pool
from tests.decide.world import policy
from tests.disruption.going_world import GoingWorld, marks, of, served, steady
from tests.disruption.rule_world import rule, window

DRIFTED, EXPIRED, EMPTY = DisruptionReason.DRIFTED, DisruptionReason.EXPIRED, DisruptionReason.EMPTY
SHUT = evolve(steady().disruption, budgets=(Budget(nodes=0),))


def alone(pool: NodePool | None = None, **more: object) -> GoingWorld:
    return of(served("llm", **more), pool=pool).started()


class Stamped(GoingWorld):
    """Marks have their time and their reason."""

    def mark(self, name: str) -> None:
        super().mark(name)
        self.nodes[name] = evolve(self.nodes[name], marked_at=self.now, marked_for=DRIFTED)


def draining(pool: NodePool) -> Stamped:
    """The only node is marked since now, and its pod does not leave."""
    one = Stamped(policy(pool), [served("llm")], stays=lambda pod: True)
    one.started().new_image()
    one.turn(timedelta(0))
    return one


def only(plan: Plan) -> Kept:
    [kept] = plan.kept
    return kept


def reasons(kept: Kept) -> list[DisruptionReason]:
    return [each.reason for each in kept.pending]


def test_a_node_that_is_as_it_would_be_launched_today_is_to_go_for_nothing() -> None:
    assert only(alone().decide()).pending == ()


def test_what_holds_a_pod_is_told_first_and_the_drift_behind_it_with_what_changed_and_since_when() -> None:
    one = alone(do_not_disrupt=True)
    one.new_image()
    seen = one.now
    one.turn(minutes(10))
    kept = only(one.decide())
    assert isinstance(kept.reason, DoNotDisrupt)
    [cause] = kept.pending
    assert (cause.reason, cause.since) == (DRIFTED, seen)
    assert cause.why.startswith("image ami-")


def test_a_used_up_budget_is_told_first_and_both_drift_and_expiry_behind_it() -> None:
    one = alone(steady(disruption=SHUT, expire_after=timedelta(hours=2)))
    one.new_image()
    one.now += timedelta(hours=3)
    kept = only(one.decide())
    assert isinstance(kept.reason, BudgetExhausted)
    assert reasons(kept) == [DRIFTED, EXPIRED]
    assert kept.pending[1].why == "expireAfter 2h"
    # The time comes up to a tenth of it earlier.
    assert timedelta(hours=1.8) <= kept.pending[1].since - NOON <= timedelta(hours=2.2)


def test_a_trial_that_others_are_on_is_told_first_and_expiry_behind_it() -> None:
    pool = steady(upkeep=Upkeep(soak=timedelta(hours=9)), expire_after=timedelta(hours=2))
    one = of(served("llm-0"), served("llm-1"), pool=pool).started()
    one.new_image()
    one.turn()
    held = [each for each in one.turn().kept if isinstance(each.reason, RolloutWaits)]
    assert [reasons(each) for each in held] == [[DRIFTED]]


def test_a_request_and_a_drift_are_two_causes_of_one_reason() -> None:
    one = alone(steady(disruption=SHUT))
    [name] = one.nodes
    one.nodes[name] = evolve(one.nodes[name], replace_asked=True, replace_asked_at=NOON)
    one.new_image()
    asked, drift = only(one.decide()).pending
    assert (asked.reason, drift.reason) == (DRIFTED, DRIFTED)
    assert asked.why == f"replacement of {name} was asked for by annotation at 2026-11-30 12:00:00Z"
    assert drift.why.startswith("image ")


def test_an_empty_node_outside_of_its_window_is_to_go_for_standing_empty() -> None:
    night = window("night", "0 22 * * *", lasts=timedelta(hours=4))
    nightly = rule("nightly", windows=("night",))
    one = GoingWorld(policy(node_pool(), rules=(nightly,), windows=(night,)), [served("llm")]).started()
    one.pods.clear()
    one.turn(minutes(10))
    kept = only(one.decide())
    assert isinstance(kept.reason, OutsideWindow)
    assert [(each.reason, each.why) for each in kept.pending] == [(EMPTY, "consolidateAfter 0s")]


def test_a_marked_node_that_a_window_holds_tells_what_it_was_marked_for_and_by_when_it_is_emptied() -> None:
    pool = steady(termination_grace_period=timedelta(hours=1), upkeep=Upkeep(surge=0))
    one = draining(pool)
    marked = one.now
    one.now += minutes(5)
    [mark] = marks(one.decide())
    assert mark.drained_by == marked + timedelta(hours=1)

    one.images = {variant: image.removesuffix("-new") for variant, image in one.images.items()}
    one.policy = evolve(one.policy, node_pools=(evolve(pool, disruption=SHUT),))
    kept = only(one.decide())
    assert isinstance(kept.reason, BudgetExhausted)
    assert [(each.reason, each.why, each.since) for each in kept.pending] == [(DRIFTED, "marked before", marked)]
    assert kept.drained_by == marked + timedelta(hours=1)


def test_a_pause_holds_the_end_of_the_drain_too_so_none_is_told() -> None:
    pool = steady(termination_grace_period=timedelta(hours=1), upkeep=Upkeep(surge=0))
    one = draining(pool)
    one.policy = evolve(one.policy, node_pools=(evolve(pool, paused="looking into it"),))
    kept = only(one.decide())
    assert (kept.reason.code, kept.drained_by) == ("pool-paused", None)
    assert reasons(kept) == [DRIFTED]
