"""Each reason as a sentence, its numbers in people's units."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import get_args

import pytest

from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.label_refusal import LabelDidNotCome
from engine.model.pod import PodKey
from engine.model.quantity import base_units
from engine.model.refusal import (
    AcceleratorNotOffered,
    BringUpsFailed,
    CapReached,
    CeilingReached,
    FoundationBusy,
    GpuPoolClosed,
    GuardrailBlocks,
    KarpenterOwnsPool,
    LimitReached,
    LostOffering,
    Measured,
    NoOffering,
    NoPermittedType,
    NoTypeFits,
    OfferingsUnavailable,
    PoolIsStatic,
    PoolNotReady,
    PoolPaused,
    PoolRefusal,
    Refusal,
    RequirementMismatch,
    ReservedExhausted,
    RuleForbids,
    TaintNotTolerated,
    TooFewValues,
    UnsupportedConstraint,
)
from engine.model.replacement import (
    AwaitsReplacement,
    Hold,
    MovedLately,
    NewlyUp,
    NoPlace,
    NotQuiet,
    PodHolds,
    RolloutWaits,
    StandsIn,
    Unbalanced,
)
from engine.model.rule import LimitedResource
from engine.model.spare_refusal import GpuWaste, WaitsForSpareCapacity
from engine.model.stay import (
    BaseCapacity,
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    Degraded,
    DoNotDisrupt,
    InUse,
    KeepsHeadroom,
    Milestone,
    NoOtherPlace,
    NotInitialized,
    OutsideWindow,
    Overdue,
    PodsUnseen,
    PoolUnknown,
    RemovalCap,
    RepaidTooLate,
    RuleKeeps,
    SavesTooLittle,
    SeveralNodes,
    StayReason,
    TooManyUnhealthy,
    TooYoung,
)
from engine.model.volume_refusal import VolumeNotReady
from engine.report.stay_words import stay_words
from engine.report.tables import examples, zones_in_short
from engine.report.words import a_month, counted, next_best_words, refusal_words, rounded_words, signed
from tests.builders import NOON, requirement, usd

GPU = "nvidia.com/gpu"
MINUTE = timedelta(minutes=1)

REFUSALS: list[tuple[Refusal, str]] = [
    (TaintNotTolerated("gpu:NoSchedule"), "the pod does not tolerate the pool's taint gpu:NoSchedule"),
    (RequirementMismatch("tier", "In core", "In batch"), "the pod asks for tier In core; the pool has In batch"),
    (RequirementMismatch("tier", "In core", ""), "the pod asks for tier In core; the pool has none"),
    (
        NoTypeFits("memory", base_units("memory", "15510Mi"), base_units("memory", "14162Mi"), "g5.xlarge"),
        "needs 15510Mi memory; the nearest, g5.xlarge, has 14162Mi",
    ),
    (
        NoTypeFits("cpu", 8000, 3900, "g5.xlarge", daemon_overhead=100),
        "needs 8 cpu; the nearest, g5.xlarge, has 3.9 after 0.1 for daemons",
    ),
    (
        NoTypeFits("attachable-volumes-ebs.csi.aws.com", 30, 27, "m5.large"),
        "needs 30 volumes of ebs.csi.aws.com; the nearest, m5.large, has 27",
    ),
    (NoTypeFits(GPU, 16, 8, "p5.48xlarge"), "needs 16 nvidia.com/gpu; the nearest, p5.48xlarge, has 8"),
    (
        NoTypeFits(
            "memory",
            base_units("memory", "15510Mi"),
            base_units("memory", "14162Mi"),
            "g5.xlarge",
            would_do="g5.2xlarge",
            barred_by="karpenter.k8s.aws/instance-size In xlarge",
        ),
        "needs 15510Mi memory; the nearest, g5.xlarge, has 14162Mi; "
        "g5.2xlarge would do, but the pool asks for karpenter.k8s.aws/instance-size In xlarge",
    ),
    (
        NoTypeFits(GPU, 2, 1, "g5.xlarge", would_do="g5.12xlarge", barred_by="size In xlarge", is_barred_by_pod=True),
        "needs 2 nvidia.com/gpu; the nearest, g5.xlarge, has 1; "
        "g5.12xlarge would do, but the pod asks for size In xlarge",
    ),
    (
        NoTypeFits("cpu", 8000, 3500, "g5.xlarge", 500, also=(Measured("memory", 32 * 2**30, 16 * 2**30),)),
        "needs 8 cpu and 32768Mi memory; the nearest, g5.xlarge, has 3.5 cpu after 0.5 for daemons and 16384Mi memory",
    ),
    (
        NoTypeFits(
            "memory", 32 * 2**30, 16 * 2**30, "c5.2xlarge", also=(Measured("cpu", 8000, 8000),), only_together=True
        ),
        "needs 32768Mi memory and 8 cpu on one node; the nearest, c5.2xlarge, has 16384Mi memory and 8 cpu",
    ),
    (
        RequirementMismatch("gpu-memory", "at least 40001", "16384, 24576", "24576"),
        "the pod asks for gpu-memory at least 40001; the pool has 16384, 24576, the nearest 24576",
    ),
    (
        RequirementMismatch("gpu-memory", "at least 40001", "24576", "24576"),
        "the pod asks for gpu-memory at least 40001; the pool has 24576",
    ),
    (
        TooFewValues("instance-type", 3, ("g5.xlarge", "g6.xlarge")),
        "the pod leaves 2 of at least 3 values of instance-type, the pool's minValues: g5.xlarge, g6.xlarge; "
        "nodewright.dev/min-values-policy BestEffort would relax it",
    ),
    (
        SpreadUnsatisfiable("zone", 1, (("a", 3), ("b", 2)), ("a",)),
        "spread over zone, at most 1 apart: pods are a 3, b 2; the pool could add to a",
    ),
    (
        SpreadUnsatisfiable("zone", 1, (("a", 1), ("b", 1)), ("a", "b"), min_domains=3),
        "spread over zone, at most 1 apart: pods are a 1, b 1, 2 of at least 3 domains; the pool could add to a, b",
    ),
    (SpreadUnsatisfiable("rack", 2), "spread over rack, at most 2 apart: the pool has no node with that label for it"),
    (
        AffinityUnsatisfiable("zone", (requirement("app", "In", "db"),), 1, ("c",)),
        "must share zone with app In db: 1 such pod is in c, where the pool can make no node for it",
    ),
    (
        AffinityUnsatisfiable("zone", (), 7, tuple("abcdef")),
        "must share zone with any pod: 7 such pods are in a, b, c, d and 2 more, "
        "where the pool can make no node for it",
    ),
    (AffinityUnsatisfiable("zone", None), "must share zone with no pod at all, and no such pod has a node"),
    (
        AntiAffinityInTheWay("zone", "a", "default/db-0"),
        "its anti-affinity keeps it from zone a, where default/db-0 is",
    ),
    (
        AntiAffinityInTheWay("zone", "a", "default/db-0", domains=3, is_its_own=True),
        "the anti-affinity of default/db-0 keeps it from zone a, where default/db-0 is, and so in 2 more of zone",
    ),
    (
        HostPortTaken(9100, "TCP", "node-exporter"),
        "host port 9100/TCP is taken by node-exporter on each node of the pool",
    ),
    (HostPortTaken(53, "UDP"), "host port 53/UDP is taken on each node of the pool"),
    (
        AcceleratorNotOffered(GPU, ("amd.com/gpu",), ("g4ad",)),
        "no type of the pool offers nvidia.com/gpu; g4ad offers amd.com/gpu",
    ),
    (AcceleratorNotOffered(GPU, ()), "no type of the pool offers nvidia.com/gpu"),
    (NoPermittedType("arch In arm64"), "no instance type is left: the last went by arch In arm64"),
    (GpuPoolClosed(), "the pod asks for no accelerator, and the pool's nodes are kept for pods that do"),
    (LimitReached(GPU, 50, 50, 0, 1), "limit nvidia.com/gpu 50 reached (50 used, 0 planned, needs 1)"),
    (
        LimitReached("memory", 2**40, 2**40 - 2**30, 0, 2**34),
        "limit memory 1Ti reached (1023Gi used, 0 planned, needs a node of 16Gi)",
    ),
    (LimitReached(GPU, 50, 40, 8, 4), "limit nvidia.com/gpu 50 reached (40 used, 8 planned, needs a node of 4)"),
    (LimitReached("nodes", 3, 2, 1, 1), "limit nodes 3 reached (2 used, 1 planned, needs 1)"),
    (
        CapReached("launches", "100"),
        "the environment's cap of 100 launches in one pass is reached; the next pass goes on",
    ),
    (
        CapReached("addedUsdPerHour", "$500.00/h"),
        "the environment's cap of $500.00/h added $/h in one pass is reached; the next pass goes on",
    ),
    (
        OfferingsUnavailable(6, NOON + 6 * MINUTE, 2, "InsufficientInstanceCapacity"),
        "6 offerings out: refused 2 times with InsufficientInstanceCapacity; first back in 6m",
    ),
    (
        OfferingsUnavailable(1, NOON - MINUTE, 3, "InsufficientInstanceCapacity"),
        "1 offering out: refused 3 times with InsufficientInstanceCapacity; one launch is being tried",
    ),
    (
        OfferingsUnavailable(12, NOON + 3 * MINUTE, 1, "VcpuLimitExceeded", quota="Running On-Demand P instances"),
        "12 offerings out: refused once with VcpuLimitExceeded, the account's quota 'Running On-Demand P instances' is "
        "used up (ask AWS to raise it in Service Quotas); first back in 3m",
    ),
    (
        OfferingsUnavailable(1, NOON + 3 * MINUTE, 1, "Unsupported"),
        "1 offering out: refused once with Unsupported; first back in 3m",
    ),
    (
        ReservedExhausted(3, 8),
        "reserved capacity is exhausted: all 8 places of 3 reservations are taken, and nothing else is permitted",
    ),
    (NoOffering(2, 0), "2 types would fit, none sold in the permitted zones and capacity types"),
    (
        NoOffering(1, 3),
        "1 type would fit, none sold in the permitted zones and capacity types; 3 offerings without a known price",
    ),
    (PoolNotReady("no subnet matches"), "the pool cannot launch: no subnet matches"),
    (PoolPaused("driver roll-back"), "the pool is paused: driver roll-back"),
    (KarpenterOwnsPool("gpu"), "a live Karpenter has the NodePool gpu; hand it over first"),
    (
        BringUpsFailed(3, NOON + 12 * MINUTE),
        "3 machines in a row did not come up in time; the next try in 12m",
    ),
    (BringUpsFailed(4, NOON), "4 machines in a row did not come up in time; one is being tried"),
    (
        FoundationBusy("prod"),
        "needs a launch template that the stack prod has yet to make, and an update of it is under way",
    ),
    (
        CeilingReached(
            "team-dollars", "vision", LimitedResource.USD_PER_HOUR, 50_000_000, 37_760_000, 2_240_000, 12_240_000
        ),
        "limit rule team-dollars: 40.00 of 50.00 USD/h by vision, this needs 12.24 more",
    ),
    (
        CeilingReached("team-gpus", "", LimitedResource.GPUS, 8, 8, 0, 1, message="ask for\n a share: " + "a" * 300),
        f"limit rule team-gpus: 8 of 8 GPUs, this needs 1 more: ask for a share: {'a' * 142}…",
    ),
    (
        CeilingReached("cores", "", LimitedResource.CPU, 16_000, 15_500, 0, 4_000),
        "limit rule cores: 15.5 of 16 cores, this needs 4 more",
    ),
    (
        CeilingReached("ram", "core", LimitedResource.MEMORY, 64 * 2**30, 2**35, 2**34, 2**34),
        "limit rule ram: 48 of 64 Gi of memory by core, this needs 16 more",
    ),
    (
        CeilingReached("team-gpus", "vision", LimitedResource.GPUS, 8, 8, 0, 1, error="no such key: tier"),
        "limit rule team-gpus cannot be evaluated for vision, so nothing is added to 8 GPUs: no such key: tier",
    ),
    (
        CeilingReached("team-gpus", "", LimitedResource.GPUS, 38, 38, 0, 1, error='there is no key "team"'),
        'limit rule team-gpus cannot be evaluated, so nothing is added to 38 GPUs: there is no key "team"',
    ),
    (
        GuardrailBlocks("spend", "plan costs 120.00 an hour, cap 100.00"),
        "guardrail spend does not let the plan through: plan costs 120.00 an hour, cap 100.00",
    ),
    (
        GuardrailBlocks("spend", "too dear", error="division by zero"),
        "guardrail spend cannot be evaluated, and what it guards is not done: division by zero",
    ),
    (
        RuleForbids("gold-on-nvlink", "gold wants NVLink", types=4, errors=1, sample="no such key: tier"),
        "4 types would fit, none of them allowed by the rules, the last barred by gold-on-nvlink: gold wants NVLink; "
        "1 for an error: no such key: tier",
    ),
    (
        GpuWaste("nvidia.com/gpu", requested=1, smallest=2, smallest_type="g5.8xlarge", allowed=Decimal("0.25")),
        "would use 1 of 2 nvidia.com/gpu of g5.8xlarge, the smallest that would do; of a new node's GPUs at most 25% "
        "may go unused",
    ),
    (
        WaitsForSpareCapacity("filler"),
        "waits for spare capacity: pods of priority class filler start no nodes",
    ),
    (
        LabelDidNotCome("nvidia.com/gpu.product", "NVIDIA-A10G", NOON + 3 * MINUTE),
        "the pool's nodes were expected to get nvidia.com/gpu.product NVIDIA-A10G once up, and did not; "
        "tried again in 3m",
    ),
    (VolumeNotReady("data", "it does not exist"), "volume claim data: it does not exist"),
    (PoolIsStatic(), "the pool has fixed replicas and makes no node for a pod"),
    (
        UnsupportedConstraint(("host ports", "resource claims")),
        "the pod uses what is not placed yet: host ports, resource claims",
    ),
]

STAYS: list[tuple[StayReason, str]] = [
    (BelowConsolidateAfter(NOON - 2 * MINUTE, NOON + 3 * MINUTE), "empty for 2m, may go in 3m"),
    (InUse(3, 0), "runs 3 pods"),
    (KeepsHeadroom(1), "headroom: 1 of its GPUs is kept free"),
    (KeepsHeadroom(2), "headroom: 2 of its GPUs are kept free"),
    (InUse(1, 2), "runs 1 pod, 2 more planned"),
    (InUse(0, 2), "needed by 2 pods of this plan"),
    (BudgetExhausted("10%", 2, 2), "could go, but budget 10% is used up (2 of 2)"),
    (BaseCapacity(2), "base capacity: the pool keeps 2 nodes"),
    (DoNotDisrupt("default/llm"), "pod default/llm must not be disrupted"),
    (DoNotDisrupt(), "the node must not be disrupted"),
    (ConsolidationOff("consolidateAfter Never"), "never removed: consolidateAfter Never"),
    (PoolUnknown("old"), "no policy file has the pool old any more; that removes nothing"),
    (NotInitialized(), "not up yet"),
    (
        NotInitialized(StandsIn(("gpu-1",), ("node-1",), (PodKey("a", "llm"),))),
        "not up yet; takes the place of node-1, for its 1 pod: a/llm",
    ),
    (StandsIn(("gpu-1",), ("node-1",)), "takes the place of node-1"),
    (
        StandsIn(("gpu-1", "gpu-2"), ("node-1", "node-2"), tuple(PodKey("a", f"llm-{at}") for at in range(3))),
        "takes the place of node-1, node-2, for their 3 pods: a/llm-0, a/llm-1 and 1 more",
    ),
    (
        Overdue(Milestone.LAUNCHED, NOON - 2 * MINUTE),
        "not launched, 2m past its deadline; counts, and takes no pods",
    ),
    (Overdue(Milestone.INITIALIZED, NOON - MINUTE, pods=2), "not initialized, 1m past its deadline; keeps 2 pods"),
    (Degraded(GPU, 7, 8), "degraded: 7 of 8 nvidia.com/gpu"),
    (PoolPaused("driver roll-back"), "the pool is paused: driver roll-back"),
    (KarpenterOwnsPool("gpu"), "a live Karpenter has the NodePool gpu, or the machine itself"),
    (
        TooManyUnhealthy("Ready Unknown for longer than 30m", 3, 4, 1),
        "Ready Unknown for longer than 30m, but 3 of its pool's 4 nodes are unhealthy, more than 1: look first at what "
        "watches them",
    ),
    (RemovalCap(10), "could go, but the environment's cap of 10 removals in one pass is reached"),
    (
        GuardrailBlocks("night", "no removals at night"),
        "could go, but guardrail night does not let the plan through: no removals at night",
    ),
    (
        BudgetExhausted("slow-drain", 0, 1, error="division by zero"),
        "could go, but budget slow-drain cannot be evaluated, and lets none go: division by zero",
    ),
    (
        RuleKeeps("slow-drain", "young nodes stay"),
        "could go, but disruption budget slow-drain keeps it: young nodes stay",
    ),
    (
        RuleKeeps("slow-drain", "young nodes stay", error="no such key: tier"),
        "could go, but disruption budget slow-drain cannot be evaluated for it, and so keeps it: no such key: tier",
    ),
    (
        OutsideWindow("slow-drain", ("night",), NOON + timedelta(minutes=90)),
        "could go, but is outside the window night of disruption budget slow-drain, which opens in 1h30m",
    ),
    (
        OutsideWindow("slow-drain", ("leap", "night"), None),
        "could go, but is outside the windows leap, night of disruption budget slow-drain, which do not open in years",
    ),
    (PodsUnseen(2), "no pod was seen anywhere, though 2 nodes must have daemons: nothing goes unseen"),
    (SeveralNodes(("a", "b")), "one machine is the nodes a, b: delete those that are not it"),
    (AwaitsReplacement(("gpu-2",)), "goes once gpu-2 is up"),
    (AwaitsReplacement(("gpu-2", "gpu-3", "gpu-4")), "goes once gpu-2, gpu-3 and 1 more are up"),
    (AwaitsReplacement(("gpu-2",), "Drifted: image a -> b"), "goes once gpu-2 is up (Drifted: image a -> b)"),
    (AwaitsReplacement(()), "goes once another is up, and none can be launched now"),
    (
        NoPlace("a/llm", (PoolRefusal("gpu", PoolPaused("a freeze")),)),
        "could go, but pod a/llm has no other place: gpu: the pool is paused: a freeze",
    ),
    (NoPlace("", ()), "could go, but base capacity would be short"),
    (PodHolds("a/llm", Hold.NOBODYS), "could go, but nobody would make pod a/llm again"),
    (PodHolds("a/llm", Hold.BEARS_THE_MARK), "could go, but pod a/llm tolerates the mark and would stay"),
    (PodHolds("a/llm", Hold.BUDGET, ("a/one",)), "PodDisruptionBudget a/one does not let pod a/llm go now"),
    (
        PodHolds("a/llm", Hold.SEVERAL_BUDGETS, ("a/one", "a/two")),
        "pod a/llm is protected by 2 PodDisruptionBudgets (a/one, a/two), and the eviction API wants one at most",
    ),
    (
        RolloutWaits(2, 1, 1, NOON + timedelta(minutes=5)),
        "waits for a trial: 1 of 2 replaced first is up for long enough, 1 on trial; the next is in 5m",
    ),
    (
        RolloutWaits(1, 0, 0, change="Drifted: image a -> b"),
        "waits for a trial: 0 of 1 replaced first are up for long enough, 0 on trial (Drifted: image a -> b)",
    ),
    (SavesTooLittle(usd("0.01"), usd("0.05")), "without it $0.0100/h would be saved, less than $0.0500/h"),
    (SavesTooLittle(usd("0"), usd("0.05")), "without it the others would cost no less"),
    (
        RepaidTooLate(500_000, usd("0.1"), 18_000, 3_600),
        "moving its pods costs $0.5000, which $0.1000/h repays in 5h0m, not 1h0m",
    ),
    (
        NotQuiet(NOON - timedelta(minutes=2), NOON + timedelta(minutes=3)),
        "a pod came or left 2m ago, may go in 3m",
    ),
    (MovedLately(NOON + timedelta(minutes=40)), "its pods moved for money lately, may do so again in 40m"),
    (NewlyUp(NOON - timedelta(minutes=2), NOON + timedelta(minutes=3)), "up for 2m, may go for money in 3m"),
    (
        Unbalanced(10, 40),
        "moving 40% of the pool for 10% of its cost is not balanced: half as much is asked for",
    ),
    (TooYoung(90, 600), "up for 1m30s, and none goes for money before 10m0s"),
    (NoOtherPlace(PodKey("a", "llm"), 3), "its pod a/llm (of 3) has no other place"),
    (Drains(1), "on its way out: waits until 1 pod has ended"),
    (Drains(2), "on its way out: waits until 2 pods have ended"),
    (DetachesVolumes(("pvc-1",), None), "on its way out: waits until volume pvc-1 is detached"),
    (
        DetachesVolumes(("pvc-1", "pvc-2"), NOON + timedelta(minutes=90)),
        "on its way out: waits until volume pvc-1 and 1 more is detached, for 1h30m at most",
    ),
]


@pytest.mark.parametrize(("refusal", "words"), REFUSALS)
def test_a_refusal_is_a_sentence_with_its_numbers(refusal: Refusal, words: str) -> None:
    assert refusal_words(refusal, NOON) == words


@pytest.mark.parametrize(("reason", "words"), STAYS)
def test_a_reason_to_stay_is_a_sentence(reason: StayReason, words: str) -> None:
    assert stay_words(reason, NOON) == words


def test_every_kind_of_reason_has_its_words_checked_here() -> None:
    assert {type(refusal) for refusal, _ in REFUSALS} == set(get_args(Refusal))
    assert {type(reason) for reason, _ in STAYS} == set(get_args(StayReason))


def lost(*offerings: tuple[str, str]) -> list[LostOffering]:
    return [LostOffering(offering, usd("2"), usd(extra)) for offering, extra in offerings]


@pytest.mark.parametrize(
    ("offerings", "words"),
    [
        ([], ""),
        ([("g5.2xlarge/us-east-1a/spot", "0.2")], "+0.2000 g5.2xlarge"),
        ([("g5.2xlarge/us-east-1b/on-demand", "12")], "+12.00 g5.2xlarge on-demand"),
        ([("g5.xlarge/us-east-1b/spot", "0"), ("g5.xlarge/us-east-1a/on-demand", "0.6")], "+0.6000 on-demand"),
        ([("g5.xlarge/us-east-1b/spot", "0.01")], "+0.0100 us-east-1b"),
    ],
)
def test_the_next_best_is_told_by_what_sets_it_apart(offerings: list[tuple[str, str]], words: str) -> None:
    assert next_best_words("g5.xlarge/us-east-1a/spot", lost(*offerings)) == words


def test_a_next_best_that_a_rule_likes_less_may_be_cheaper() -> None:
    cheaper = LostOffering("g4dn.2xlarge/us-east-1a/spot", usd("0.3"), usd("0.3") - usd("0.7294"))
    assert next_best_words("g5.xlarge/us-east-1a/spot", [cheaper]) == "-0.4294 g4dn.2xlarge"


def test_amounts_are_written_for_people() -> None:
    assert [counted(1, "pod"), counted(1200, "pod"), counted(2, "capacity")] == ["1 pod", "1,200 pods", "2 capacities"]
    assert [signed(usd("1.2")), signed(usd("1") - usd("2.5")), signed(usd("0"))] == [
        "+$1.2000/h",
        "-$1.5000/h",
        "±$0/h",
    ]
    assert a_month(usd("12.34")) == "$9,008"
    assert examples(["a", "b"]) == "a, b"
    assert examples(list("abcde")) == "a, b, c and 2 more"


def test_zones_leave_out_their_region() -> None:
    assert zones_in_short(["us-east-1b", "us-east-1a", "us-east-1a"], "us-east-1") == "a,b"
    assert zones_in_short(["us-east-1b", "us-west-2a"], "us-east-1") == "b,us-west-2a"


def test_sums_of_memory_are_rounded_to_what_a_person_reads() -> None:
    assert rounded_words("memory", 1818620 * 2**20) == "1776Gi"
    assert rounded_words("memory", 2**42) == "4Ti"
    assert rounded_words("memory", 2**30) == "1Gi"
    assert rounded_words("cpu", 240_000) == "240"
