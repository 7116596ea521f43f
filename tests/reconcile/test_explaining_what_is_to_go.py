"""``explain node`` of a node that is to go: for what, since when, what holds it first, and by when it is empty."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.model.policy import NodePool
from engine.model.reason import DisruptionReason
from engine.model.workload import ObjectKey, PodDisruptionBudget, Workload
from engine.reconcile.explaining import Asked
from engine.reconcile.explaining_nodes import explain_node
from engine.report.explain_report import NodeExplanation
from engine.report.explain_report_text import render_explanation
from tests.builders import NOON, minutes
from tests.decide.world import policy
from tests.disruption.going_world import GoingWorld, served, steady
from tests.report.golden_text import printed

HOUR = timedelta(hours=1)
KEPT = Workload(disruption_budgets=(PodDisruptionBudget(ObjectKey("default", "kept"), (), is_observed=True),))


class Stamped(GoingWorld):
    def mark(self, name: str) -> None:
        super().mark(name)
        marked = evolve(self.nodes[name], marked_at=self.now, marked_for=DisruptionReason.DRIFTED)
        self.nodes[name] = marked


def world(pool: NodePool, **more: object) -> Stamped:
    return Stamped(policy(pool), [served("llm", **more)], stays=lambda pod: True)


def explained(one: GoingWorld, workload: Workload | None = None) -> NodeExplanation:
    [name] = one.nodes
    seen = one.snapshot(workload=workload) if workload is not None else one.snapshot()
    return explain_node(Asked(one.environment, one.policy, one.catalog, seen), name)


def test_what_holds_it_is_first_then_what_it_is_to_go_for_then_what_the_grace_period_means() -> None:
    one = world(steady(termination_grace_period=HOUR))
    one.started()
    [name] = one.nodes
    one.nodes[name] = evolve(one.nodes[name], do_not_disrupt=True)
    one.new_image()
    one.turn(minutes(30))

    lines = printed(render_explanation(explained(one)), 200).splitlines()[1:6]
    assert lines[0] == "It stays: the node must not be disrupted."
    assert lines[1] == "What it is to go for, once nothing keeps it:"
    assert lines[2].startswith("  Drifted for 30m: image ami-")
    assert lines[3] == "Once it is marked, its pods are gone within terminationGracePeriod 1h, whatever holds them."
    assert lines[4] == "The annotation would have to go."


def test_a_marked_node_names_who_is_not_free_to_leave_and_by_when_they_leave_all_the_same() -> None:
    one = world(steady(termination_grace_period=HOUR, upkeep=evolve(steady().upkeep, surge=0)))
    one.started().new_image()
    one.turn(timedelta(0))
    marked = one.now

    found = explained(one, KEPT)
    held = "; not free to leave yet: default/llm (PodDisruptionBudget default/kept allows no disruption now)."
    assert found.outcome.endswith(held)
    assert found.drained_by == marked + HOUR
    by = f"{marked + HOUR:%Y-%m-%d %H:%M:%SZ}"
    assert found.grace == (
        f"What is left of its pods is deleted by {by}, whatever holds them: terminationGracePeriod 1h since its mark."
    )


def test_a_node_that_is_to_go_for_nothing_says_nothing_of_the_grace_period() -> None:
    one = world(steady(termination_grace_period=HOUR))
    one.started()
    found = explained(one)
    assert (found.pending, found.grace, found.drained_by) == ((), "", None)
    assert "is to go for" not in printed(render_explanation(found), 200)


def test_without_a_grace_period_a_budget_holds_what_drifted_for_as_long_as_it_says() -> None:
    one = world(steady())
    one.started().new_image()
    found = explained(one, KEPT)
    assert found.outcome == "It stays: PodDisruptionBudget default/kept does not let pod default/llm go now."
    assert [each.reason for each in found.pending] == [DisruptionReason.DRIFTED]
    assert found.grace == ""


def test_when_a_nodes_time_comes_is_told_until_it_has_come() -> None:
    one = world(steady(expire_after=timedelta(hours=50)))
    one.started()
    found = explained(one)
    assert found.expires_at is not None
    assert timedelta(hours=45) <= found.expires_at - NOON <= timedelta(hours=50), "up to a tenth earlier"
    assert "Its time to expire comes in 1d" in printed(render_explanation(found), 200)

    one.now = found.expires_at
    then = explained(one)
    assert [each.reason for each in then.pending] == [DisruptionReason.EXPIRED]
    assert "time to expire" not in printed(render_explanation(then), 200)


def test_a_node_that_never_expires_says_nothing_of_it() -> None:
    one = world(steady())
    one.started()
    assert explained(one).expires_at is None
