"""Lints: policy that loads and still cannot mean what it says, held against a catalog."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from engine.model import labels
from engine.model.catalog import Catalog, InstanceType
from engine.model.constraint import Operator, Requirement, TaintEffect
from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.model.duration import format_duration
from engine.model.policy import NodePool, Policy
from engine.model.quantity import ACCELERATORS, CPU, MEMORY, NODES, format_amount
from engine.policy.budget_holes import holes
from engine.policy.findings import closest
from engine.policy.permitted import PoolView, Sold, as_reserved, pool_view, sold_in

_WORD = re.compile(r"[-_.]")
_GPU_NAMES = (labels.INSTANCE_GPU_NAME, labels.INSTANCE_ACCELERATOR_NAME)
_FEW = 3
_DAY = timedelta(days=1)
_SELECT_SOME = "give the EC2NodeClass capacityReservationSelectorTerms"


def lint(policy: Policy, catalog: Catalog) -> tuple[Diagnostic, ...]:
    """Warnings, in file order, about what the catalog shows to be impossible, untrue or open to everybody."""
    sold = sold_in(catalog)
    reserved = (*sold, *as_reserved(sold))
    views = [
        pool_view(pool, reserved if may_reserve else sold, may_reserve=may_reserve)
        for pool in policy.node_pools
        for may_reserve in [_may_reserve(pool, policy)]
    ]
    found = [finding for view in views for finding in _lint_pool(view, catalog)]
    return tuple(sorted(set(found), key=lambda finding: finding.sort_key))


def _may_reserve(pool: NodePool, policy: Policy) -> bool:
    node_class = policy.node_class(pool.node_class)
    return node_class is not None and bool(node_class.capacity_reservation_selector_terms)


def _lint_pool(view: PoolView, catalog: Catalog) -> Iterator[Diagnostic]:
    yield from _budget_holes(view.pool)
    yield from _expires_too_soon(view.pool)
    yield from _base_above_node_limit(view.pool)
    yield from _headroom_above_limit(view.pool)
    yield from _labels_of_no_reservation(view)
    if not view.permitted:
        yield _nothing_matches(view, catalog)
        return
    yield from _values_that_never_match(view, catalog)
    yield from _promises_of_labels(view, catalog)
    yield from _limits_too_small(view)
    yield from _other_vendors(view)
    yield from _open_to_all(view)
    yield from _nothing_priced(view)


def _warning(position: Position, rule: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(Severity.WARNING, rule, message, position, hint)


# --- requirements


def _nothing_matches(view: PoolView, catalog: Catalog) -> Diagnostic:
    pool = view.pool
    position = pool.position_of("requirements")
    for index, requirement in enumerate(pool.requirements):
        spared = view.permitted_but_for(index)
        if (
            spared
            and requirement.key == labels.CAPACITY_TYPE
            and requirement.admits(labels.RESERVED)
            and not view.may_reserve
        ):
            message = f"{pool.name} never launches: it takes reserved capacity alone, and {_selects_none(view)}"
            return _warning(position, "nothing-matches", message, _SELECT_SOME)
        if spared:
            message = f"nothing that is sold in {catalog.region} meets all requirements of {pool.name}"
            hint = f"without {requirement}, {_types(spared)} would"
            return _warning(position, "nothing-matches", message, hint)
    message = f"nothing that is sold in {catalog.region} meets the requirements of {pool.name}, by several of them"
    return _warning(position, "nothing-matches", message, "loosen them one by one")


def _values_that_never_match(view: PoolView, catalog: Catalog) -> Iterator[Diagnostic]:
    for index, requirement in enumerate(view.pool.requirements):
        if requirement.operator is not Operator.IN or requirement.key not in labels.WELL_KNOWN - labels.OF_RESERVATIONS:
            continue
        possible = {sold.labels.get(requirement.key) for sold in view.permitted_but_for(index)}
        for value in requirement.values:
            if value not in possible:
                position = view.pool.position_of(f"requirements[{requirement.key} In][{value}]")
                message = f"{value} can never match here: {_why_never(requirement, index, value, view, catalog)}"
                yield _warning(position, "value-never-matches", message, _hint_for_value(requirement.key, value, view))


def _why_never(requirement: Requirement, index: int, value: str, view: PoolView, catalog: Catalog) -> str:
    key = requirement.key
    if (key, value) == (labels.CAPACITY_TYPE, labels.RESERVED) and not view.may_reserve:
        return _selects_none(view)
    carriers = [
        (sold, barred - {index})
        for sold, barred in zip(view.sold, view.barred_by, strict=True)
        if sold.labels.get(key) == value
    ]
    if not carriers:
        known = any(kind.labels.get(key) == value for kind in catalog.instance_types)
        where = f"nothing with {_short(key)} {value} is sold in the zones of {catalog.region}"
        return where if known else f"no {_short(key)} {value} is known"
    # The requirement that bars most of the carriers is the one to name.
    others = sorted({other for _, barred in carriers for other in barred})
    decisive = max(others, key=lambda other: sum(other in barred for _, barred in carriers))
    other = view.pool.requirements[decisive]
    theirs = sorted({sold.labels.get(other.key, "nothing") for sold, barred in carriers if decisive in barred})
    return f"only {_short(other.key)} {_listed(theirs)} carries it, and the pool asks for {_short_text(other)}"


def _hint_for_value(key: str, value: str, view: PoolView) -> str:
    if (key, value) == (labels.CAPACITY_TYPE, labels.RESERVED) and not view.may_reserve:
        return f"{_SELECT_SOME}, or remove the value"
    known = {sold.labels[key] for sold in view.sold if key in sold.labels}
    match = None if value in known else closest(value, known)
    return f"did you mean {match}?" if match else "remove the value, or loosen the other requirement"


def _labels_of_no_reservation(view: PoolView) -> Iterator[Diagnostic]:
    """Requirements that nodes in reservations alone can meet, where no reservation is selected."""
    for requirement in view.pool.requirements:
        if requirement.key in labels.OF_RESERVATIONS and not requirement.admits(None) and not view.may_reserve:
            value = f"[{requirement.values[0]}]" if requirement.values else ""
            position = view.pool.position_of(f"requirements[{requirement.key} {requirement.operator.value}]{value}")
            needs = f"{view.pool.name} never launches: only nodes in reservations have {_short(requirement.key)}"
            yield _warning(position, "nothing-matches", f"{needs}, and {_selects_none(view)}", _SELECT_SOME)


def _selects_none(view: PoolView) -> str:
    return f"the EC2NodeClass {view.pool.node_class} selects no reservation"


def _short(key: str) -> str:
    """``instance-category`` for ``karpenter.k8s.aws/instance-category``: inside a pool's file that is enough."""
    return key.rpartition("/")[2]


