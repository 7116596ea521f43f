"""Reading a trace: a CSV of pods, when each comes, how long it stays, and what it asks for."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from attrs import evolve

from engine.model.constraint import TaintEffect, Toleration
from engine.model.diagnostic import Diagnostic, InvalidInput, Position, Severity
from engine.model.duration import DurationError, parse_duration
from engine.model.pod import Owner, Placing, Pod, PodKey
from engine.model.quantity import CPU, EPHEMERAL_STORAGE, MEMORY, NVIDIA_GPU, PODS, QuantityError, Resources
from engine.simulate.tasks import Stay, Task

_T = TypeVar("_T")

_REQUIRED = ("name", "arrival", "duration", "cpu", "memory")
_OPTIONAL = ("gpu", "count", "stay", "namespace", "owner", "priority", "selector", "tolerations", "labels",
             "ephemeral-storage", "do-not-disrupt")  # fmt: skip
_FOREVER = ("", "forever")
_MOST_FINDINGS = 20
_MOST_COUNT = 100_000
_BEFORE_ALL = datetime(2000, 1, 1, tzinfo=UTC)
_HINT = "the columns are name,arrival,duration,cpu,memory and, where wanted, " + ",".join(_OPTIONAL)


class _Wrong(Exception):
    """A cell is not what its column is for."""

    def __init__(self, column: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.column, self.hint = column, hint


def read_trace(shown: str, content: bytes) -> tuple[Task, ...]:
    """The tasks of a trace file, in its order. ``shown`` is how findings name it.

    Raises InvalidInput with every line that is wrong, the first twenty at least.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid(shown, 1, 1, "", f"the file is no UTF-8 text: byte {error.start} is odd", _HINT) from None
    lines = text.splitlines()
    rows = csv.reader(io.StringIO(text))
    header = [cell.strip() for cell in next(rows, [])]
    _check_header(shown, header, lines[0] if lines else "")
    tasks: list[Task] = []
    findings: list[Diagnostic] = []
    for cells in rows:
        if not any(cell.strip() for cell in cells):
            continue
        line, source = rows.line_num, lines[rows.line_num - 1]
        try:
            tasks += _tasks(header, cells)
        except _Wrong as wrong:
            column = _column_of(header.index(wrong.column) if wrong.column in header else len(cells), cells)
            findings.append(_finding(shown, line, column, source, str(wrong), wrong.hint))
        if len(findings) >= _MOST_FINDINGS:
            break
    if findings:
        raise InvalidInput(tuple(findings))
    _check_names(shown, tasks)
    return tuple(tasks)


def _check_header(shown: str, header: list[str], source: str) -> None:
    missing = [name for name in _REQUIRED if name not in header]
    if missing:
        raise _invalid(shown, 1, 1, source, f"the first line names no column {', '.join(missing)}", _HINT)
    strange = next((name for name in header if name not in (*_REQUIRED, *_OPTIONAL)), None)
    if strange is not None:
        column = _column_of(header.index(strange), header)
        raise _invalid(shown, 1, column, source, f"{strange[:60]!r} is no column of a trace", _HINT)
    if len(set(header)) < len(header):
        raise _invalid(shown, 1, 1, source, "a column is named twice", _HINT)


def _check_names(shown: str, tasks: list[Task]) -> None:
    seen: set[PodKey] = set()
    for task in tasks:
        if task.pod.key in seen:
            message = f"pod {task.pod.key} comes twice"
            raise _invalid(shown, 1, 1, "", message, "give each line a name of its own, or one line a count")
        seen.add(task.pod.key)


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
    count = _whole(row, "count", 1, _MOST_COUNT)
    pod = _pod(row, name)
    if count == 1:
        return [Task(after, pod, lasts, stay)]
    return [Task(after, _named(pod, f"{name}-{number}"), lasts, stay) for number in range(count)]


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
    labels = _pairs(row, "labels")
    return Pod(
        key=PodKey(row.get("namespace") or "default", name),
        placing=Placing(Resources.parse(asked), node_selector=_pairs(row, "selector"), tolerations=_tolerations(row)),
        created_at=_BEFORE_ALL,
        labels=labels,
        owner=Owner("ReplicaSet", row.get("owner") or name),
        priority=_whole(row, "priority", 0, 2_000_000_000),
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


def _whole(row: Mapping[str, str], column: str, default: int, most: int) -> int:
    number = _read(row, column, int, default, f"write a whole number of at most {most:,}")
    if not 0 <= number <= most:
        raise _Wrong(column, f"{column} cannot be {number}", f"write a whole number of at most {most:,}")
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


def _column_of(index: int, cells: list[str]) -> int:
    """Where a cell begins, counted from 1, where no cell is quoted."""
    return 1 + sum(len(cell) + 1 for cell in cells[:index])


def _finding(shown: str, line: int, column: int, source: str, message: str, hint: str) -> Diagnostic:
    return Diagnostic(Severity.ERROR, "bad-trace", message, Position(shown, line, column, source), hint)


def _invalid(shown: str, line: int, column: int, source: str, message: str, hint: str) -> InvalidInput:
    return InvalidInput((_finding(shown, line, column, source, message, hint),))
