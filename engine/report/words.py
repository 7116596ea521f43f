"""Reasons as sentences: each typed refusal and stay reason in a person's words, its numbers in a person's units."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.duration import format_duration
from engine.model.label_refusal import LabelDidNotCome
from engine.model.money import UsdPerHour
from engine.model.plan import LimitUse
from engine.model.quantity import EPHEMERAL_STORAGE, MEMORY, NODES, format_amount
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
    NoOffering,
    NoPermittedType,
    NoTypeFits,
    OfferingsUnavailable,
    PoolIsStatic,
    PoolNotReady,
    PoolPaused,
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
    MovedLately,
    NewlyUp,
    NoPlace,
    NotQuiet,
    PodHolds,
    RolloutWaits,
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
    NotInitialized,
    NotWorthVacating,
    OutsideWindow,
    Overdue,
    PoolUnknown,
    RemovalCap,
    RuleKeeps,
    SeveralNodes,
    StayReason,
    TooManyUnhealthy,
)
from engine.model.volume_refusal import VolumeNotReady
from engine.report.ceiling_words import ceiling_reached_words
from engine.report.misfit_words import coupling_words, misfit_words
from engine.report.replacement_words import not_worth_words, waits_words
from engine.report.waste_words import spare_words

HOURS_A_MONTH = 730
_GIBIBYTE = 2**30
_CAPS = {"launches": "launches in one pass", "addedUsdPerHour": "added $/h in one pass"}


def refusal_words(refusal: Refusal, now: datetime) -> str:
    """Why a pod got nothing of a pool; ``now`` tells how long an offering stays out."""
    match refusal:
        case LimitReached():
            return _limit_reached(refusal)
        case CeilingReached():
            return ceiling_reached_words(refusal)
        case GuardrailBlocks():
            return _guardrail_blocks(refusal)
        case CapReached(cap=cap, limit=limit):
            return f"the environment's cap of {limit} {_CAPS.get(cap, cap)} is reached; the next pass goes on"
        case OfferingsUnavailable() | ReservedExhausted() | NoOffering():
            return _not_for_sale(refusal, now)
        case LabelDidNotCome(key=key, wanted=wanted, until=until):
            tried = f"tried again in {format_duration(until - now)}" if now < until else "it is tried again"
            return f"the pool's nodes were expected to get {key} {wanted} once up, and did not; {tried}"
        case VolumeNotReady(claim=claim, why=why):
            return f"volume claim {claim}: {why}"
        case PoolNotReady() | PoolPaused() | KarpenterOwnsPool() | BringUpsFailed() | FoundationBusy():
            return _closed_words(refusal, now)
        case SpreadUnsatisfiable() | AffinityUnsatisfiable() | AntiAffinityInTheWay() | HostPortTaken():
            return coupling_words(refusal)
        case _:
            return _mismatch_words(refusal)


def _not_for_sale(refusal: OfferingsUnavailable | ReservedExhausted | NoOffering, now: datetime) -> str:
    """Why what would fit cannot be had now."""
    match refusal:
        case OfferingsUnavailable():
            return _offerings_unavailable(refusal, now)
        case ReservedExhausted(reservations=reservations, slots=slots):
            taken = f"all {counted(slots, 'place')} of {counted(reservations, 'reservation')} are taken"
            return f"reserved capacity is exhausted: {taken}, and nothing else is permitted"
        case NoOffering(types=types, unpriced=unpriced):
            unknown = f"; {counted(unpriced, 'offering')} without a known price" if unpriced else ""
            return f"{counted(types, 'type')} would fit, none sold in the permitted zones and capacity types{unknown}"


def _closed_words(
    refusal: PoolNotReady | PoolPaused | KarpenterOwnsPool | BringUpsFailed | FoundationBusy, now: datetime
) -> str:
    """Why a pool launches nothing for anybody."""
    match refusal:
        case PoolNotReady(why=why):
            return f"the pool cannot launch: {why}"
        case PoolPaused(why=why):
            return f"the pool is paused: {why}"
        case KarpenterOwnsPool(node_pool=pool):
            return f"a live Karpenter has the NodePool {pool}; hand it over first"
        case BringUpsFailed(failures=failures, until=until):
            again = f"the next try in {format_duration(until - now)}" if now < until else "one is being tried"
            return f"{counted(failures, 'machine')} in a row did not come up in time; {again}"
        case FoundationBusy(stack=stack):
            return f"needs a launch template that the stack {stack} has yet to make, and an update of it is under way"


_Mismatch = (
    TaintNotTolerated
    | RequirementMismatch
    | TooFewValues
    | NoTypeFits
    | AcceleratorNotOffered
    | NoPermittedType
    | GpuPoolClosed
    | PoolIsStatic
    | UnsupportedConstraint
    | RuleForbids
    | GpuWaste
    | WaitsForSpareCapacity
)


def _mismatch_words(refusal: _Mismatch) -> str:
    """Why pod and pool do not go together, whatever is for sale."""
    match refusal:
        case TaintNotTolerated(taint=taint):
            return f"the pod does not tolerate the pool's taint {taint}"
        case RequirementMismatch() | TooFewValues() | NoTypeFits():
            return misfit_words(refusal)
        case AcceleratorNotOffered(resource=resource, offered=others, families=families):
            instead = f"; {', '.join(families)} offers {', '.join(others)}" if others else ""
            return f"no type of the pool offers {resource}{instead}"
        case NoPermittedType(decisive=decisive):
            return f"no instance type is left: the last went by {decisive}"
        case GpuPoolClosed():
            return "the pod asks for no accelerator, and the pool's nodes are kept for pods that do"
        case PoolIsStatic():
            return "the pool has fixed replicas and makes no node for a pod"
        case UnsupportedConstraint(constraints=constraints):
            return f"the pod uses what is not placed yet: {', '.join(constraints)}"
        case RuleForbids():
            return _rule_forbids(refusal)
        case GpuWaste() | WaitsForSpareCapacity():
            return spare_words(refusal)


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
    if isinstance(reason, AwaitsReplacement | NoPlace | PodHolds | RolloutWaits):
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
        case SeveralNodes(nodes=nodes):
            return f"one machine is the nodes {', '.join(nodes)}: delete those that are not it"
        case GuardrailBlocks():
            return f"could go, but {_guardrail_blocks(reason)}"
        case RuleKeeps(rule=rule, message=message, error=error):
            if error:
                return f"could go, but disruption budget {rule} cannot be evaluated for it, and so keeps it: {error}"
            return f"could go, but disruption budget {rule} keeps it: {message}"
        case OutsideWindow():
            return _outside_window(reason, now)


def _outside_window(reason: OutsideWindow, now: datetime) -> str:
    several = len(reason.windows) > 1
    named = f"window{'s' * several} {', '.join(reason.windows)} of disruption budget {reason.rule}"
    if reason.opens is None:
        return f"could go, but is outside the {named}, which {'do' if several else 'does'} not open in years"
    first = "the first of which opens" if several else "which opens"
    return f"could go, but is outside the {named}, {first} in {format_duration(reason.opens - now)}"


def _under_way(reason: NotInitialized | Drains | DetachesVolumes, now: datetime) -> str:
    match reason:
        case NotInitialized():
            return "not up yet"
        case Drains(pods=pods):
            return f"on its way out: waits until {counted(pods, 'pod')} {'has' if pods == 1 else 'have'} ended"
        case DetachesVolumes(volumes=volumes, until=until):
            more = f" and {len(volumes) - 1} more" if len(volumes) > 1 else ""
            longest = f", for {format_duration(until - now)} at most" if until is not None else ""
            return f"on its way out: waits until volume {volumes[0]}{more} is detached{longest}"


def next_best_words(chosen: str, lost: Iterable[LostOffering]) -> str:
    """The next best that is another type or capacity type: ``+0.2060 g5.2xlarge``; else the next best zone. It is
    cheaper, ``-0.2060 g5.2xlarge``, where a rule prefers what was chosen.

    ``chosen`` and the lost ones are offering keys, TYPE/ZONE/CAPACITY-TYPE.
    """
    kind, zone, capacity_type = chosen.split("/")[:3]
    only_zone = ""
    for each in lost:
        other_kind, other_zone, other_capacity_type = each.offering.split("/")[:3]
        differences = [
            theirs for theirs, ours in ((other_kind, kind), (other_capacity_type, capacity_type)) if theirs != ours
        ]
        if differences:
            return f"{_extra(each)} {' '.join(differences)}"
        if other_zone != zone and not only_zone:
            only_zone = f"{_extra(each)} {other_zone}"
    return only_zone


def _extra(lost: LostOffering) -> str:
    extra = lost.extra_usd_per_hour
    sign = "" if extra.micros < 0 else "+"
    return f"{sign}{extra}".removesuffix("/h").replace("$", "")


def counted(count: int, noun: str) -> str:
    """``1 pod``, ``3 pods``, ``2 capacities``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ty") else f"{count:,} {noun}s"


