"""Each promise that the auditor keeps an eye on, broken in one plan: it is found, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from attrs import evolve

from engine.decide import decide
from engine.model.claim import Claim
from engine.model.diagnostic import Position
from engine.model.document import DesiredDocument, RemovalRecord, node_sets
from engine.model.environment import Caps, Environment
from engine.model.ledger import Ledger
from engine.model.money import UsdPerHour
from engine.model.node import READY, NodeCondition
from engine.model.plan import Kept, Launch, LaunchReason, Placement, Plan, Removal, RemovalPhase
from engine.model.policy import Budget, Disruption, NodePool, Policy
from engine.model.reason import DisruptionReason
from engine.model.replacement import NoPlace, StandsIn
from engine.model.rule import AnyRule, DisruptionBudget, Expression, LimitedResource, LimitRule
from engine.model.stay import BudgetExhausted, InUse, RemovalCap, StayReason
from engine.simulate.auditor import Auditor
from engine.simulate.simulation import Simulation
from engine.simulate.world import World
from tests.builders import environment, minutes
from tests.simulate.worlds import CATALOG, ENVIRONMENT, gpu_pod, gpu_pool, hours, policy, simulation, task, world

AT = Position("rules.yaml", 1, 1)
Tamper = Callable[[Plan, World], Plan]


def served(count: int = 3, of: Policy | None = None) -> World:
    """So many machines of one GPU, each with a pod on it."""
    one = world(*[task(f"pod-{number}") for number in range(count)], of=of)
    simulation(one, of).run(minutes(10))
    return one


def found(of: World, tamper: Tamper, rules: Policy | None = None, within: Environment = ENVIRONMENT) -> dict[str, str]:
    """What an auditor who begins to look now says of the next plan, by rule."""
    policies = rules or policy()
    auditor = Auditor(of, policies, within)
    snapshot = of.snapshot()
    auditor.look(snapshot, tamper(decide(snapshot, policies, CATALOG, within), of))
    return {each.rule: each.what for each in auditor.violations}


def claims(plan: Plan) -> list[Claim]:
    return list(plan.document.claims)


def mark(
    claim: Claim, pods: Iterable[object] = (), reason: DisruptionReason = DisruptionReason.DRIFTED, **more: object
) -> Removal:
    record = RemovalRecord(
        claim.name, claim.node_pool, reason, "test", claim.created_at, claim.usd_per_hour, f"node-{claim.name}"
    )
    return Removal(**{"record": record, "phase": RemovalPhase.MARK, "pods": tuple(pods), **more})  # type: ignore[arg-type]


def on(of: World, claim: Claim) -> list[object]:
    return [pod.key for pod in of.cluster.workload_on(f"node-{claim.name}")]


def going(plan: Plan, *removals: Removal) -> Plan:
    """With these removals, and nothing said of their machines beside that."""
    leaving = {each.record.claim for each in removals}
    return evolve(plan, removals=removals, kept=tuple(each for each in plan.kept if each.claim not in leaving))


def launching(plan: Plan, *names: str) -> Plan:
    """With more launches, each like the first machine that is there."""
    more = [evolve(claims(plan)[0], name=name) for name in names]
    document = evolve(
        plan.document, version=plan.document.version + 1, node_sets=node_sets((*plan.document.claims, *more))
    )
    launches = tuple(Launch(each, LaunchReason.PENDING_PODS) for each in more)
    return evolve(plan, launches=launches, document=document)


def open_pool(**more: object) -> NodePool:
    """A pool without budgets."""
    disruption = Disruption(consolidate_after=minutes(5), budgets=())
    return gpu_pool(**{"disruption": disruption, **more})  # type: ignore[arg-type]


OPEN = policy(open_pool())


def with_rules(*rules: AnyRule) -> Policy:
    return evolve(OPEN, rules=rules)


def test_the_plan_itself_breaks_nothing() -> None:
    assert found(served(), lambda plan, of: plan) == {}


def test_a_claim_that_comes_into_the_document_without_a_launch_is_found() -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        return evolve(launching(plan, "gpu-more"), launches=())

    assert found(served(), tampered) == {
        "nothing-vanishes": "claim gpu-more came into the document without a launch",
    }


def test_a_release_without_a_record_of_it_is_found() -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        first, *others = claims(plan)
        document = evolve(plan.document, node_sets=node_sets(tuple(others)))
        release = mark(first, reason=DisruptionReason.INTERRUPTED, phase=RemovalPhase.RELEASE)
        return evolve(going(plan, release), document=document)

    one = served()
    name = claims(decided(one))[0].name
    assert found(one, tampered) == {
        "nothing-vanishes": f"claim {name} is released and the document has no record of it"
    }


def test_a_name_that_is_used_again_is_found() -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        return evolve(plan, launches=(Launch(claims(plan)[0], LaunchReason.PENDING_PODS),))

    one = served()
    assert found(one, tampered) == {"names-once": f"claim name {claims(decided(one))[0].name} is used again"}


def test_launches_beyond_a_limit_are_found_with_all_that_runs_counted() -> None:
    narrow = policy(gpu_pool(limits={"nvidia.com/gpu": 4}))
    assert found(served(), lambda plan, of: launching(plan, "gpu-a"), narrow) == {}
    assert found(served(), lambda plan, of: launching(plan, "gpu-a", "gpu-b"), narrow) == {
        "limits": "pool gpu: 5 nvidia.com/gpu of 4, machines that are leaving included"
    }


def test_a_launch_of_a_pool_that_no_file_has_is_found() -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        more = evolve(claims(plan)[0], name="other-1", node_pool="other")
        document = evolve(plan.document, node_sets=node_sets((*plan.document.claims, more)))
        return evolve(plan, launches=(Launch(more, LaunchReason.PENDING_PODS),), document=document)

    assert found(served(), tampered) == {"limits": "pool other is in no file, and launches"}


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        (
            LimitRule(name="few", position=AT, message="-", resource=LimitedResource.GPUS, ceiling=Expression("4", AT)),
            "pool gpu: 5 gpus of the 4 that rule few lets it have",
        ),
        (
            LimitRule(
                name="few", position=AT, message="-", resource=LimitedResource.NODES, ceiling=Expression("4", AT)
            ),
            "pool gpu: 5 nodes of the 4 that rule few lets it have",
        ),
        (
            LimitRule(
                name="few",
                position=AT,
                message="-",
                resource=LimitedResource.USD_PER_HOUR,
                ceiling=Expression("4.5", AT),
            ),
            "pool gpu: 5 usdPerHour of the 4.5 that rule few lets it have",
        ),
    ],
    ids=["gpus", "nodes", "usdPerHour"],
)
def test_launches_beyond_a_limit_rule_are_found(rule: LimitRule, what: str) -> None:
    assert found(served(), lambda plan, of: launching(plan, "gpu-a"), with_rules(rule)) == {}
    assert found(served(), lambda plan, of: launching(plan, "gpu-a", "gpu-b"), with_rules(rule)) == {"rules": what}


def drifting(count: int, reason: DisruptionReason = DisruptionReason.DRIFTED) -> Tamper:
    """So many machines are marked, and no pod is asked to leave yet."""

    def tampered(plan: Plan, of: World) -> Plan:
        return going(plan, *(mark(each, reason=reason) for each in claims(plan)[:count]))

    return tampered


def test_marks_beyond_a_budget_rule_are_found() -> None:
    rule = DisruptionBudget(name="slow", position=AT, message="-", budget=Expression("1", AT))
    assert found(served(), drifting(1), with_rules(rule)) == {}
    assert found(served(), drifting(2), with_rules(rule)) == {
        "rules": "pool gpu: 2 nodes are out of the 1 that rule slow lets be"
    }


def test_marks_beyond_a_budget_are_found_with_all_that_serve_nobody_counted() -> None:
    one = policy(open_pool(disruption=Disruption(consolidate_after=minutes(5), budgets=(Budget(nodes=1),))))
    exceeded = {"budgets": "pool gpu: 2 nodes are out of 3, and 1 node lets 1 be"}
    assert found(served(), drifting(1), one) == {}
    assert found(served(), drifting(2), one) == exceeded
    # By nobody's choice more may go at once.
    assert found(served(), drifting(2, DisruptionReason.INTERRUPTED), one) == {}
    marked, ill = served(), served()
    last = claims(decided(ill))[-1].name
    marked.cluster.mark(f"node-{last}", marked.now, DisruptionReason.INTERRUPTED)
    assert found(marked, drifting(1), one) == exceeded
    node = ill.cluster.node(f"node-{last}")
    assert node is not None
    ill.cluster.put_node(evolve(node, ready=False, conditions=(NodeCondition(READY, "False", ill.now),)))
    assert found(ill, drifting(1), one) == exceeded


def test_a_mark_in_a_pool_that_no_file_has_is_found() -> None:
    assert found(served(), drifting(1), policy(gpu_pool("other")))["budgets"] == (
        "pool gpu is in no file, and a node of it is marked for Drifted"
    )


def test_caps_on_marks_and_on_added_cost_are_counted() -> None:
    few = environment(caps=Caps(removals=1, added_usd_per_hour=UsdPerHour.parse(1)))
    assert found(served(), drifting(1), OPEN, few) == {}
    assert found(served(), drifting(2), OPEN, few) == {"caps": "2 marks in one pass, and 1 may be"}
    assert found(served(), lambda plan, of: launching(plan, "gpu-a"), OPEN, few) == {}
    assert set(found(served(), lambda plan, of: launching(plan, "gpu-a", "gpu-b"), OPEN, few)) == {"caps"}


@pytest.mark.parametrize(
    ("more", "why"),
    [({"owner": None}, "nobody would make it again"), ({"do_not_disrupt": True}, "it is not to be disrupted")],
    ids=["nobody's", "not to be disrupted"],
)
def test_pods_that_are_held_and_asked_to_leave_all_the_same_are_found(more: dict[str, object], why: str) -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        first = claims(plan)[0]
        return going(plan, mark(first, on(of, first)))

    one = served(1, OPEN)
    (pod,) = (pod for pod in one.cluster.pods)
    one.cluster.change_pod(evolve(pod, **more))  # type: ignore[arg-type]
    said = found(one, tampered, OPEN)["held-pods"]
    assert said == f"pod {pod.key} is taken from {pod.node_name} for Drifted, and {why}"


def test_a_pod_that_is_not_to_be_disrupted_may_go_where_its_pool_sets_an_end() -> None:
    def tampered(plan: Plan, of: World) -> Plan:
        first = claims(plan)[0]
        return going(plan, mark(first, on(of, first)))

    ending = policy(open_pool(termination_grace_period=hours(1)))
    one = served(1, ending)
    (pod,) = (pod for pod in one.cluster.pods)
    one.cluster.change_pod(evolve(pod, do_not_disrupt=True))
    assert "held-pods" not in found(one, tampered, ending)


def spare_world() -> World:
    """Two machines: one with a pod on it, one that stands empty."""
    one = world(task("pod-0"), task("pod-1", lasts=5), of=OPEN)
    simulation(one, OPEN).run(minutes(9))
    assert len(one.cluster.nodes) == 2
    assert len(one.cluster.pods) == 1
    return one


def moving_all(plan: Plan, of: World) -> Plan:
    """Every node with a pod is marked, and the pod is asked to leave."""
    return going(plan, *(mark(each, on(of, each)) for each in claims(plan) if on(of, each)))


def test_a_pod_is_evicted_with_a_place_only_while_no_other_pod_is_to_have_it() -> None:
    assert found(spare_world(), moving_all, OPEN) == {}
    taken = spare_world()
    taken.cluster.add_pod(evolve(gpu_pod("comes-first"), created_at=taken.now))
    said = found(taken, moving_all, OPEN)
    assert list(said) == ["evicted-without-place"]
    assert said["evicted-without-place"].startswith("pod default/pod-0 is evicted from")
    assert said["evicted-without-place"].endswith("and no node that is up has room for it")


def test_a_pod_has_no_place_on_a_node_that_goes_as_well_or_is_not_ready() -> None:
    def marking_every_node(plan: Plan, of: World) -> Plan:
        return going(plan, *(mark(each, on(of, each)) for each in claims(plan)))

    assert "evicted-without-place" in found(spare_world(), marking_every_node, OPEN)
    ill = spare_world()
    (idle,) = (node for node in ill.cluster.nodes if not ill.cluster.workload_on(node.name))
    ill.cluster.put_node(evolve(idle, ready=False))
    assert "evicted-without-place" in found(ill, moving_all, OPEN)


def test_a_pod_of_which_nothing_is_said_is_found() -> None:
    one = served(1)
    one.cluster.add_pod(evolve(gpu_pod("waits"), created_at=one.now))
    silent = found(one, lambda plan, of: evolve(plan, placements=(), unplaced=(), launches=(), document=before(of)))
    assert silent == {"answers": "nothing is said of default/waits"}


def before(of: World) -> DesiredDocument:
    assert of.document is not None
    return of.document


def decided(of: World) -> Plan:
    return decide(of.snapshot(), policy(), CATALOG, ENVIRONMENT)


def staying_for(reason: StayReason) -> Callable[..., Plan]:
    """A decider that lets no machine go, and says why."""

    def decider(snapshot, policies, catalog, within):  # type: ignore[no-untyped-def]
        plan = decide(snapshot, policies, catalog, within)
        if plan.launches or snapshot.document is None:
            return plan
        kept = tuple(
            Kept(each.name, None, each.node_pool, "", "", "", each.usd_per_hour, reason)
            for each in snapshot.document.claims
        )
        return evolve(plan, removals=(), kept=kept, document=snapshot.document, ledger=plan.ledger or Ledger())

    return decider


def idled(reason: StayReason, length: float, of: Policy = OPEN) -> list[str]:
    """Hours in which one machine stands idle, but for the first few minutes."""
    one = world(task(lasts=5), of=of)
    within = Simulation(one, of, CATALOG, ENVIRONMENT, decider=staying_for(reason))
    run = within.run(hours(length))
    assert {each.rule for each in run.violations} <= {"idle-too-long"}
    return [each.what for each in run.violations]


@pytest.mark.parametrize(
    "reason", [InUse(pods=0, planned=1), StandsIn(("old",), ("node-old",))], ids=["planned", "stands in"]
)
def test_a_node_that_is_kept_for_pods_which_never_come_is_found(reason: StayReason) -> None:
    assert idled(reason, 2) == []
    assert len(idled(reason, 3)) == 1


@pytest.mark.parametrize(
    "reason",
    [RemovalCap(cap=1), BudgetExhausted("1 node", allowed=1, used=1), NoPlace("", ())],
    ids=["cap", "budget that is not used", "no place for base capacity"],
)
def test_an_idle_node_that_is_held_for_hours_by_what_should_pass_is_found(reason: StayReason) -> None:
    assert idled(reason, 4) == []
    assert len(idled(reason, 6)) == 1


def test_an_idle_node_may_be_held_for_good_by_a_budget_of_none() -> None:
    assert idled(BudgetExhausted("0 nodes", allowed=0, used=0), 6) == []


def test_an_idle_node_of_base_capacity_may_be_held_for_good_by_a_surge_of_one() -> None:
    [pool] = OPEN.node_pools
    waits = policy(evolve(pool, upkeep=evolve(pool.upkeep, surge=1)))
    assert idled(NoPlace("", ()), 6, waits) == []
    assert len(idled(NoPlace("default/one", ()), 6, waits)) == 1


def test_a_placement_of_a_waiting_pod_counts_only_where_its_node_is_up() -> None:
    one = spare_world()
    one.cluster.add_pod(evolve(gpu_pod("elsewhere"), created_at=one.now))
    waiting = gpu_pod("elsewhere").key

    def tampered(plan: Plan, of: World) -> Plan:
        elsewhere = evolve(moving_all(plan, of), placements=(Placement(waiting, None, "gpu-in-flight"),))
        return evolve(elsewhere, launches=(), document=before(of))

    assert found(one, tampered, OPEN) == {}
