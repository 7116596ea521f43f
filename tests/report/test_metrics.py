"""What a scrape shows of passes: each number against a scene in which it is known."""

from __future__ import annotations

import re
import socket
import urllib.request
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from engine.decide.budgets_asked import rules_on_pools
from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.fault import Fault
from engine.model.ledger import Ledger, Milestones, Unavailable
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import BindingDifference, Plan
from engine.model.pod import PodKey
from engine.model.policy import Budget, Disruption, Policy
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement
from engine.model.snapshot import Snapshot
from engine.report.metric_table import METRICS
from engine.report.metrics import ERROR_KINDS, PassMetrics, serve, write_textfile
from engine.report.milestones import Stage
from engine.report.standing import NodePhase
from engine.report.summary import PassReport, PassResult, report_of
from engine.report.waiting import WAITING_CODES
from tests import builders
from tests.builders import NOON, minutes
from tests.disruption.rule_world import policy as budget_policy
from tests.disruption.rule_world import rule
from tests.report import scenes

DOC = Path(__file__).parents[2] / "docs" / "metrics.md"
SECONDS = {"seen": 0.25, "decided": 0.35, "published": 0.5, "called": 0.75}


def value(metrics: PassMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"nodewright_{name}", {"environment": "sandbox", **labels})


def report(snapshot: Snapshot, plan: Plan, result: PassResult = PassResult.CONVERGED) -> PassReport:
    return report_of("1", snapshot.taken_at, snapshot, plan, result, seconds=SECONDS, total_seconds=1.5)


def told(
    snapshot: Snapshot,
    plan: Plan,
    result: PassResult = PassResult.CONVERGED,
    *,
    outcome: Outcome | None = None,
    to: PassMetrics | None = None,
    policy: Policy = scenes.POLICY,
) -> PassMetrics:
    """The metrics after one pass."""
    metrics = to or PassMetrics("sandbox", lambda: policy)
    metrics.pass_begins("1")
    metrics.decided(snapshot, plan, report(snapshot, plan, result))
    if outcome is not None:
        metrics.converged(outcome)
    metrics.pass_ended(report(snapshot, plan, result))
    return metrics


def outcome(*claims: ClaimOutcome, failures: tuple[str, ...] = ()) -> Outcome:
    return Outcome("sandbox", 5, NOON, claims=claims, foundation_failures=failures)


def test_nodes_gpus_and_dollars_are_those_that_stand() -> None:
    metrics = told(scenes.snapshot(), scenes.plan())

    phases = {phase.value: value(metrics, "nodes", nodepool="gpu-core", phase=phase.value) for phase in NodePhase}
    assert phases == {**dict.fromkeys(phases, 0.0), "ready": 1.0, "leaving": 1.0}
    assert value(metrics, "nodes", nodepool="gpu-elastic", phase="launching") == 1
    assert value(metrics, "nodes", nodepool="gpu-elastic", phase="registering") == 1
    assert value(metrics, "nodes", nodepool="gpu-elastic", phase="lost") == 1
    # Three of four are used on the node that serves; the draining one offers another.
    assert value(metrics, "gpus", nodepool="gpu-core", state="used") == 3
    assert value(metrics, "gpus", nodepool="gpu-core", state="idle") == 2
    assert value(metrics, "gpus", nodepool="gpu-elastic", state="starting") == 2
    assert value(metrics, "gpus", nodepool="gpu-elastic", state="idle") == 0
    assert value(metrics, "cost_usd_per_hour", nodepool="gpu-core", capacity_type="on-demand") == 6.7
    assert value(metrics, "cost_usd_per_hour", nodepool="gpu-elastic", capacity_type="spot") == 0.48


def test_a_machine_that_was_let_go_costs_and_counts_as_leaving_until_it_is_gone() -> None:
    seen = scenes.snapshot()
    record = RemovalRecord(
        "gpu-old-00001", "gpu-core", DisruptionReason.EMPTY, "rule", NOON, usd_per_hour=builders.usd("1.3")
    )
    assert seen.document is not None
    leaving = evolve(seen, document=evolve(seen.document, removals=(record,)))
    gone = evolve(leaving, cloud=evolve(seen.cloud, instances=seen.cloud.instances[:-1]))

    metrics = told(leaving, scenes.plan())
    assert value(metrics, "nodes", nodepool="gpu-core", phase="leaving") == 2
    assert value(metrics, "cost_usd_per_hour", nodepool="gpu-core", capacity_type="on-demand") == 8.0

    told(gone, scenes.plan(), to=metrics)
    assert value(metrics, "nodes", nodepool="gpu-core", phase="leaving") == 1
    assert value(metrics, "cost_usd_per_hour", nodepool="gpu-core", capacity_type="on-demand") == 6.7


