"""A plan as Kubernetes events on the pods and nodes that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from attrs import evolve, frozen

from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.drain_stay import DetachesVolumes
from engine.model.eviction import Eviction, RefusedEviction
from engine.model.node import Node
from engine.model.object_event import EventObject, EventReason, EventType, ObjectEvent
from engine.model.plan import Kept, Launch, Plan, Removal, RemovalPhase, Unplaced
from engine.model.pod import PodKey
from engine.model.refusal import BringUpsFailed, KarpenterOwnsPool, OfferingsUnavailable, PoolPaused, Refusal
from engine.model.snapshot import Snapshot
from engine.model.stay import (
    BudgetExhausted,
    Degraded,
    DoNotDisrupt,
    NotInitialized,
    OutsideWindow,
    Overdue,
    PodsUnseen,
    PoolUnknown,
    RemovalCap,
    RuleKeeps,
    SeveralNodes,
)
from engine.report.pending_words import pending_names
from engine.report.removal_words import budget_words, saving_words
from engine.report.stay_words import stay_words
from engine.report.words import counted, quota_words, refusal_words

_REASON_BY_CODE: Mapping[str, EventReason] = {
    "taint-not-tolerated": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "requirement-mismatch": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "too-few-values": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "no-type-fits": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "accelerator-not-offered": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "no-permitted-type": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "gpu-pool-closed": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "gpu-waste": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "label-did-not-come": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "no-offering": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "pool-is-static": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "unsupported-constraint": EventReason.NO_COMPATIBLE_INSTANCE_TYPES,
    "topology-spread": EventReason.KEPT_OUT_BY_PODS,
    "pod-affinity": EventReason.KEPT_OUT_BY_PODS,
    "pod-anti-affinity": EventReason.KEPT_OUT_BY_PODS,
    "host-port": EventReason.KEPT_OUT_BY_PODS,
    "rule-forbids": EventReason.RULE_FORBIDS,
    "limit-reached": EventReason.LIMIT_REACHED,
    "ceiling-reached": EventReason.CEILING_REACHED,
    "guardrail-blocks": EventReason.GUARDRAIL_BLOCKS,
    "volume-not-ready": EventReason.VOLUME_NOT_READY,
    "waits-for-spare-capacity": EventReason.WAITS_FOR_SPARE_CAPACITY,
    "cap-reached": EventReason.LAUNCH_CAP_REACHED,
    "offerings-unavailable": EventReason.INSUFFICIENT_CAPACITY,
    "reserved-exhausted": EventReason.INSUFFICIENT_CAPACITY,
    "pool-not-ready": EventReason.NODE_CLASS_NOT_READY,
    "pool-paused": EventReason.POOL_PAUSED,
    "karpenter-owns-pool": EventReason.OWNED_BY_KARPENTER,
    "bring-ups-failed": EventReason.BRING_UPS_FAILED,
    "foundation-busy": EventReason.FOUNDATION_BUSY,
}
# These pass by themselves, or are wanted.
_NORMAL = (
    EventReason.LAUNCH_CAP_REACHED,
    EventReason.POOL_PAUSED,
    EventReason.FOUNDATION_BUSY,
    EventReason.WAITS_FOR_SPARE_CAPACITY,
)
_POOLS_TOLD = 3
# The API takes notes of 1 kB.
_LONGEST = 1000


def events_of(
    snapshot: Snapshot, plan: Plan, refused_evictions: Sequence[RefusedEviction] = ()
) -> tuple[ObjectEvent, ...]:
    """What a plan means for each pod and node that it is about, in their order. A paused plan promises nothing.

    ``refused_evictions`` are the pods that stay on nodes which the plan wants to leave.
    """
    told = _Told(
        plan=plan,
        nodes={node.name: node for node in snapshot.nodes},
        claims={claim.name: claim for claim in snapshot.document.claims} if snapshot.document is not None else {},
    )
    events = [*told.unplaced(), *told.bindings(), *told.kept()]
    events += (
        told.held_back() if plan.paused else [*told.nominated(), *told.removals(), *told.held_by(refused_evictions)]
    )
    events = _with_uids(events, snapshot)
    return tuple(sorted(events, key=lambda event: (event.about, event.reason.value, event.message)))


def _with_uids(events: list[ObjectEvent], snapshot: Snapshot) -> list[ObjectEvent]:
    """``kubectl describe`` looks for a pod's events by its uid."""
    about = {(event.about.namespace, event.about.name) for event in events if event.about.kind == "Pod"}
    if not about:
        return events
    uids = {
        EventObject("Pod", *name): pod.uid
        for pod in snapshot.pods
        if pod.uid and (name := (pod.key.namespace, pod.key.name)) in about
    }
    return [
        evolve(event, about=evolve(event.about, uid=uids[event.about])) if event.about in uids else event
        for event in events
    ]


