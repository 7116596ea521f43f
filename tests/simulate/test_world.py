"""A simulated world does what a real one would."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from attrs import evolve

from engine.model.node import InstanceState
from engine.model.plan import Plan
from engine.model.pod import PodPhase
from engine.model.quantity import NVIDIA_GPU
from engine.model.workload import ObjectKey, PodDisruptionBudget
from engine.simulate.conditions import FaultKind, PlannedFault, Shortage
from engine.simulate.record import RuleSeen, Run
from engine.simulate.simulation import PolicyChange, Simulation
from engine.simulate.tasks import Stay
from engine.simulate.witness import Witness
from engine.simulate.world import World
from tests.builders import NOON, minutes
from tests.decide.rule_values import require
from tests.simulate.worlds import CATALOG, ENVIRONMENT, decided, gpu_pool, hours, key, policy, simulation, task, world


def played(of: World, length: float = 1, **more: object) -> Run:
    """Hours."""
    return simulation(of, **more).run(hours(length))  # type: ignore[arg-type]


def test_a_pod_waits_for_its_machine_to_boot_register_and_show_its_gpu() -> None:
    run = played(world(task()))
    # 30 s to run, 30 s to register, 10 s until it is ready, 20 s more until its GPU is there.
    assert run.waits.first == (90.0,)
    assert dict(run.launches) == {"g5.xlarge": 1}
    assert run.violations == ()


def test_a_node_has_no_gpu_until_its_plugin_is_there_and_is_tainted_until_it_is_ready() -> None:
    of = world(task())
    simulation(of).run(minutes(1) + minutes(1 / 60))
    (node,) = of.cluster.nodes
    assert (node.ready, NVIDIA_GPU in node.allocatable) == (False, False)
    assert [taint.key for taint in node.taints] == ["node.kubernetes.io/not-ready"]
    of.advance(NOON + minutes(1) + minutes(11 / 60))
    (node,) = of.cluster.nodes
    assert (node.ready, node.taints, NVIDIA_GPU in node.allocatable) == (True, (), False)
    of.advance(NOON + minutes(2))
    assert of.cluster.nodes[0].allocatable.amount(NVIDIA_GPU) == 1


def test_a_late_device_plugin_keeps_pods_waiting() -> None:
    late = PlannedFault(NOON, FaultKind.PLUGIN_LATE, minutes(5))
    assert played(world(task(), faults=[late])).waits.first == (390.0,)


def test_a_job_ends_once_it_has_run_for_its_time_and_its_machine_goes_when_policy_says() -> None:
    of = world(task(lasts=10))
    run = played(of, 2)
    assert (run.jobs_done, dict(run.removals), of.ec2.alive(), of.cluster.pods) == (1, {"Empty": 1}, [], ())
    # 90 s until it is bound, 30 s until it runs, 10 minutes of work, 5 of consolidateAfter, and passes a minute apart.
    assert 17 / 60 <= run.usd <= 20 / 60


def test_a_replica_leaves_when_its_time_is_up_whether_it_ran_or_not() -> None:
    storm = Shortage(NOON, NOON + hours(5))
    run = played(world(task(lasts=10, stay=Stay.REPLICA), shortages=[storm]))
    assert (run.waits.still, run.waits.first, run.jobs_done) == ((), (), 0)


def test_a_shortage_refuses_and_is_planned_around() -> None:
    storm = Shortage(NOON, NOON + hours(5), types="g5.xlarge")
    run = played(world(task(), shortages=[storm]), 0.1)
    # Once in each zone.
    assert dict(run.refused) == {"InsufficientInstanceCapacity": 3}
    assert dict(run.launches) == {"g5.2xlarge": 1}


def test_a_rule_that_refuses_pods_is_counted_by_its_name() -> None:
    rules = (require("instanceType.capacityType == 'spot'", "spot-alone"),)
    run = played(world(task("one"), task("two")), 0.1, policies=evolve(policy(), rules=rules, digest="one-rule"))
    assert dict(run.refusals) == {"rule-forbids": 2}
    assert run.refusing_rules == (RuleSeen("rule-forbids", "spot-alone", 2),)


def test_a_quota_of_vcpus_counts_what_runs() -> None:
    quotas = {"Running On-Demand G and VT instances": 4, "Running On-Demand P instances": 0}
    run = played(world(task("one"), task("two", after=10), quotas=quotas))
    assert (dict(run.launches), set(run.refused)) == ({"g5.xlarge": 1}, {"VcpuLimitExceeded"})
    assert len(run.waits.still) == 1


def test_a_pod_of_a_lost_machine_comes_again_and_the_machine_is_replaced() -> None:
    lost = PlannedFault(NOON + minutes(10), FaultKind.INSTANCE_LOST)
    of = world(task(), faults=[lost])
    run = played(of)
    assert (run.lost_pods, dict(run.removals), dict(run.launches)) == (1, {"Lost": 1}, {"g5.xlarge": 2})
    (pod,) = of.cluster.pods
    assert (pod.key, pod.phase) == (key("one-r1"), PodPhase.RUNNING)
    assert len(run.waits.again) == 1


def test_work_of_a_job_that_was_stopped_is_lost() -> None:
    lost = PlannedFault(NOON + minutes(12), FaultKind.INSTANCE_LOST)
    run = played(world(task(lasts=60), faults=[lost]), 3)
    # It ran from two minutes after NOON on.
    assert (run.work_lost, run.jobs_done) == (minutes(10), 1)


def test_a_bare_pod_does_not_come_again() -> None:
    lost = PlannedFault(NOON + minutes(10), FaultKind.INSTANCE_LOST)
    begin = simulation(begun := world(task(owner=None)))
    begin.run(minutes(5))
    of = world(start=evolve(begun.snapshot(), taken_at=NOON), faults=[lost])
    played(of)
    assert of.cluster.pods == ()


def test_a_budget_of_pods_refuses_an_eviction() -> None:
    budget = PodDisruptionBudget(ObjectKey("default", "kept"), (), min_available="1")
    of = world(task("one"), budgets=(budget,))
    played(of)
    ((answer, pod),) = of.cluster.evict([key("one")])
    assert (answer.status.value, pod) == ("refused-by-pdb", None)
    assert of.cluster.pod(key("one")) is not None


def test_a_machine_that_is_not_spot_is_never_taken_back() -> None:
    taken = PlannedFault(NOON + minutes(10), FaultKind.INTERRUPTED)
    run = played(world(task(), faults=[taken]))
    assert run.lost_pods == 0


def test_a_recorded_world_goes_on_where_it_was() -> None:
    begun = world(task())
    simulation(begun).run(minutes(30))
    recorded = begun.snapshot()
    of = world(start=recorded)
    run = simulation(of).run(hours(3))
    assert (run.launches, run.removals, run.violations) == ({}, {}, ())
    assert [each.state for each in of.ec2.instances()] == [InstanceState.RUNNING]
    assert run.usd == 3.0


def test_the_same_world_is_played_the_same_way_twice() -> None:
    tasks = [task(f"pod-{number}", after=number, lasts=20) for number in range(6)]
    faults = [PlannedFault(NOON + minutes(9), FaultKind.INSTANCE_LOST, pick=0.4)]
    assert played(world(*tasks, faults=faults)) == played(world(*tasks, faults=faults))


def test_passes_are_few_where_nothing_happens() -> None:
    run = played(world(task(), of=policy(gpu_pool(after=None))), 24, policies=policy(gpu_pool(after=None)))
    # One each ten minutes, and a few while the machine comes.
    assert run.passes < 24 * 6 + 25


def test_ec2_says_before_it_takes_a_machine_away() -> None:
    told = PlannedFault(NOON + minutes(10), FaultKind.MAINTENANCE, minutes(30))
    of = world(task(), faults=[told])
    of.advance(NOON)
    of.apply(decided(of))
    of.advance(NOON + minutes(11))
    (message,) = of.snapshot().interruptions
    (instance,) = of.ec2.alive()
    assert (message.kind.value, message.instance_id) == ("scheduled-maintenance", instance.id)
    assert message.deadline == NOON + minutes(40)
    of.advance(NOON + minutes(41))
    assert (of.snapshot().interruptions, of.ec2.alive()) == ((), [])


def test_a_node_says_what_is_ill_about_it_and_when_that_is_over() -> None:
    ill = PlannedFault(NOON + minutes(10), FaultKind.GPU_ILL, minutes(5))
    of = world(task(), faults=[ill])
    of.advance(NOON)
    of.apply(decided(of))
    said = []
    for minute in (11, 16):
        of.advance(NOON + minutes(minute))
        said += [(each.type, each.status, each.since) for each in of.cluster.nodes[0].conditions]
    assert said == [
        ("AcceleratedHardwareReady", "False", NOON + minutes(10)),
        ("AcceleratedHardwareReady", "True", NOON + minutes(15)),
    ]


def test_a_clock_that_was_ahead_for_a_while_keeps_no_node_longer_than_its_time() -> None:
    ahead = PlannedFault(NOON + minutes(15), FaultKind.CLOCK_AHEAD, hours(3))
    right = PlannedFault(NOON + minutes(18), FaultKind.CLOCK_RIGHT)
    of = world(task(lasts=14), faults=[ahead, right])
    run = played(of, 1)
    # It stands empty from a quarter past on, and for five minutes by a clock that is wrong in the midst of them.
    assert (dict(run.removals), run.violations) == ({"Empty": 1}, ())


def test_a_pass_reads_the_policy_that_was_committed_by_then_and_so_does_the_auditor() -> None:
    # Nothing but the change itself would wake a pass within ten minutes.
    changes = (PolicyChange(NOON + minutes(20), policy(gpu_pool(labels={"round": "two"}))),)
    of = world(task())
    seen: list[tuple[datetime, bool]] = []

    def watch(now: datetime, plan: Plan) -> None:
        seen.append((now, any(launch.claim.replaces for launch in plan.launches)))

    run = Simulation(of, policy(), CATALOG, ENVIRONMENT, changes=changes, watch=watch).run(minutes(40))
    assert [now for now, replaces in seen if replaces] == [NOON + minutes(20)]
    assert (dict(run.removals), run.violations) == ({"Drifted": 1}, ())


def test_a_newer_image_makes_machines_drift() -> None:
    of = world(task(), new_images=(NOON + minutes(20),))
    run = simulation(of).run(hours(1))
    assert (dict(run.removals), dict(run.evictions), run.violations) == ({"Drifted": 1}, {"Drifted": 1}, ())


def test_a_fault_counts_as_one_that_struck_only_where_it_found_something() -> None:
    early = PlannedFault(NOON, FaultKind.INSTANCE_LOST)
    lost = PlannedFault(NOON + minutes(10), FaultKind.INSTANCE_LOST)
    late = PlannedFault(NOON, FaultKind.PLUGIN_LATE, minutes(1))
    of = world(task(), faults=[early, lost, late])
    played(of)
    assert {kind: count for kind, count in of.struck.items() if count} == {
        FaultKind.INSTANCE_LOST: 1,
        FaultKind.PLUGIN_LATE: 1,
    }


def test_a_witness_tells_what_a_world_went_through() -> None:
    ill = PlannedFault(NOON + minutes(30), FaultKind.GPU_ILL, minutes(1))
    of, witness = world(task(), faults=[ill], new_images=(NOON + minutes(20),)), Witness()
    narrower = evolve(policy(gpu_pool(limits={"nvidia.com/gpu": 1})), digest="narrower")
    changes = (PolicyChange(NOON + minutes(50), narrower),)
    within = Simulation(of, policy(), CATALOG, ENVIRONMENT, changes=changes, decider=witness.of(of))
    within.run(hours(1))
    witness.close(of)
    assert +witness.times == Counter(
        {"machine drifted": 1, "pod evicted by choice": 1, "fault gpu-ill": 1, "policy changed": 1}
    )
    assert set(witness.passes) == {"a limit is used up"}