def test_idle_gpu_seconds_add_up_what_was_idle_from_one_look_to_the_next() -> None:
    seen, plan = scenes.snapshot(), scenes.plan()
    metrics = told(seen, plan)
    assert value(metrics, "idle_gpu_seconds_total", nodepool="gpu-core") is None

    busy = (*seen.pods, builders.pod("llm-9", gpu=1, node="node-1"))
    told(evolve(seen, taken_at=NOON + timedelta(seconds=10), pods=busy), plan, to=metrics)
    assert value(metrics, "idle_gpu_seconds_total", nodepool="gpu-core") == 20

    told(evolve(seen, taken_at=NOON + timedelta(seconds=15)), plan, to=metrics)
    assert value(metrics, "idle_gpu_seconds_total", nodepool="gpu-core") == 25


def test_waiting_pods_are_counted_by_what_they_wait_for() -> None:
    plan = scenes.plan()
    keys = [*(each.pod for each in plan.unplaced), plan.launches[0].pods[0]]
    seen = evolve(scenes.snapshot(), pods=tuple(evolve(builders.pod(key.name), key=key) for key in keys))

    metrics = told(seen, plan)

    counts = {code: value(metrics, "pods_waiting", reason=code) for code in WAITING_CODES}
    assert {code: count for code, count in counts.items() if count} == {
        "limit-reached": 8,
        "no-type-fits": 1,
        "launch-planned": 1,
    }


def test_limits_are_in_the_units_of_kubernetes() -> None:
    plan = scenes.plan()
    cpu = evolve(plan.limits[0], resource="cpu", limit=64_000, used=12_500)

    metrics = told(scenes.snapshot(), evolve(plan, limits=(*plan.limits, cpu)))

    assert value(metrics, "nodepools_limit", nodepool="gpu-core", resource_type="nvidia.com/gpu") == 50
    assert value(metrics, "nodepools_usage", nodepool="gpu-core", resource_type="nvidia.com/gpu") == 46
    assert value(metrics, "nodepools_limit", nodepool="gpu-core", resource_type="cpu") == 64
    assert value(metrics, "nodepools_usage", nodepool="gpu-core", resource_type="cpu") == 12.5
    assert value(metrics, "nodepools_limit", nodepool="gpu-elastic", resource_type="memory") == 2**40


@pytest.mark.parametrize(("percent", "left"), [(50, 0.0), (100, 1.0)])
def test_allowed_disruptions_are_what_budgets_leave_after_the_nodes_that_are_out(percent: int, left: float) -> None:
    """One of the pool's two nodes drains already."""
    core = evolve(scenes.CORE, disruption=Disruption(budgets=(Budget(percent=percent),)))

    metrics = told(scenes.snapshot(), scenes.plan(), policy=Policy((core,), (), digest="d"))

    assert value(metrics, "nodepools_allowed_disruptions", nodepool="gpu-core", reason="Empty") == left


def test_a_node_that_waits_for_its_replacement_uses_up_a_budget_as_it_does_in_a_pass() -> None:
    core = evolve(scenes.CORE, disruption=Disruption(budgets=(Budget(percent=100),)))
    waits = evolve(scenes.plan().kept[0], claim="gpu-core-00001", reason=AwaitsReplacement(("gpu-core-00009",)))

    metrics = told(scenes.snapshot(), evolve(scenes.plan(), kept=(waits,)), policy=Policy((core,), (), digest="d"))

    assert value(metrics, "nodepools_allowed_disruptions", nodepool="gpu-core", reason="Drifted") == 0.0


@pytest.mark.parametrize(("number", "left"), [("nodePool.nodes", 1.0), ("nodePool.nodes / 2", 0.0)])
def test_allowed_disruptions_heed_rules_too(number: str, left: float) -> None:
    core = evolve(scenes.CORE, disruption=Disruption(budgets=()))
    policy = budget_policy([core], [rule(budget=number)])
    metrics = PassMetrics(
        "sandbox", lambda: policy, lambda current, seen: rules_on_pools(current, builders.environment(), seen)
    )

    told(scenes.snapshot(), scenes.plan(), policy=policy, to=metrics)

    assert value(metrics, "nodepools_allowed_disruptions", nodepool="gpu-core", reason="Drifted") == left


