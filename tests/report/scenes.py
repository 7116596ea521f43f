"""A plan, a snapshot and an outcome that show one of everything a report has to put into words."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.model.claim import Claim
from engine.model.document import BudgetUse, RemovalRecord
from engine.model.ledger import Ledger
from engine.model.money import total
from engine.model.node import Instance, InstanceState
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.packing_bound import PackingBound
from engine.model.plan import (
    BaseShortfall,
    Kept,
    Launch,
    LaunchReason,
    LimitUse,
    Placement,
    Plan,
    Removal,
    RemovalPhase,
    Unplaced,
)
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.reason import DisruptionReason
from engine.model.refusal import (
    AcceleratorNotOffered,
    LimitReached,
    LostOffering,
    NoTypeFits,
    OfferingsUnavailable,
    PoolRefusal,
    TaintNotTolerated,
)
from engine.model.snapshot import CloudFacts, ObjectProblem, Snapshot
from engine.model.stay import BaseCapacity, BelowConsolidateAfter, BudgetExhausted, InUse, NotInitialized, StayReason
from tests import builders
from tests.builders import G5_2XLARGE, G5_12XLARGE, G5_XLARGE, NOON, minutes, usd

CORE, ELASTIC, BATCH = (builders.node_pool(name) for name in ("gpu-core", "gpu-elastic", "gpu-batch"))
POLICY = Policy(node_pools=(CORE, ELASTIC, BATCH), node_classes=(), digest="1a2b3c4d5e6f70819203")
CATALOG = builders.catalog()


def pods(prefix: str, count: int) -> tuple[PodKey, ...]:
    return tuple(PodKey("default", f"{prefix}-{number:04}") for number in range(1, count + 1))


def _launches() -> tuple[Launch, ...]:
    second = LostOffering("g5.2xlarge/us-east-1a/on-demand", usd("1.2"), usd("0.2"))
    core = [
        Launch(
            claim=builders.claim(f"gpu-core-0000{number}", G5_XLARGE, pool=CORE, zone=f"us-east-1{letter}"),
            reason=LaunchReason.PENDING_PODS,
            pods=(PodKey("default", f"llm-{number:04}"),),
            lost=(LostOffering("g5.xlarge/us-east-1c/on-demand", usd("1.0"), usd("0")), second),
        )
        for number, letter in ((1, "a"), (2, "a"), (3, "b"))
    ]
    spot = Launch(
        claim=builders.claim("gpu-batch-00007", G5_12XLARGE, pool=BATCH, capacity_type="spot", price="2.28"),
        reason=LaunchReason.PENDING_PODS,
        pods=pods("train", 4),
        lost=(LostOffering("g5.12xlarge/us-east-1a/on-demand", usd("5.7"), usd("3.42")),),
    )
    base = Launch(claim=builders.claim("gpu-core-00004", pool=CORE), reason=LaunchReason.BASE_CAPACITY)
    return (*core, base, spot)


def _removals() -> tuple[Removal, ...]:
    def record(name: str, used: int, *, lost: bool = False) -> RemovalRecord:
        return RemovalRecord(
            claim=name,
            node_pool="gpu-elastic",
            reason=DisruptionReason.LOST if lost else DisruptionReason.EMPTY,
            rule="the instance is gone from EC2" if lost else "gpu-elastic: consolidateAfter 5m",
            since=NOON - minutes(7),
            usd_per_hour=usd("1.2"),
            node="ip-10-0-0-9",
            budget=None if lost else BudgetUse(budget="10%", base=12, allowed=2, used=used),
        )

    return (
        Removal(record("gpu-elastic-00009", 1), RemovalPhase.RELEASE, saving=usd("1.2")),
        Removal(record("gpu-elastic-00011", 2), RemovalPhase.MARK, pods=pods("late", 1), saving=usd("1.2")),
        Removal(record("gpu-elastic-00003", 0, lost=True), RemovalPhase.RELEASE),
    )


def _kept() -> tuple[Kept, ...]:
    def kept(name: str, pool: str, reason: StayReason) -> Kept:
        return Kept(name, f"node-{name}", pool, "g5.2xlarge", "us-east-1a", "on-demand", usd("1.2"), reason)

    return (
        kept("gpu-core-00090", "gpu-core", BaseCapacity(nodes=2)),
        *(kept(f"gpu-elastic-0002{number}", "gpu-elastic", InUse(pods=number, planned=1)) for number in (1, 2, 3)),
        kept("gpu-elastic-00030", "gpu-elastic", BelowConsolidateAfter(NOON - minutes(2), NOON + minutes(3))),
        kept("gpu-elastic-00031", "gpu-elastic", BudgetExhausted("10%", allowed=2, used=2)),
        kept("gpu-batch-00002", "gpu-batch", NotInitialized()),
    )


def _unplaced() -> tuple[Unplaced, ...]:
    limit = LimitReached("nvidia.com/gpu", limit=50, used=49, planned=1, needed=1)
    barred = TaintNotTolerated("workload-type=batch:NoSchedule")
    too_big = NoTypeFits(
        "memory",
        15510 * 2**20,
        14162 * 2**20,
        "g5.xlarge",
        daemon_overhead=192 * 2**20,
        would_do="g5.2xlarge",
        barred_by="karpenter.k8s.aws/instance-size In xlarge",
    )
    amd = AcceleratorNotOffered("nvidia.com/gpu", ("amd.com/gpu",), ("g4ad",))
    out = OfferingsUnavailable(6, until=NOON + minutes(6), refusals=2, last_code="InsufficientInstanceCapacity")
    return (
        *(
            Unplaced(
                pod,
                (
                    PoolRefusal("gpu-core", limit),
                    PoolRefusal("gpu-elastic", barred),
                    PoolRefusal("gpu-batch", barred),
                    PoolRefusal("general", amd),
                ),
            )
            for pod in pods("core-4000m-1gpu", 8)
        ),
        Unplaced(PodKey("ml", "embed-0001"), (PoolRefusal("gpu-elastic", too_big), PoolRefusal("gpu-batch", out))),
    )


def plan() -> Plan:
    launches, removals, kept = _launches(), _removals(), _kept()
    before = total(each.usd_per_hour for each in kept) + usd("3.6")
    released = total(each.record.usd_per_hour for each in removals if each.phase is RemovalPhase.RELEASE)
    return Plan(
        environment="sandbox",
        decided_at=NOON,
        base_version=4,
        policy_digest=POLICY.digest,
        catalog_digest="test-catalog",
        launches=launches,
        removals=removals,
        kept=kept,
        placements=(Placement(PodKey("default", "web-0001"), node="ip-10-0-0-4", claim=None),),
        unplaced=_unplaced(),
        base_shortfalls=(
            BaseShortfall("gpu-core", wanted=4, have=2, refusal=LimitReached("nvidia.com/gpu", 50, 49, 1, 1)),
        ),
        limits=(
            LimitUse("gpu-core", "nvidia.com/gpu", limit=50, used=46, planned=4),
            LimitUse("gpu-elastic", "memory", limit=2**40, used=3 * 2**38, planned=0),
        ),
        usd_per_hour_before=before,
        usd_per_hour_after=before - released + total(each.claim.usd_per_hour for each in launches),
        document=builders.document(version=5),
        foundation_changes=True,
        ledger=Ledger(),
        packing=PackingBound(total(each.claim.usd_per_hour for each in launches), usd("6.2")),
        hash="9f8e7d6c5b4a39281706",
    )


def empty_plan() -> Plan:
    of = plan()
    return evolve(
        of,
        launches=(),
        removals=(),
        unplaced=(),
        placements=(),
        base_shortfalls=(),
        limits=(),
        foundation_changes=False,
        packing=None,
        usd_per_hour_after=of.usd_per_hour_before,
    )


def _instance(claim: Claim, number: int, state: InstanceState = InstanceState.RUNNING) -> Instance:
    return Instance(
        id=f"i-{number:017x}",
        claim=claim.name,
        state=state,
        instance_type=claim.inputs.instance_type,
        zone=claim.inputs.zone,
        capacity_type=claim.inputs.capacity_type,
        launched_at=NOON - minutes(9),
    )


def snapshot() -> Snapshot:
    """Five claims: one serves, one drains, one waits for its node, one launches, one is lost."""
    serving = builders.claim("gpu-core-00001", G5_12XLARGE, pool=CORE)
    draining = builders.claim("gpu-core-00002", G5_XLARGE, pool=CORE)
    joining = builders.claim("gpu-elastic-00001", G5_2XLARGE, pool=ELASTIC, capacity_type="spot", price="0.48")
    launching = builders.claim("gpu-elastic-00002", G5_2XLARGE, pool=ELASTIC)
    lost = builders.claim("gpu-elastic-00003", G5_2XLARGE, pool=ELASTIC)
    seen = builders.snapshot(
        pods=[
            builders.pod("llm-1", gpu=2, node="node-1"),
            builders.pod("llm-2", gpu=1, node="node-1"),
            builders.pod("llm-3", gpu=1),
            builders.pod("elsewhere", node="static-1"),
        ],
        nodes=[
            builders.node("node-1", G5_12XLARGE, instance_id=f"i-{1:017x}"),
            builders.node(
                "node-2",
                instance_id=f"i-{2:017x}",
                unschedulable=True,
                taints=[builders.taint("karpenter.sh/disrupted")],
            ),
            builders.node("static-1", builders.M5_LARGE),
        ],
        document=builders.document(serving, draining, joining, launching, lost, version=4),
        cloud=CloudFacts(
            instances=(
                _instance(serving, 1),
                _instance(draining, 2),
                _instance(joining, 3),
                _instance(launching, 4, InstanceState.PENDING),
                _instance(lost, 5, InstanceState.TERMINATED),
                evolve(_instance(lost, 6), claim="gpu-old-00001"),
            ),
            absent_claims=("gpu-elastic-00003",),
        ),
        taken_at=NOON,
        problems=(ObjectProblem("Pod", "default", "odd", "spec is '[x]', expected an object"),),
    )
    return evolve(seen, environment="sandbox")


def outcome() -> Outcome:
    refused = "We currently do not have sufficient g5.xlarge capacity in us-east-1b."
    return Outcome(
        environment="sandbox",
        version=5,
        finished_at=NOON + timedelta(seconds=42),
        claims=(
            ClaimOutcome("gpu-core-00001", OutcomeStatus.CREATED, "i-00000000000000001", "g5.xlarge/us-east-1a/spot"),
            ClaimOutcome("gpu-core-00002", OutcomeStatus.CREATED, "i-00000000000000002", "g5.xlarge/us-east-1a/spot"),
            ClaimOutcome("gpu-core-00004", OutcomeStatus.ADOPTED, "i-00000000000000004"),
            ClaimOutcome(
                "gpu-core-00003",
                OutcomeStatus.FAILED_CAPACITY,
                offering="g5.xlarge/us-east-1b/on-demand",
                code="InsufficientInstanceCapacity",
                message=refused,
            ),
            ClaimOutcome(
                "gpu-batch-00007",
                OutcomeStatus.FAILED_OTHER,
                offering="g5.12xlarge/us-east-1a/spot",
                code="InvalidAMIID.NotFound",
                message="The image id '[ami-0123]' does not exist",
            ),
            ClaimOutcome("gpu-elastic-00009", OutcomeStatus.DELETED),
        ),
        foundation_failures=("gpu-nodes: role: EntityAlreadyExists",),
    )
