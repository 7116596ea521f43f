"""What machines that stay are to go for all the same, in a person's words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

from engine.model.duration import format_duration
from engine.model.pending import Pending
from engine.model.plan import Kept
from engine.model.replacement import AwaitsReplacement, RolloutWaits
from engine.report.stay_words import stay_words


def kept_words(kept: Kept, now: datetime) -> str:
    """Why a machine stays, what it is to go for, and by when its pods are gone: ``must not be disrupted; to go for
    Drifted: image a -> b``."""
    told = [f"{each.reason.value}: {each.why}" for each in untold(kept)]
    parts = [stay_words(kept.reason, now)]
    parts += [f"to go for {', '.join(told)}"] if told else []
    parts += [deadline_words(kept.drained_by, now)] if kept.drained_by is not None else []
    return "; ".join(parts)


def deadline_words(by: datetime, now: datetime) -> str:
    """By when what is left on a marked node is deleted."""
    return f"its pods are gone in {format_duration(by - now)} at the latest (terminationGracePeriod)"


def untold(kept: Kept) -> Sequence[Pending]:
    """The reasons to go that what keeps the machine does not tell itself."""
    match kept.reason:
        case AwaitsReplacement(why=told) | RolloutWaits(change=told):
            return [each for each in kept.pending if f"{each.reason.value}: {each.why}" != told]
        case _:
            return kept.pending


def pending_sentence(each: Pending, now: datetime) -> str:
    """``Drifted for 2h: image ami-1 -> ami-2``; a cause that was first seen now has no age to tell."""
    age = f" for {format_duration(now - each.since)}" if each.since < now else ""
    return f"{each.reason.value}{age}: {each.why}"


def pending_names(kept: Kept) -> str:
    """``to go for Drifted, Expired``, without what changes from pass to pass; empty where it is for nothing."""
    names = dict.fromkeys(each.reason.value for each in untold(kept))
    return f"to go for {', '.join(names)}" if names else ""


def pending_counts(group: Iterable[Kept]) -> str:
    """Of machines told together: ``to go for Drifted (3), Expired (1)``; empty where none is to go."""
    counts = Counter(reason for kept in group for reason in {each.reason.value for each in untold(kept)})
    if not counts:
        return ""
    return f"to go for {', '.join(f'{reason} ({counts[reason]})' for reason in sorted(counts))}"
