"""What a run of policy tests came to."""

from __future__ import annotations

from attrs import frozen

from engine.model.diagnostic import Diagnostic, Severity
from engine.policy.testing.coverage import RuleCoverage
from engine.policy.testing.judge import CaseResult


@frozen
class Untested:
    """A rules file, and those of its rules that no case has evaluated."""

    file: str
    rules: tuple[str, ...]


@frozen
class PolicyTestsRun:
    """``findings`` are of the test files, or of policy that does not load, and nothing else is there then.

    ``coverage`` is of the rules that were asked for; ``uncovered`` are those of it below ``threshold`` percent, which
    None does not ask. ``needs_tests``: a rule without a case fails the run.
    """

    environment: str
    engine: str
    files: int = 0
    results: tuple[CaseResult, ...] = ()
    coverage: tuple[RuleCoverage, ...] = ()
    untested: tuple[Untested, ...] = ()
    findings: tuple[Diagnostic, ...] = ()
    threshold: float | None = None
    needs_tests: bool = False

    @property
    def is_valid(self) -> bool:
        return not any(each.severity is Severity.ERROR for each in self.findings)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        return tuple(each for each in self.results if not each.passes)

    @property
    def uncovered(self) -> tuple[RuleCoverage, ...]:
        if self.threshold is None:
            return ()
        return tuple(each for each in self.coverage if not each.reaches(self.threshold))

    @property
    def passes(self) -> bool:
        return self.is_valid and not self.failed and not self.uncovered and not (self.needs_tests and self.untested)