def _short_text(requirement: Requirement) -> str:
    return f"{_short(requirement.key)} {requirement.operator.value} {', '.join(requirement.values)}".strip()


def _types(sold: tuple[Sold, ...]) -> str:
    return _listed(sorted({item.instance_type.name for item in sold}))


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more


def _nothing_priced(view: PoolView) -> Iterator[Diagnostic]:
    if all(sold.usd_per_hour is None for sold in view.permitted):
        message = f"no price is known of anything that {view.pool.name} permits, so nothing is ever bought"
        hint = "give prices in the stack file, as nodewright:pricing overrides"
        yield _warning(view.pool.position_of("requirements"), "no-price", message, hint)


# --- labels, taints, vendors


def _promises_of_labels(view: PoolView, catalog: Catalog) -> Iterator[Diagnostic]:
    known = {name for kind in catalog.instance_types for name in [_gpu_of(kind)] if name}
    permitted = {_gpu_of(sold.instance_type) or "no accelerator" for sold in view.permitted}
    for key, value in view.pool.labels.items():
        promised = _gpu_named_in(value, known)
        if promised is None or permitted == {promised}:
            continue
        others = sorted(permitted - {promised})
        also = f"{_listed(others)} too" if promised in permitted else f"{_listed(others)} only"
        cheapest = _cheapest(view.permitted)
        costs = f"; the cheapest that it permits is {cheapest}" if cheapest else ""
        message = f"the label {key}={value} promises an {promised}, but the pool permits {also}{costs}"
        hint = f"add the requirement {labels.INSTANCE_GPU_NAME} In [{promised}], or another label"
        yield _warning(view.pool.position_of(f"labels[{key}]"), "label-promises-another-gpu", message, hint)


def _gpu_of(kind: InstanceType) -> str | None:
    return next((kind.labels[key] for key in _GPU_NAMES if key in kind.labels), None)


def _gpu_named_in(value: str, known: set[str]) -> str | None:
    """The longest known GPU name among a label value's words: ``l40s`` in ``nvidia-l40s``."""
    words = "-".join(["", *_WORD.split(value.lower()), ""])
    named = [name for name in known if f"-{name}-" in words]
    return max(named, key=lambda name: (len(name), name), default=None)


def _cheapest(permitted: tuple[Sold, ...]) -> str:
    priced = [(sold.usd_per_hour, sold.instance_type) for sold in permitted if sold.usd_per_hour is not None]
    if not priced:
        return ""
    price, kind = min(priced, key=lambda pair: (pair[0], pair[1].name))
    return f"{kind.name} with {_gpu_of(kind) or 'no accelerator'} at {price}"


def _open_to_all(view: PoolView) -> Iterator[Diagnostic]:
    pool = view.pool
    bars = any(taint.effect is not TaintEffect.PREFER_NO_SCHEDULE for taint in pool.taints)
    accelerated = tuple(sold for sold in view.permitted if sold.instance_type.is_accelerated)
    if accelerated and not bars and not pool.open_to_all_pods:
        message = f"{pool.name} permits {_types(accelerated)} and has no taint: any pod can be bound to a GPU node"
        hint = f'add a taint such as nvidia.com/gpu:NoSchedule, or annotate {labels.OPEN_TO_ALL_PODS}: "true"'
        yield _warning(pool.position_of("taints"), "gpu-pool-open", message, hint)