def test_offerings_that_are_out_are_counted_until_they_come_back() -> None:
    ledger = Ledger(
        unavailable={
            "g5.xlarge/us-east-1a/spot": Unavailable(NOON + minutes(3), 1, "InsufficientInstanceCapacity"),
            "g5.xlarge/us-east-1b/spot": Unavailable(NOON + minutes(3), 1, "InsufficientInstanceCapacity"),
            "g5.xlarge/us-east-1c/spot": Unavailable(NOON, 1, "InsufficientInstanceCapacity"),
        }
    )

    metrics = told(scenes.snapshot(), evolve(scenes.plan(), ledger=ledger))

    assert value(metrics, "unavailable_offerings", capacity_type="spot") == 2


def test_a_quota_that_is_used_up_is_told_by_its_name_until_it_is_tried_again() -> None:
    name = "All G and VT Spot Instance Requests"
    out = Unavailable(NOON + minutes(3), 1, "MaxSpotInstanceCountExceeded", quota=name)
    over = Unavailable(NOON, 1, "AuthFailure.ServiceLinkedRoleCreationNotPermitted")
    ledger = Ledger(unavailable_groups={name: out, "spot": over})

    metrics = told(scenes.snapshot(), evolve(scenes.plan(), ledger=ledger))

    assert value(metrics, "unavailable_groups", group=name) == 1
    assert value(metrics, "unavailable_groups", group="spot") is None


def test_what_is_paused_is_one() -> None:
    policy = Policy((evolve(scenes.CORE, paused="freeze"), scenes.ELASTIC), (), digest="d")

    metrics = told(scenes.snapshot(), evolve(scenes.plan(), paused="holidays"), policy=policy)

    assert value(metrics, "paused", nodepool="") == 1
    assert value(metrics, "paused", nodepool="gpu-core") == 1
    assert value(metrics, "paused", nodepool="gpu-elastic") == 0
    assert value(told(scenes.snapshot(), scenes.plan()), "paused", nodepool="") == 0


def test_machines_are_counted_when_they_come_and_go_with_the_reason_of_the_decision() -> None:
    plan = scenes.plan()
    record = plan.removals[0].record
    document = evolve(plan.document, removals=(record,), node_sets=builders.document(*_claims(plan)).node_sets)
    came = ClaimOutcome("gpu-batch-00007", OutcomeStatus.CREATED, "i-1", "g5.12xlarge/us-east-1a/spot")
    went = ClaimOutcome(record.claim, OutcomeStatus.DELETED, "i-2", "g5.2xlarge/us-east-1a/on-demand")
    refused = ClaimOutcome("gpu-core-00001", OutcomeStatus.FAILED_CAPACITY, code="InsufficientInstanceCapacity")

    metrics = told(
        scenes.snapshot(),
        evolve(plan, document=document),
        outcome=outcome(came, went, refused, came, failures=("role: EntityAlreadyExists",)),
    )

    created = {"nodepool": "gpu-batch", "capacity_type": "spot", "reason": "PendingPods"}
    terminated = {"nodepool": "gpu-elastic", "capacity_type": "on-demand", "reason": "Empty"}
    assert value(metrics, "nodeclaims_created_total", **created) == 1
    assert value(metrics, "nodeclaims_terminated_total", **terminated) == 1
    assert {kind: value(metrics, "errors_total", kind=kind) for kind in ERROR_KINDS} == {
        **dict.fromkeys(ERROR_KINDS, 0.0),
        "insufficient-capacity": 1.0,
        "foundation": 1.0,
    }


def test_decisions_count_once_a_machine_and_only_when_they_are_acted_on() -> None:
    seen, plan = scenes.snapshot(), scenes.plan()
    document = evolve(plan.document, removals=tuple(each.record for each in plan.removals))
    plan = evolve(plan, document=evolve(document, node_sets=builders.document(*_claims(plan)).node_sets))

    metrics = told(seen, plan, PassResult.PAUSED)
    assert value(metrics, "decisions_total", decision="launch", reason="PendingPods") is None

    told(seen, plan, to=metrics)
    told(seen, plan, to=metrics)
    assert value(metrics, "decisions_total", decision="launch", reason="PendingPods") == 4
    assert value(metrics, "decisions_total", decision="launch", reason="BaseCapacity") == 1
    assert value(metrics, "decisions_total", decision="drain", reason="Empty") == 1
    assert value(metrics, "decisions_total", decision="release", reason="Lost") == 1


