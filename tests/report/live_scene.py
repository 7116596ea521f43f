"""A cluster in the middle of things: two nodes serve, one is joining, one comes up, and pods wait."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.model.claim import Claim
from engine.model.ledger import Ledger, Milestones
from engine.model.node import Instance, InstanceState
from engine.model.plan import BindingDifference, Placement, Plan, Unplaced
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.refusal import LimitReached, PoolRefusal
from engine.model.snapshot import CloudFacts, KarpenterFacts, Snapshot
from tests import builders
from tests.builders import G5_2XLARGE, G5_12XLARGE, NOON
from tests.report import scenes

READ_AT = NOON + timedelta(seconds=3)
PAUSED = "freeze of the quarter's end"
POLICY = Policy(
    node_pools=(scenes.CORE, evolve(scenes.ELASTIC, paused="driver roll-out"), scenes.BATCH),
    node_classes=(),
    digest="1a2b3c4d5e6f70819203",
)


def _ago(seconds: int) -> timedelta:
    return timedelta(seconds=seconds)


OLD = NOON - timedelta(hours=2)
SERVING = builders.claim("gpu-core-00001", G5_12XLARGE, pool=scenes.CORE, created=OLD - _ago(12))
IDLE = builders.claim("gpu-core-00002", G5_12XLARGE, pool=scenes.CORE, created=OLD - _ago(18))
COMING_UP = builders.claim("gpu-core-00003", G5_12XLARGE, pool=scenes.CORE, created=NOON - _ago(90))
JOINING = builders.claim("gpu-core-00004", G5_12XLARGE, pool=scenes.CORE, created=NOON - _ago(200))
LAUNCHING = builders.claim(
    "gpu-elastic-00001", G5_2XLARGE, pool=scenes.ELASTIC, capacity_type="spot", price="0.48", created=NOON - _ago(4)
)
LEDGER = Ledger(
    milestones={
        SERVING.name: Milestones(OLD, OLD + _ago(40), OLD + _ago(95), OLD + _ago(280), OLD + _ago(320)),
        IDLE.name: Milestones(OLD, OLD + _ago(50), OLD + _ago(105)),
        COMING_UP.name: Milestones(NOON - _ago(80), NOON - _ago(35)),
        JOINING.name: Milestones(NOON - _ago(185)),
    }
)


def _instance(claim: Claim, number: int) -> Instance:
    return Instance(
        f"i-{number:017x}",
        claim.name,
        InstanceState.RUNNING,
        claim.inputs.instance_type,
        claim.inputs.zone,
        claim.inputs.capacity_type,
        launched_at=LEDGER.milestones[claim.name].launched_at or NOON,
    )


def snapshot() -> Snapshot:
    machines = (SERVING, IDLE, COMING_UP, JOINING)
    nodes = [
        builders.node(f"node-{number}", G5_12XLARGE, instance_id=f"i-{number:017x}", ready=number < 3)
        for number in (1, 2, 3)
    ]
    seen = builders.snapshot(
        pods=[
            builders.pod("llm-1", gpu=2, node="node-1"),
            builders.pod("llm-2", gpu=1, node="node-1"),
            builders.pod("llm-3", gpu=4, created=NOON - _ago(91)),
            builders.pod("llm-4", gpu=8, created=NOON - _ago(400)),
            builders.pod("embed-1", gpu=1, created=NOON - _ago(2)),
        ],
        nodes=nodes,
        document=builders.document(*machines, LAUNCHING, version=12),
        cloud=CloudFacts(instances=tuple(_instance(claim, number) for number, claim in enumerate(machines, 1))),
        karpenter=KarpenterFacts(is_live=True, node_pools=("legacy", "system"), nodes=("node-k",)),
    )
    return evolve(seen, environment="sandbox")


def plan(*, paused: str = PAUSED) -> Plan:
    limit = LimitReached("nvidia.com/gpu", limit=16, used=16, planned=0, needed=8)
    return evolve(
        scenes.empty_plan(),
        base_version=12,
        ledger=LEDGER,
        paused=paused,
        placements=(
            Placement(PodKey("default", "llm-3"), node=None, claim=COMING_UP.name),
            Placement(PodKey("default", "embed-1"), node="node-1", claim=None),
        ),
        unplaced=(Unplaced(PodKey("default", "llm-4"), (PoolRefusal("gpu-core", limit),)),),
        binding_differences=(BindingDifference(PodKey("default", "llm-2"), IDLE.name, "node-1"),),
    )
