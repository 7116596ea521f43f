"""What budget rules have to tell of a whole plan: errors of those that act, and what those that do not would keep."""

from __future__ import annotations

from engine.disruption.budget_rules import Kept
from engine.disruption.machine import Machine
from engine.disruption.said import BudgetSaid
from engine.model.plan import Verdict, VerdictOutcome
from engine.model.rule import ActionClass, DisruptionBudget, Enforcement, RuleKind
from engine.model.stay import RuleKeeps

_NAMED = 3


class Notes:
    """Collected while candidates go; one verdict for each rule that has something to say."""

    def __init__(self) -> None:
        self._rules: dict[str, tuple[Enforcement, str]] = {}
        self._errors: dict[str, str] = {}
        self._would_keep: dict[str, list[str]] = {}

    def kept(self, rule: DisruptionBudget, kept: Kept) -> None:
        """A node that the rule keeps, or would keep; only an error is worth a word of its own."""
        if isinstance(kept, RuleKeeps) and kept.error:
            self._tell(rule.name, rule.enforcement, rule.message)
            self._errors.setdefault(rule.name, f"candidate: {kept.error}")

    def erred(self, said: BudgetSaid) -> None:
        """A number that is none, if it is none."""
        if said.error:
            self._tell(said.rule, said.enforcement, said.message)
            self._errors.setdefault(said.rule, said.error)

    def would_keep(self, rule: DisruptionBudget, machine: Machine) -> None:
        """A node that goes, and would stay if the rule did more than tell."""
        self._tell(rule.name, rule.enforcement, rule.message)
        name = machine.node.name if machine.node is not None else machine.claim.name
        self._would_keep.setdefault(rule.name, []).append(name)

    def verdicts(self) -> tuple[Verdict, ...]:
        """In the order of the rules' names."""
        return tuple(self._verdict(name, *self._rules[name]) for name in sorted(self._rules))

    def _tell(self, rule: str, enforcement: Enforcement, message: str) -> None:
        self._rules.setdefault(rule, (enforcement, message))

    def _verdict(self, rule: str, enforcement: Enforcement, message: str) -> Verdict:
        nodes, error = sorted(self._would_keep.get(rule, ())), self._errors.get(rule, "")
        if nodes:
            more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
            message = f"would keep {', '.join(nodes[:_NAMED])}{more}: {message}"
        acts = enforcement is Enforcement.DENY
        return Verdict(
            rule=rule,
            kind=RuleKind.DISRUPTION_BUDGET,
            enforcement=enforcement,
            outcome=VerdictOutcome.ERROR if error else VerdictOutcome.VIOLATED,
            message=message,
            error=error,
            blocked=(ActionClass.REMOVE,) if acts else (),
        )
