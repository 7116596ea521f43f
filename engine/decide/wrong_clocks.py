"""What a clock that ran ahead has written: nothing that it remembers began later than now, and nothing is held up for
longer than policy could have held it up from now on.

The clock is right again and nobody knows what it showed when. So what lies ahead of now began now, which every wait
counts from; and the ledger that a pass leads to says so, so that the wait is over in its time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TypeVar

from attrs import evolve, fields_dict

from engine.catalog.ledger import not_beyond_back_off
from engine.decide.expected_labels import DOUBTED_FOR
from engine.model.ledger import Disruption, Illness, Ledger, Milestones, Moved, Owed, PodsSeen
from engine.model.snapshot import Snapshot

Remembered = TypeVar("Remembered")
_MILESTONES = tuple(fields_dict(Milestones))


def by_the_right_clock(snapshot: Snapshot) -> Snapshot:
    """The snapshot with a ledger that knows nothing of later than its own time; itself, where it knows nothing such."""
    ledger = not_ahead(snapshot.ledger, snapshot.taken_at)
    return snapshot if ledger is snapshot.ledger else evolve(snapshot, ledger=ledger)


def not_ahead(ledger: Ledger, now: datetime) -> Ledger:
    """The ledger without what lies ahead of `now`, or further ahead than policy may look; itself, where nothing does.

    What AWS said of interruptions is left: it has AWS's own times, and holds nothing up.
    """
    ledger = not_beyond_back_off(ledger, now)

    def began(moment: datetime) -> datetime:
        return min(moment, now)

    changed = {
        name: after
        for name, before, after in (
            ("empty_since", ledger.empty_since, _each(ledger.empty_since, began)),
            ("drifted_since", ledger.drifted_since, _each(ledger.drifted_since, began)),
            ("milestones", ledger.milestones, _each(ledger.milestones, lambda one: _reached(one, now))),
            ("owed", ledger.owed, _each(ledger.owed, lambda one: _owed(one, now))),
            ("disruptions", ledger.disruptions, _each(ledger.disruptions, lambda one: _disruption(one, now))),
            ("moved", ledger.moved, _each(ledger.moved, lambda one: _moved(one, now))),
            ("pods_seen", ledger.pods_seen, _each(ledger.pods_seen, lambda one: _pods_seen(one, now))),
            ("illnesses", ledger.illnesses, _each(ledger.illnesses, lambda one: _illnesses(one, now))),
            (
                "label_doubts",
                ledger.label_doubts,
                _each(ledger.label_doubts, lambda until: min(until, now + DOUBTED_FOR)),
            ),
        )
        if after is not before
    }
    if ledger.counted_since is not None and ledger.counted_since > now:
        return evolve(ledger, counted_since=now, **changed)  # type: ignore[arg-type]
    return evolve(ledger, **changed) if changed else ledger  # type: ignore[arg-type]


def _each(known: Mapping[str, Remembered], right: Callable[[Remembered], Remembered]) -> Mapping[str, Remembered]:
    """The same mapping, where `right` gives back every value as it is."""
    found = {name: right(one) for name, one in known.items()}
    return found if any(found[name] is not one for name, one in known.items()) else known


def _reached(one: Milestones, now: datetime) -> Milestones:
    late = {name: now for name in _MILESTONES if (moment := getattr(one, name)) is not None and moment > now}
    return evolve(one, **late) if late else one


def _owed(one: Owed, now: datetime) -> Owed:
    return evolve(one, since=now) if one.since > now else one


def _disruption(one: Disruption, now: datetime) -> Disruption:
    if max(one.begun_at, one.acted_at) <= now:
        return one
    return evolve(one, begun_at=min(one.begun_at, now), acted_at=min(one.acted_at, now))


def _moved(one: Moved, now: datetime) -> Moved:
    return evolve(one, at=now) if one.at > now else one


def _pods_seen(one: PodsSeen, now: datetime) -> PodsSeen:
    return evolve(one, since=now) if one.since > now else one


def _illnesses(conditions: Mapping[str, Illness], now: datetime) -> Mapping[str, Illness]:
    return _each(conditions, lambda one: _illness(one, now))


def _illness(one: Illness, now: datetime) -> Illness:
    well_since = min(one.well_since, now) if one.well_since is not None else None
    if one.since <= now and well_since == one.well_since:
        return one
    return Illness(min(one.since, now), well_since)
