"""Workflow commands keep what they say, whatever characters are in it."""

from __future__ import annotations

from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.report.github_report import github_commands


def finding(message: str, file: str = "a.yaml", hint: str = "", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(severity, "some-rule", message, Position(file, 3, 7), hint)


def test_each_finding_is_a_line_of_its_own() -> None:
    found = [finding("one"), finding("two", severity=Severity.WARNING)]
    assert github_commands(found).splitlines() == [
        "::error file=a.yaml,line=3,col=7,title=some-rule::one",
        "::warning file=a.yaml,line=3,col=7,title=some-rule::two",
    ]
    assert github_commands([]) == ""


def test_what_would_end_a_message_or_a_property_is_escaped() -> None:
    assert github_commands([finding("50%\r\n::error::x, y", "a,b:c%.yaml", "do\nthis")]) == (
        "::error file=a%2Cb%3Ac%25.yaml,line=3,col=7,title=some-rule::50%25%0D%0A::error::x, y%0A→ do%0Athis\n"
    )


def test_a_project_below_the_top_names_its_files_from_there_and_others_as_they_are() -> None:
    assert "file=gpu/prod/a.yaml," in github_commands([finding("x")], "gpu/prod")
    assert "file=/elsewhere/a.yaml," in github_commands([finding("x", "/elsewhere/a.yaml")], "gpu")
