"""Reading a trace: a CSV of pods, when each comes, how long it stays, and what it asks for."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from attrs import evolve, frozen

from engine.model.constraint import TaintEffect, Toleration
from engine.model.diagnostic import Diagnostic, InvalidInput, Position, Severity
from engine.model.duration import DurationError, parse_duration
from engine.model.pod import Owner, Placing, Pod, PodKey
from engine.model.quantity import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    NVIDIA_GPU,
    PODS,
    QuantityError,
    Resources,
    parse_quantity,
)
from engine.simulate.tasks import Stay, Task

_T = TypeVar("_T")

_REQUIRED = ("name", "arrival", "duration", "cpu", "memory")
_OPTIONAL = ("gpu", "count", "stay", "namespace", "owner", "priority", "selector", "tolerations", "labels",
             "ephemeral-storage", "do-not-disrupt")  # fmt: skip
_FOREVER = ("", "forever")
_RULE = "bad-trace"
_MOST_FINDINGS = 20
_MOST_COUNT = 100_000
# As of a pod: 32 bits with a sign.
_PRIORITIES = (-(2**31), 2**31 - 1)
# The shapes of Kubernetes names (k8s.io/apimachinery, pkg/util/validation).
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN, _LONGEST_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*"), 253
_NAMESPACE, _LONGEST_NAMESPACE = re.compile(_LABEL), 63
_CELL = re.compile(r'"(?:[^"]|"")*"?[^,]*|[^,]*')
_BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)
_HINT = "the columns are name,arrival,duration,cpu,memory and, where wanted, " + ",".join(_OPTIONAL)


class _Wrong(Exception):
    """A cell is not what its column is for."""

    def __init__(self, column: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.column, self.hint = column, hint


def read_trace(shown: str, content: bytes) -> tuple[Task, ...]:
    """The tasks of a trace file, in its order. ``shown`` is how findings name it.

    Raises InvalidInput with every line that is wrong, the first twenty at least; where it is no CSV, with that alone.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(Position(shown, 1, 1), f"the file is no UTF-8 text: byte {error.start} is odd", _HINT) from None
    _check_characters(shown, text)
    rows = _rows(shown, text)
    first = next(rows, _Row(1, [], ""))
    header = [cell.strip() for cell in first.cells]
    _check_header(shown, header, first)
    tasks: list[Task] = []
    lines_of: dict[PodKey, int] = {}
    findings: list[Diagnostic] = []
    for row in rows:
        if not any(cell.strip() for cell in row.cells):
            continue
        try:
            made = _tasks(header, row.cells)
            _check_new(made, lines_of)
        except _Wrong as wrong:
            position = row.position_of(header.index(wrong.column), shown)
            findings.append(Diagnostic(Severity.ERROR, _RULE, str(wrong), position, wrong.hint))
        else:
            tasks += made
            lines_of |= dict.fromkeys((task.pod.key for task in made), row.line)
        if len(findings) >= _MOST_FINDINGS:
            break
    if findings:
        raise InvalidInput(tuple(findings))
    return tuple(tasks)


@frozen
class _Row:
    """The cells of one row; it begins on ``line``, counted from 1, and may go on over more of them."""

    line: int
    cells: list[str]
    written: str

    def position_of(self, index: int, shown: str) -> Position:
        """Where a cell begins, quoted or not."""
        at = 0
        for _ in range(index):
            cell = _CELL.match(self.written, at)
            assert cell is not None
            at = cell.end() + 1
        above = self.written[:at]
        source = self.written.split("\n")[above.count("\n")].removesuffix("\r")
        return Position(shown, self.line + above.count("\n"), at - above.rfind("\n"), source)


def _check_characters(shown: str, text: str) -> None:
    """NUL is no text, though UTF-8 has it."""
    at = text.find("\0")
    if at >= 0:
        begins = text.rfind("\n", 0, at) + 1
        message, hint = "the character NUL is in the file", "remove it; this may be no text file"
        position = Position(shown, text.count("\n", 0, at) + 1, at - begins + 1, text[begins:at])
        raise _refused(position, message, hint)


