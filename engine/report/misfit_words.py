"""Why no type holds a pod, and why the pods around it keep it out, in a person's words and units."""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.constraint import LabelSelector
from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    CouplingRefusal,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.labels import MIN_VALUES_POLICY
from engine.model.quantity import ATTACHABLE_VOLUMES, MEMORY, format_amount
from engine.model.refusal import Measured, NoTypeFits, RequirementMismatch, TooFewValues

_MEBIBYTE = 2**20
_DOMAINS_SHOWN = 4


def misfit_words(refusal: NoTypeFits | RequirementMismatch | TooFewValues) -> str:
    """Why a pool has no type for a pod, with what it has instead."""
    match refusal:
        case NoTypeFits():
            return _no_type_fits(refusal)
        case RequirementMismatch():
            return _requirement_mismatch(refusal)
        case TooFewValues():
            return _too_few_values(refusal)


def _no_type_fits(refusal: NoTypeFits) -> str:
    """``needs 15510Mi memory; the nearest, g5.xlarge, has 14162Mi; g5.2xlarge would do, but the pool asks for …``."""
    first = Measured(refusal.resource, refusal.needed, refusal.nearest_amount, refusal.daemon_overhead)
    measured = (first, *refusal.also)
    needs = _listed([f"{_amount(each.resource, each.needed)} {_named(each.resource)}" for each in measured])
    has = _listed([_has(each, is_alone=not refusal.also) for each in measured])
    together = " on one node" if refusal.only_together else ""
    return f"needs {needs}{together}; the nearest, {refusal.nearest_type}, has {has}{_would_do(refusal)}"


def _requirement_mismatch(refusal: RequirementMismatch) -> str:
    """``the pod asks for gpu-memory at least 40001; the pool has 16384, 24576, the nearest 24576``."""
    nearest = f", the nearest {refusal.nearest}" if refusal.nearest not in ("", refusal.offered) else ""
    has = f"the pool has {refusal.offered}{nearest}" if refusal.offered else "the pool has none"
    return f"the pod asks for {refusal.key} {refusal.wanted}; {has}"


def _too_few_values(refusal: TooFewValues) -> str:
    """``the pod leaves 1 of at least 2 values of zone, the pool's minValues: a; … BestEffort would relax it``."""
    left = _domains(refusal.left) or "none"
    wanted = f"{len(refusal.left)} of at least {refusal.min_values} values of {refusal.key}"
    return f"the pod leaves {wanted}, the pool's minValues: {left}; {MIN_VALUES_POLICY} BestEffort would relax it"


def coupling_words(refusal: CouplingRefusal) -> str:
    """Why the pods around it keep a pod out of a pool."""
    match refusal:
        case SpreadUnsatisfiable():
            return _spread(refusal)
        case AffinityUnsatisfiable():
            return _affinity(refusal)
        case AntiAffinityInTheWay(key=key, domain=domain, pod=pod, domains=domains):
            term = f"the anti-affinity of {pod} keeps it" if refusal.is_its_own else "its anti-affinity keeps it"
            others = f", and so in {domains - 1} more of {key}" if domains > 1 else ""
            return f"{term} from {key} {domain}, where {pod} is{others}"
        case HostPortTaken(port=port, protocol=protocol, taken_by=taken_by):
            by = f" by {taken_by}" if taken_by else ""
            return f"host port {port}/{protocol} is taken{by} on each node of the pool"


def selector_words(selector: LabelSelector) -> str:
    """``app In web; tier Exists``."""
    if selector is None:
        return "no pod at all"
    return "; ".join(map(str, selector)) or "any pod"


def _spread(refusal: SpreadUnsatisfiable) -> str:
    spread = f"spread over {refusal.key}, at most {refusal.max_skew} apart"
    if not refusal.reachable:
        return f"{spread}: the pool has no node with that label for it"
    counts = _domains([f"{domain} {pods}" for domain, pods in refusal.counts])
    lacking = ""
    if len(refusal.counts) < refusal.min_domains:
        lacking = f", {len(refusal.counts)} of at least {refusal.min_domains} domains"
    return f"{spread}: pods are {counts}{lacking}; the pool could add to {_domains(refusal.reachable)}"


def _affinity(refusal: AffinityUnsatisfiable) -> str:
    wanted = f"must share {refusal.key} with {selector_words(refusal.selector)}"
    if not refusal.pods:
        return f"{wanted}, and no such pod has a node"
    where = f"{refusal.pods} such {'pod is' if refusal.pods == 1 else 'pods are'} in {_domains(refusal.domains)}"
    return f"{wanted}: {where}, where the pool can make no node for it"


def _has(measured: Measured, *, is_alone: bool) -> str:
    resource = measured.resource
    named = "" if is_alone else f" {_named(resource)}"
    overhead = measured.daemon_overhead
    daemons = f" after {_amount(resource, overhead)} for daemons" if overhead else ""
    return f"{_amount(resource, measured.has)}{named}{daemons}"


def _would_do(refusal: NoTypeFits) -> str:
    if not refusal.would_do:
        return ""
    whose = "pod" if refusal.is_barred_by_pod else "pool"
    return f"; {refusal.would_do} would do, but the {whose} asks for {refusal.barred_by}"


def _named(resource: str) -> str:
    """A resource as a person would name it."""
    driver = resource.removeprefix(ATTACHABLE_VOLUMES)
    return resource if driver == resource else f"volumes of {driver}"


def _amount(resource: str, amount: int) -> str:
    """An amount for comparing with another: memory always in Mi, so that 15510Mi stands beside 14162Mi."""
    return f"{amount // _MEBIBYTE}Mi" if resource == MEMORY else format_amount(resource, amount)


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _domains(domains: Sequence[str]) -> str:
    more = len(domains) - _DOMAINS_SHOWN
    return ", ".join(domains[:_DOMAINS_SHOWN]) + (f" and {more} more" if more > 0 else "")
