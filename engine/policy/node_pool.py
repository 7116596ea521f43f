"""A NodePool file's object as a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import frozen

from engine.model import labels
from engine.model.constraint import Taint
from engine.model.diagnostic import Position
from engine.model.environment import Environment
from engine.model.policy import Budget, Disruption, NodePool
from engine.model.quantity import ACCELERATORS, CPU, EPHEMERAL_STORAGE, MEMORY, NODES, PODS, QuantityError, Resources
from engine.policy.budgets import BUDGETS, checked_budgets
from engine.policy.capacity_annotations import (
    CAPACITY_ANNOTATIONS,
    read_expected_labels,
    read_headroom,
    read_max_gpu_waste,
    read_node_cost,
)
from engine.policy.fields import is_label_key
from engine.policy.findings import ObjectFindings, did_you_mean
from engine.policy.located import Located, Path, text_at
from engine.policy.min_values_annotation import read_min_values_best_effort
from engine.policy.node_pool_annotations import (
    BRING_UP_ANNOTATIONS,
    read_bring_up,
    read_on_rebalance,
    read_open_reservations,
    read_unhealthy_limit,
)
from engine.policy.node_pool_schema import NodeClassRefPart, NodePoolPart, NodePoolSpecPart, TaintPart
from engine.policy.pool_spellings import NOT_KARPENTERS, modernise_node_pool
from engine.policy.pre_pull_annotation import read_pre_pull
from engine.policy.requirements import LABELS, REQUIREMENTS, checked_requirements, split_labels
from engine.policy.schema import validated
from engine.policy.upkeep_annotations import UPKEEP_ANNOTATIONS, read_upkeep
from engine.policy.without_effect import (
    refuse_unknown_annotations,
    warn_of_idle_annotations,
    warn_of_template_annotations,
)

NODE_CLASS_REF: Path = ("spec", "template", "spec", "nodeClassRef")
_TEMPLATE_SPEC: Path = ("spec", "template", "spec")
_LIMITS: Path = ("spec", "limits")
_ANNOTATIONS: Path = ("metadata", "annotations")
_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS, NODES, *ACCELERATORS)
_GROUP, _KIND = "karpenter.k8s.aws", "EC2NodeClass"


@frozen
class PoolRead:
    """A pool, where its class is named, and v1beta1's kubelet settings, which belong to that class."""

    pool: NodePool
    class_position: Position
    findings: ObjectFindings
    kubelet: Located | None


def read_node_pool(findings: ObjectFindings, version: str, environment: Environment | None) -> PoolRead | None:
    """The pool, or None when too much of it is wrong; all that is wrong goes to ``findings``."""
    kubelet = modernise_node_pool(findings, version)
    part = validated(NodePoolPart, findings)
    if part is None:
        return None
    spec, template = part.spec, part.spec.template.spec
    requirements = checked_requirements(template.requirements, findings)
    node_labels, demanded = split_labels(part.spec.template.metadata.labels, requirements, findings)
    _check_taints(template.taints, template.startup_taints, findings)
    _check_static(spec, part.metadata.annotations, findings)
    bring_up = read_bring_up(part.metadata.annotations, findings)
    pool = NodePool(
        name=part.metadata.name,
        node_class=_node_class(template.node_class_ref, environment, findings),
        position=findings.at(("metadata", "name")),
        weight=spec.weight or 0,
        requirements=demanded,
        labels=node_labels,
        annotations=part.spec.template.metadata.annotations,
        taints=_taints(template.taints),
        startup_taints=_taints(template.startup_taints),
        limits=_limits(spec.limits, findings),
        disruption=_disruption(spec, findings),
        expire_after=template.expire_after,
        termination_grace_period=template.termination_grace_period,
        replicas=spec.replicas,
        pre_pull=read_pre_pull(part.metadata.annotations, findings),
        open_reservations=read_open_reservations(part.metadata.annotations, findings),
        on_rebalance=read_on_rebalance(part.metadata.annotations, findings),
        unhealthy_limit=read_unhealthy_limit(part.metadata.annotations, findings),
        min_nodes=_min_nodes(part.metadata.annotations, findings),
        open_to_all_pods=_open_to_all_pods(part.metadata.annotations, findings),
        min_values_best_effort=read_min_values_best_effort(part.metadata.annotations, findings),
        launch_deadline=bring_up.launch_deadline,
        registration_deadline=bring_up.registration_deadline,
        initialization_deadline=bring_up.initialization_deadline,
        accelerator_grace=bring_up.accelerator_grace,
        paused=bring_up.paused,
        expected_labels=read_expected_labels(part.metadata.annotations, node_labels, findings),
        max_gpu_waste=read_max_gpu_waste(part.metadata.annotations, findings),
        node_cost=read_node_cost(part.metadata.annotations, findings),
        headroom=read_headroom(part.metadata.annotations, findings),
        upkeep=read_upkeep(part.metadata.annotations, findings),
        field_positions=dict(_positions(part, findings)),
    )
    _check_annotations(part.metadata.annotations, findings)
    warn_of_template_annotations(part.spec.template.metadata.annotations, findings)
    warn_of_idle_annotations(part.metadata.annotations, template.requirements, findings)
    return PoolRead(pool, findings.at(NODE_CLASS_REF), findings, kubelet)


