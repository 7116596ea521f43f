"""Explanations on a screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve
from rich.console import RenderableType
from rich.text import Text

from engine.model.duration import format_duration
from engine.model.rule import Enforcement
from engine.report.budget_report import render_budgets
from engine.report.explain_report import (
    Explanation,
    NodeExplanation,
    PodExplanation,
    RuleExplanation,
    RuleSaid,
    Step,
)
from engine.report.pending_words import pending_sentence
from engine.report.tables import Screen, examples, heading, indented, table
from engine.report.words import counted

_ONE_OF = {
    "pools": "pool",
    "nodes": "node",
    "pods": "pod",
    "waiting_pods": "waiting pod",
    "kinds_of_pods": "pod kind",
}


def render_explanation(explanation: Explanation) -> RenderableType:
    """The answer first, then what decided it."""
    match explanation:
        case PodExplanation():
            return Screen(*_pod(explanation))
        case NodeExplanation():
            return Screen(*_node(explanation))
        case RuleExplanation():
            return Screen(*_rule(explanation))


def _pod(pod: PodExplanation) -> Iterator[RenderableType]:
    yield heading(f"pod {pod.pod}", f"of {pod.workload}, in {pod.environment} at {pod.at:%Y-%m-%d %H:%M} UTC")
    yield Text(f"asks for {pod.asks}", style="dim")
    yield Text(pod.outcome, style="bold")
    for loser in pod.losers:
        yield indented(Text(f"lost: {loser}"))
    for words in pod.ignored:
        yield Text(f"Ignored: {words}.", style="yellow")
    for pool in pod.pools:
        yield Text("")
        yield Text.assemble((pool.node_pool, "bold"), f": {pool.words}")
        # Of what a rule lets through, no step is in doubt.
        yield from _rules(evolve(said, steps=() if said.outcome == "true" else said.steps) for said in pool.rules)


def _node(node: NodeExplanation) -> Iterator[RenderableType]:
    named = f"node {node.node}" if node.node else f"machine {node.claim}, which has no node yet"
    yield heading(
        named, f"{node.machine}, pool {node.node_pool}, in {node.environment} at {node.at:%Y-%m-%d %H:%M} UTC"
    )
    yield Text(node.outcome, style="bold")
    if node.pending:
        yield Text("What it is to go for, once nothing keeps it:")
        yield from (indented(Text(pending_sentence(each, node.at))) for each in node.pending)
    if node.expires_at is not None and node.expires_at > node.at:
        due = f"in {format_duration(node.expires_at - node.at)}, at {node.expires_at:%Y-%m-%d %H:%M} UTC"
        yield Text(f"Its time to expire comes {due}.", style="dim")
    if node.grace:
        yield Text(node.grace)
    if node.to_change:
        yield Text(node.to_change)
    if node.rules:
        yield Text("")
        yield heading("Disruption budgets of rules on this node")
        yield from _rules(node.rules)
    if node.budgets:
        yield Text("")
        yield render_budgets(node.budgets)


def _rule(rule: RuleExplanation) -> Iterator[RenderableType]:
    yield heading(f"{rule.kind.value} {rule.rule}", rule.place)
    yield Text(rule.message)
    for name, text in (*rule.settings.items(), *rule.expressions.items()):
        yield indented(Text.assemble((f"{name}: ", "dim"), " ".join(text.split())))
    yield Text("")
    rows = table("environment", "enforcement", "~params")
    for each in rule.in_force:
        params = ", ".join(f"{name} = {value}" for name, value in sorted(each.params.items()))
        rows.add(each.environment, each.enforcement.value, params or "none")
    yield indented(rows)
    yield Text("")
    yield heading(f"In {rule.environment} at {rule.at:%Y-%m-%d %H:%M} UTC")
    counts = ", ".join(counted(count, _ONE_OF[what]) for what, count in rule.matches.items())
    pools = f": {examples(rule.node_pools, shown=6)}" if rule.node_pools else ""
    yield indented(Text(f"is about {counts}{pools}"))
    for sentence in rule.now:
        yield indented(Text(sentence, style="bold"))
    if rule.errors:
        yield indented(Text(f"could not be evaluated {rule.errors:,} times: {rule.sample}", style="bold red"))
    yield from _rules(rule.said)
    if rule.budgets:
        yield Text("")
        yield render_budgets(rule.budgets)


def _rules(rules: Iterable[RuleSaid]) -> Iterator[RenderableType]:
    for said in rules:
        tells = "" if said.enforcement is Enforcement.DENY else f" ({said.enforcement.value} only)"
        style = "red" if said.outcome.startswith(("false", "error", "it may not")) else ""
        yield indented(Text.assemble(f"{said.rule}{tells}, {said.about}: ", (said.outcome, style)))
        if said.message:
            yield indented(Text(said.message), 4)
        yield from (indented(Text(step_words(step), style="dim"), 4) for step in said.steps)


def step_words(step: Step) -> str:
    """``instanceType.gpuMemoryGiB >= params.minMem: 22 >= 80 = false``."""
    values = f"{step.values} = " if step.values else ""
    return f"{step.text}: {values}{step.outcome}"
