"""A plan as events on pods and nodes."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

from attrs import evolve

from engine.model.eviction import Eviction, EvictionStatus, RefusedEviction
from engine.model.ledger import Ledger, Milestones
from engine.model.node import Instance, InstanceState
from engine.model.object_event import EventReason, EventType, ObjectEvent
from engine.model.pending import Pending
from engine.model.plan import BindingDifference, Kept, Nomination, Plan, Unplaced
from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from engine.model.refusal import BringUpsFailed, OfferingsUnavailable, PoolPaused, PoolRefusal
from engine.model.snapshot import CloudFacts, Snapshot
from engine.model.stay import Degraded, Milestone, NotInitialized, Overdue, StayReason
from engine.report.events import _REASON_BY_CODE, events_of
from engine.report.waiting import REFUSAL_CODES
from tests import builders
from tests.builders import G5_12XLARGE, NOON, minutes
from tests.report import scenes

DOC = Path(__file__).parents[2] / "docs" / "metrics.md"


def nodes_of(plan: Plan) -> Snapshot:
    """Every node that the plan names stands."""
    names = {*(kept.node for kept in plan.kept), *(removal.record.node for removal in plan.removals)}
    return builders.snapshot(nodes=[builders.node(name) for name in sorted(filter(None, names))])


def told(plan: Plan, seen: Snapshot | None = None) -> dict[tuple[str, str], str]:
    """Messages by object and reason, with ``!`` for a warning; the last one where there are several."""
    return {
        (event.about.name, event.reason.value + ("!" if event.type.value == "Warning" else "")): event.message
        for event in events_of(seen or nodes_of(plan), plan)
    }


def test_a_pod_that_may_not_leave_is_told_of_on_itself_and_on_its_node() -> None:
    plan = scenes.plan()
    refused = [
        RefusedEviction("node-1", Eviction(PodKey("default", f"web-{number}"), EvictionStatus.REFUSED_BY_BUDGET, words))
        for number, words in ((1, "budget web allows no more"), (2, ""))
    ]
    seen = builders.snapshot(nodes=[builders.node("node-1")])

    def drains_of(paused: str) -> list[tuple[str, str, str]]:
        found = events_of(seen, evolve(plan, paused=paused), refused)
        ours = [event for event in found if event.reason is EventReason.FAILED_DRAINING]
        assert {event.type for event in ours} <= {EventType.WARNING}
        return [(event.about.kind, event.about.name, event.message) for event in ours]

    assert drains_of(paused="") == [
        ("Node", "node-1", "2 pods cannot leave, the first default/web-1: budget web allows no more"),
        ("Pod", "web-1", "it cannot leave node node-1: budget web allows no more"),
        ("Pod", "web-2", "it cannot leave node node-1: refused-by-pdb"),
    ]
    assert drains_of(paused="a freeze") == []


def test_pods_are_told_what_is_planned_for_them() -> None:
    events = told(scenes.plan())

    assert events["llm-0001", "Nominated"] == (
        "a new node is planned for it: gpu-core-00001 (g5.xlarge in us-east-1a, on-demand, $1.0000/h)"
    )
    assert events["web-0001", "Nominated"] == "node ip-10-0-0-4 has room for it"


def test_pods_that_get_nothing_are_told_the_nearest_miss_and_its_numbers() -> None:
    events = told(scenes.plan())

    assert events["core-4000m-1gpu-0003", "LimitReached!"] == (
        "gpu-core: limit nvidia.com/gpu 50 reached (49 used, 1 planned, needs 1); "
        "gpu-elastic, gpu-batch: the pod does not tolerate the pool's taint workload-type=batch:NoSchedule; "
        "general: no type of the pool offers nvidia.com/gpu; g4ad offers amd.com/gpu"
    )
    assert events["embed-0001", "NoCompatibleInstanceTypes!"].startswith("gpu-elastic: needs 15510Mi memory")


def test_a_quota_is_named_in_the_event() -> None:
    name = "All P5 Spot Instance Requests"
    out = OfferingsUnavailable(2, NOON + minutes(6), 2, "MaxSpotInstanceCountExceeded", quota=name)
    plan = evolve(scenes.empty_plan(), unplaced=(Unplaced(PodKey("ml", "a"), (PoolRefusal("gpu-core", out),)),))
    assert told(plan)["a", "InsufficientCapacity!"] == (
        "gpu-core: 2 offerings out after MaxSpotInstanceCountExceeded, the account's quota "
        "'All P5 Spot Instance Requests' is used up (ask AWS to raise it in Service Quotas), "
        "the first until 12:06:00 UTC"
    )


def test_a_reason_that_has_a_deadline_reads_the_same_in_each_pass() -> None:
    out = OfferingsUnavailable(2, until=NOON + minutes(6), refusals=2, last_code="InsufficientInstanceCapacity")
    failed = BringUpsFailed(3, until=NOON + minutes(9))
    plan = evolve(
        scenes.empty_plan(),
        unplaced=(Unplaced(PodKey("ml", "a"), (PoolRefusal("gpu-core", out), PoolRefusal("gpu-batch", failed))),),
    )
    later = evolve(plan, decided_at=NOON + minutes(2))

    assert told(plan)["a", "InsufficientCapacity!"] == (
        "gpu-core: 2 offerings out after InsufficientInstanceCapacity, the first until 12:06:00 UTC; "
        "gpu-batch: 3 machines in a row did not come up in time; the next try at 12:09:00 UTC"
    )
    assert [event.message for event in events_of(nodes_of(plan), plan) if event.about.kind == "Pod"] == [
        event.message for event in events_of(nodes_of(later), later) if event.about.kind == "Pod"
    ]


def test_nodes_that_leave_say_why_by_which_budget_and_what_it_saves() -> None:
    draining, *others = [each for each in scenes.plan().removals if each.phase.value == "mark"]
    assert not others
    record = evolve(draining.record, node="ip-10-0-0-7")
    plan = evolve(scenes.plan(), removals=(evolve(draining, record=record),))

    events = told(plan)

    assert events["ip-10-0-0-7", "DisruptionTerminating"] == (
        "cordoned and draining: Empty, gpu-elastic: consolidateAfter 5m; "
        "budget 10% of 12 nodes: 2 of 2 in gpu-elastic; 1 pod to move; saves $1.2000/h"
    )
    assert events["late-0001", "Evicted"] == "asked to leave node ip-10-0-0-7: Empty, gpu-elastic: consolidateAfter 5m"


def kept_as(reason: StayReason, seen: Snapshot | None = None, *pending: Pending) -> dict[tuple[str, str], str]:
    kept = Kept("gpu-00001", "node-1", "gpu", "g5.12xlarge", "us-east-1a", "on-demand", builders.usd(1), reason)
    plan = evolve(scenes.empty_plan(), kept=(evolve(kept, pending=pending),))
    return told(plan, seen)


def test_nodes_that_could_go_and_stay_say_what_holds_them() -> None:
    events = told(scenes.plan())
    blocked = {name for name, reason in events if reason == "DisruptionBlocked"}

    assert blocked == {"node-gpu-elastic-00031"}
    assert events["node-gpu-elastic-00031", "DisruptionBlocked"] == ("could go, but budget 10% is used up (2 of 2)")
    assert kept_as(PoolPaused("freeze")) == {("node-1", "DisruptionBlocked"): "the pool is paused: freeze"}


def test_nodes_that_are_to_go_all_the_same_say_what_for() -> None:
    drift = Pending(DisruptionReason.DRIFTED, "image a -> b", scenes.NOON)
    age = Pending(DisruptionReason.EXPIRED, "expireAfter 720h", scenes.NOON)
    assert kept_as(PoolPaused("freeze"), None, drift, age) == {
        ("node-1", "DisruptionBlocked"): "the pool is paused: freeze; to go for Drifted, Expired"
    }


def test_a_node_that_is_not_up_says_what_it_lacks() -> None:
    pool = evolve(builders.node_pool(), startup_taints=(builders.taint("gpu-driver"),))
    claim = builders.claim("gpu-00001", G5_12XLARGE, pool=pool)
    node = builders.node("node-1", G5_12XLARGE, instance_id="i-1", taints=[builders.taint("gpu-driver")])
    node = evolve(node, allocatable=Resources({**node.allocatable, "nvidia.com/gpu": 3}))
    instance = Instance("i-1", claim.name, InstanceState.RUNNING, "g5.12xlarge", "us-east-1a", "on-demand", NOON)
    seen = builders.snapshot(nodes=[node], document=builders.document(claim), cloud=CloudFacts(instances=(instance,)))
    seen = evolve(seen, ledger=Ledger(milestones={"gpu-00001": Milestones(launched_at=NOON)}))

    assert kept_as(NotInitialized(), seen) == {
        ("node-1", "NodeNotInitialized"): "not up yet: startup taints gpu-driver, 3 of 4 nvidia.com/gpu"
    }
    assert kept_as(Overdue(Milestone.INITIALIZED, NOON - minutes(5))) == {
        ("node-1", "NodeNotInitialized!"): "not initialized by 11:55:00 UTC"
    }
    assert kept_as(Degraded("nvidia.com/gpu", 3, 4)) == {("node-1", "NodeDegraded!"): "degraded: 3 of 4 nvidia.com/gpu"}


def test_a_paused_environment_promises_nothing() -> None:
    events = told(evolve(scenes.plan(), paused="holidays"))

    reasons = {reason for _, reason in events}
    assert not reasons & {"Nominated", "Evicted", "DisruptionTerminating"}
    assert events["llm-0001", "EnvironmentPaused"] == (
        "environment sandbox is paused: holidays; it would get a new g5.xlarge"
    )


def test_a_nomination_and_a_binding_that_differs_are_told() -> None:
    plan = evolve(
        scenes.plan(),
        nominations=(Nomination(PodKey("default", "web-0001"), "node-7"),),
        binding_differences=(BindingDifference(PodKey("default", "x"), "gpu-core-00001", "node-9"),),
    )

    events = told(plan)

    assert events["web-0001", "Nominated"] == "kube-scheduler is told to bind it to node node-7"
    assert events["x", "BoundElsewhere"] == "kube-scheduler bound it to node node-9; it was planned for gpu-core-00001"


def test_an_event_carries_what_kubectl_looks_for_and_none_is_of_an_object_that_is_gone() -> None:
    plan = scenes.plan()
    pod = evolve(builders.pod("llm-0001"), uid="0123-45")
    seen = evolve(nodes_of(plan), pods=(pod,))

    events = events_of(seen, plan)

    [nominated] = [event for event in events if event.about.name == "llm-0001"]
    assert (nominated.about.namespace, nominated.about.uid) == ("default", "0123-45")
    assert {event.about.uid == event.about.name for event in events if event.about.kind == "Node"} == {True}
    assert not [event for event in events_of(builders.snapshot(), plan) if event.about.kind == "Node"]


def test_messages_fit_the_api() -> None:
    long = PoolRefusal("gpu", PoolPaused("x" * 3000))
    plan = evolve(scenes.empty_plan(), unplaced=(Unplaced(PodKey("ml", "a"), (long,)),))

    [event] = [each for each in events_of(builders.snapshot(), plan) if each.about.kind == "Pod"]

    assert event.reason is EventReason.POOL_PAUSED
    assert len(event.message) == 1000


def test_events_come_in_one_order_and_every_refusal_has_a_reason() -> None:
    events: tuple[ObjectEvent, ...] = events_of(nodes_of(scenes.plan()), scenes.plan())

    assert list(events) == sorted(events, key=lambda each: (each.about, each.reason.value, each.message))
    assert tuple(sorted(_REASON_BY_CODE)) == REFUSAL_CODES


def test_what_is_decided_later_on_an_unchanged_world_tells_nothing_new_of_pods() -> None:
    plan = scenes.plan()
    later = evolve(plan, decided_at=plan.decided_at + timedelta(seconds=30))
    unchanged = set(events_of(nodes_of(plan), plan))

    assert set(events_of(nodes_of(plan), later)) == unchanged


def test_the_documentation_lists_exactly_the_reasons_of_events() -> None:
    text = DOC.read_text().partition("## Events")[2]

    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == [reason.value for reason in EventReason]