def _rows(shown: str, text: str) -> Iterator[_Row]:
    """Raises InvalidInput where the text is no CSV any more."""
    lines = text.split("\n")
    reader = csv.reader(io.StringIO(text))
    begins = 1
    try:
        for cells in reader:
            yield _Row(begins, cells, "\n".join(lines[begins - 1 : reader.line_num]))
            begins = reader.line_num + 1
    except csv.Error:
        # The reader stops in the line that it has just counted.
        line = lines[reader.line_num - 1].removesuffix("\r")
        returns = line.find("\r")
        if returns >= 0:
            message = "a carriage return stands alone, and ends no line"
            hint = "end lines as Unix or Windows does, with a line feed or with both"
            position = Position(shown, reader.line_num, returns + 1, line[:returns])
            raise _refused(position, message, hint) from None
        message = f"a cell has more than {csv.field_size_limit():,} characters"
        hint = "write one line for each pod; a quote that is never closed takes in all that follows"
        raise _refused(Position(shown, begins, 1), message, hint) from None


def _check_header(shown: str, header: list[str], first: _Row) -> None:
    begin = first.position_of(0, shown)
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise _refused(begin, f"the first line names no column {', '.join(missing)}", _HINT)
    strange = next((name for name in header if name not in (*_REQUIRED, *_OPTIONAL)), None)
    if strange is not None:
        position = first.position_of(header.index(strange), shown)
        raise _refused(position, f"{strange[:60]!r} is no column of a trace", _HINT)
    if len(set(header)) < len(header):
        raise _refused(begin, "a column is named twice", _HINT)


def _check_new(made: list[Task], lines_of: Mapping[PodKey, int]) -> None:
    again = next((task.pod.key for task in made if task.pod.key in lines_of), None)
    if again is not None:
        message = f"pod {again} is on line {lines_of[again]} already"
        raise _Wrong("name", message, "give each line a name of its own, or one line a count")


def _tasks(header: list[str], cells: list[str]) -> list[Task]:
    if len(cells) != len(header):
        message = f"{len(cells)} cells, and the first line names {len(header)} columns"
        raise _Wrong(header[min(len(cells), len(header)) - 1], message, "write one cell for each column")
    row = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    name = row["name"]
    if not name:
        raise _Wrong("name", "the pod has no name", "names tell pods apart in the report")
    after = _time(row, "arrival")
    lasts = None if row["duration"] in _FOREVER else _time(row, "duration")
    stay = _read(row, "stay", Stay, Stay.JOB, "write job or replica")
    count = _whole(row, "count", 1, (1, _MOST_COUNT))
    _check_name(row, "name", _SUBDOMAIN, _LONGEST_SUBDOMAIN - (len(f"-{count - 1}") if count > 1 else 0))
    _check_name(row, "owner", _SUBDOMAIN, _LONGEST_SUBDOMAIN)
    _check_name(row, "namespace", _NAMESPACE, _LONGEST_NAMESPACE)
    pod = _pod(row, name)
    if count == 1:
        return [Task(after, pod, lasts, stay)]
    return [Task(after, _named(pod, f"{name}-{number}"), lasts, stay) for number in range(count)]


def _check_name(row: Mapping[str, str], column: str, shape: re.Pattern[str], longest: int) -> None:
    written = row.get(column, "")
    if written and (len(written) > longest or not shape.fullmatch(written)):
        dots = " and ." if shape is _SUBDOMAIN else ""
        hint = f"lower-case letters, digits, -{dots}, {longest} at most, a letter or digit at both ends"
        raise _Wrong(column, f"{column}: {written[:60]!r} is no name in Kubernetes", hint)


def _named(pod: Pod, name: str) -> Pod:
    return evolve(pod, key=PodKey(pod.key.namespace, name))


