"""Where the seconds go after a launch: how long each machine took to come how far, and how long that usually takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import Enum
from statistics import median

from attrs import frozen

from engine.model.claim import Claim
from engine.model.ledger import Ledger, Milestones
from engine.report.standing import NodePhase, Standing


class Stage(str, Enum):
    """A milestone. ``LAUNCHED`` is measured from when the claim was decided, every other one from the launch."""

    LAUNCHED = "launched"
    REGISTERED = "registered"
    INITIALIZED = "initialized"
    IMAGE_PULLED = "image-pulled"
    POD_READY = "first-pod-ready"


Expected = Mapping[tuple[str, Stage], timedelta]


@frozen
class Step:
    """One stage of one machine: ``took`` once it is reached; ``elapsed`` while the machine is on its way there.

    Both None: it has not begun. ``expected`` is the median of the pool's machines before, None where there is none.
    """

    stage: Stage
    took: timedelta | None = None
    elapsed: timedelta | None = None
    expected: timedelta | None = None


def durations(milestones: Milestones, decided_at: datetime | None) -> dict[Stage, timedelta]:
    """How long each stage took that was reached. ``decided_at`` None, for a claim that is gone: not the launch itself.

    A clock that runs behind another machine's may show a milestone before its launch: that counts as zero.
    """
    launched = milestones.launched_at
    if launched is None:
        return {}
    reached = {
        Stage.REGISTERED: milestones.registered_at,
        Stage.INITIALIZED: milestones.initialized_at,
        Stage.IMAGE_PULLED: milestones.image_pulled_at,
        Stage.POD_READY: milestones.first_pod_ready_at,
    }
    took = {stage: _between(launched, moment) for stage, moment in reached.items() if moment is not None}
    return {**({Stage.LAUNCHED: _between(decided_at, launched)} if decided_at is not None else {}), **took}


def expectations(ledger: Ledger, standing: Iterable[Standing]) -> Expected:
    """The median of what each stage took, by pool, over all machines that the ledger remembers."""
    claims = {one.claim.name: one.claim for one in standing}
    took: dict[tuple[str, Stage], list[float]] = defaultdict(list)
    for name, milestones in ledger.milestones.items():
        decided_at = claims[name].created_at if name in claims else None
        for stage, duration in durations(milestones, decided_at).items():
            took[pool_of(name, claims), stage].append(duration.total_seconds())
    return {of: timedelta(seconds=median(seconds)) for of, seconds in took.items()}


def steps(one: Standing, expected: Expected, now: datetime) -> tuple[Step, ...]:
    """Every stage of a machine, in order; at most one is under way."""
    took = durations(one.milestones, one.claim.created_at)
    under_way = _under_way(one, took)
    began = one.claim.created_at if under_way is Stage.LAUNCHED else one.milestones.launched_at
    return tuple(
        Step(
            stage,
            took=took.get(stage),
            elapsed=_between(began, now) if stage is under_way and began is not None else None,
            expected=expected.get((one.claim.node_pool, stage)),
        )
        for stage in Stage
    )


def reached_since(before: Ledger, after: Ledger, claims: Mapping[str, Claim]) -> Iterator[tuple[str, Stage, timedelta]]:
    """What one pass saw reached: claim, stage and how long it took."""
    for name, milestones in after.milestones.items():
        known = before.milestones.get(name)
        if known is milestones or known == milestones:
            continue
        decided_at = claims[name].created_at if name in claims else None
        old = durations(known, decided_at) if known is not None else {}
        for stage, duration in durations(milestones, decided_at).items():
            if stage not in old:
                yield name, stage, duration


def pool_of(claim: str, claims: Mapping[str, Claim]) -> str:
    """The pool of a claim, gone ones included: a claim is named for its pool, with a part of its own behind it."""
    return claims[claim].node_pool if claim in claims else claim.rpartition("-")[0]


def _under_way(one: Standing, took: Mapping[Stage, timedelta]) -> Stage | None:
    match one.phase:
        case NodePhase.LAUNCHING:
            return Stage.LAUNCHED if Stage.LAUNCHED not in took else Stage.REGISTERED
        case NodePhase.REGISTERING:
            return Stage.REGISTERED
        case NodePhase.INITIALIZING:
            return Stage.INITIALIZED
        case NodePhase.READY if Stage.INITIALIZED in took and Stage.POD_READY not in took:
            # A machine that no pod has come to yet waits for nothing.
            if Stage.IMAGE_PULLED in took:
                return Stage.POD_READY if one.pods else None
            return Stage.IMAGE_PULLED if one.starting else None
    return None


def _between(start: datetime, end: datetime) -> timedelta:
    return max(end - start, timedelta())
