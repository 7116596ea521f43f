"""What a change of policy does, in sentences: the same ones on a screen and in a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from attrs import frozen

from engine.model.duration import format_duration
from engine.model.money import UsdPerHour
from engine.model.quantity import NODES, format_amount
from engine.model.rule import LimitedResource
from engine.policy.rules.ruling import TypeAt
from engine.report.ceiling_words import CEILING_UNITS, ceiling_words
from engine.report.definition_words import definition_sentences, definitions_in_short
from engine.report.diff_report import (
    Both,
    CalendarChange,
    CeilingChange,
    ClassDifference,
    EnvironmentDifference,
    ErrorsDifference,
    HeadroomChange,
    LimitChange,
    MomentDifference,
    PolicyDifference,
    PoolDifference,
    TypesChange,
    VerdictDifference,
    WorkloadPods,
)
from engine.report.tables import examples
from engine.report.words import a_month, counted, signed

_TYPES_SHOWN = 4
_MORE_TYPES_SHOWN = 8
_OWNERS_SHOWN = 3
_ROWS_TOLD = 3
_UNBOUNDED = 2**62


def verdict_sentence(difference: PolicyDifference) -> str:
    """The whole in one sentence."""
    if difference.is_invalid:
        names = ", ".join(each.name for each in difference.environments if each.is_invalid)
        return f"The policy does not load in {names}, so what it would do there is not known."
    if not difference.has_effect:
        names = ", ".join(each.name for each in difference.environments)
        is_same = not any(each.definitions for each in difference.environments)
        files = "policies and settings are the same" if is_same else "the files differ in words alone"
        moments = sum(len(each.moments) for each in difference.environments)
        at = f"at {counted(moments, 'recorded moment')} the plan is the same" if moments else "no plan was compared"
        return f"No effect on {names}: {files}; {at}."
    touched = [each.name for each in difference.environments if each.has_effect]
    if not difference.findings and not any(each.shows_effect for each in difference.environments):
        return _definitions_alone(difference, touched)
    return f"This changes what happens in {', '.join(touched) or 'check'}."


def _definitions_alone(difference: PolicyDifference, touched: Sequence[str]) -> str:
    """A rule that had nothing to do at these moments may have much to do at others."""
    differing = [each for one in difference.environments for each in one.definitions if each.has_effect]
    has_moments = any(each.moments for each in difference.environments)
    compared = "No plan of the recorded moments changes" if has_moments else "No plan was compared"
    what = "rules do" if any(each.is_of_rules for each in differing) else "pools, classes or settings do"
    verb = what if has_moments else what.replace(" do", " change")
    return f"{compared}, but {verb} in {', '.join(touched)}: {definitions_in_short(differing)}."


def moment_sentence(moment: MomentDifference) -> str:
    """``HEAD launches 3 more nodes (+4 GPUs), removes 1 more node, +$12.34/h; 210 pods lose g5.12xlarge.``"""
    if not moment.has_effect:
        return "No effect at that moment: the same plan, the same instance types for every pod, the same reasons."
    acts = list(_acts(moment))
    plan = ", ".join(acts) if acts else "the nodes of the plan stay the same in number"
    bill = moment.more_usd_per_hour
    cost = f"{signed(bill)}, about {a_month(bill)} a month" if bill.micros else "the bill stays the same"
    told = [f"HEAD {plan}; {cost}" if acts else f"{plan[0].upper()}{plan[1:]}; {cost}", *_pods_words(moment)]
    return "; ".join(told) + "."


def _acts(moment: MomentDifference) -> Iterator[str]:
    launches, removals = moment.launches.head - moment.launches.base, moment.more_removals
    gpus = f" ({_plus(moment.more_gpus)} GPUs after the plan)" if moment.more_gpus else ""
    if launches:
        yield f"launches {abs(launches):,} {_more_or_fewer(launches)} {_nodes(launches)}{gpus}"
    if removals:
        after = "" if launches else gpus
        yield f"removes {abs(removals):,} {_more_or_fewer(removals)} {_nodes(removals)}{after}"
    elif moment.removed:
        yield "removes other nodes"
    if gpus and not (launches or removals):
        yield f"ends with other nodes{gpus}"
    if moment.foundation_differs:
        yield "boots new nodes from other launch templates, or changes network or roles"


def _pods_words(moment: MomentDifference) -> Iterator[str]:
    lost = [each for each in moment.classes if each.lost]
    if lost:
        pods = sum(each.pods for each in lost)
        types = sorted({type_at for each in lost for change in each.lost for type_at in change.types})
        yield f"{counted(pods, 'pod')} {'loses' if pods == 1 else 'lose'} {types_words(types)}"
    gained = [each for each in moment.classes if each.gained]
    if gained:
        pods = sum(each.pods for each in gained)
        types = sorted({type_at for each in gained for change in each.gained for type_at in change.types})
        yield f"{counted(pods, 'pod')} may also get {types_words(types)}"
    for is_new, words in ((True, "blocked that {} not"), (False, "no longer blocked")):
        pods = sum(each.pods for each in moment.blocked if each.is_new is is_new)
        if pods:
            was, are = ("was", "is") if pods == 1 else ("were", "are")
            yield f"{counted(pods, 'pod')} {are} {words.format(was)}"


def types_words(types: Sequence[TypeAt], shown: int = _TYPES_SHOWN) -> str:
    """``g5.2xlarge, g5.xlarge on-demand; g6.xlarge on-demand and spot``, and how many more."""
    capacity_types: dict[str, list[str]] = {}
    for name, capacity_type in types:
        capacity_types.setdefault(name, []).append(capacity_type)
    alike: dict[str, list[str]] = {}
    for name in sorted(capacity_types, key=_by_size)[:shown]:
        alike.setdefault(" and ".join(sorted(capacity_types[name])), []).append(name)
    rest = len(capacity_types) - shown
    more = f" and {counted(rest, 'more type')}" if rest > 0 else ""
    return "; ".join(f"{', '.join(names)} {sold}" for sold, names in alike.items()) + more


def _by_size(name: str) -> tuple[str, int, str]:
    """Of a family the smallest first, as far as names tell."""
    family, _, size = name.partition(".")
    digits = "".join(character for character in size if character.isdigit())
    return family, int(digits) if digits else int(size.endswith("xlarge")), size


def types_change_words(change: TypesChange) -> str:
    """``g5.12xlarge on-demand (rule gold-on-nvlink bars it …)``."""
    because = f" ({change.because})" if change.because else ""
    return f"{types_words(change.types, shown=_MORE_TYPES_SHOWN)}{because}"


def verdict_change_words(change: VerdictDifference) -> str:
    """``Guardrail spend (deny): holds → blocks add: …``."""
    before, after = change.said.base or "said nothing", change.said.head or "says nothing"
    return f"{change.kind.value} {change.rule} ({change.enforcement.value}): {before} → {after}"


def errors_words(change: ErrorsDifference) -> str:
    """Of how many types a rule gave no answer."""
    before, after = (counted(each, "type") for each in (change.errors.base, change.errors.head))
    return f"RequirementRule {change.rule} could not be evaluated for {before} → {after}: {change.sample}"


def workloads_words(workloads: Sequence[WorkloadPods], shown: int = _OWNERS_SHOWN) -> str:
    """``Deployment inference/llm (12), Job ml/train (3) and 4 more``."""
    return examples([f"{each.name} ({each.pods:,})" for each in workloads], shown=shown)


def class_words(difference: ClassDifference) -> str:
    """How many types each of the pods may get: ``9 to 21 → 3 to 7``."""
    before = _range(difference.fewest.base, difference.most.base)
    after = _range(difference.fewest.head, difference.most.head)
    return f"{before} → {after}" + ("; none is left" if not difference.most.head else "")


def _range(fewest: int, most: int) -> str:
    return f"{most:,}" if fewest == most else f"{fewest:,} to {most:,}"


def pool_cells(pool: PoolDifference) -> tuple[str, str, str, str]:
    """Name, nodes, GPUs and dollars an hour, each ``before → after (difference)``."""
    there = pool.there
    name = pool.name if not there.differs else f"{pool.name} ({'new' if there.head else 'no longer in the files'})"
    return name, count_words(pool.nodes), count_words(pool.gpus), cost_words(pool.usd_per_hour)


def count_words(both: Both[int]) -> str:
    """``12 → 15 (+3)``, or the number alone."""
    if not both.differs:
        return f"{both.head:,}"
    return f"{both.base:,} → {both.head:,} ({_plus(both.head - both.base)})"


def cost_words(both: Both[UsdPerHour]) -> str:
    """``$10.00/h → $22.34/h (+$12.34/h)``, or the price alone."""
    if not both.differs:
        return str(both.head)
    return f"{both.base} → {both.head} ({signed(both.head - both.base)})"


def limit_words(change: LimitChange) -> str:
    """``gpu-core: nvidia.com/gpu 50 → 64``."""
    before, after = (_amount(change.resource, each) for each in (change.limit.base, change.limit.head))
    return f"{change.node_pool}: {change.resource} {before} → {after}"


def ceiling_change_words(change: CeilingChange) -> str:
    """``team-gpus for vision: 8 → 4 GPUs, 6 used``."""
    before, after = (_ceiling(change.resource, each) for each in (change.limit.base, change.limit.head))
    group = f" for {change.group}" if change.group else ""
    used = ceiling_words(change.resource, change.used)
    return f"{change.rule}{group}: {before} → {after} {CEILING_UNITS[change.resource]}, {used} used"


def headroom_change_words(change: HeadroomChange) -> str:
    """``gpu: 2 of 2 → 1 of 4 nvidia.com/gpu free``."""
    where = f" in {change.zone}" if change.zone else ""
    before, after = (
        f"{spare} of {wanted}"
        for spare, wanted in (
            (change.spare.base, change.wanted.base),
            (change.spare.head, change.wanted.head),
        )
    )
    return f"{change.node_pool}{where}: {before} → {after} {change.resource} free"


def place_words(moment: MomentDifference) -> str:
    """What the moment is of: how much was there."""
    there = f"{counted(moment.nodes, 'node')}, {moment.pods.words}"
    return f"{moment.snapshot}, {moment.taken_at:%Y-%m-%d %H:%M} UTC: {there}"


@frozen
class CalendarRow:
    """Intervals of a week in which a pool's budgets change alike; ``lasts`` is their sum."""

    node_pool: str
    reasons: str
    allowed: Both[str]
    lasts: timedelta
    when: tuple[str, ...]


