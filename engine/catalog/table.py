"""Small comma-separated tables with a header of ``# key: value`` lines, read with a place for every fault."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, TypeVar

from attrs import frozen

from engine.model.diagnostic import Diagnostic, InvalidInput, Position, Severity

T = TypeVar("T")


@frozen
class Row:
    """One row. ``line`` counts from 1 in ``file``; ``source_line`` is its text, for a caret."""

    file: str
    line: int
    source_line: str
    fields: Mapping[str, str]

    def text(self, column: str) -> str:
        """The field without surrounding blanks; empty when the row has none."""
        return self.fields.get(column, "").strip()

    def required(self, column: str) -> str:
        """As ``text``, but raises InvalidInput when empty."""
        return self.text(column) or self._fail(column, "is empty")

    def whole(self, column: str) -> int:
        """A whole number, zero or more; an empty field is 0. Raises InvalidInput."""
        written = self.text(column) or "0"
        if not (written.isascii() and written.isdigit() and len(written) <= 15):
            self._fail(column, f"is {written!r}; a whole number, zero or more, was expected")
        return int(written)

    def read(self, column: str, parse: Callable[[str], T]) -> T:
        """The field through ``parse``, whose ValueError becomes an InvalidInput with this row's place."""
        try:
            return parse(self.required(column))
        except ValueError as error:
            self._fail(column, str(error))

    def optional(self, column: str, parse: Callable[[str], T]) -> T | None:
        """As ``read``, None for an empty field."""
        return self.read(column, parse) if self.text(column) else None

    def one_of(self, column: str, known: Sequence[str]) -> str:
        """A field that must be one of the known words. Raises InvalidInput."""
        written = self.required(column)
        if written not in known:
            self._fail(column, f"is {written!r}; one of {', '.join(known)} was expected")
        return written

    def _fail(self, column: str, what: str) -> NoReturn:
        names = list(self.fields)
        before = [self.fields[name] for name in names[: names.index(column)]] if column in names else []
        position = Position(self.file, self.line, len(",".join((*before, ""))) + 1 if before else 1, self.source_line)
        raise table_fault(position, f"{column} {what}")


@frozen
class Table:
    """``facts`` are the header's ``# key: value`` lines."""

    facts: Mapping[str, str]
    rows: tuple[Row, ...]


def table_fault(position: Position, message: str, hint: str = "") -> InvalidInput:
    """One finding as the exception that carries it."""
    return InvalidInput((Diagnostic(Severity.ERROR, "table", message, position, hint),))


def read_table(file: str, content: bytes, columns: Sequence[str]) -> Table:
    """The table in ``content``; ``file`` is the name to show. Raises InvalidInput: not UTF-8, or without a column."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise table_fault(Position(file, 1, 1), f"not UTF-8 text at byte {error.start}") from None
    facts = dict(_fact(line) for line in lines if line.startswith("#") and ":" in line)
    numbered = [(at, line) for at, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")]
    if not numbered:
        raise table_fault(Position(file, 1, 1), "the table is empty", f"the first row names {','.join(columns)}")
    (header_at, header), *body = numbered
    names = [name.strip() for name in next(csv.reader([header]))]
    missing = [column for column in columns if column not in names]
    if missing:
        raise table_fault(
            Position(file, header_at, 1, header),
            f"no column {', '.join(missing)}",
            f"the first row names {','.join(columns)}",
        )
    # One physical line is one row: none of these tables has a line break inside a field.
    return Table(
        facts=facts,
        rows=tuple(
            Row(file, at, line, dict(zip(names, fields, strict=False)))
            for (at, line), fields in zip(body, csv.reader(line for _, line in body), strict=True)
        ),
    )


def _fact(line: str) -> tuple[str, str]:
    key, _, value = line.lstrip("# ").partition(":")
    return key.strip(), value.strip()
