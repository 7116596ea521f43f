"""Durations as Kubernetes and Karpenter write them."""

from __future__ import annotations

import re
from datetime import timedelta

_SHOWN_CHARACTERS = 80
_SECONDS = {"h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(h|m|s)", re.ASCII)


class DurationError(ValueError):
    """A text is no duration."""


def parse_duration(text: str) -> timedelta:
    """A duration such as ``720h``, ``1h30m`` or ``300s`` (Karpenter's pattern: hours, minutes, seconds).

    Raises DurationError.
    """
    written = text.strip(" ")
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise DurationError(
            f"{text[:_SHOWN_CHARACTERS]!r} is not a duration; write hours, minutes and seconds, such as 720h or 1h30m"
        )
    return timedelta(seconds=sum(float(number) * _SECONDS[unit] for number, unit in parts))


def format_duration(duration: timedelta) -> str:
    """``1h30m``, ``45s``, ``12d4h``: two units at most, for people."""
    seconds = max(0, round(duration.total_seconds()))
    days, seconds = divmod(seconds, 86400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    named = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds, "s")]
    shown = [f"{number}{unit}" for number, unit in named if number][:2]
    return "".join(shown) or "0s"
