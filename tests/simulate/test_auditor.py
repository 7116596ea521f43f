"""The auditor finds what must never happen, in worlds whose decisions were tampered with."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import evolve

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.document import RemovalRecord, node_sets
from engine.model.environment import Caps, Environment
from engine.model.plan import Kept, Plan, Removal, RemovalPhase
from engine.model.policy import Policy
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot
from engine.model.stay import NotInitialized
from engine.simulate.record import Run
from tests.builders import environment, minutes
from tests.simulate.worlds import gpu_pool, hours, policy, simulation, task, world

Tamper = Callable[[Plan, Snapshot], Plan]


def played(tamper: Tamper, *, length: float = 1, of: Policy | None = None, within: Environment | None = None) -> Run:
    """Three pods of one GPU, each on a machine of its own, that are done after half an hour."""

    def decided(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        return tamper(decide(snapshot, policy, catalog, environment), snapshot)

    policies = of or policy()
    tasks = [task(f"pod-{number}", lasts=30) for number in range(3)]
    of_world = world(*tasks, of=policies)
    return simulation(of_world, policies, decided, within or environment()).run(hours(length))


def rules_broken(run: Run) -> set[str]:
    return {each.rule for each in run.violations}


def removal(name: str, node: str, phase: RemovalPhase, *pods: object, rule: str = "test") -> Removal:
    record = RemovalRecord(
        claim=name,
        node_pool="gpu",
        reason=DisruptionReason.UNDERUTILIZED,
        rule=rule,
        since=None,  # type: ignore[arg-type]
        usd_per_hour=None,  # type: ignore[arg-type]
        node=node,
    )
    return Removal(record=record, phase=phase, pods=pods)  # type: ignore[arg-type]


def as_it_is(plan: Plan, snapshot: Snapshot) -> Plan:
    return plan


def marking_what_runs(plan: Plan, snapshot: Snapshot) -> Plan:
    """Every node that runs a pod is marked, and the pod is asked to leave."""
    on = {pod.node_name: pod.key for pod in snapshot.pods if pod.node_name is not None}
    claims = {f"node-{claim.name}": claim.name for claim in plan.document.claims}
    marks = tuple(removal(claims[name], name, RemovalPhase.MARK, pod) for name, pod in on.items() if name in claims)
    return evolve(plan, removals=marks) if marks else plan


def letting_go_what_runs(plan: Plan, snapshot: Snapshot) -> Plan:
    on = {pod.node_name for pod in snapshot.pods if pod.node_name is not None}
    going = [claim for claim in plan.document.claims if f"node-{claim.name}" in on]
    if not going:
        return plan
    releases = tuple(removal(claim.name, f"node-{claim.name}", RemovalPhase.RELEASE) for claim in going)
    document = evolve(
        plan.document,
        version=plan.document.version + 1,
        node_sets=(),
        removals=tuple(each.record for each in releases),
    )
    return evolve(plan, removals=releases, document=document)


def forgetting_a_claim(plan: Plan, snapshot: Snapshot) -> Plan:
    claims = tuple(plan.document.claims)
    if len(claims) < 3 or plan.launches:
        return plan
    fewer = evolve(plan.document, version=plan.document.version + 1, node_sets=node_sets(claims[1:]))
    return evolve(plan, document=fewer)


def keeping_what_is_idle(plan: Plan, snapshot: Snapshot) -> Plan:
    kept = tuple(
        Kept(
            each.record.claim, each.record.node, "gpu", "g5.xlarge", "", "", each.record.usd_per_hour, NotInitialized()
        )
        for each in plan.removals
    )
    return evolve(plan, removals=(), kept=(*plan.kept, *kept), document=snapshot.document or plan.document)


def saying_nothing(plan: Plan, snapshot: Snapshot) -> Plan:
    return evolve(plan, kept=())


def test_the_real_decision_breaks_nothing() -> None:
    assert played(as_it_is).violations == ()


@pytest.mark.parametrize(
    ("tamper", "rule"),
    [
        (marking_what_runs, "evicted-without-place"),
        (marking_what_runs, "budgets"),
        (letting_go_what_runs, "released-with-pods"),
        (forgetting_a_claim, "nothing-vanishes"),
        (forgetting_a_claim, "machine-without-claim"),
        (saying_nothing, "answers"),
    ],
)
def test_a_decision_that_breaks_a_rule_is_found_out(tamper: Tamper, rule: str) -> None:
    assert rule in rules_broken(played(tamper, length=0.5))


def test_a_node_that_nobody_lets_go_is_found_out_once() -> None:
    found = [each for each in played(keeping_what_is_idle, length=3).violations if each.rule == "idle-too-long"]
    # Of three the pool's budget lets one go at a time, so that no other is late.
    assert len(found) == 1


def test_limits_are_counted_with_all_that_runs() -> None:
    wide, narrow = policy(gpu_pool()), policy(gpu_pool(limits={"nvidia.com/gpu": 2}))

    def decided(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        return decide(snapshot, wide, catalog, environment)

    of = world(*[task(f"pod-{number}") for number in range(3)])
    run = simulation(of, narrow, decided).run(minutes(10))
    assert {each.what for each in run.violations} == {
        "pool gpu: 3 nvidia.com/gpu of 2, machines that are leaving included"
    }


def test_caps_of_a_pass_are_counted() -> None:
    def decided(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        return decide(snapshot, policy, catalog, evolve(environment, caps=Caps()))

    within = environment(caps=Caps(launches=1))
    of = world(*[task(f"pod-{number}") for number in range(3)])
    run = simulation(of, None, decided, within).run(minutes(10))
    assert {each.what for each in run.violations} == {"3 launches in one pass, and 1 may be"}


def test_a_world_that_never_rests_is_found_out() -> None:
    def restless(plan: Plan, snapshot: Snapshot) -> Plan:
        """A new version each time, for nothing."""
        changed = evolve(plan.document, version=plan.base_version + 1)
        return evolve(plan, document=changed, foundation_changes=True)

    def rested(tamper: Tamper) -> set[str]:
        def decided(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
            return tamper(decide(snapshot, policy, catalog, environment), snapshot)

        of = simulation(world(task()), None, decided)
        of.run(minutes(10))
        of.come_to_rest(most_plans=5)
        return {each.rule for each in of.violations}

    assert rested(restless) == {"rest"}
    assert rested(as_it_is) == set()