@frozen
class _Told:
    plan: Plan
    nodes: Mapping[str, Node]
    claims: Mapping[str, Claim]

    def nominated(self) -> Iterator[ObjectEvent]:
        for launch in self.plan.launches:
            for pod in launch.pods:
                yield self._on_pod(pod, EventReason.NOMINATED, f"a new node is planned for it: {_machine(launch)}")
        bound = {nomination.pod: nomination.node for nomination in self.plan.nominations}
        for pod, node in bound.items():
            yield self._on_pod(pod, EventReason.NOMINATED, f"kube-scheduler is told to bind it to node {node}")
        for placement in self.plan.placements:
            if placement.pod not in bound:
                place = f"node {placement.node}" if placement.node else f"{placement.claim}, which is coming,"
                yield self._on_pod(placement.pod, EventReason.NOMINATED, f"{place} has room for it")

    def held_back(self) -> Iterator[ObjectEvent]:
        for launch in self.plan.launches:
            for pod in launch.pods:
                message = (
                    f"environment {self.plan.environment} is paused: {self.plan.paused}; "
                    f"it would get a new {launch.claim.inputs.instance_type}"
                )
                yield self._on_pod(pod, EventReason.ENVIRONMENT_PAUSED, message)

    def unplaced(self) -> Iterator[ObjectEvent]:
        for unplaced in self.plan.unplaced:
            if unplaced.refusals:
                reason = _REASON_BY_CODE[unplaced.refusals[0].refusal.code]
                kind = EventType.NORMAL if reason in _NORMAL else EventType.WARNING
                yield self._on_pod(unplaced.pod, reason, self._refusals(unplaced), kind)

    def bindings(self) -> Iterator[ObjectEvent]:
        for difference in self.plan.binding_differences:
            message = f"kube-scheduler bound it to node {difference.node}; it was planned for {difference.planned}"
            yield self._on_pod(difference.pod, EventReason.BOUND_ELSEWHERE, message)

    def removals(self) -> Iterator[ObjectEvent]:
        for removal in self.plan.removals:
            record = removal.record
            if record.node is not None:
                yield from self._on_node(record.node, EventReason.DISRUPTION_TERMINATING, _leaving(removal))
            for pod in removal.pods if removal.phase is RemovalPhase.MARK else ():
                why = f"asked to leave node {record.node}: {record.reason.value}, {record.rule}"
                yield self._on_pod(pod, EventReason.EVICTED, why)
            for each in removal.forced:
                why = f"deleted from node {record.node}, to be gone by {_clock(each.by)}: {each.why}"
                yield self._on_pod(each.pod, EventReason.EVICTED, why, EventType.WARNING)

    def held_by(self, refused: Sequence[RefusedEviction]) -> Iterator[ObjectEvent]:
        by_node: dict[str, list[Eviction]] = {}
        for each in refused:
            by_node.setdefault(each.node, []).append(each.answer)
        for node, answers in by_node.items():
            for answer in answers:
                words = f"it cannot leave node {node}: {answer.message or answer.status.value}"
                yield self._on_pod(answer.pod, EventReason.FAILED_DRAINING, words, EventType.WARNING)
            first = answers[0]
            words = (
                f"{counted(len(answers), 'pod')} cannot leave, the first {first.pod}: "
                f"{first.message or first.status.value}"
            )
            yield from self._on_node(node, EventReason.FAILED_DRAINING, words, EventType.WARNING)

    def kept(self) -> Iterator[ObjectEvent]:
        for kept in self.plan.kept:
            if kept.node is not None:
                yield from self._stays(kept, kept.node)

    def _stays(self, kept: Kept, node: str) -> Iterator[ObjectEvent]:
        match kept.reason:
            case NotInitialized():
                if lacking := self._lacking(kept.claim, node):
                    yield from self._on_node(node, EventReason.NODE_NOT_INITIALIZED, f"not up yet: {lacking}")
            case Overdue(milestone=milestone, deadline=deadline):
                late = f"not {milestone.value} by {_clock(deadline)}"
                yield from self._on_node(node, EventReason.NODE_NOT_INITIALIZED, late, EventType.WARNING)
            case Degraded():
                words = stay_words(kept.reason, self.plan.decided_at)
                yield from self._on_node(node, EventReason.NODE_DEGRADED, words, EventType.WARNING)
            case (
                BudgetExhausted()
                | DoNotDisrupt()
                | RemovalCap()
                | PoolPaused()
                | KarpenterOwnsPool()
                | PoolUnknown()
                | SeveralNodes()
                | PodsUnseen()
                | RuleKeeps()
                | OutsideWindow()
                | DetachesVolumes()
            ):
                words = "; ".join(filter(None, (stay_words(kept.reason, self.plan.decided_at), pending_names(kept))))
                yield from self._on_node(node, EventReason.DISRUPTION_BLOCKED, words)

    def _lacking(self, claim: str, node_name: str) -> str:
        """What a node lacks before pods can use it all."""
        one, node = self.claims.get(claim), self.nodes.get(node_name)
        if one is None or node is None:
            return ""
        startup = {taint.key for taint in one.startup_taints}
        tainted = sorted({taint.key for taint in node.taints} & startup)
        return ", ".join(
            [
                *(["the node is not ready"] if not node.ready else []),
                *([f"startup taints {', '.join(tainted)}"] if tainted else []),
                *(
                    f"{node.allocatable.amount(resource)} of {one.capacity.amount(resource)} {resource}"
                    for resource in one.capacity.accelerators()
                    if node.allocatable.amount(resource) < one.capacity.amount(resource)
                ),
            ]
        )

    def _refusals(self, unplaced: Unplaced) -> str:
        by_words: dict[str, list[str]] = {}
        for each in unplaced.refusals:
            by_words.setdefault(_lasting(each.refusal, self.plan.decided_at), []).append(each.node_pool or "any pool")
        told = list(by_words.items())
        left = sum(len(pools) for _, pools in told[_POOLS_TOLD:])
        further = [f"and {counted(left, 'further pool')}"] if left else []
        return "; ".join([*(f"{', '.join(pools)}: {words}" for words, pools in told[:_POOLS_TOLD]), *further])

    def _on_pod(
        self, pod: PodKey, reason: EventReason, message: str, kind: EventType = EventType.NORMAL
    ) -> ObjectEvent:
        about = EventObject("Pod", pod.namespace, pod.name)
        return ObjectEvent(about, reason, kind, _short(message))

    def _on_node(
        self, node: str, reason: EventReason, message: str, kind: EventType = EventType.NORMAL
    ) -> Iterable[ObjectEvent]:
        """Nothing about a node that is gone. Kubelets give a node's name for its uid, and so kubectl looks for it."""
        if node in self.nodes:
            yield ObjectEvent(EventObject("Node", "", node, node), reason, kind, _short(message))


