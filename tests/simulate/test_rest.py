"""What counts as rest in a world in which nothing happens any more, and what does not."""

from __future__ import annotations

from attrs import evolve

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Budget, Disruption, Policy
from engine.model.snapshot import Snapshot
from engine.model.workload import ObjectKey, PodDisruptionBudget
from engine.simulate.conditions import FaultKind, PlannedFault
from engine.simulate.simulation import Simulation
from engine.simulate.world import World
from tests.builders import NOON, minutes
from tests.simulate.worlds import CATALOG, ENVIRONMENT, gpu_pool, hours, policy, simulation, task, world

NONE_MAY_GO = PodDisruptionBudget(ObjectKey("default", "all"), (), min_available="100%")
# Longer than a node may be ill.
ILL = PlannedFault(NOON + minutes(10), FaultKind.GPU_ILL, hours(1))


def held() -> World:
    """Two machines, each with a pod that its budget holds; one node falls ill, and is marked for it."""
    return world(task("one"), task("two"), faults=[ILL], budgets=(NONE_MAY_GO,))


def test_a_pod_that_is_asked_in_vain_again_and_again_disturbs_no_rest() -> None:
    of = held()
    within = simulation(of)
    within.run(hours(2))
    assert [node.is_marked for node in of.cluster.nodes].count(True) == 1
    assert len(of.refused) == 1
    within.come_to_rest(most_plans=5)
    assert within.violations == ()


def test_passes_are_no_more_frequent_for_a_pod_that_is_asked_in_vain() -> None:
    of = held()
    within = simulation(of)
    within.run(hours(2))
    assert within.run(hours(1)).passes <= 61


def test_a_plan_that_does_the_same_over_and_over_to_no_effect_is_no_rest() -> None:
    def asking_nobody(snapshot: Snapshot, policies: Policy, catalog: Catalog, within: Environment) -> Plan:
        plan = decide(snapshot, policies, catalog, within)
        return evolve(plan, removals=tuple(evolve(each, pods=()) for each in plan.removals))

    of = held()
    within = simulation(of, decider=asking_nobody)
    within.run(hours(2))
    within.come_to_rest(most_plans=5)
    assert [each.rule for each in within.violations] == ["rest"]


def test_a_pool_whose_machines_expire_every_hour_comes_to_rest_once_time_stands_still() -> None:
    disruption = Disruption(consolidate_after=minutes(5), budgets=(Budget(nodes=1),))
    hourly = policy(gpu_pool(disruption=disruption, expire_after=hours(1)))
    of = world(*[task(f"pod-{number}", after=20 * number) for number in range(3)], of=hourly)
    within = Simulation(of, hourly, CATALOG, ENVIRONMENT)
    assert within.run(hours(3)).removals["Expired"] >= 3
    within.come_to_rest(most_plans=10)
    assert within.violations == ()