def _node_class(ref: NodeClassRefPart | None, environment: Environment | None, findings: ObjectFindings) -> str:
    if ref is None and findings.lacks_part(NODE_CLASS_REF):
        return ""
    if ref is None:
        default = environment.default_node_class if environment is not None else None
        position = findings.at_key(_TEMPLATE_SPEC)
        message = "spec.template.spec.nodeClassRef is missing"
        if default is None:
            hint = "name an EC2NodeClass (group, kind, name), or set nodewright:defaultNodeClass in the stack file"
            whole = f"{message}, and the stack file names no default node class"
            findings.findings.error(position, "missing-node-class", whole, hint)
            return ""
        whole = f"{message}; the stack file's default node class {default} is used. Karpenter would refuse the pool"
        hint = f"write nodeClassRef: {{group: {_GROUP}, kind: {_KIND}, name: {default}}}"
        findings.findings.warning(position, "missing-node-class", whole, hint)
        return default
    for name, found, known in (("group", ref.group, _GROUP), ("kind", ref.kind, _KIND)):
        if found != known:
            message = f"nodeClassRef.{name} {found!r} is not implemented; node classes are {_GROUP} {_KIND}"
            findings.error((*NODE_CLASS_REF, name), "not-implemented", message, f"write {name}: {known}")
    return ref.name


def _taints(parts: Sequence[TaintPart]) -> tuple[Taint, ...]:
    return tuple(Taint(part.key, part.value, part.effect) for part in parts)


def _check_taints(taints: Sequence[TaintPart], startup: Sequence[TaintPart], findings: ObjectFindings) -> None:
    seen: set[tuple[str, str]] = set()
    for field, parts in (("taints", taints), ("startupTaints", startup)):
        for index, part in enumerate(parts):
            if (part.key, part.effect.value) in seen:
                message = f"the taint {part.key}:{part.effect.value} is here twice"
                findings.error((*_TEMPLATE_SPEC, field, index), "duplicate-taint", message, "keep one of them")
            seen.add((part.key, part.effect.value))
            if text_at(findings.root, (*_TEMPLATE_SPEC, field, index, "value")) == "":
                message = "an empty value is read as no value; Karpenter refuses it"
                findings.warning((*_TEMPLATE_SPEC, field, index, "value"), NOT_KARPENTERS, message, "remove it")


def _check_static(spec: NodePoolSpecPart, annotations: dict[str, str], findings: ObjectFindings) -> None:
    if spec.replicas is None:
        return
    static = "a pool with replicas is static"
    if spec.weight is not None:
        message = f"{static}: no pod chooses it, so it takes no weight"
        findings.error(("spec", "weight"), "contradiction", message, "remove weight or replicas")
    for resource in spec.limits:
        if resource != NODES:
            message = f"{static}: its limits may name nodes only, not {resource}"
            findings.error((*_LIMITS, resource), "contradiction", message, "remove it")
    if labels.MIN_NODES in annotations:
        message = f"{static}: it keeps its replicas, so {labels.MIN_NODES} says nothing"
        findings.error((*_ANNOTATIONS, labels.MIN_NODES), "contradiction", message, "remove it")
    if labels.HEADROOM in annotations:
        message = f"{static}: it makes no node beyond its replicas, so {labels.HEADROOM} says nothing"
        findings.error((*_ANNOTATIONS, labels.HEADROOM), "contradiction", message, "remove it")


