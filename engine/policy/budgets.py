"""A pool's disruption budgets, read and checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from engine.model.policy import CRON_MACROS, Budget
from engine.model.reason import DisruptionReason
from engine.policy.findings import ObjectFindings
from engine.policy.located import Path
from engine.policy.node_pool_schema import BudgetPart
from engine.policy.pool_spellings import NOT_KARPENTERS

BUDGETS: Path = ("spec", "disruption", "budgets")
_MAX_BUDGETS = 50
# Karpenter's cron knows names, lists, ranges and steps; L, W and # are other programs' additions.
_CRON = re.compile(r"(\S+\s+){4}\S+")
_CRON_FIELD = re.compile(r"[0-9A-Za-z*/,-]+")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# Karpenter's cron, which is Kubernetes', has no 7 for Sunday.
_LAST_WEEKDAY = 6
_WEEKDAY_NUMBER = re.compile("(?<![0-9/])[0-9]+")
_ANY_DAY = datetime(2026, 1, 1, tzinfo=UTC)


def checked_budgets(parts: Sequence[BudgetPart], findings: ObjectFindings) -> tuple[Budget, ...]:
    """The budgets as values; what is wrong with them goes to ``findings``."""
    if len(parts) > _MAX_BUDGETS:
        findings.error(BUDGETS, "too-many", f"{len(parts)} budgets; Karpenter takes {_MAX_BUDGETS} at most")
    return tuple(_budget(part, (*BUDGETS, index), findings) for index, part in enumerate(parts))


def _budget(part: BudgetPart, path: Path, findings: ObjectFindings) -> Budget:
    percent = part.nodes.endswith("%")
    amount = int(part.nodes.rstrip("%"))
    if (part.schedule is None) != (part.duration is None) and not findings.lacks_part(path):
        has, lacks = ("schedule", "duration") if part.duration is None else ("duration", "schedule")
        message = f"a budget with {has} needs {lacks} too: it holds for the duration from each time of the schedule"
        findings.error((*path, has), "bad-budget", message, f"add {lacks}, or remove {has}")
    if len(set(part.reasons)) < len(part.reasons):
        findings.error((*path, "reasons"), "bad-budget", "a reason is here twice", "keep one of them")
    if DisruptionReason.EXPIRED.value in part.reasons:
        message = "Karpenter's API refuses Expired here: it expires nodes under no budget, Nodewright under this one"
        hint = "for Karpenter, leave Expired out; a DisruptionBudget can name it"
        findings.warning((*path, "reasons", part.reasons.index("Expired")), NOT_KARPENTERS, message, hint)
    return Budget(
        nodes=None if percent else amount,
        percent=amount if percent else None,
        reasons=tuple(DisruptionReason(reason) for reason in part.reasons),
        schedule=None if part.schedule is None else _cron_line(part.schedule, (*path, "schedule"), findings),
        duration=part.duration,
    )


def _cron_line(text: str, path: Path, findings: ObjectFindings) -> str:
    """Five fields, names of times (@daily) written out."""
    line = CRON_MACROS.get(text.strip(), text.strip()).replace("?", "*")
    problem = cron_problem(line)
    if problem:
        hint = 'write five fields in UTC: minute, hour, day, month, weekday, such as "0 9 * * 1-5"; or @daily'
        findings.error(path, "bad-schedule", f"{text[:60]!r} is no schedule: {problem}", hint)
    return line


def cron_problem(line: str) -> str:
    """What is wrong with a schedule of five fields in UTC; empty where nothing is."""
    if not _CRON.fullmatch(line) or len(line) > 200:
        return f"it has {len(line.split())} fields"
    strange = next((part for part in line.split() if not _CRON_FIELD.fullmatch(part)), None)
    if strange is not None:
        return f"{strange!r} is not understood"
    other = next((word for word in re.findall("[A-Za-z]+", line) if word.upper() not in _MONTHS + _WEEKDAYS), None)
    if other is not None:
        return f"{other!r} is no month or weekday"
    seventh = next((part for part in line.split()[4].split(",") if re.search(r"(^|-)0*7\b", part.split("/")[0])), None)
    if seventh is not None:
        return f"{seventh!r} is no weekday: they are 0, Sunday, to 6"
    if any(int(day[:3]) > _LAST_WEEKDAY for day in _WEEKDAY_NUMBER.findall(line.split()[4])):
        return f"weekdays are 0 to {_LAST_WEEKDAY}, and Sunday is 0"
    try:
        CronSim(line, _ANY_DAY)
    except (CronSimError, ValueError) as error:
        return str(error)[:80].lower()
    return ""