def signed(change: UsdPerHour) -> str:
    """``+$1.2000/h``, ``-$0.5000/h``, ``±$0/h``."""
    if change.micros == 0:
        return "±$0/h"
    return f"+{change}" if change.micros > 0 else str(change)


def a_month(price: UsdPerHour) -> str:
    """``$8,760`` for 730 hours."""
    dollars = price.micros * HOURS_A_MONTH / 1_000_000
    return f"{'-' if dollars < 0 else ''}${abs(dollars):,.0f}"


def rounded_words(resource: str, amount: int) -> str:
    """An amount that is a sum: memory to the Gi, since nobody reads 1818620Mi."""
    if resource in (MEMORY, EPHEMERAL_STORAGE) and amount >= 10 * _GIBIBYTE:
        return format_amount(resource, round(amount / _GIBIBYTE) * _GIBIBYTE)
    return format_amount(resource, amount)


def _rule_forbids(refusal: RuleForbids) -> str:
    fit = f"{counted(refusal.types, 'type')} would fit, none of them allowed"
    erred = f"; {refusal.errors} for an error: {refusal.sample}" if refusal.errors else ""
    return f"{fit} by the rules, the last barred by {refusal.rule}: {refusal.message}{erred}"


def _limit_reached(refusal: LimitReached) -> str:
    resource = refusal.resource
    limit, used, planned, needed = (
        rounded_words(resource, amount) for amount in (refusal.limit, refusal.used, refusal.planned, refusal.needed)
    )
    named = "nodes" if resource == NODES else resource
    # What is needed is a whole node, whatever the pod asks of it; a node with one device is told as the device.
    needs = needed if resource == NODES or refusal.needed == 1 else f"a node of {needed}"
    return f"limit {named} {limit} reached ({used} used, {planned} planned, needs {needs})"


