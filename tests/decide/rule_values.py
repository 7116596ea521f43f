"""Rules as values, for worlds that are decided on."""

from __future__ import annotations

from attrs import evolve

from engine.model.pod import Pod
from engine.model.rule import (
    ActionClass,
    DisruptionBudget,
    Enforcement,
    Expression,
    Guardrail,
    LimitedResource,
    LimitRule,
    RequirementRule,
    Selection,
)
from tests.builders import SOMEWHERE, pod, requirement

WARN, AUDIT = Enforcement.WARN, Enforcement.AUDIT
ADD, REMOVE = ActionClass.ADD, ActionClass.REMOVE
GPUS, NODES, USD = LimitedResource.GPUS, LimitedResource.NODES, LimitedResource.USD_PER_HOUR

# Each compiles, and errs for whatever it is evaluated of.
NO_BOOL = "1 / (cluster.nodes - cluster.nodes) > 0"
NO_INT = "1 / (cluster.nodes - cluster.nodes)"


def text(source: str) -> Expression:
    return Expression(source, SOMEWHERE)


def limit(
    ceiling: str,
    resource: LimitedResource = GPUS,
    *,
    by: str = "",
    name: str = "ceiling",
    pools: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    enforcement: Enforcement = Enforcement.DENY,
) -> LimitRule:
    """``labels`` select pods, ``pools`` pools by name."""
    selected = tuple(requirement(key, "In", value) for key, value in (labels or {}).items())
    return LimitRule(
        name=name,
        position=SOMEWHERE,
        match=Selection(node_pools=pools, pod_labels=selected),
        resource=resource,
        ceiling=text(ceiling),
        group_by=text(by) if by else None,
        enforcement=enforcement,
        message=f"{name} is reached",
    )


def guardrail(
    expression: str,
    *blocks: ActionClass,
    name: str = "guard",
    told: str = "",
    enforcement: Enforcement = Enforcement.DENY,
) -> Guardrail:
    return Guardrail(
        name=name,
        position=SOMEWHERE,
        expression=text(expression),
        blocks=blocks or (ADD,),
        enforcement=enforcement,
        message=f"{name} says no",
        message_expression=text(told) if told else None,
    )


def require(expression: str, name: str = "require") -> RequirementRule:
    return RequirementRule(name=name, position=SOMEWHERE, require=text(expression), message=f"{name} says no")


def budget(name: str = "budget", *, candidate: str = "", at_once: str = "") -> DisruptionBudget:
    return DisruptionBudget(
        name=name,
        position=SOMEWHERE,
        candidate=text(candidate) if candidate else None,
        budget=text(at_once) if at_once else None,
        message=f"{name} keeps it",
    )


def of_team(name: str, team: str, gpu: int | None = 1, **more: object) -> Pod:
    return evolve(pod(name, gpu=gpu, **more), labels={"team": team})  # type: ignore[arg-type]