def calendar_rows(changes: Sequence[CalendarChange]) -> tuple[CalendarRow, ...]:
    """The longest first."""
    alike: dict[tuple[str, str, Both[str]], list[CalendarChange]] = {}
    for each in changes:
        alike.setdefault((each.node_pool, each.reason, each.allowed), []).append(each)
    rows = [
        CalendarRow(
            node_pool=pool,
            reasons=reasons,
            allowed=allowed,
            lasts=sum((each.end - each.start for each in group), timedelta()),
            when=tuple(_interval(each.start, each.end) for each in sorted(group, key=lambda each: each.start)),
        )
        for (pool, reasons, allowed), group in alike.items()
    ]
    return tuple(sorted(rows, key=lambda row: (row.node_pool, -row.lasts, row.reasons)))


def _interval(start: datetime, end: datetime) -> str:
    """``Mon 09:00 to 17:00``, ``Fri 21:00 to Mon 04:00``."""
    ends = f"{end:%H:%M}" if start.date() == end.date() else f"{end:%a %H:%M}"
    return f"{start:%a %H:%M} to {ends}"


def environment_sentence(environment: EnvironmentDifference) -> str:
    """Of what no moment tells: notes, what differs in rules, and how disruption budgets change over a week.

    A rule that never had to act at these moments could else be switched off unseen. Empty where there is nothing.
    """
    if environment.is_invalid:
        return "The policy does not load; the findings are below."
    told = [f"{note[0].upper()}{note[1:]}." for note in environment.notes]
    told += definition_sentences(environment.definitions)
    rows = calendar_rows(environment.calendar)
    if rows:
        told.append(f"Over a week, other numbers of nodes may be disrupted: {_calendar_words(rows)}.")
    return " ".join(told)


def _calendar_words(rows: Sequence[CalendarRow]) -> str:
    """Each pool's longest before any pool's next, so that a pool with many changes hides none of the others."""
    longest = {row.node_pool: row for row in reversed(rows)}
    ordered = sorted(rows, key=lambda row: row is not longest[row.node_pool])
    shown = [
        f"{row.node_pool}: {row.allowed.base} → {row.allowed.head} for {format_duration(row.lasts)}"
        for row in ordered[:_ROWS_TOLD]
    ]
    rest = len(ordered) - len(shown)
    return "; ".join(shown) + (f"; and {rest:,} more" if rest else "")


def _amount(resource: str, amount: int | None) -> str:
    if amount is None:
        return "no limit"
    return f"{amount:,}" if resource == NODES else format_amount(resource, amount)


def _ceiling(resource: LimitedResource, amount: int | None) -> str:
    if amount is None:
        return "none"
    return "no bound" if amount > _UNBOUNDED else ceiling_words(resource, amount)


def _plus(number: int) -> str:
    return f"+{number:,}" if number > 0 else f"{number:,}"


def _more_or_fewer(number: int) -> str:
    return "more" if number > 0 else "fewer"


def _nodes(number: int) -> str:
    return "node" if abs(number) == 1 else "nodes"