def limit_unit(use: LimitUse) -> str:
    """The unit of a limit's whole numbers."""
    match use.resource:
        case LimitedResource.USD_PER_HOUR.value:
            return "millionths of USD/h"
        case "cpu":
            return "thousandths of a core"
        case _ if use.resource in ("memory", "ephemeral-storage"):
            return "bytes"
        case _:
            return "count"


def _guardrail_blocks(refusal: GuardrailBlocks) -> str:
    if refusal.error:
        return f"guardrail {refusal.rule} cannot be evaluated, and what it guards is not done: {refusal.error}"
    return f"guardrail {refusal.rule} does not let the plan through: {refusal.message}"


def _offerings_unavailable(refusal: OfferingsUnavailable, now: datetime) -> str:
    times = "once" if refusal.refusals == 1 else f"{refusal.refusals} times"
    out, refused = counted(refusal.offerings, "offering"), f"refused {times} with {refusal.last_code}"
    is_over = refusal.until <= now
    back = "one launch is being tried" if is_over else f"first back in {format_duration(refusal.until - now)}"
    return f"{out} out: {refused}{quota_words(refusal.quota)}; {back}"


def quota_words(quota: str) -> str:
    """What to do about a quota of the account, to be put after what it refused; empty for none."""
    return f", the account's quota {quota!r} is used up (ask AWS to raise it in Service Quotas)" if quota else ""
