"""Findings as GitHub's workflow commands, which a pull request shows beside the lines that they are about.

The escapes are those of GitHub's documentation of workflow commands, as its runner reads them.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.diagnostic import Diagnostic, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def github_commands(findings: Iterable[Diagnostic], folder: str = "") -> str:
    """A line for each finding; ``folder`` is where the project lies in its repository, empty for the top of it."""
    return "".join(f"{_command(finding, folder)}\n" for finding in findings)


def _command(finding: Diagnostic, folder: str) -> str:
    place = finding.position
    file = f"{folder}/{place.file}" if folder and not place.file.startswith("/") else place.file
    properties = {"file": file, "line": str(place.line), "col": str(place.column), "title": finding.rule}
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    hint = f"\n→ {finding.hint}" if finding.hint else ""
    return f"::{_COMMANDS[finding.severity]} {written}::{_data(finding.message + hint)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