def _pod(row: Mapping[str, str], name: str) -> Pod:
    asked = {PODS: "1", CPU: row["cpu"], MEMORY: row["memory"]}
    for column, resource in (("gpu", NVIDIA_GPU), ("ephemeral-storage", EPHEMERAL_STORAGE)):
        if row.get(column) not in (None, "", "0"):
            asked[resource] = row[column]
    columns = {CPU: "cpu", MEMORY: "memory", NVIDIA_GPU: "gpu", EPHEMERAL_STORAGE: "ephemeral-storage"}
    for resource, amount in asked.items():
        try:
            Resources.parse({resource: amount})
        except QuantityError as error:
            raise _Wrong(columns[resource], str(error), "write an amount as Kubernetes does: 500m, 4, 16Gi") from None
    if NVIDIA_GPU in asked and parse_quantity(asked[NVIDIA_GPU]).denominator != 1:
        message = f"gpu: {asked[NVIDIA_GPU][:60]!r} is no whole number"
        raise _Wrong("gpu", message, "Kubernetes gives pods whole GPUs alone: write 1, or 0 for none")
    labels = _pairs(row, "labels")
    return Pod(
        key=PodKey(row.get("namespace") or "default", name),
        placing=Placing(Resources.parse(asked), node_selector=_pairs(row, "selector"), tolerations=_tolerations(row)),
        created_at=_BEFORE_ALL,
        labels=labels,
        owner=Owner("ReplicaSet", row.get("owner") or name),
        priority=_whole(row, "priority", 0, _PRIORITIES),
        do_not_disrupt=_read(row, "do-not-disrupt", _truth, False, "write true or false"),
    )


def _time(row: Mapping[str, str], column: str) -> timedelta:
    """Plain seconds, or a duration with units."""
    written = row[column]
    try:
        seconds = float(written)
    except ValueError:
        try:
            return parse_duration(written)
        except DurationError:
            hint = "write seconds, such as 90, or a duration such as 1h30m"
            raise _Wrong(column, f"{column} {written[:60]!r} is no time", hint) from None
    if not 0 <= seconds <= 10**9:
        raise _Wrong(column, f"{column} {written[:60]!r} is no time that can be", "write seconds, zero or more")
    return timedelta(milliseconds=round(seconds * 1000))


def _read(row: Mapping[str, str], column: str, of: Callable[[str], _T], default: _T, hint: str) -> _T:
    written = row.get(column, "")
    try:
        return of(written) if written else default
    except ValueError:
        raise _Wrong(column, f"{column} cannot be {written[:60]!r}", hint) from None


def _whole(row: Mapping[str, str], column: str, default: int, bounds: tuple[int, int]) -> int:
    least, most = bounds
    hint = f"write a whole number from {least:,} to {most:,}"
    number = _read(row, column, int, default, hint)
    if not least <= number <= most:
        raise _Wrong(column, f"{column} cannot be {number}", hint)
    return number


def _truth(written: str) -> bool:
    if written not in ("true", "false"):
        raise ValueError(written)
    return written == "true"


def _pairs(row: Mapping[str, str], column: str) -> Mapping[str, str]:
    """``key=value;key=value``."""
    found = {}
    for part in filter(None, row.get(column, "").split(";")):
        key, equals, value = part.strip().partition("=")
        if not equals or not key:
            raise _Wrong(column, f"{column}: {part[:60]!r} is no key=value", "write key=value, several with ; between")
        found[key] = value
    return found


def _tolerations(row: Mapping[str, str]) -> tuple[Toleration, ...]:
    """``key`` for any value, ``key=value``, and ``:Effect`` behind either."""
    found = []
    for part in filter(None, row.get("tolerations", "").split(";")):
        named, _, effect = part.strip().partition(":")
        key, equals, value = named.partition("=")
        try:
            of = TaintEffect(effect) if effect else None
        except ValueError:
            hint = "write key, key=value or key=value:NoSchedule, several with ; between"
            raise _Wrong("tolerations", f"{effect[:60]!r} is no effect of a taint", hint) from None
        found.append(Toleration(key=key, exists=not equals, value=value, effect=of))
    return tuple(found)


def _refused(position: Position, message: str, hint: str) -> InvalidInput:
    return InvalidInput((Diagnostic(Severity.ERROR, _RULE, message, position, hint),))
