"""Where findings are gathered, so that all of them are told at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from engine.model.diagnostic import Diagnostic, InvalidInput, Position, Severity
from engine.policy.located import Located, Path, Place, Source, find, key_place, remove, value_place, walk

# A value that Kubernetes would refuse without quotes.
UNQUOTED = "unquoted"
_LONGEST_TEXT = 1_000


class Findings:
    """Every finding of a load, each once."""

    def __init__(self) -> None:
        self._found: dict[Diagnostic, None] = {}

    def error(self, position: Position, rule: str, message: str, hint: str = "") -> None:
        self._add(Severity.ERROR, position, rule, message, hint)

    def warning(self, position: Position, rule: str, message: str, hint: str = "") -> None:
        self._add(Severity.WARNING, position, rule, message, hint)

    def _add(self, severity: Severity, position: Position, rule: str, message: str, hint: str) -> None:
        self._found[Diagnostic(severity, rule, _readable(message), position, _readable(hint))] = None

    @property
    def in_file_order(self) -> tuple[Diagnostic, ...]:
        """How a value is quoted is not told where the value itself is wrong: the hints would be two."""
        wrong = {found.position for found in self._found if found.severity is Severity.ERROR}
        told = (each for each in self._found if not (each.rule == UNQUOTED and each.position in wrong))
        return tuple(sorted(told, key=lambda found: found.sort_key))

    @property
    def has_errors(self) -> bool:
        return any(found.severity is Severity.ERROR for found in self._found)

    def has_errors_in(self, file: str) -> bool:
        return any(found.severity is Severity.ERROR and found.position.file == file for found in self._found)

    def raise_errors(self) -> None:
        """Raises InvalidInput with all findings when one of them is an error."""
        if self.has_errors:
            raise InvalidInput(self.in_file_order)


def _readable(text: str) -> str:
    """Without the end of what a file says at such length that nobody would read it."""
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


class ObjectFindings:
    """The findings of one object: told by the path of the part that is wrong."""

    def __init__(self, findings: Findings, source: Source, root: Located) -> None:
        self.findings, self.source, self.root = findings, source, root
        self._taken_from: dict[int, list[tuple[Located, str | int]]] = {}

    def error(self, path: Path, rule: str, message: str, hint: str = "") -> None:
        self.findings.error(self.at(path), rule, message, hint)

    def take_out(self, path: Path) -> None:
        """Removes a part that has been told as wrong, so that the rest can be read."""
        above = find(self.root, path[:-1])
        if above is not None and remove(self.root, path):
            self._taken_from.setdefault(id(above), []).append((above, path[-1]))

    def lacks_part(self, path: Path) -> bool:
        """Whether the part at a path is not whole, since something wrong has been taken out of it, or itself."""
        part = find(self.root, path)
        if part is None:
            above = find(self.root, path[:-1])
            return any(key == path[-1] for _, key in self._taken_from.get(id(above), ()))
        return any(id(inner) in self._taken_from for inner, _ in walk(part))

    def warning(self, path: Path, rule: str, message: str, hint: str = "") -> None:
        self.findings.warning(self.at(path), rule, message, hint)

    def error_at_key(self, path: Path, rule: str, message: str, hint: str = "") -> None:
        self.findings.error(self.at_key(path), rule, message, hint)

    def warning_at_key(self, path: Path, rule: str, message: str, hint: str = "") -> None:
        self.findings.warning(self.at_key(path), rule, message, hint)

    def warning_at_place(self, place: Place, rule: str, message: str, hint: str = "") -> None:
        self.findings.warning(self.source.position(place), rule, message, hint)

    def at(self, path: Path) -> Position:
        return self.source.position(value_place(self.root, path))

    def at_key(self, path: Path) -> Position:
        return self.source.position(key_place(self.root, path))


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a person most likely meant, or None."""
    by_lower = {option.lower(): option for option in known}
    found = difflib.get_close_matches(word.lower()[:100], by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the closest known word, else all of them when they are few."""
    options = sorted(known)
    match = closest(word, options)
    if match is not None:
        return f"did you mean {match}?"
    return f"it is one of {', '.join(options)}" if 0 < len(options) <= 12 else ""
