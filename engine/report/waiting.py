"""Pods that want a node, each with the one reason why it has none yet: a closed list of codes."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import get_args

from attrs import frozen

from engine.model.plan import Plan, Unplaced
from engine.model.pod import PodKey
from engine.model.refusal import Refusal
from engine.model.snapshot import Snapshot
from engine.report.words import refusal_words

# A pod that this plan has a node for waits for one of these; any other waits with a refusal's code.
LAUNCH_PLANNED = "launch-planned"
NODE_COMING = "node-coming"
NODE_FITS = "node-fits"
NOT_IN_PLAN = "not-in-plan"
REFUSAL_CODES: tuple[str, ...] = tuple(sorted(kind.code for kind in get_args(Refusal)))
WAITING_CODES: tuple[str, ...] = (LAUNCH_PLANNED, NODE_COMING, NODE_FITS, NOT_IN_PLAN, *REFUSAL_CODES)


@frozen
class WaitingPod:
    """``since`` is when it was made; ``code`` one of ``WAITING_CODES``, ``words`` the same for a person."""

    pod: PodKey
    since: datetime
    code: str
    words: str


def waiting_pods(snapshot: Snapshot, plan: Plan) -> tuple[WaitingPod, ...]:
    """Every waiting pod of the snapshot, the one that waits longest first."""
    found: dict[PodKey, tuple[str, str]] = {}
    for launch in plan.launches:
        for pod in launch.pods:
            inputs = launch.claim.inputs
            found[pod] = (LAUNCH_PLANNED, f"{launch.claim.name} is being launched, {inputs.instance_type}")
    for placement in plan.placements:
        if placement.node is not None:
            found[placement.pod] = (NODE_FITS, f"node {placement.node} has room")
        else:
            found[placement.pod] = (NODE_COMING, f"node {placement.claim} is coming")
    for unplaced in plan.unplaced:
        found[unplaced.pod] = _refusal(unplaced, plan.decided_at)
    waiting = sorted(snapshot.waiting_pods, key=lambda pod: (pod.created_at, pod.key))
    return tuple(
        WaitingPod(pod.key, pod.created_at, *found.get(pod.key, (NOT_IN_PLAN, "the plan says nothing of it")))
        for pod in waiting
    )


def waiting_by_code(snapshot: Snapshot, plan: Plan) -> dict[str, int]:
    """How many pods wait for what; every code is there, most of them with 0."""
    counts = Counter(waiting.code for waiting in waiting_pods(snapshot, plan))
    return {code: counts[code] for code in WAITING_CODES}


def refused_by_code(plan: Plan) -> dict[str, int]:
    """How many pods got nothing, by the code of the nearest miss; only codes that occur."""
    counts = Counter(_refusal(unplaced, plan.decided_at)[0] for unplaced in plan.unplaced)
    return {code: counts[code] for code in sorted(counts)}


def _refusal(unplaced: Unplaced, now: datetime) -> tuple[str, str]:
    """The first refusal, which is the nearest miss."""
    if not unplaced.refusals:
        return NOT_IN_PLAN, "no pool was asked"
    nearest = unplaced.refusals[0]
    words = refusal_words(nearest.refusal, now)
    return nearest.refusal.code, f"{nearest.node_pool}: {words}" if nearest.node_pool else words
