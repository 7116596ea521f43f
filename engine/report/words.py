"""Reasons as sentences: each typed refusal in a person's words, its numbers in a person's units."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
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
from engine.model.rule import LimitedResource
from engine.model.spare_refusal import GpuWaste, WaitsForSpareCapacity
from engine.model.volume_refusal import VolumeNotReady
from engine.report.ceiling_words import ceiling_reached_words
from engine.report.misfit_words import coupling_words, misfit_words
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
            return guardrail_words(refusal)
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


def guardrail_words(refusal: GuardrailBlocks) -> str:
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
