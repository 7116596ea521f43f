"""Plain values on their way into an engine: each is exactly of its type, or refused with its path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar

_INT_BOUND = 2**63

Intake = Callable[[Any, str], Any]
"""Takes a plain value in; the text is its path, for the error."""


class Intakes:
    """What takes values of each type in, made once for each.

    ``scalars`` turn a checked plain value into the engine's own, which is the same where nothing is said; ``records``
    give for each record what makes one of its fields' values, by keyword.
    """

    def __init__(
        self,
        scalars: Mapping[Scalar, Callable[[Any], Any]],
        records: Callable[[Record], Callable[..., Any]],
        lists: Callable[[list[Any]], Any] = lambda values: values,
        maps: Callable[[dict[str, Any]], Any] = lambda values: values,
    ) -> None:
        self._records = records
        self._lists = lists
        self._maps = maps
        self._made: dict[CelType, Intake] = {
            each: _turned(check, scalars[each]) if each in scalars else check for each, check in _CHECKS.items()
        }

    def take(self, type_: CelType, plain: Any) -> Any:
        """Raises TypeError or ValueError, naming the path."""
        return self._intake(type_)(plain, type_.name if isinstance(type_, Record) else "the fact")

    def _intake(self, type_: CelType) -> Intake:
        if (known := self._made.get(type_)) is None:
            known = self._made[type_] = self._new(type_)
        return known

    def _new(self, type_: CelType) -> Intake:
        match type_:
            case ListOf(element):
                return _list_intake(self._intake(element), self._lists)
            case MapOf(value):
                return _map_intake(self._intake(value), self._maps)
            case Record():
                fields = {each.name: self._intake(each.type) for each in type_.fields}
                return _record_intake(type_, fields, self._records(type_))
            case Scalar():
                raise AssertionError(f"{type_} has its intake from the start")


def _turned(check: Intake, turn: Callable[[Any], Any]) -> Intake:
    return lambda value, path: turn(check(value, path))


def _wrong(path: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{path}: expected {expected}, got {type(value).__name__} {value!r:.80}")


def _bool(value: Any, path: str) -> bool:
    if type(value) is not bool:
        raise _wrong(path, "a bool", value)
    return value


def _int(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(path, "an int", value)
    if not -_INT_BOUND <= value < _INT_BOUND:
        raise ValueError(f"{path}: {value} does not fit into 64 bits")
    return value


def _double(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, "a double", value)
    return float(value)


def _string(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong(path, "a string", value)
    return value if type(value) is str else str.__str__(value)


def _duration(value: Any, path: str) -> timedelta:
    if not isinstance(value, timedelta):
        raise _wrong(path, "a timedelta", value)
    return value


def _timestamp(value: Any, path: str) -> datetime:
    if not isinstance(value, datetime):
        raise _wrong(path, "a datetime", value)
    if value.tzinfo is None:
        raise ValueError(f"{path}: {value!r} has no time zone")
    return value


_CHECKS: Mapping[Scalar, Intake] = {
    Scalar.BOOL: _bool,
    Scalar.INT: _int,
    Scalar.DOUBLE: _double,
    Scalar.STRING: _string,
    Scalar.DURATION: _duration,
    Scalar.TIMESTAMP: _timestamp,
}


def _list_intake(element: Intake, made: Callable[[list[Any]], Any]) -> Intake:
    def take(value: Any, path: str) -> Any:
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
            raise _wrong(path, "a list", value)
        return made([element(each, path) for each in value])

    return take


def _map_intake(inner: Intake, made: Callable[[dict[str, Any]], Any]) -> Intake:
    def take(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(path, "a map", value)
        return made({_string(key, path): inner(each, path) for key, each in value.items()})

    return take


def _record_intake(record: Record, fields: Mapping[str, Intake], made: Callable[..., Any]) -> Intake:
    names = fields.keys()
    known = [(name, f"{record.name}.{name}", intake) for name, intake in fields.items()]

    def take(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(path, f"a record {record.name}", value)
        if value.keys() != names:
            raise ValueError(f"{path}: {_difference(record, set(names), set(value))}")
        return made(**{name: intake(value[name], where) for name, where, intake in known})

    return take


def _difference(record: Record, expected: set[str], given: set[str]) -> str:
    missing, unknown = sorted(expected - given), sorted(given - expected)
    parts = [f"without {', '.join(missing)}"] if missing else []
    parts += [f"with {', '.join(map(str, unknown))}, which it does not have"] if unknown else []
    return f"a record {record.name} {' and '.join(parts)}"
