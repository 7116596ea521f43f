"""Durations in annotations, which have no schema of their own: each told with what is wrong about it, and the form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta

from attrs import frozen

from engine.model.duration import DurationError, format_duration, parse_duration
from engine.policy.findings import ObjectFindings

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_DAYS = re.compile(r"([0-9]{1,4})d")
_SHOWN_CHARACTERS = 80


@frozen
class Span:
    """What an annotation's duration may be, and what it is where nothing is written."""

    plain: timedelta
    most: timedelta
    least: timedelta = timedelta(0)


def read_span(key: str, span: Span, annotations: Mapping[str, str], findings: ObjectFindings) -> timedelta:
    """The duration that is written, the plain one where none is; what is wrong goes to ``findings``."""
    text = annotations.get(key)
    if text is None:
        return span.plain
    try:
        found = parse_duration(text)
    except (DurationError, OverflowError):
        found = None
    if found is not None and span.least <= found <= span.most:
        return found
    shown = text[:_SHOWN_CHARACTERS]
    message = f"{key} is {shown!r}{_wrong(shown, found, span)}; it is a duration {_within(span)}"
    findings.error(("metadata", "annotations", key), "bad-annotation", message, _form(shown))
    return span.plain


def _wrong(text: str, found: timedelta | None, span: Span) -> str:
    if found is not None:
        return ", which is too long" if found > span.most else ", which is too short"
    if _NUMBER.fullmatch(text):
        return ", which has no unit"
    if text.startswith("-"):
        return ", which is less than nothing"
    return ", and days are no unit" if _DAYS.fullmatch(text) else ""


def _within(span: Span) -> str:
    # In hours, since days are no unit of such a duration.
    most = f"at most {span.most // timedelta(hours=1)}h"
    return f"of {most}" if not span.least else f"of at least {format_duration(span.least)} and {most}"


def _form(text: str) -> str:
    if _NUMBER.fullmatch(text):
        return f'write "{text}m" for minutes, "{text}s" for seconds or "{text}h" for hours'
    if (days := _DAYS.fullmatch(text)) is not None:
        return f'write hours: "{int(days[1]) * 24}h"'
    return 'write hours, minutes and seconds, such as "10m" or "1h30m"'