def _machine(launch: Launch) -> str:
    inputs = launch.claim.inputs
    return (
        f"{launch.claim.name} ({inputs.instance_type} in {inputs.zone}, {inputs.capacity_type}, "
        f"{launch.claim.usd_per_hour})"
    )


def _leaving(removal: Removal) -> str:
    record: RemovalRecord = removal.record
    doing = "cordoned and draining" if removal.phase is RemovalPhase.MARK else "terminating"
    budget, saving = budget_words(record), saving_words(removal.saving)
    parts = [
        f"{doing}: {record.reason.value}, {record.rule}",
        *([budget] if budget else []),
        *([f"{counted(len(removal.pods), 'pod')} to move"] if removal.pods else []),
        *([f"{counted(len(removal.forced), 'pod')} out of time"] if removal.forced else []),
        *([saving] if saving else []),
    ]
    return "; ".join(parts)


def _lasting(refusal: Refusal, now: datetime) -> str:
    """A refusal's words with a moment in place of the time that is left: that would differ in each pass."""
    match refusal:
        case OfferingsUnavailable(offerings=offerings, until=until, last_code=code, quota=quota):
            out = counted(offerings, "offering")
            return f"{out} out after {code}{quota_words(quota)}, the first until {_clock(until)}"
        case BringUpsFailed(failures=failures, until=until):
            again = f"the next try at {_clock(until)}"
            return f"{counted(failures, 'machine')} in a row did not come up in time; {again}"
    return refusal_words(refusal, now)


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%H:%M:%S} UTC"


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"
