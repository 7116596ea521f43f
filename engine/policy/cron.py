"""Cron lines as Karpenter and CronJobs read them (robfig/cron, standard parser), on clocks without a zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from cronsim import CronSim

from engine.model.policy import CRON_MACROS

_STEP_OF_ALL = re.compile(r"\*/0*([1-9]\d*)")
_DAY_OF_MONTH, _WEEKDAY = 2, 4


def fires(line: str, after: datetime) -> Iterator[datetime]:
    """The times of a five-field line, or a name such as ``@daily``, later than ``after``; all without a zone.

    None at all is no error: the line may name a day that never is. Raises CronSimError where it is no cron line.
    """
    return CronSim(_as_written_out(line), after)


def _as_written_out(line: str) -> str:
    """The line with what cronsim would read otherwise written out.

    Where both day fields are restricted one of them is enough. For robfig/cron ``*/2`` is such a restriction, and a
    list that has a plain ``*`` is none; cronsim only looks whether a field begins with a star.
    """
    fields = CRON_MACROS.get(line.strip().lower(), line).replace("?", "*").split()
    if len(fields) == 5:
        fields[_DAY_OF_MONTH] = _day_field(fields[_DAY_OF_MONTH], "1-31")
        fields[_WEEKDAY] = _day_field(fields[_WEEKDAY], "0-6")
    return " ".join(fields)


def _day_field(text: str, every: str) -> str:
    parts = text.split(",")
    if any(part == "*" or ((step := _STEP_OF_ALL.fullmatch(part)) and step[1] == "1") for part in parts):
        return "*"
    return ",".join(_STEP_OF_ALL.sub(rf"{every}/\1", part) for part in parts)
