"""Model values to JSON and back, and digests of their content. One form: sorted keys, no spaces, units in the names."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, get_args

from attrs import has
from cattrs import ClassValidationError, Converter
from cattrs.gen import make_dict_structure_fn
from cattrs.strategies import configure_tagged_union

from engine.model.money import UsdPerHour
from engine.model.quantity import Resources
from engine.model.refusal import Refusal
from engine.model.rule import AnyRule, ParameterValue
from engine.model.stay import StayReason

T = TypeVar("T")
# Half a surrogate pair, which escapes in JSON can spell, is kept as it is; json.loads reads it back.
_ENCODING = ("utf-8", "surrogatepass")


class UnreadableValue(ValueError):
    """Stored JSON is not what this version of the engine writes; says which part."""


def _timestamp(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} says no time zone")
    return moment


def _dollars(price: UsdPerHour) -> str:
    return f"{Decimal(price.micros) / 1_000_000:.6f}"


def _price(text: str) -> UsdPerHour:
    return UsdPerHour(int(Decimal(text) * 1_000_000))


def _amounts(amounts: dict[str, int]) -> Resources:
    for resource, amount in amounts.items():
        if type(amount) is not int:
            raise TypeError(f"{amount!r} is no amount of {resource} in base units, a whole number")
    return Resources(amounts)


def _parameter(value: object) -> ParameterValue:
    if not isinstance(value, ParameterValue):
        raise TypeError(f"{value!r} is no bool, number or string")
    return value


def _code(kind: type[Any]) -> str:
    code: str = kind.code
    return code


@cache
def _converter() -> Converter:
    converter = Converter(omit_if_default=False, forbid_extra_keys=True)
    pairs: list[tuple[Any, Callable[[Any], Any], Callable[[Any, Any], Any]]] = [
        (datetime, _timestamp, lambda text, _: _moment(text)),
        (date, lambda day: day.isoformat(), lambda text, _: date.fromisoformat(text)),
        (timedelta, lambda span: span.total_seconds(), lambda seconds, _: timedelta(seconds=seconds)),
        (Decimal, str, lambda text, _: Decimal(text)),
        (UsdPerHour, _dollars, lambda text, _: _price(text)),
        (Resources, dict, lambda amounts, _: _amounts(amounts)),
    ]
    # JSON keeps the four apart by itself.
    converter.register_structure_hook(ParameterValue, lambda value, _: _parameter(value))
    for kind, unstructure, structure in pairs:
        converter.register_unstructure_hook(kind, unstructure)
        converter.register_structure_hook(kind, structure)
    converter.register_structure_hook_factory(
        has, lambda kind: make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=True)
    )
    for union in (Refusal, StayReason):
        # Each class knows its stable code; that, not a Python name, goes into files and to programs.
        configure_tagged_union(union, converter, tag_name="code", tag_generator=_code)
    configure_tagged_union(AnyRule, converter, tag_name="kind")
    for kind in (*get_args(Refusal), *get_args(StayReason)):
        _unstructure_with_code(converter, kind)
    return converter


def _unstructure_with_code(converter: Converter, kind: type[Any]) -> None:
    """A refusal keeps its code also where it is not reached through the union."""
    converter.register_structure_hook(kind, make_dict_structure_fn(kind, converter, _cattrs_forbid_extra_keys=False))


def to_plain(value: object) -> Any:
    """A model value as dicts, lists, strings, numbers."""
    return _converter().unstructure(value)


def canonical_json(value: object) -> bytes:
    """The canonical bytes: the same value always gives the same bytes."""
    return json.dumps(to_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(*_ENCODING)


def from_json(kind: type[T], text: bytes | str) -> T:
    """A model value from its JSON; raises UnreadableValue."""
    try:
        return _converter().structure(json.loads(text), kind)
    except (ClassValidationError, ValueError, TypeError, KeyError, AttributeError) as error:
        causes = _causes(error)
        raise UnreadableValue(f"no readable {kind.__name__}: {causes}") from None


def _causes(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        notes = " ".join(getattr(error, "__notes__", ()))
        return "; ".join(_causes(inner) for inner in error.exceptions[:3]) + (f" ({notes})" if notes else "")
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}, column {error.colno}: {error.msg}"
    if isinstance(error, KeyError):
        return f"the field {error} is missing"
    return str(error) or type(error).__name__


def digest(value: object) -> str:
    """A sha256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical_json(value)).hexdigest()
