"""What tests of policy came to, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from engine.model.diagnostic import Position
from engine.policy.testing.coverage import Gap, RuleCoverage
from engine.policy.testing.judge import CaseResult
from engine.policy.testing.tests_run import PolicyTestsRun
from engine.report.diagnostics_report import Excerpt, render_diagnostics
from engine.report.words import counted

SCHEMA = "nodewright.dev/policy-test/v1"


def render_policy_tests(run: PolicyTestsRun) -> RenderableType:
    """Each case in a line, and of those that fail why and by which values; then coverage, gaps with their carets."""
    parts: list[RenderableType] = [render_diagnostics(run.findings)] if run.findings else []
    file = ""
    for result in run.results:
        if result.file != file:
            file = result.file
            parts.append(Text(file, style="bold"))
        parts += _case(result)
    parts += _coverage(run)
    parts += _untested(run)
    parts.append(Text(summary_line(run), style="bold green" if run.passes else "bold red"))
    return Group(*parts)


def summary_line(run: PolicyTestsRun) -> str:
    """One line about the whole run."""
    if not run.files:
        why = "no policy tests" if run.is_valid else "nothing was tested, since policy does not load"
        return f"{run.environment}: {why}"
    passed = len(run.results) - len(run.failed)
    line = f"{run.environment}, {run.engine}: {counted(passed, 'case')} passed, {len(run.failed)} failed"
    if not run.is_valid:
        line += ", and not all of the test files are valid"
    if run.uncovered:
        line += f", {counted(len(run.uncovered), 'rule')} covered less than {percent_words(run.threshold or 0)}"
    if run.needs_tests and run.untested:
        line += f", {counted(sum(len(each.rules) for each in run.untested), 'rule')} without a case"
    return line


def missing_words(gap: Gap) -> str:
    """Which outcomes no case has seen."""
    return "never evaluated to true or false" if len(gap.missing) > 1 else f"never {str(gap.missing[0]).lower()}"


def percent_words(percent: float) -> str:
    """Rounded down: 99.9 is not all of it."""
    return f"{int(percent)} %"


def place_words(position: Position) -> str:
    return f"{position.file}:{position.line}:{position.column}"


def problem_lines(result: CaseResult) -> Sequence[str]:
    """Why a case fails, and what its rule's parts came to."""
    return [result.problem, *(f"{text} → {value}" for text, value in result.values)]


def _case(result: CaseResult) -> Iterator[RenderableType]:
    rule = f" ({result.rule})" if result.rule else ""
    if result.passes:
        yield Text.assemble(("  ✓ ", "green"), result.name, (rule, "dim"))
        return
    yield Text.assemble(("  ✗ ", "bold red"), (result.name, "bold"), (rule, "dim"))
    problem, *values = problem_lines(result)
    yield Text(f"    {place_words(result.position)}: {problem}")
    yield from (Text(f"      {line}", style="dim") for line in values)


def _coverage(run: PolicyTestsRun) -> Iterator[RenderableType]:
    asked = [each for each in run.coverage if each.cases or run.threshold is not None]
    if not asked:
        return
    yield Text("coverage: each bool part of a rule, true in one case and false in another", style="bold")
    width = max(len(each.rule) for each in asked)
    for each in asked:
        fails = run.threshold is not None and not each.reaches(run.threshold)
        style = "bold red" if fails else "green" if not each.gaps else "yellow"
        yield Text.assemble(f"  {each.rule.ljust(width)}  ", (percent_words(each.percent), style), _of(each))
        if each.cases:
            for gap in each.gaps:
                yield Text(f"    {place_words(gap.position)}: {missing_words(gap)}: {' '.join(gap.text.split())}")
                if gap.position.source_line.strip():
                    yield Excerpt(gap.position.source_line, max(gap.position.column, 1) - 1)


def _of(coverage: RuleCoverage) -> str:
    cases = counted(coverage.cases, "case")
    return f"  {coverage.seen} of {coverage.asked} outcomes, {cases}" if coverage.asked else f"  {cases}"


def _untested(run: PolicyTestsRun) -> Iterator[RenderableType]:
    if run.untested:
        yield Text("rules without a case that evaluates them:", style="bold red" if run.needs_tests else "bold yellow")
        yield from (Text(f"  {each.file}: {', '.join(each.rules)}") for each in run.untested)


def policy_tests_json(run: PolicyTestsRun) -> str:
    """The same for programs, with its schema's name."""
    document = {
        "schema": SCHEMA,
        "environment": run.environment,
        "engine": run.engine,
        "passes": run.passes,
        "summary": summary_line(run),
        "cases": [
            {
                "name": each.name,
                "test": each.test,
                "rule": each.rule,
                **_place(each.position),
                "passes": each.passes,
                "problem": each.problem,
                "values": dict(each.values),
            }
            for each in run.results
        ],
        "coverage": [
            {
                "rule": each.rule,
                **_place(each.position),
                "cases": each.cases,
                "percent": int(each.percent),
                "seen": each.seen,
                "asked": each.asked,
                "gaps": [{**_place(gap.position), "text": gap.text, "missing": list(gap.missing)} for gap in each.gaps],
            }
            for each in run.coverage
        ],
        "untested": [{"file": each.file, "rules": list(each.rules)} for each in run.untested],
        "findings": [
            {
                "severity": each.severity.value,
                "rule": each.rule,
                "message": each.message,
                "hint": each.hint,
                **_place(each.position),
            }
            for each in run.findings
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _place(position: Position) -> dict[str, str | int]:
    return {"file": position.file, "line": position.line, "column": position.column}
