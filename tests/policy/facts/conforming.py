"""Whether a plain value is of a CEL type, told apart from the engines, which hold the same rule each in its own way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar

_EXACTLY: Mapping[Scalar, type] = {
    Scalar.BOOL: bool,
    Scalar.INT: int,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.DURATION: timedelta,
    Scalar.TIMESTAMP: datetime,
}


def misfits(type_: CelType, value: object, path: str = "") -> Iterator[str]:
    """Every place where the value is not of the type, fields that are missing or too many included."""
    match type_:
        case Record():
            yield from _misfits_of_record(type_, value, path)
        case MapOf(inner) if isinstance(value, Mapping):
            for key, each in value.items():
                yield from misfits(Scalar.STRING, key, f"{path} key")
                yield from misfits(inner, each, f"{path}[{key}]")
        case ListOf(element) if isinstance(value, Sequence) and not isinstance(value, str):
            for at, each in enumerate(value):
                yield from misfits(element, each, f"{path}[{at}]")
        case Scalar() if type(value) is _EXACTLY[type_]:
            return
        case _:
            yield f"{path}: {value!r} is no {type_}"


def _misfits_of_record(record: Record, value: object, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path}: {value!r} is no map"
        return
    types = {each.name: each.type for each in record.fields}
    yield from (f"{path}.{name}: missing" for name in types if name not in value)
    yield from (f"{path}.{name}: too many" for name in value if name not in types)
    for name in types.keys() & value.keys():
        yield from misfits(types[name], value[name], f"{path}.{name}")
