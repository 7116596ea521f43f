"""Karpenter's rules, as the bench of days imitates them, do what Karpenter does."""

from __future__ import annotations

from datetime import timedelta

from engine.model.policy import ConsolidationPolicy, Disruption
from engine.simulate.record import Run
from engine.simulate.tasks import Stay, Task
from engine.simulate.world import World
from tests.builders import minutes
from tests.simulate.worlds import gpu_pool, hours, policy, simulation, task, world
from tools.karpenter_day import KarpenterDay
from tools.make_traces import replicas

_WHEN_EMPTY = Disruption(consolidation_policy=ConsolidationPolicy.WHEN_EMPTY, consolidate_after=timedelta())


def played(*tasks: Task, consolidate_after: timedelta | None) -> tuple[World, Run]:
    policies = policy(gpu_pool(disruption=_WHEN_EMPTY))
    of = world(*tasks, of=policies)
    return of, simulation(of, policies, KarpenterDay(consolidate_after)).run(hours(1))


def four_of_which_three_leave() -> list[Task]:
    leaving = [task(f"leaves-{number}", lasts=20, stay=Stay.REPLICA) for number in range(3)]
    return [*leaving, task("stays")]


def test_pods_of_one_batch_come_to_one_node_as_long_as_any_type_holds_them() -> None:
    of, run = played(*four_of_which_three_leave(), consolidate_after=None)
    assert dict(run.launches) == {"g5.12xlarge": 1}
    assert (dict(run.evictions), [each.instance_type for each in of.ec2.alive()]) == ({}, ["g5.12xlarge"])


def test_a_node_goes_for_one_cheaper_node_that_is_up_before() -> None:
    of, run = played(*four_of_which_three_leave(), consolidate_after=minutes(5))
    assert dict(run.launches) == {"g5.12xlarge": 1, "g5.xlarge": 1}
    assert dict(run.evictions) == {"Underutilized": 1}
    assert (run.waits.again, [each.instance_type for each in of.ec2.alive()]) == ((0.0,), ["g5.xlarge"])


def test_a_node_never_goes_for_two() -> None:
    """Two g5.xlarge would be a third of the price: Karpenter knows no such move."""
    leaving = [task(f"leaves-{number}", lasts=20, stay=Stay.REPLICA) for number in range(2)]
    _, run = played(*leaving, task("one"), task("two"), consolidate_after=minutes(5))
    assert (dict(run.launches), dict(run.evictions)) == ({"g5.12xlarge": 1}, {})


def test_the_last_replica_to_come_is_the_first_to_go() -> None:
    stays = {(came, lasts) for _, came, lasts, *_ in replicas([1, 3, 2], 300)}
    assert stays == {(0, 900), (300, 300), (300, 600)}
