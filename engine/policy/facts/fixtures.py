"""Facts for policy tests: a default for every field, and what a test says of them laid over it.

What a test does not say is zero, empty or false, besides `DEFAULTS`, and besides what follows from what it does say: a
node without pods is empty, a plan's counts are of its lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from attrs import frozen

from engine.model.duration import DurationError, parse_duration
from engine.policy.cel.port import Plain
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar
from engine.policy.facts.schema import INSTANCE_TYPE, NODE, NODE_POOL, PLAN, POD
from engine.policy.facts.spelling import spelled
from engine.policy.facts.values import Facts
from engine.policy.findings import did_you_mean

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_SHOWN = 60

# By record and field, what is not zero, empty or false.
DEFAULTS: Mapping[str, Mapping[str, Plain]] = {
    POD.name: {"name": "pod", "namespace": "default"},
    INSTANCE_TYPE.name: {"name": "test.large", "arch": "amd64", "capacityType": "on-demand"},
    NODE_POOL.name: {"name": "pool"},
    NODE.name: {"name": "node", "nodePool": "pool", "instanceType": "test.large", "capacityType": "on-demand"},
}


@frozen
class FixtureProblem:
    """What is wrong with one override. ``path`` is its key, and the place inside of its value: ``pods[0].priority``."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" + (f" ({self.hint})" if self.hint else "")


class FixtureError(ValueError):
    """Overrides that do not fit; carries every one of them, in the order in which they were given."""

    def __init__(self, problems: tuple[FixtureProblem, ...]) -> None:
        self.problems = problems
        super().__init__("; ".join(map(str, problems)))


def fixture(record: Record, overrides: Mapping[str, Plain]) -> Facts:
    """The facts of a record: its defaults with the overrides laid over them, in their order.

    A key is a field, or ``FIELD.KEY`` for one entry of a map (``labels.tier``; what follows the first dot is the key,
    dots and all). A list of records is given as a list of overrides. Durations are text such as ``2h``, times text such
    as ``2026-11-30T12:00:00Z``; an int will do for a double. Raises FixtureError with all problems.
    """
    problems: list[FixtureProblem] = []
    facts = _Reader(problems).record(record, overrides, "")
    if problems:
        raise FixtureError(tuple(problems))
    return facts


def fixture_value(type_: CelType, given: Plain, path: str) -> Plain:
    """As `fixture` for a single value of any type, such as ``reason`` or ``now``. Raises FixtureError."""
    problems: list[FixtureProblem] = []
    value = _Reader(problems).value(type_, given, path)
    if problems:
        raise FixtureError(tuple(problems))
    return value


def default_of(type_: CelType) -> Plain:
    """What a field is where nobody says anything."""
    if isinstance(type_, ListOf):
        return []
    if isinstance(type_, MapOf):
        return {}
    if isinstance(type_, Record):
        given = DEFAULTS.get(type_.name, {})
        return {each.name: given.get(each.name, default_of(each.type)) for each in type_.fields}
    return _ZEROES[type_]


_ZEROES: Mapping[Scalar, Plain] = {
    Scalar.BOOL: False,
    Scalar.INT: 0,
    Scalar.DOUBLE: 0.0,
    Scalar.STRING: "",
    Scalar.DURATION: timedelta(0),
    Scalar.TIMESTAMP: _EPOCH,
}


