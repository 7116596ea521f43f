"""``nodewright explain``: what a pass does about one pod, node, rule or budget, and the values that decide it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engine.cli.terminal import Output, OutputOption, out, told_of_faults
from engine.model.fault import Fault
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason

if TYPE_CHECKING:
    from engine.reconcile.explaining import Asked
    from engine.report.explain_report import Explanation


class Subject(str, Enum):
    POD = "pod"
    NODE = "node"
    RULE = "rule"
    BUDGET = "budget"


def explain(
    context: typer.Context,
    subject: Annotated[Subject, typer.Argument(help="What NAME is.")],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="NAMESPACE/POD, a node or claim, a rule; for a budget a pool or rule.")
    ],
    environment: Annotated[
        str | None, typer.Argument(metavar="[ENV]", help="stacks/Pulumi.ENV.yaml; may be left out where it is clear.")
    ] = None,
    at: Annotated[str, typer.Option("--at", help="Suppose this time, such as 2026-12-01T09:00.")] = "",
    snapshot: Annotated[
        Path | None, typer.Option("--snapshot", help="A recorded moment; without it the cluster and EC2 are asked.")
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Of a budget: one reason, such as Drifted.")] = "",
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain where a pod goes, why a node stays or leaves, what a rule does, or what a budget allows."""
    with told_of_faults():
        from engine.cli.calendar import moment_of
        from engine.reconcile.explaining import asked
        from engine.reconcile.workspace import find_workspace

        if reason and subject is not Subject.BUDGET:
            raise Fault("--reason is for budgets", f"nodewright explain budget {name} --reason {reason}")
        because = _reason(reason)
        moment = moment_of(at) if at else None
        workspace = find_workspace(context.obj)
        of = asked(workspace, environment, snapshot, moment)
        if subject is Subject.BUDGET:
            _show_budget(of, name, because, output)
        else:
            _show(_explained(subject, of, name, context), output)


def _explained(subject: Subject, of: Asked, name: str, context: typer.Context) -> Explanation:
    if subject is Subject.POD:
        from engine.reconcile.explaining_pods import explain_pod

        return explain_pod(of, name)
    if subject is Subject.NODE:
        from engine.reconcile.explaining_nodes import explain_node

        return explain_node(of, name)
    from engine.reconcile.explaining_rules import explain_rule
    from engine.reconcile.workspace import find_workspace

    return explain_rule(of, name, find_workspace(context.obj))


def _show(explanation: Explanation, output: Output) -> None:
    if output is Output.JSON:
        from engine.report.explain_report_json import explanation_json

        typer.echo(explanation_json(explanation))
        return
    from engine.report.explain_report_text import render_explanation

    out().print(render_explanation(explanation))


def _show_budget(of: Asked, name: str, reason: DisruptionReason | None, output: Output) -> None:
    from engine.reconcile.explaining_budgets import explain_budget

    found = explain_budget(of.policy, of.environment, name, reason, of.snapshot, plan=of.plan)
    if output is Output.JSON:
        from engine.report.explain_report_json import budgets_json

        typer.echo(budgets_json(found))
        return
    from engine.report.budget_report import render_budgets

    out().print(render_budgets(found))


def _reason(text: str) -> DisruptionReason | None:
    if not text:
        return None
    for reason in VOLUNTARY_REASONS:
        if reason.value.lower() == text.lower():
            return reason
    known = ", ".join(reason.value for reason in VOLUNTARY_REASONS)
    raise Fault(f"--reason: {text[:60]!r} is no reason to leave by choice", f"it is one of {known}")