def _limits(written: dict[str, str], findings: ObjectFindings) -> Resources:
    amounts: dict[str, int] = {}
    for resource, text in written.items():
        try:
            amounts.update(Resources.parse({resource: text}))
        except QuantityError as error:
            findings.error((*_LIMITS, resource), "bad-quantity", str(error))
        if not is_label_key(resource):
            message = f"{resource[:80]!r} is no resource name"
            findings.error_at_key((*_LIMITS, resource), "unknown-resource", message, did_you_mean(resource, _COUNTED))
        elif resource not in _COUNTED:
            message = f"no instance type has the resource {resource}, so this limit limits nothing"
            findings.warning_at_key((*_LIMITS, resource), "unknown-resource", message, did_you_mean(resource, _COUNTED))
    return Resources(amounts)


def _disruption(spec: NodePoolSpecPart, findings: ObjectFindings) -> Disruption:
    part = spec.disruption
    budgets = (Budget(percent=10),) if part.budgets is None else checked_budgets(part.budgets, findings)
    return Disruption(part.consolidation_policy, part.consolidate_after, budgets)


def _min_nodes(annotations: dict[str, str], findings: ObjectFindings) -> int:
    text = annotations.get(labels.MIN_NODES, "0")
    if not re.fullmatch(r"[0-9]{1,6}", text):
        message = f"{labels.MIN_NODES} is {text[:40]!r}; it is the number of nodes that the pool keeps without pods"
        findings.error((*_ANNOTATIONS, labels.MIN_NODES), "bad-annotation", message, 'write a number such as "1"')
        return 0
    return int(text)


def _open_to_all_pods(annotations: dict[str, str], findings: ObjectFindings) -> bool:
    text = annotations.get(labels.OPEN_TO_ALL_PODS, "false")
    if text not in ("true", "false"):
        message = f"{labels.OPEN_TO_ALL_PODS} is {text[:40]!r}; it says whether pods without a GPU may come"
        findings.error((*_ANNOTATIONS, labels.OPEN_TO_ALL_PODS), "bad-annotation", message, 'write "true" or "false"')
    return text == "true"


def _check_annotations(annotations: dict[str, str], findings: ObjectFindings) -> None:
    known = (
        labels.MIN_NODES,
        labels.OPEN_TO_ALL_PODS,
        labels.MIN_VALUES_POLICY,
        labels.PRE_PULL,
        *BRING_UP_ANNOTATIONS,
        *CAPACITY_ANNOTATIONS,
        *UPKEEP_ANNOTATIONS,
    )
    refuse_unknown_annotations(annotations, known, findings)


def _positions(part: NodePoolPart, findings: ObjectFindings) -> Iterator[tuple[str, Position]]:
    """Where the parts stand that a lint may speak of."""
    yield from ((f"labels[{key}]", findings.at((*LABELS, key))) for key in part.spec.template.metadata.labels)
    yield "requirements", findings.at_key(REQUIREMENTS)
    for index, requirement in enumerate(part.spec.template.spec.requirements):
        for number, value in enumerate(requirement.values):
            key = f"requirements[{requirement.key} {requirement.operator.value}][{value}]"
            yield key, findings.at((*REQUIREMENTS, index, "values", number))
    yield "taints", findings.at_key((*_TEMPLATE_SPEC, "taints"))
    yield from ((f"limits[{resource}]", findings.at((*_LIMITS, resource))) for resource in part.spec.limits)
    yield "expire-after", findings.at((*_TEMPLATE_SPEC, "expireAfter"))
    yield "replicas", findings.at(("spec", "replicas"))
    yield "min-nodes", findings.at((*_ANNOTATIONS, labels.MIN_NODES))
    yield "headroom", findings.at((*_ANNOTATIONS, labels.HEADROOM))
    yield "budgets", findings.at_key(BUDGETS)
