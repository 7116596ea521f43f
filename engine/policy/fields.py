"""The kinds of single values that policy files hold. Each is read leniently where meaning is kept, with a warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import BeforeValidator, PlainValidator, ValidationInfo
from pydantic_core import PydanticCustomError

from engine.model.duration import DurationError, parse_duration
from engine.model.quantity import QuantityError, parse_quantity
from engine.policy.findings import UNQUOTED, ObjectFindings, did_you_mean
from engine.policy.located import Place, Scalar, describe
from engine.policy.shapes import shaped, text_like

E = TypeVar("E", bound=Enum)

# The shapes of Kubernetes names (k8s.io/apimachinery, pkg/util/validation).
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DURATION = re.compile(r"([0-9]+(s|m|h))+")
_DIGITS = re.compile(r"[0-9]{1,12}")
# Go's longest duration; longer ones could not be Karpenter's, and would leave the calendar.
_LONGEST_HOURS = 2_562_047


def refuse(rule: str, message: str, hint: str = "") -> NoReturn:
    """Ends a field's validation with a finding of that rule."""
    raise PydanticCustomError(rule, "{message}", {"message": message, "hint": hint})


def _scalar(value: object, wanted: str) -> Scalar:
    if isinstance(value, str):
        return Scalar(Place(1, 1), value, value)  # a map's key, which is always text
    if not isinstance(value, Scalar) or value.value is None:
        refuse("wrong-type", f"expected {wanted}, found {describe(value)}")
    return value


@shaped({"type": "string"})
def read_text(value: object, info: ValidationInfo) -> str:
    """A string. An unquoted number or yes/no keeps its spelling, with a warning: kubectl would refuse it."""
    scalar = _scalar(value, "a string")
    if not scalar.is_text:
        _warn_unquoted(scalar, info)
    return scalar.text


def _warn_unquoted(scalar: Scalar, info: ValidationInfo) -> None:
    if isinstance(info.context, ObjectFindings):
        message = f"{scalar.text} is read as the string it is meant to be; Kubernetes refuses it without quotes"
        info.context.warning_at_place(scalar.place, UNQUOTED, message, f'write "{scalar.text}"')


@shaped({"type": ["string", "integer"]})
def read_amount(value: object, info: ValidationInfo) -> str:
    """A quantity's text, which may be written as a whole number. Refuses what is no quantity, and what is negative."""
    scalar = _scalar(value, "a quantity")
    text = scalar.text
    if text != text.strip():
        refuse("bad-quantity", f"{text!r} has blanks around it", f'write "{text.strip()}"')
    if isinstance(scalar.value, float):
        _warn_unquoted(scalar, info)
    try:
        if parse_quantity(text) < 0:
            refuse("bad-quantity", f"{text} is negative", "write zero or more")
    except QuantityError as error:
        refuse("bad-quantity", str(error))
    return text


@shaped({"type": "boolean"})
def read_flag(value: object) -> bool:
    scalar = _scalar(value, "true or false")
    if not isinstance(scalar.value, bool):
        refuse("wrong-type", f"expected true or false, found {describe(scalar)}")
    return scalar.value


def whole(least: int, most: int, *, or_text: bool = False) -> Callable[[object], int]:
    """A whole number within bounds; ``or_text``: digits in quotes will do."""

    @shaped({"type": ["integer", "string"] if or_text else "integer", "minimum": least, "maximum": most})
    def read(value: object) -> int:
        scalar = _scalar(value, "a whole number")
        number = scalar.value
        if or_text and isinstance(number, str) and _DIGITS.fullmatch(number):
            number = int(number)
        if isinstance(number, float) and number.is_integer():
            number = int(number)  # JSON, which the API server gets, does not tell 5.0 from 5
        if not isinstance(number, int) or isinstance(number, bool):
            hint = "write it without quotes" if _DIGITS.fullmatch(scalar.text) else ""
            refuse("wrong-type", f"expected a whole number, found {describe(scalar)}", hint)
        if not least <= number <= most:
            refuse("out-of-range", f"{number} is not within {least} and {most}")
        return number

    return read


@shaped(text_like(_DURATION.pattern))
def read_duration(value: object) -> timedelta:
    """Hours, minutes and seconds."""
    return _duration(_scalar(value, "a duration such as 720h"), "")


@shaped(text_like(f"Never|{_DURATION.pattern}"))
def read_duration_or_never(value: object) -> timedelta | None:
    """None for ``Never``."""
    scalar = _scalar(value, "a duration such as 720h, or Never")
    return None if scalar.text == "Never" else _duration(scalar, ", or Never")


def _duration(scalar: Scalar, also: str) -> timedelta:
    hint = f"write hours, minutes and seconds, such as 720h or 1h30m{also}"
    if not _DURATION.fullmatch(scalar.text):
        refuse("bad-duration", f"{describe(scalar)} is not a duration", hint)
    try:
        duration = parse_duration(scalar.text)
    except (DurationError, OverflowError):
        refuse("bad-duration", f"{describe(scalar)} is not a duration", hint)
    if duration > timedelta(hours=_LONGEST_HOURS):
        refuse("bad-duration", f"{scalar.text} is longer than any duration that Kubernetes holds", f"{also[2:]}")
    return duration