def test_reaction_runs_from_the_pods_creation_to_each_phase() -> None:
    plan = scenes.plan()
    key = plan.launches[0].pods[0]
    waiting = evolve(builders.pod(key.name, created=NOON - timedelta(seconds=2)), key=key)

    metrics = told(evolve(scenes.snapshot(), pods=(waiting,)), plan)

    sums = {phase: value(metrics, "reaction_duration_seconds_sum", phase=phase) for phase in SECONDS}
    assert sums == {"seen": None, "decided": 2.35, "published": 2.5, "called": 2.75}
    assert value(metrics, "reaction_duration_seconds_count", phase="called") == 1


def test_a_launch_under_way_is_called_when_ec2_says_that_it_was_launched() -> None:
    plan = scenes.plan()
    launch = plan.launches[0]
    plan = evolve(plan, document=evolve(plan.document, node_sets=builders.document(launch.claim).node_sets))
    key = launch.pods[0]
    waiting = evolve(builders.pod(key.name, created=NOON - timedelta(seconds=2)), key=key)
    seen = evolve(scenes.snapshot(), pods=(waiting,))
    metrics = PassMetrics("sandbox")
    under_way = evolve(report(seen, plan, PassResult.UNDER_WAY), seconds={"seen": 0.1, "decided": 0.2, "pulumi": 0.4})

    metrics.decided(seen, plan, under_way)
    metrics.pass_ended(under_way)
    assert value(metrics, "reaction_duration_seconds_sum", phase="pulumi") == 2.4
    assert value(metrics, "reaction_duration_seconds_count", phase="called") is None

    launched = Milestones(launched_at=NOON + timedelta(seconds=1))
    later = evolve(plan, launches=(), ledger=Ledger(milestones={launch.claim.name: launched}))
    for _ in range(2):
        told(seen, later, to=metrics)
    assert value(metrics, "reaction_duration_seconds_sum", phase="called") == 3
    assert value(metrics, "reaction_duration_seconds_count", phase="called") == 1


def test_milestones_are_observed_once_and_not_again_after_a_restart() -> None:
    seen, plan = scenes.snapshot(), scenes.plan()
    before = Milestones(launched_at=NOON, registered_at=NOON + timedelta(seconds=40))
    after = evolve(before, initialized_at=NOON + timedelta(seconds=95))
    seen = evolve(seen, ledger=Ledger(milestones={"gpu-core-00001": before}))
    later = evolve(plan, ledger=Ledger(milestones={"gpu-core-00001": after}))

    metrics = told(seen, later)
    told(seen, later, to=metrics)

    stages = {
        stage.value: value(metrics, "nodes_milestone_duration_seconds_sum", nodepool="gpu-core", milestone=stage.value)
        for stage in Stage
    }
    assert stages == {**dict.fromkeys(stages, None), "initialized": 95.0}
    assert value(metrics, "nodes_milestone_duration_seconds_count", nodepool="gpu-core", milestone="initialized") == 1


def test_a_pod_that_waited_is_observed_when_it_is_ready() -> None:
    waiting = builders.pod("llm-3", gpu=1, created=NOON - minutes(1))
    ready = evolve(waiting, node_name="node-1", ready_at=NOON + minutes(2))
    never_seen = evolve(ready, key=PodKey("default", "old"))
    metrics = told(builders.snapshot(pods=[waiting]), scenes.plan())

    for _ in range(2):
        told(builders.snapshot(pods=[ready, never_seen]), scenes.plan(), to=metrics)

    assert value(metrics, "pods_startup_duration_seconds_count") == 1
    assert value(metrics, "pods_startup_duration_seconds_sum") == 180


def test_bindings_that_differ_are_counted_once_each() -> None:
    plan = evolve(
        scenes.plan(), binding_differences=(BindingDifference(PodKey("default", "a"), "gpu-core-00001", "node-1"),)
    )

    metrics = told(scenes.snapshot(), plan)
    told(scenes.snapshot(), plan, to=metrics)

    assert value(metrics, "plan_binding_differences_total") == 1


