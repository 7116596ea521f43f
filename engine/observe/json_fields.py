"""Fields of Kubernetes JSON, read with their types checked: what arrives is data from outside, not a promise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

Json = Mapping[str, Any]

_NO_FIELDS: Json = {}
_NO_TEXTS: Mapping[str, str] = {}
_NOT_SHOWN_BEYOND = 60


class BrokenObject(ValueError):
    """An object is not of its kind's form; the message names the field and what was expected."""


def shown(value: object) -> str:
    """A value for a message, cut to a length that a line can hold."""
    written = repr(value)
    return written if len(written) <= _NOT_SHOWN_BEYOND else written[:_NOT_SHOWN_BEYOND] + "…"


def mapping(holder: Json, key: str) -> Json:
    """An object, empty when it is absent or null. Raises BrokenObject, also where the holder is none."""
    if not isinstance(holder, Mapping):
        raise BrokenObject(f"it is {shown(holder)}, expected an object")
    value = holder.get(key)
    if value is None:
        return _NO_FIELDS
    if not isinstance(value, dict):
        raise BrokenObject(f"{key} is {shown(value)}, expected an object")
    return value


def objects(holder: Json, key: str) -> Sequence[Json]:
    """A list of objects, empty when it is absent or null. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BrokenObject(f"{key} is {shown(value)}, expected a list")
    for position, item in enumerate(value):
        if not isinstance(item, dict):
            raise BrokenObject(f"{key}[{position}] is {shown(item)}, expected an object")
    return value


def text(holder: Json, key: str) -> str:
    """A string, empty when it is absent or null. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BrokenObject(f"{key} is {shown(value)}, expected a text")
    return value


def whole_number(holder: Json, key: str) -> int:
    """An integer, zero when it is absent or null. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise BrokenObject(f"{key} is {shown(value)}, expected a whole number")
    return value


def flag(holder: Json, key: str) -> bool:
    """A boolean, false when it is absent or null. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise BrokenObject(f"{key} is {shown(value)}, expected true or false")
    return value


def texts(holder: Json, key: str) -> Mapping[str, str]:
    """An object whose values are strings, such as labels. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return _NO_TEXTS
    if not isinstance(value, dict):
        raise BrokenObject(f"{key} is {shown(value)}, expected an object of texts")
    for name, written in value.items():
        if not isinstance(written, str):
            raise BrokenObject(f"{key}[{name}] is {shown(written)}, expected a text")
    return value


def words(holder: Json, key: str) -> tuple[str, ...]:
    """A list of strings. Raises BrokenObject."""
    value = holder.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise BrokenObject(f"{key} is {shown(value)}, expected a list of texts")
    return tuple(value)


def moment(holder: Json, key: str) -> datetime:
    """A time such as ``2026-11-30T12:00:00Z``. Raises BrokenObject, also when it is absent."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise BrokenObject(f"{key} is {shown(value)}, expected a time such as 2026-11-30T12:00:00Z")
    return _parsed_moment(key, value)


@lru_cache(maxsize=4096)
def _parsed_moment(key: str, written: str) -> datetime:
    try:
        parsed = datetime.fromisoformat(written)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BrokenObject(f"{key} is {shown(written)}, expected a time such as 2026-11-30T12:00:00Z") from None
