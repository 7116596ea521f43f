"""What the portable subset offers: operators, functions and methods, each with the types it takes and gives."""

from __future__ import annotations

from collections.abc import Sequence

from engine.policy.cel.types import CelType, ListOf, MapOf, Scalar

_BOOL, _INT, _DOUBLE, _STRING = Scalar.BOOL, Scalar.INT, Scalar.DOUBLE, Scalar.STRING
_DURATION, _TIMESTAMP = Scalar.DURATION, Scalar.TIMESTAMP

Overload = tuple[tuple[Scalar, ...], Scalar]

_ORDERED = (_INT, _DOUBLE, _STRING, _DURATION, _TIMESTAMP)
_ORDER: tuple[Overload, ...] = tuple(((each, each), _BOOL) for each in _ORDERED)
_NUMBERS: tuple[Overload, ...] = (((_INT, _INT), _INT), ((_DOUBLE, _DOUBLE), _DOUBLE))

OPERATORS: dict[str, tuple[Overload, ...]] = {
    "_<_": _ORDER,
    "_<=_": _ORDER,
    "_>_": _ORDER,
    "_>=_": _ORDER,
    "_+_": (
        *_NUMBERS,
        ((_STRING, _STRING), _STRING),
        ((_TIMESTAMP, _DURATION), _TIMESTAMP),
        ((_DURATION, _TIMESTAMP), _TIMESTAMP),
        ((_DURATION, _DURATION), _DURATION),
    ),
    "_-_": (
        *_NUMBERS,
        ((_TIMESTAMP, _TIMESTAMP), _DURATION),
        ((_TIMESTAMP, _DURATION), _TIMESTAMP),
        ((_DURATION, _DURATION), _DURATION),
    ),
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": (((_INT, _INT), _INT),),
    "!_": (((_BOOL,), _BOOL),),
    "-_": (((_INT,), _INT), ((_DOUBLE,), _DOUBLE)),
}

FUNCTIONS: dict[str, tuple[Overload, ...]] = {
    "int": (((_INT,), _INT), ((_DOUBLE,), _INT), ((_STRING,), _INT)),
    "double": (((_DOUBLE,), _DOUBLE), ((_INT,), _DOUBLE)),
    "string": (((_STRING,), _STRING), ((_INT,), _STRING)),
    "duration": (((_STRING,), _DURATION),),
    "timestamp": (((_STRING,), _TIMESTAMP),),
    "matches": (((_STRING, _STRING), _BOOL),),
}

_TEXT_TEST: tuple[Overload, ...] = (((_STRING, _STRING), _BOOL),)
_IN_ZONE: tuple[Overload, ...] = (((_TIMESTAMP,), _INT), ((_TIMESTAMP, _STRING), _INT))

METHODS: dict[str, tuple[Overload, ...]] = {
    "contains": _TEXT_TEST,
    "startsWith": _TEXT_TEST,
    "endsWith": _TEXT_TEST,
    "matches": _TEXT_TEST,
    "getFullYear": _IN_ZONE,
    "getMonth": _IN_ZONE,
    "getDate": _IN_ZONE,
    "getDayOfMonth": _IN_ZONE,
    "getDayOfWeek": _IN_ZONE,
    "getDayOfYear": _IN_ZONE,
    "getHours": (*_IN_ZONE, ((_DURATION,), _INT)),
    "getMinutes": (*_IN_ZONE, ((_DURATION,), _INT)),
    "getSeconds": (*_IN_ZONE, ((_DURATION,), _INT)),
}

MACROS = {"all": 2, "exists": 2, "exists_one": 2, "filter": 2, "map": 2}
"""Each with the arguments it takes."""


def result_of(overloads: Sequence[Overload], types: Sequence[CelType]) -> Scalar | None:
    """What the overload that fits gives; None when none fits."""
    for taken, given in overloads:
        if len(taken) == len(types) and all(a is b for a, b in zip(taken, types, strict=True)):
            return given
    return None


def shown(type_: CelType) -> str:
    """The type as a person reads it."""
    match type_:
        case Scalar():
            return type_.value
        case ListOf(element):
            return f"list({shown(element)})"
        case MapOf(value):
            return f"map(string, {shown(value)})"
        case _:
            return type_.name


def are_alike(left: CelType, right: CelType) -> bool:
    """Whether values of the two may be compared for being equal: scalars, and lists and maps of them."""
    match left, right:
        case ListOf(a), ListOf(b):
            return are_alike(a, b)
        case MapOf(a), MapOf(b):
            return are_alike(a, b)
        case Scalar(), Scalar():
            return left is right
        case _:
            return False
