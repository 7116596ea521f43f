"""Why machines stay, as sentences: each typed reason in a person's words, its numbers in a person's units."""

from __future__ import annotations

from datetime import datetime

from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.duration import format_duration
from engine.model.refusal import (
    GuardrailBlocks,
    KarpenterOwnsPool,
    PoolPaused,
)
from engine.model.replacement import (
    AwaitsReplacement,
    MovedLately,
    NewlyUp,
    NoPlace,
    NotQuiet,
    PodHolds,
    RolloutWaits,
    StandsIn,
    Unbalanced,
)
from engine.model.stay import (
    BaseCapacity,
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    Degraded,
    DoNotDisrupt,
    InUse,
    KeepsHeadroom,
    NotInitialized,
    NotWorthVacating,
    OutsideWindow,
    Overdue,
    PodsUnseen,
    PoolUnknown,
    RemovalCap,
    RuleKeeps,
    SeveralNodes,
    StayReason,
    TooManyUnhealthy,
)
from engine.report.replacement_words import not_worth_words, stand_in_words, waits_words
from engine.report.words import counted, guardrail_words, refusal_words

_Kept = (
    BelowConsolidateAfter
    | InUse
    | BudgetExhausted
    | BaseCapacity
    | KeepsHeadroom
    | DoNotDisrupt
    | ConsolidationOff
    | PoolUnknown
    | NotInitialized
    | Drains
    | DetachesVolumes
    | RemovalCap
    | Overdue
    | Degraded
    | PoolPaused
    | KarpenterOwnsPool
    | SeveralNodes
    | PodsUnseen
    | GuardrailBlocks
    | RuleKeeps
    | OutsideWindow
    | TooManyUnhealthy
)


def _wanted_idle(reason: BaseCapacity | KeepsHeadroom) -> str:
    match reason:
        case BaseCapacity(nodes=nodes):
            return f"base capacity: the pool keeps {counted(nodes, 'node')}"
        case KeepsHeadroom(devices=devices):
            return f"headroom: {devices} of its GPUs {'is' if devices == 1 else 'are'} kept free"


def stay_words(reason: StayReason, now: datetime) -> str:
    """Why a machine stays."""
    if isinstance(reason, AwaitsReplacement | StandsIn | NoPlace | PodHolds | RolloutWaits):
        return waits_words(reason, now, lambda refused: refusal_words(refused.refusal, now))
    if isinstance(reason, NotWorthVacating | NotQuiet | NewlyUp | MovedLately | Unbalanced):
        return not_worth_words(reason, now)
    return _kept_words(reason, now)


def _kept_words(reason: _Kept, now: datetime) -> str:
    match reason:
        case BelowConsolidateAfter(empty_since=since, until=until):
            return f"empty for {format_duration(now - since)}, may go in {format_duration(until - now)}"
        case InUse(pods=pods, planned=planned):
            coming = f", {planned} more planned" if planned else ""
            return (
                f"runs {counted(pods, 'pod')}{coming}" if pods else f"needed by {counted(planned, 'pod')} of this plan"
            )
        case BudgetExhausted() | TooManyUnhealthy():
            return _too_many(reason)
        case BaseCapacity() | KeepsHeadroom():
            return _wanted_idle(reason)
        case DoNotDisrupt(pod=pod):
            return f"pod {pod} must not be disrupted" if pod else "the node must not be disrupted"
        case ConsolidationOff(why=why):
            return f"never removed: {why}"
        case PoolUnknown(node_pool=pool):
            return f"no policy file has the pool {pool} any more; that removes nothing"
        case NotInitialized() | Drains() | DetachesVolumes():
            return _under_way(reason, now)
        case RemovalCap(cap=cap):
            return f"could go, but the environment's cap of {cap} removals in one pass is reached"
        case _:
            return _held_words(reason, now)


def _too_many(reason: BudgetExhausted | TooManyUnhealthy) -> str:
    """Why a machine stays since others of its pool are out, or are no better off."""
    if isinstance(reason, TooManyUnhealthy):
        among = f"{reason.unhealthy} of its pool's {counted(reason.nodes, 'node')} are unhealthy"
        return f"{reason.condition}, but {among}, more than {reason.limit}: look first at what watches them"
    if reason.error:
        return f"could go, but budget {reason.budget} cannot be evaluated, and lets none go: {reason.error}"
    return f"could go, but budget {reason.budget} is used up ({reason.used} of {reason.allowed})"


def _held_words(
    reason: Overdue
    | Degraded
    | PoolPaused
    | KarpenterOwnsPool
    | SeveralNodes
    | PodsUnseen
    | GuardrailBlocks
    | RuleKeeps
    | OutsideWindow,
    now: datetime,
) -> str:
    """Why a machine stays about which a person may have to do something."""
    match reason:
        case Overdue(milestone=milestone, deadline=deadline, pods=pods):
            late = f"not {milestone.value}, {format_duration(now - deadline)} past its deadline"
            return f"{late}; keeps {counted(pods, 'pod')}" if pods else f"{late}; counts, and takes no pods"
        case Degraded(resource=resource, has=has, promised=promised):
            return f"degraded: {has} of {promised} {resource}"
        case PoolPaused(why=why):
            return f"the pool is paused: {why}"
        case KarpenterOwnsPool(node_pool=pool):
            return f"a live Karpenter has the NodePool {pool}, or the machine itself"
        case SeveralNodes() | PodsUnseen():
            return _seen_wrong(reason)
        case GuardrailBlocks():
            return f"could go, but {guardrail_words(reason)}"
        case RuleKeeps(rule=rule, message=message, error=error):
            if error:
                return f"could go, but disruption budget {rule} cannot be evaluated for it, and so keeps it: {error}"
            return f"could go, but disruption budget {rule} keeps it: {message}"
        case OutsideWindow():
            return _outside_window(reason, now)


def _seen_wrong(reason: SeveralNodes | PodsUnseen) -> str:
    if isinstance(reason, PodsUnseen):
        nodes = counted(reason.nodes, "node")
        return f"no pod was seen anywhere, though {nodes} must have daemons: nothing goes unseen"
    return f"one machine is the nodes {', '.join(reason.nodes)}: delete those that are not it"


def _outside_window(reason: OutsideWindow, now: datetime) -> str:
    several = len(reason.windows) > 1
    named = f"window{'s' * several} {', '.join(reason.windows)} of disruption budget {reason.rule}"
    if reason.opens is None:
        return f"could go, but is outside the {named}, which {'do' if several else 'does'} not open in years"
    first = "the first of which opens" if several else "which opens"
    return f"could go, but is outside the {named}, {first} in {format_duration(reason.opens - now)}"


def _under_way(reason: NotInitialized | Drains | DetachesVolumes, now: datetime) -> str:
    match reason:
        case NotInitialized(stands_in=stands_in):
            return f"not up yet; {stand_in_words(stands_in)}" if stands_in is not None else "not up yet"
        case Drains(pods=pods):
            return f"on its way out: waits until {counted(pods, 'pod')} {'has' if pods == 1 else 'have'} ended"
        case DetachesVolumes(volumes=volumes, until=until):
            more = f" and {len(volumes) - 1} more" if len(volumes) > 1 else ""
            longest = f", for {format_duration(until - now)} at most" if until is not None else ""
            return f"on its way out: waits until volume {volumes[0]}{more} is detached{longest}"
