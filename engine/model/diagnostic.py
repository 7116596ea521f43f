"""What is wrong with a file that a person wrote, and where."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"


@frozen
class Position:
    """A place in a file; line and column count from 1. ``source_line`` is the line's text, for the caret."""

    file: str
    line: int
    column: int
    source_line: str = ""


@frozen
class Diagnostic:
    """One finding of ``nodewright check``. ``rule`` is a stable id such as ``unknown-field``."""

    severity: Severity
    rule: str
    message: str
    position: Position
    hint: str = ""

    def __str__(self) -> str:
        place = self.position
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place.file}:{place.line}:{place.column}: {self.severity.value} {self.rule}: {self.message}{hint}"

    @property
    def sort_key(self) -> tuple[str, int, int, str, str]:
        return (self.position.file, self.position.line, self.position.column, self.rule, self.message)


class InvalidInput(Exception):
    """Files that a person wrote do not load; carries every finding, errors and warnings, in file order."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...]) -> None:
        self.diagnostics = tuple(sorted(diagnostics, key=lambda found: found.sort_key))
        errors = [str(found) for found in self.diagnostics if found.severity is Severity.ERROR]
        super().__init__("\n".join(["the policy and stack files do not load:", *errors]))
