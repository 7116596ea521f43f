"""What a change of policy does to machines that run: who leaves, who stays for another reason, what is saved."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.model.policy import Budget, Disruption, Policy
from engine.reconcile.diffing_moments import Loaded, Recorded, moment_difference
from engine.report.diff_report import Both, MomentDifference
from engine.report.diff_report_words import moment_sentence
from tests.builders import minutes, node_class, node_pool, pod, requirement, usd
from tests.decide.rule_values import budget, require
from tests.decide.world import World
from tests.decide.world import policy as policy_of

EVERY = (Budget(percent=100),)
AT_ONCE = Disruption(consolidate_after=timedelta(0), budgets=EVERY)
LATER = Disruption(consolidate_after=minutes(600), budgets=EVERY)


def of_two_nodes(base: Policy, head: Policy, *, pods: bool = False) -> MomentDifference:
    """Two g5.xlarge at 1.00 $/h that came up under ``base``, empty unless ``pods``."""
    world = World(base, [pod("a", cpu="3", gpu=1), pod("b", cpu="3", gpu=1)])
    world.turn(minutes(1))
    world.turn(minutes(1))
    if not pods:
        world.pods.clear()
    old, new = (Loaded(world.environment, each, world.catalog) for each in (base, head))
    return moment_difference(old, new, Recorded("now", world.snapshot()))


def with_disruption(disruption: Disruption, *rules: object) -> Policy:
    pool = node_pool(disruption=disruption, requirements=[requirement("karpenter.sh/capacity-type", "In", "on-demand")])
    return policy_of(pool, rules=rules, digest=f"{disruption} {rules}")


def test_machines_that_begin_to_drain_are_off_the_bill() -> None:
    moment = of_two_nodes(with_disruption(LATER), with_disruption(AT_ONCE))
    assert (moment.removals, moment.more_usd_per_hour.micros) == (Both(0, 2), -2_000_000)
    assert [pool.nodes for pool in moment.pools] == [Both(2, 0)]
    assert {(each.instance_type, each.reason, each.is_new) for each in moment.removed} == {("g5.xlarge", "Empty", True)}
    assert (
        moment_sentence(moment)
        == "HEAD removes 2 more nodes (-2 GPUs after the plan); -$2.0000/h, about -$1,460 a month."
    )


def test_machines_that_no_longer_leave_are_told_as_staying() -> None:
    moment = of_two_nodes(with_disruption(AT_ONCE), with_disruption(LATER))
    assert (moment.removals, moment.more_usd_per_hour) == (Both(2, 0), usd("2"))
    assert [each.is_new for each in moment.removed] == [False, False]


def test_a_machine_that_stays_for_another_reason_is_told_with_both() -> None:
    keeps = budget("quiet", candidate="node.age > duration('24h')")
    moment = of_two_nodes(with_disruption(LATER), with_disruption(AT_ONCE, keeps))
    [kept] = moment.kept
    assert moment.removals == Both(0, 0)
    assert len(kept.claims) == 2
    assert kept.because.base.startswith("empty for 0s, may go in")
    assert kept.because.head.startswith("could go, but disruption budget quiet keeps it: ")


def test_machines_in_use_are_no_difference_however_plans_differ() -> None:
    moment = of_two_nodes(with_disruption(LATER), with_disruption(AT_ONCE), pods=True)
    assert not moment.has_effect


def test_pods_that_run_count_among_those_who_lose_types() -> None:
    rule = require("instanceType.name != 'g5.xlarge'", "no-small")
    moment = of_two_nodes(with_disruption(LATER), with_disruption(LATER, rule), pods=True)
    [changed] = moment.classes
    assert (moment.pods.waiting, changed.pods) == (0, 2)
    assert [types.types for types in changed.lost] == [(("g5.xlarge", "on-demand"),)]
    assert moment.launches == Both(0, 0)


def test_a_rule_that_could_not_be_evaluated_is_told_with_how_often() -> None:
    rule = require("int(pod.labels['floor']) > 0", "floor")
    moment = of_two_nodes(with_disruption(LATER), with_disruption(LATER, rule), pods=True)
    [errors] = moment.errors
    assert (errors.rule, errors.errors.base) == ("floor", 0)
    assert errors.errors.head > 0
    assert "floor" in errors.sample
    [changed] = moment.classes
    assert changed.most.head == 0


def test_another_image_is_another_template_only_where_something_is_launched() -> None:
    base = with_disruption(LATER)
    head = evolve(base, node_classes=(evolve(node_class(), user_data="#!/bin/sh\necho hi\n"),), digest="other")
    moment = of_two_nodes(base, head, pods=True)
    assert not moment.foundation_differs
