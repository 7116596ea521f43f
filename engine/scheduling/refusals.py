"""Why a pool gives a class of pods nothing: the first constraint that decides, with its numbers.

The order is that of asking: taints, requirements, accelerators, resources, rules, other pods, offerings, limits, caps.
The further a pool came, the nearer it was, so refusals are told nearest first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.constraint import Requirement, whole_number
from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.label_refusal import LabelDidNotCome
from engine.model.money import FREE, UsdPerHour
from engine.model.quantity import Resources
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
from engine.model.spare_refusal import GpuWaste, WaitsForSpareCapacity
from engine.scheduling.ceilings import NO_COUNTS, Counts
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.limits import Headroom
from engine.scheduling.near_misses import cheapest_first, no_type_fits
from engine.scheduling.offers import PoolOffers
from engine.scheduling.requirements import ValueSet
from engine.scheduling.tie_refusals import TieRefusals, port_refusal
from engine.scheduling.waste import waste_refusal

_NEAREST_FIRST: tuple[type[Refusal], ...] = (
    FoundationBusy,
    CapReached,
    LimitReached,
    CeilingReached,
    GuardrailBlocks,
    BringUpsFailed,
    OfferingsUnavailable,
    ReservedExhausted,
    SpreadUnsatisfiable,
    AntiAffinityInTheWay,
    AffinityUnsatisfiable,
    HostPortTaken,
    PoolPaused,
    KarpenterOwnsPool,
    NoOffering,
    PoolNotReady,
    GpuWaste,
    RuleForbids,
    TooFewValues,
    NoTypeFits,
    GpuPoolClosed,
    AcceleratorNotOffered,
    NoPermittedType,
    LabelDidNotCome,
    RequirementMismatch,
    TaintNotTolerated,
    PoolIsStatic,
)


def refusals(
    pod_class: PodClass,
    pools: Sequence[PoolOffers],
    headroom: Headroom,
    counts: Counts = NO_COUNTS,
    ties: TieRefusals | None = None,
) -> tuple[PoolRefusal, ...]:
    """One refusal for each pool, the nearest miss first; at least one, of no pool, when there is no pool.

    ``ties`` are None where nothing ties pods to each other.
    """
    if pod_class.unsupported:
        return (PoolRefusal("", UnsupportedConstraint(tuple(sorted(pod_class.unsupported)))),)
    if pod_class.terms.fills_only:
        return (PoolRefusal("", WaitsForSpareCapacity(pod_class.terms.fills_only)),)
    if not pools:
        return (PoolRefusal("", PoolNotReady("no node pool is declared")),)
    told = [(pool, _refusal(pod_class, pool, headroom, counts, ties)) for pool in pools]
    told.sort(key=lambda pair: (_NEAREST_FIRST.index(type(pair[1])), -pair[0].state.pool.weight, pair[0].name))
    return tuple(PoolRefusal(pool.name, refusal) for pool, refusal in told)


def base_refusal(pool: PoolOffers, headroom: Headroom) -> Refusal:
    """Why a pool gets no further node of its base capacity."""
    kinds = pool.kinds_without_pods()
    if not kinds:
        return _no_option(pool)
    return _not_launched(pool, kinds, headroom)


def _refusal(
    pod_class: PodClass,
    pool: PoolOffers,
    headroom: Headroom,
    counts: Counts,
    ties: TieRefusals | None,
) -> Refusal:
    policy = pool.state.pool
    if policy.is_static:
        return PoolIsStatic()
    taint = pod_class.demand.barring_taint(policy.taints)
    if taint is not None:
        return TaintNotTolerated(str(taint))
    if not pool.options:
        return _not_carried(pod_class.accelerators, pool.state.unsold) or _no_option(pool)
    permitted = pool.permitted(pod_class.demand)
    if not permitted:
        return _requirement_refusal(pod_class, pool)
    fitting = [kind for kind, _ in pool.fitting(pod_class)]
    return (
        _accelerator_refusal(pod_class, pool, permitted)
        or port_refusal(pod_class, pool, permitted)
        or no_type_fits(pod_class, pool, permitted)
        or _rule_refusal(pod_class, pool)
        or waste_refusal(pod_class, pool)
        or _min_values_refusal(pod_class, pool)
        or pool.state.not_ready
        or _not_left(pod_class, pool, fitting, headroom, counts, ties)
    )


def _no_option(pool: PoolOffers) -> Refusal:
    """Of a pool that has no option for anybody."""
    if pool.state.not_ready is not None:
        return pool.state.not_ready
    if pool.state.unsold:
        return NoOffering(types=len(pool.state.unsold), unpriced=0)
    return NoPermittedType("; ".join(sorted(map(str, pool.state.pool.requirements))))


def _requirement_refusal(pod_class: PodClass, pool: PoolOffers) -> Refusal:
    """The requirement that removed the last option, of the OR term that got furthest."""
    furthest: tuple[int, Refusal] | None = None
    for term in pod_class.demand.terms:
        met, refusal = _term_refusal(term, pool)
        if furthest is None or met > furthest[0]:
            furthest = (met, refusal)
    return furthest[1] if furthest is not None else NoPermittedType("an affinity without any term")


def _term_refusal(term: Sequence[Requirement], pool: PoolOffers) -> tuple[int, Refusal]:
    """How many requirements of the term some option meets together, and the refusal by the next one."""
    left = [labels for _, labels in pool.options]
    wanted: dict[str, ValueSet] = {}
    for met, each in enumerate(term):
        alone = ValueSet.of(each)
        wanted[each.key] = wanted[each.key].intersection(alone) if each.key in wanted else alone
        left = [labels for labels in left if _may_have(labels, each.key, wanted[each.key], pool)]
        if not left:
            offered = pool.offered_values(each.key)
            if offered.intersection(wanted[each.key]).is_empty:
                until = pool.state.label_doubts.get(each.key)
                if until is not None:
                    return met, LabelDidNotCome(each.key, wanted=str(wanted[each.key]), until=until)
                return met, _mismatch(each.key, wanted[each.key], offered)
            return met, NoPermittedType(str(each))
    return len(term), NoPermittedType("; ".join(map(str, term)))


def _mismatch(key: str, wanted: ValueSet, offered: ValueSet) -> RequirementMismatch:
    return RequirementMismatch(key, wanted=str(wanted), offered=_told(offered), nearest=_nearest(wanted, offered))


def _nearest(wanted: ValueSet, offered: ValueSet) -> str:
    """Of several numbers offered the one that misses a bound least; empty where nothing is bounded."""
    if wanted.lower is None and wanted.upper is None:
        return ""
    missed = {}
    for value in sorted(offered.values) if not offered.complement else ():
        number = whole_number(value)
        if number is not None:
            under = wanted.lower - number if wanted.lower is not None else 0
            over = number - wanted.upper if wanted.upper is not None else 0
            missed[value] = max(under, over)
    return min(missed, key=lambda value: missed[value], default="")


def _may_have(labels: Mapping[str, str], key: str, wanted: ValueSet, pool: PoolOffers) -> bool:
    if key not in labels and key in pool.custom:
        return not pool.custom[key].intersection(wanted).is_empty
    return wanted.admits(labels.get(key))


def _told(offered: ValueSet) -> str:
    """What a pool offers under a key; nothing at all is told as an empty text."""
    return str(offered) if offered.values or offered.complement else ""


def _accelerator_refusal(pod_class: PodClass, pool: PoolOffers, permitted: Sequence[Kind]) -> Refusal | None:
    if not any(pool.open_to(pod_class, kind) for kind in permitted):
        return GpuPoolClosed()
    return _not_carried(pod_class.accelerators, [kind.instance_type for kind in permitted])


def _not_carried(accelerators: Sequence[str], types: Sequence[InstanceType]) -> Refusal | None:
    """The first of the accelerators asked for that no type carries, with those that they do carry."""
    for resource in accelerators:
        if not types or any(kind.accelerators.amount(resource) for kind in types):
            continue
        carrying = [kind for kind in types if kind.accelerators.accelerators()]
        return AcceleratorNotOffered(
            resource,
            offered=tuple(sorted({name for kind in carrying for name in kind.accelerators.accelerators()})),
            families=tuple(sorted({kind.labels.get(keys.INSTANCE_FAMILY, kind.name) for kind in carrying})),
        )
    return None


def _rule_refusal(pod_class: PodClass, pool: PoolOffers) -> Refusal | None:
    """The rule that removed the last type that would fit, when rules are asked one by one in the order of their names.

    None: a type is left.
    """
    bars = [(kind, pod_class.rulings.bar(pool.name, kind.type_at)) for kind, _ in pool.holding(pod_class)]
    barred = [(kind, bar) for kind, bar in bars if bar is not None]
    if not barred or len(barred) < len(bars):
        return None
    decisive = max((bar for _, bar in barred), key=lambda bar: bar.rule)
    example = min((kind for kind, bar in barred if bar.rule == decisive.rule), key=cheapest_first)
    erred = sorted((kind.instance_type.name, bar.error) for kind, bar in barred if bar.error)
    return RuleForbids(
        rule=decisive.rule,
        message=decisive.message,
        types=len({kind.instance_type.name for kind, _ in barred}),
        errors=len({name for name, _ in erred}),
        sample=erred[0][1] if erred else "",
        example="/".join(example.type_at),
    )


def _min_values_refusal(pod_class: PodClass, pool: PoolOffers) -> Refusal | None:
    """The minValues that those kinds which are left do not reach."""
    lacking = pool.too_few_values(kind for kind, _ in pool.fitting(pod_class))
    if lacking is None:
        return None
    key, least, values = lacking
    return TooFewValues(key, min_values=least, left=tuple(sorted(values)))


def _not_left(
    pod_class: PodClass,
    pool: PoolOffers,
    fitting: Sequence[Kind],
    headroom: Headroom,
    counts: Counts,
    ties: TieRefusals | None,
) -> Refusal:
    """Of kinds that would hold a pod: closed by the pods that it is tied to, else not launched for now.

    Where ties leave none, neither a later pass nor a higher limit would help; so limits and caps are asked after.
    """
    if pool.too_few_values(fitting, bought_now=True) is not None:
        # Enough to choose from would fit, and so much of it is out for now that the rest shows too few values.
        return _no_offering(fitting)
    if ties is not None:
        left = ties.left(pod_class, fitting)
        if left.refusal is not None:
            return left.refusal
        fitting = left.kinds
    prices = [kind.usd_per_hour for kind in fitting if kind.usd_per_hour is not None and kind.buyable]
    ceiling = counts.in_the_way(pod_class.shares, pool.name, pod_class.requests, prices)
    return _not_launched(pool, fitting, headroom, ceiling)


def _not_launched(
    pool: PoolOffers,
    fitting: Sequence[Kind],
    headroom: Headroom,
    ceiling: CeilingReached | None = None,
) -> Refusal:
    """Of kinds that would do: not ready, not sold, refused lately, over a limit, or over a cap.

    ``ceiling`` is that of the pods' own group, where it is in the way.
    """
    if pool.state.not_ready is not None:
        return pool.state.not_ready
    exhausted = _reserved_exhausted(fitting, headroom)
    if exhausted is not None:
        return exhausted
    buyable = [kind for kind in fitting if kind.usd_per_hour is not None and kind.buyable]
    buyable = [kind for kind in buyable if headroom.places_left(kind.reservation)]
    buyable = [kind for kind in buyable if headroom.may_try(kind.probes)]
    if not buyable:
        return _no_offering(fitting)
    limit = headroom.limit_in_the_way(pool.name, _as_counted(buyable)) or ceiling
    refused = [kind for kind in fitting if kind not in buyable and kind.usd_per_hour is not None]
    is_ahead = limit is not None and ceiling is None
    if is_ahead and refused and headroom.limit_in_the_way(pool.name, _as_counted(refused)) is None:
        # What the limit leaves room for is out for now: the limit is not what the pod waits for.
        return _no_offering(refused)
    return limit or headroom.cap_in_the_way()


def _reserved_exhausted(fitting: Sequence[Kind], headroom: Headroom) -> ReservedExhausted | None:
    """Where all that would do is reserved, and nothing is left of it."""
    totals = {kind.reservation: kind.options[0].places for kind in fitting if kind.usd_per_hour is not None}
    if not totals or any(headroom.places_left(each) for each in totals):
        return None
    return ReservedExhausted(reservations=len(totals), slots=sum(totals.values()))


def _as_counted(kinds: Sequence[Kind]) -> list[tuple[Resources, UsdPerHour]]:
    return [(kind.capacity, kind.usd_per_hour or FREE) for kind in kinds]


def _no_offering(fitting: Sequence[Kind]) -> Refusal:
    options = [option for kind in fitting for option in kind.options]
    priced = [option for option in options if option.usd_per_hour is not None]
    refused = [option.refused for option in priced if option.refused is not None]
    if not refused:
        types = {option.instance_type.name for option in options}
        return NoOffering(types=len(types), unpriced=len(options) - len(priced))
    first = min(refused, key=lambda each: (each.until, each.refusals, each.code))
    return OfferingsUnavailable(
        len(refused), until=first.until, refusals=first.refusals, last_code=first.code, quota=first.quota
    )
