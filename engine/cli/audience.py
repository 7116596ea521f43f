"""The person at the terminal, as ``up`` sees one: is shown plans, approves them, watches the progress."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from engine.cli.screens import render_proposal
from engine.cli.terminal import err, out, progress_line
from engine.model.fault import Fault
from engine.model.outcome import Outcome
from engine.model.plan import Plan
from engine.reconcile.passes import Proposal
from engine.reconcile.planning import Planned
from engine.reconcile.ports import OnEvent, Ports, Tell
from engine.report.outcome_report import render_outcome
from engine.report.plan_report import plan_line
from engine.report.progress import ConvergeProgress


class TerminalAudience:
    """``is_approved``: ``--yes`` or a reviewed plan. ``is_quiet``: only the JSON at the end is wanted."""

    def __init__(self, ports: Ports, *, is_approved: bool, is_quiet: bool) -> None:
        self._ports = ports
        self._is_approved = is_approved
        self._is_quiet = is_quiet

    def show(self, proposal: Proposal) -> None:
        if self._is_quiet:
            return
        planned = Planned(proposal, self._ports.environment, self._ports.policy, self._ports.catalog)
        out().print(render_proposal(planned))

    def approve(self, plan: Plan) -> bool:
        if self._is_approved:
            return True
        if not sys.stdin.isatty():
            raise Fault(
                f"environment {plan.environment}: plan {plan.hash[:12]} needs a yes, and there is nobody to ask",
                (
                    f"nodewright up {plan.environment} --yes",
                    f"nodewright up {plan.environment} --plan {plan.hash[:12]}",
                ),
            )
        return typer.confirm(f"Converge {plan.environment}?", err=True)

    def carry_on(self, plan: Plan) -> None:
        if not self._is_quiet:
            out().print(f"Carrying on: {plan_line(plan)}", markup=False)

    def follow(self, plan: Plan) -> tuple[Tell, OnEvent, Callable[[], None]]:
        progress = ConvergeProgress(plan, err())
        progress.start()
        return progress_line, progress.on_event, progress.stop

    def show_outcome(self, plan: Plan, outcome: Outcome) -> None:
        if not self._is_quiet:
            out().print(render_outcome(outcome, plan))