def one_of(kind: type[E], what: str, rule: str) -> Callable[[object], E]:
    """One of an enum's values; ``what`` names it in messages."""
    known = [member.value for member in kind]

    @shaped({"enum": known})
    def read(value: object) -> E:
        scalar = _scalar(value, f"one of {', '.join(known)}")
        if scalar.text in known:
            return kind(scalar.text)
        refuse(rule, f"{describe(scalar)} is no {what}", did_you_mean(scalar.text, known))

    return read


def one_text_of(known: Iterable[str], what: str, rule: str) -> Callable[[object], str]:
    """One of some strings."""
    options = list(known)

    @shaped({"enum": options})
    def read(value: object) -> str:
        scalar = _scalar(value, f"one of {', '.join(options)}")
        if scalar.text in options:
            return scalar.text
        refuse(rule, f"{describe(scalar)} is no {what}", did_you_mean(scalar.text, options))

    return read


def matching(pattern: str, what: str, example: str) -> Callable[[object, ValidationInfo], str]:
    """A string of a shape; ``example`` shows one."""
    shape = re.compile(pattern)

    @shaped(text_like(pattern))
    def read(value: object, info: ValidationInfo) -> str:
        text = read_text(value, info)
        if not shape.fullmatch(text):
            refuse("bad-value", f"{text[:80]!r} is no {what}", f"it looks like {example}")
        return text

    return read


def is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    right_prefix = not slash or (len(prefix) <= 253 and bool(_SUBDOMAIN.fullmatch(prefix)))
    return right_prefix and bool(_LABEL_NAME.fullmatch(name))


@shaped({"type": "string", "minLength": 1, "maxLength": 317})
def read_label_key(value: object, info: ValidationInfo) -> str:
    key = read_text(value, info)
    if not is_label_key(key):
        refuse("bad-label", f"{key[:80]!r} is no label key", "a key is NAME or DOMAIN/NAME, the name of 63 at most")
    return key


@shaped({"type": "string", "minLength": 1, "maxLength": 317})
def read_annotation_key(value: object, info: ValidationInfo) -> str:
    """As a label's key, but capital letters may stand in its domain too."""
    key = read_text(value, info)
    if not is_label_key(key.lower()):
        hint = "a key is NAME or DOMAIN/NAME, the name of 63 at most"
        refuse("bad-annotation", f"{key[:80]!r} is no annotation's key", hint)
    return key


@shaped({"type": "string", "format": "date-time"})
def read_point_in_time(value: object, info: ValidationInfo) -> datetime:
    text = read_text(value, info)
    try:
        point = datetime.fromisoformat(text)
    except ValueError:
        point = None
    if point is None or point.tzinfo is None or "T" not in text.upper():
        refuse("bad-value", f"{text[:40]!r} is no date and time", "it looks like 2026-01-02T03:04:05Z")
    return point


@shaped(text_like(f"({_LABEL_NAME.pattern})?"))
def read_label_value(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    if text and not _LABEL_NAME.fullmatch(text):
        hint = "63 letters, digits, - _ . at most, a letter or digit at both ends"
        refuse("bad-label", f"{text[:80]!r} is no label value", hint)
    return text


@shaped({**text_like(_SUBDOMAIN.pattern), "maxLength": 63})
def read_object_name(value: object, info: ValidationInfo) -> str:
    """A name that is a label's value too: pools and classes are labels of their nodes."""
    name = read_text(value, info)
    if len(name) > 63 or not _SUBDOMAIN.fullmatch(name):
        hint = "lower-case letters, digits, - and ., 63 at most, a letter or digit at both ends"
        refuse("bad-name", f"{name[:80]!r} is no name for this kind", hint)
    return name


def _not_implemented(value: object) -> NoReturn:
    refuse("not-implemented", "Karpenter has this field; Nodewright does not implement it yet", "remove it")


@shaped({})
def _pass_over(value: object) -> None:
    return None


Text = Annotated[str, PlainValidator(read_text)]
Amount = Annotated[str, PlainValidator(read_amount)]
Flag = Annotated[bool, PlainValidator(read_flag)]
Duration = Annotated[timedelta, PlainValidator(read_duration)]
DurationOrNever = Annotated[timedelta | None, PlainValidator(read_duration_or_never)]
AnnotationKey = Annotated[str, PlainValidator(read_annotation_key)]
PointInTime = Annotated[datetime, PlainValidator(read_point_in_time)]
LabelKey = Annotated[str, PlainValidator(read_label_key)]
LabelValue = Annotated[str, PlainValidator(read_label_value)]
ObjectName = Annotated[str, PlainValidator(read_object_name)]
Count = Annotated[int, PlainValidator(whole(0, 2**31 - 1))]
# Parts that the API server writes, which say nothing about policy.
PassedOver = Annotated[Any, PlainValidator(_pass_over)]
NotImplementedField = Annotated[Any, BeforeValidator(_not_implemented)]
