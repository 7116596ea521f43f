"""One machine that goes, in a person's words: what it saves, by which budget, and where its pods go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from engine.model.document import RemovalRecord
from engine.model.money import UsdPerHour
from engine.model.plan import Kept, Launch, Plan, Removal
from engine.model.pod import PodKey
from engine.report.pending_words import deadline_words
from engine.report.tables import examples
from engine.report.words import counted, refusal_words

# Where pods go, as far as that is known: a node's name, or a claim's.
Targets = Mapping[PodKey, str]
_UNLIMITED = "no budget is active"
_NAMED = 2
# Millionths of a dollar: less is shown as nothing.
_LEAST_TOLD = 50
_LAUNCHES_SHOWN = 4


def targets_of(plan: Plan) -> Targets:
    """Where the pods go that lose their nodes by this plan: what is there or on its way, or is launched for them."""
    launched = {pod: launch.claim.name for launch in plan.launches for pod in launch.displaced}
    there = {place.pod: place.node or place.claim or "" for place in plan.placements}
    placed = {place.pod: place.node or place.claim or "" for each in plan.removals for place in each.places}
    return {**launched, **there, **placed}


def budget_words(record: RemovalRecord) -> str:
    """``budget slow-drain: 2 of 3 in gpu-elastic, window weekday-night``, this one counted; empty for what no budget
    holds. A budget of so many percent says of how many nodes."""
    use = record.budget
    if use is None:
        return ""
    if use.budget == _UNLIMITED:
        return _UNLIMITED
    name, _, where = use.budget.partition(", ")
    base = f" of {counted(use.base, 'node')}" if name.endswith("%") else ""
    when = f", {where}" if where else ""
    return f"budget {name}{base}: {use.used} of {use.allowed} in {record.node_pool}{when}"


def saving_words(saving: UsdPerHour | None) -> str:
    """``saves $0.4000/h`` or ``costs $0.4000/h more``; empty for nothing, and where nobody chose it."""
    if saving is None or abs(saving.micros) < _LEAST_TOLD:
        return ""
    return f"saves {saving}" if saving.micros > 0 else f"costs {UsdPerHour(-saving.micros)} more"


def delete_first_words(removal: Removal, now: datetime) -> str:
    """That it goes before another takes its place, and why; empty where it does not."""
    if removal.delete_first is None:
        return ""
    refusals = removal.delete_first.refusals
    if not refusals:
        return "goes before another takes its place: the pool's surge is 0; its pods wait for that"
    first = refusals[0]
    why = f"{first.node_pool or 'no pool'}: {refusal_words(first.refusal, now)}"
    return f"goes before another takes its place, for which there is no room: {why}; its pods wait for that"


def pods_words(removal: Removal, targets: Targets, *, every: bool = False) -> list[str]:
    """Who is asked to leave now, who after that, and who is deleted, each with where it goes."""
    asked, forced = removal.pods, {each.pod for each in removal.forced}
    known = set(asked) | forced
    later = [place.pod for place in removal.places if place.pod not in known]
    lines = []
    if asked:
        lines.append(f"evicts {counted(len(asked), 'pod')}: {_going(asked, targets, every=every)}")
    if later:
        lines.append(f"then {counted(len(later), 'pod')}: {_going(later, targets, every=every)}")
    if forced:
        going = _going(sorted(forced), targets, every=every)
        lines.append(f"deletes {counted(len(forced), 'pod')} out of time: {going}")
    return lines


def removal_lines(removal: Removal, targets: Targets, now: datetime, *, every: bool = False) -> list[str]:
    """All that is to be said of a removal behind its price, line by line; ``every`` names every pod."""
    until = deadline_words(removal.drained_by, now) if removal.drained_by is not None else ""
    lines = [
        removal.record.rule,
        budget_words(removal.record),
        delete_first_words(removal, now),
        *pods_words(removal, targets, every=every),
        until,
    ]
    return [line for line in lines if line]


def replacing_lines(plan: Plan, *, every: bool = False) -> list[str]:
    """Each launch that takes the place of others: of whom, at what price, and which pods come with it."""
    kept = {each.claim: each for each in plan.kept}
    lines = []
    for launch in plan.launches:
        replaced = [kept[name] for name in launch.claim.replaces if name in kept]
        if not replaced:
            continue
        names = examples([each.node or each.claim for each in replaced], every=every, shown=_NAMED)
        moved = examples([str(pod) for pod in launch.displaced], every=every, shown=_NAMED)
        pods = f", for {counted(len(launch.displaced), 'pod')}: {moved}" if moved else ""
        lines.append(f"{launch.claim.name} takes the place of {names}{pods}{_difference(plan, launch, replaced)}")
    shown = lines if every else lines[:_LAUNCHES_SHOWN]
    return shown if len(shown) == len(lines) else [*shown, f"and {len(lines) - len(shown)} more such (--details)"]


def _difference(plan: Plan, launch: Launch, replaced: Sequence[Kept]) -> str:
    """What the exchange saves, where it is one for one or one for many: of many for many no launch has its own part."""
    own = set(launch.claim.replaces)
    if any(own.intersection(each.claim.replaces) for each in plan.launches if each is not launch):
        return ""
    before = sum(each.usd_per_hour.micros for each in replaced)
    words = saving_words(UsdPerHour(before - launch.claim.usd_per_hour.micros))
    return f"; {words} once {'that is' if len(replaced) == 1 else 'those are'} gone" if words else "; at the same price"


def going_words(removal: Removal, targets: Targets, now: datetime) -> str:
    """What goes on with a machine that goes, in one line: not its rule, nor its budget."""
    saving = removal.saving if removal.saving != removal.record.usd_per_hour else None
    parts = [delete_first_words(removal, now), *pods_words(removal, targets), saving_words(saving)]
    return "; ".join(filter(None, parts))


def _going(pods: Sequence[PodKey], targets: Targets, *, every: bool) -> str:
    """``ml/llm-0 to node-4, ml/llm-1 to node-5``; those without a place are told as such."""
    told = [f"{pod} to {targets[pod]}" if targets.get(pod) else str(pod) for pod in pods]
    return examples(told, every=every, shown=_NAMED)