class _Reader:
    """Reads overrides; what is wrong is added to ``problems``, and its default stands in for it."""

    def __init__(self, problems: list[FixtureProblem]) -> None:
        self._problems = problems

    def record(self, record: Record, overrides: Mapping[str, Plain], path: str) -> Facts:
        given: Facts = {}
        types = {each.name: each.type for each in record.fields}
        for key, value in overrides.items():
            name, dot, inner = str(key).partition(".")
            here = f"{path}.{key}" if path else str(key)
            if name not in types:
                self._problem(here, f"{record.name} has no field {name[:_LONGEST_SHOWN]}", did_you_mean(name, types))
            elif dot:
                given[name] = self._entry(types[name], given.get(name), inner, value, here)
            else:
                given[name] = self.value(types[name], value, here)
        default = default_of(record)
        known = {**default, **given} if isinstance(default, Mapping) else given
        return {**known, **_following(record, known, given)}

    def _entry(self, type_: CelType, so_far: Plain | None, inner: str, given: Plain, path: str) -> Plain:
        before = so_far if isinstance(so_far, Mapping) else {}
        if isinstance(type_, MapOf) and inner:
            return {**before, inner: self.value(type_.value, given, path)}
        return self._problem(path, f"{spelled(type_)} has no parts that a dot could name", "", type_)

    def value(self, type_: CelType, given: Plain, path: str) -> Plain:
        if isinstance(type_, Record):
            if isinstance(given, Mapping):
                return self.record(type_, given, path)
        elif isinstance(type_, MapOf):
            if isinstance(given, Mapping):
                return {str(key): self.value(type_.value, each, f"{path}.{key}") for key, each in given.items()}
        elif isinstance(type_, ListOf):
            if isinstance(given, Sequence) and not isinstance(given, str):
                return [self.value(type_.element, each, f"{path}[{at}]") for at, each in enumerate(given)]
        else:
            return self._scalar(type_, given, path)
        return self._problem(path, f"expected {spelled(type_)}, found {_described(given)}", "", type_)

    def _scalar(self, type_: Scalar, given: Plain, path: str) -> Plain:
        read = _READERS[type_](given)
        if read is not None:
            return read
        hint = _HINTS.get(type_, "")
        if type_ is Scalar.STRING and isinstance(given, bool | int | float):
            hint = f'write "{str(given).lower() if isinstance(given, bool) else given}"'
        return self._problem(path, f"expected {spelled(type_)}, found {_described(given)}", hint, type_)

    def _problem(self, path: str, message: str, hint: str, type_: CelType = Scalar.STRING) -> Plain:
        self._problems.append(FixtureProblem(path, message, hint))
        return default_of(type_)


def _bool(given: Plain) -> Plain | None:
    return given if isinstance(given, bool) else None


def _int(given: Plain) -> Plain | None:
    return given if isinstance(given, int) and not isinstance(given, bool) and -(2**63) <= given < 2**63 else None


def _double(given: Plain) -> Plain | None:
    try:
        return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None
    except OverflowError:
        return None


def _string(given: Plain) -> Plain | None:
    return given if isinstance(given, str) else None


def _duration(given: Plain) -> Plain | None:
    if isinstance(given, timedelta) or not isinstance(given, str):
        return given if isinstance(given, timedelta) else None
    try:
        return parse_duration(given)
    except (DurationError, OverflowError):
        return None


def _timestamp(given: Plain) -> Plain | None:
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            return None
    return given if isinstance(given, datetime) and given.tzinfo is not None else None


_READERS: Mapping[Scalar, Callable[[Plain], Plain | None]] = {
    Scalar.BOOL: _bool,
    Scalar.INT: _int,
    Scalar.DOUBLE: _double,
    Scalar.STRING: _string,
    Scalar.DURATION: _duration,
    Scalar.TIMESTAMP: _timestamp,
}
_HINTS: Mapping[Scalar, str] = {
    Scalar.BOOL: "write true or false",
    Scalar.INT: "write a whole number without quotes",
    Scalar.DOUBLE: "write a number without quotes",
    Scalar.DURATION: "write hours, minutes and seconds, such as 2h or 1h30m",
    Scalar.TIMESTAMP: "write a time with its zone, such as 2026-11-30T12:00:00Z",
}


def _described(given: Plain) -> str:
    if isinstance(given, Mapping):
        return "a map"
    if isinstance(given, str):
        return f"the string {given[:_LONGEST_SHOWN]!r}"
    if isinstance(given, Sequence):
        return "a list"
    return str(given).lower() if isinstance(given, bool) else str(given)


def _following(record: Record, known: Mapping[str, Plain], given: Mapping[str, Plain]) -> Facts:
    """The fields that nobody gave and that follow from others."""
    follow = _FOLLOWING.get(record.name)
    return {name: value for name, value in follow(known).items() if name not in given} if follow else {}


def _of_instance_type(known: Mapping[str, Plain]) -> Facts:
    family, _, size = str(known["name"]).partition(".")
    return {"family": family, "size": size}


def _of_node(known: Mapping[str, Plain]) -> Facts:
    pods = [pod for pod in _items(known["pods"]) if isinstance(pod, Mapping)]
    return {
        "empty": not pods,
        "gpusUsed": sum(gpus for pod in pods if isinstance(gpus := pod["gpus"], int)),
        "doNotDisrupt": any(pod["doNotDisrupt"] for pod in pods),
    }


def _of_plan(known: Mapping[str, Plain]) -> Facts:
    return {"launchCount": len(_items(known["launches"])), "removalCount": len(_items(known["removals"]))}


def _items(value: Plain) -> Sequence[Plain]:
    return value if isinstance(value, Sequence) else ()


_FOLLOWING: Mapping[str, Callable[[Mapping[str, Plain]], Facts]] = {
    INSTANCE_TYPE.name: _of_instance_type,
    NODE.name: _of_node,
    PLAN.name: _of_plan,
}
