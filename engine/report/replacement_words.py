"""Machines that wait for others to take their place, or that are not worth it, in a person's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from engine.model.duration import format_duration
from engine.model.refusal import PoolRefusal
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
from engine.model.stay import NoOtherPlace, NotWorthVacating, RepaidTooLate, SavesTooLittle, TooYoung
from engine.report.words import counted

Told = Callable[[PoolRefusal], str]
Waits = AwaitsReplacement | StandsIn | NoPlace | PodHolds | RolloutWaits
NotForMoney = NotWorthVacating | NotQuiet | NewlyUp | MovedLately | Unbalanced
_NAMED = 2


def waits_words(reason: Waits, now: datetime, told: Told) -> str:
    """Why a machine that may go is still there. ``told`` puts a refusal into words."""
    match reason:
        case AwaitsReplacement(claims=claims, why=why):
            gone = f"goes once {_named(claims)} {'is' if len(claims) == 1 else 'are'} up" if claims else _NOT_YET
            return f"{gone} ({why})" if why else gone
        case StandsIn():
            return stand_in_words(reason)
        case NoPlace(pod=pod, refusals=refusals):
            what = f"pod {pod} has no other place" if pod else "base capacity would be short"
            return f"could go, but {what}{_why(refusals, told)}"
        case PodHolds():
            return _pod_holds(reason)
        case RolloutWaits(canaries=canaries, proven=proven, on_trial=on_trial, until=until, change=change):
            due = f"; the next is in {format_duration(until - now)}" if until is not None else ""
            trial = f"{proven} of {canaries} replaced first {'is' if proven == 1 else 'are'} up for long enough"
            drift = f" ({change})" if change else ""
            return f"waits for a trial: {trial}, {on_trial} on trial{due}{drift}"


def stand_in_words(of: StandsIn) -> str:
    """``takes the place of node-1, for its 2 pods: ml/llm-0, ml/llm-1``."""
    whose = "its" if len(of.nodes) == 1 else "their"
    pods = f", for {whose} {counted(len(of.pods), 'pod')}: {_named([str(pod) for pod in of.pods])}" if of.pods else ""
    return f"takes the place of {_named(of.nodes)}{pods}"


_NOT_YET = "goes once another is up, and none can be launched now"


def not_worth_words(reason: NotForMoney, now: datetime) -> str:
    """Why a node with pods stays although nodes go for money."""
    match reason:
        case SavesTooLittle(saving=saving, least=least):
            return f"without it {saving} would be saved, less than {least}" if saving.micros > 0 else _DEARER
        case RepaidTooLate(cost_micros=cost, saving=saving, repaid_in=repaid, within=within):
            price = f"${cost / 1_000_000:.4f}"
            return f"moving its pods costs {price}, which {saving} repays in {_seconds(repaid)}, not {_seconds(within)}"
        case NotQuiet(since=since, until=until):
            return f"a pod came or left {format_duration(now - since)} ago, may go in {format_duration(until - now)}"
        case MovedLately(until=until):
            return f"its pods moved for money lately, may do so again in {format_duration(until - now)}"
        case NewlyUp(since=since, until=until):
            return f"up for {format_duration(now - since)}, may go for money in {format_duration(until - now)}"
        case Unbalanced(saved_percent=saved, disturbed_percent=disturbed):
            return (
                f"moving {disturbed}% of the pool for {saved}% of its cost is not balanced: half as much is asked for"
            )
        case TooYoung(age_seconds=age, least_seconds=least):
            return f"up for {_seconds(age)}, and none goes for money before {_seconds(least)}"
        case NoOtherPlace(pod=pod, pods=pods):
            others = f" (of {pods})" if pods > 1 else ""
            return f"its pod {pod}{others} has no other place"


_DEARER = "without it the others would cost no less"


def _pod_holds(reason: PodHolds) -> str:
    match reason.hold:
        case Hold.NOBODYS:
            return f"could go, but nobody would make pod {reason.pod} again"
        case Hold.BEARS_THE_MARK:
            return f"could go, but pod {reason.pod} tolerates the mark and would stay"
        case Hold.BUDGET:
            return f"PodDisruptionBudget {', '.join(reason.budgets)} does not let pod {reason.pod} go now"
        case Hold.SEVERAL_BUDGETS:
            several = f"{len(reason.budgets)} PodDisruptionBudgets ({', '.join(reason.budgets)})"
            return f"pod {reason.pod} is protected by {several}, and the eviction API wants one at most"


def _why(refusals: Sequence[PoolRefusal], told: Told) -> str:
    return f": {refusals[0].node_pool or 'no pool'}: {told(refusals[0])}" if refusals else ""


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _seconds(count: int) -> str:
    hours, rest = divmod(count, 3600)
    return f"{hours}h{rest // 60}m" if hours else f"{rest // 60}m{rest % 60}s"