def _other_vendors(view: PoolView) -> Iterator[Diagnostic]:
    carried = {name for sold in view.permitted for name in sold.instance_type.accelerators}
    named = [(f"limits[{resource}]", resource) for resource in view.pool.limits]
    named += [("taints", taint.key) for taint in view.pool.taints]
    named += [("headroom", spare.resource) for spare in view.pool.headroom]
    for part, resource in named:
        if resource in ACCELERATORS and resource not in carried:
            theirs = f"; they carry {_listed(sorted(carried))}" if carried else ""
            message = f"{view.pool.name} speaks of {resource}, which none of its instance types carries{theirs}"
            hint = "correct the resource or the requirements"
            yield _warning(view.pool.position_of(part), "wrong-vendor", message, hint)


# --- limits, base capacity, budgets, expiry


def _amount(kind: InstanceType, resource: str) -> int:
    amounts = {CPU: kind.vcpus * 1000, MEMORY: kind.memory_bytes, NODES: 1}
    return amounts.get(resource, kind.accelerators.amount(resource))


def _limits_too_small(view: PoolView) -> Iterator[Diagnostic]:
    """A limit of zero is a pool that is switched off on purpose, so that is not told."""
    pool, kinds = view.pool, {sold.instance_type.name: sold.instance_type for sold in view.permitted}
    for resource, limit in pool.limits.items():
        smallest = min(kinds.values(), key=lambda kind: (_amount(kind, resource), kind.name))
        least = _amount(smallest, resource)
        shown = f"{resource} {format_amount(resource, limit)}"
        each = f"{format_amount(resource, least)} of {smallest.name}"
        position = pool.position_of(f"limits[{resource}]")
        if 0 < limit < least:
            message = f"the limit {shown} is below the {each}, the smallest that {pool.name} permits: it gets no node"
            yield _warning(position, "limit-too-small", message, "raise the limit, or permit smaller types")
        elif resource != NODES and 0 < limit < least * pool.base_nodes:
            message = f"the limit {shown} is below what {pool.base_nodes} nodes have that are always kept, {each} each"
            yield _warning(position, "base-above-limit", message, "raise the limit, or keep fewer")


def _base_above_node_limit(pool: NodePool) -> Iterator[Diagnostic]:
    limit = pool.limits.get(NODES)
    if limit is not None and pool.base_nodes > limit:
        message = f"{pool.name} always keeps {pool.base_nodes} nodes, and its limit is {limit}"
        part = "replicas" if pool.is_static else "min-nodes"
        yield _warning(pool.position_of(part), "base-above-limit", message, "raise limits.nodes, or keep fewer")


def _headroom_above_limit(pool: NodePool) -> Iterator[Diagnostic]:
    for spare in pool.headroom:
        limit = pool.limits.get(spare.resource)
        if limit is not None and spare.devices > limit:
            message = f"{pool.name} is to keep {spare.devices} {spare.resource} spare, and its limit is {limit}"
            hint = f"raise limits[{spare.resource}], or keep fewer"
            yield _warning(pool.position_of("headroom"), "headroom-above-limit", message, hint)


def _budget_holes(pool: NodePool) -> Iterator[Diagnostic]:
    for hole in holes(pool.disruption.budgets):
        named = ", ".join(reason.value for reason in hole.reasons)
        message = f"no budget of {pool.name} limits {named} {hole.when}: any number of its nodes may go at once"
        hint = 'add a budget without schedule and reasons, such as nodes: "10%"'
        yield _warning(pool.position_of("budgets"), "budget-hole", message, hint)


def _expires_too_soon(pool: NodePool) -> Iterator[Diagnostic]:
    """A node's age counts from its claim on, so one that is still on its way may be too old already."""
    comes_up = pool.launch_deadline + pool.initialization_deadline
    life = pool.upkeep.node_life
    needed = max(comes_up, life)
    if pool.expire_after is None or pool.expire_after >= needed:
        return
    why = f"the {format_duration(comes_up)} that a node may take to come up"
    if life > comes_up:
        why = f"its {labels.MIN_NODE_LIFE} {format_duration(life)}"
    written = f"expireAfter {format_duration(pool.expire_after)} of {pool.name}"
    message = f"{written} is shorter than {why}: its nodes are replaced for ever"
    # Twice as long, in the units that the field takes, and a day at least: a node goes up to a tenth of it earlier.
    hours = -(-max(2 * needed, _DAY) // timedelta(hours=1))
    hint = f"write expireAfter: {hours}h or more, or Never"
    yield _warning(pool.position_of("expire-after"), "expires-too-soon", message, hint)