def test_a_pass_that_did_not_see_the_cluster_whole_says_so_and_keeps_what_stood() -> None:
    metrics = told(scenes.snapshot(), scenes.plan())
    assert value(metrics, "cluster_state_synced") == 1

    metrics.pass_ended(PassReport("2", "sandbox", NOON, PassResult.NOT_SYNCED, total_seconds=0.1))

    assert value(metrics, "cluster_state_synced") == 0
    assert value(metrics, "errors_total", kind="not-synced") == 1
    assert value(metrics, "nodes", nodepool="gpu-core", phase="ready") == 1
    assert value(metrics, "pass_duration_seconds_count", outcome="not-synced") == 1
    assert value(metrics, "pass_duration_seconds_sum", outcome="converged") == 1.5
    assert value(metrics, "scheduling_duration_seconds_sum") == pytest.approx(0.1)


def test_every_series_belongs_to_a_metric_of_the_documentation() -> None:
    metrics = told(scenes.snapshot(), scenes.plan(), outcome=scenes.outcome())
    names = {sample.name for family in metrics.registry.collect() for sample in family.samples}

    parts = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
    assert names <= {metric.name + part for metric in METRICS for part in parts[metric.kind.value]}


def test_no_label_names_a_pod_a_node_or_a_claim() -> None:
    metrics = told(scenes.snapshot(), scenes.plan(), outcome=scenes.outcome())
    labels = {
        text for family in metrics.registry.collect() for sample in family.samples for text in sample.labels.values()
    }

    names = {"node-1", "llm-1", "default/llm-1", *(claim.name for claim in _claims(scenes.plan()))}
    assert not labels & names


def test_two_environments_keep_their_own_registries() -> None:
    one, other = told(scenes.snapshot(), scenes.plan()), PassMetrics("other")

    assert value(one, "nodes", nodepool="gpu-core", phase="ready") == 1
    assert not [sample for family in other.registry.collect() for sample in family.samples if "_nodes" in sample.name]


def test_metrics_are_served_until_they_are_closed_and_a_taken_address_is_a_fault() -> None:
    metrics = told(scenes.snapshot(), scenes.plan())
    server = serve(metrics, 0)
    port = int(server.address.rpartition(":")[2])
    try:
        with urllib.request.urlopen(f"http://{server.address}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        with pytest.raises(Fault, match=f"cannot be served at 127.0.0.1:{port}"):
            serve(metrics, port)
    finally:
        server.close()

    assert 'nodewright_gpus{environment="sandbox",nodepool="gpu-core",state="used"} 3.0' in text
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_text_file_changes_whole_and_a_folder_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    metrics = told(scenes.snapshot(), scenes.plan())
    file = tmp_path / "nodewright.prom"
    file.write_text("old")

    write_textfile(metrics, file)

    assert 'nodewright_nodes{environment="sandbox",nodepool="gpu-core",phase="ready"} 1.0' in file.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["nodewright.prom"]
    with pytest.raises(Fault, match="metrics cannot be written to"):
        write_textfile(metrics, tmp_path / "nowhere" / "nodewright.prom")


def test_the_documentation_lists_exactly_the_metrics_of_the_registry() -> None:
    metrics = PassMetrics("sandbox")
    registered = {
        (family.name + ("_total" if family.type == "counter" else ""), family.type, family.documentation)
        for family in metrics.registry.collect()
    }
    rows = [line.strip("| ").split(" | ") for line in DOC.read_text().splitlines() if line.startswith("| `nodewright_")]

    assert {(row[0].strip("`"), row[1], row[3]) for row in rows} == registered
    assert {row[0].strip("`"): tuple(re.findall("`(.+?)`", row[2])) for row in rows} == {
        metric.name: metric.labels for metric in METRICS
    }


def test_the_documentation_lists_every_value_of_the_closed_labels() -> None:
    listed: Mapping[str, list[str]] = {
        label: re.findall("`(.+?)`", values)
        for label, values in re.findall(r"^\| (`\w+`.*?) \| (`.*?) \|$", DOC.read_text(), re.MULTILINE)
    }

    assert tuple(listed["`reason` of waiting pods"]) == WAITING_CODES
    assert listed["`phase` of nodes"] == [phase.value for phase in NodePhase]
    assert listed["`milestone`"] == [stage.value for stage in Stage]
    assert listed["`outcome`"] == [result.label for result in PassResult]
    assert tuple(listed["`kind`"]) == ERROR_KINDS


def _claims(plan: Plan) -> list[Claim]:
    return [launch.claim for launch in plan.launches]
