"""What a snapshot is of, in words."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import frozen

from engine.decide.offered import is_placeable
from engine.model.pod import Pod
from engine.report.words import counted


@frozen
class PodCounts:
    """``pods`` are those that nodes are made for, of which some are ``waiting``. ``others`` are done, are going, or
    refuse every pool's nodes."""

    pods: int
    waiting: int
    daemons: int
    others: int

    @property
    def words(self) -> str:
        """``62 pods, 3 waiting, 72 of daemons``: the same count wherever pods are counted."""
        daemons = f", {self.daemons:,} of daemons" if self.daemons else ""
        others = f", {self.others:,} done, going or for no pool" if self.others else ""
        return f"{counted(self.pods, 'pod')}, {self.waiting:,} waiting{daemons}{others}"


def pod_counts(pods: Iterable[Pod]) -> PodCounts:
    """Every pod once."""
    every = tuple(pods)
    placeable = sum(map(is_placeable, every))
    daemons = sum(pod.is_daemon for pod in every)
    waiting = sum(pod.is_waiting for pod in every)
    return PodCounts(placeable, waiting, daemons, len(every) - placeable - daemons)


def moved_words(recorded_at: datetime, at: datetime) -> str:
    """That a snapshot is decided as of another time than its own."""
    return (
        f"decided as if the snapshot were taken at {at:%a %Y-%m-%d %H:%M} UTC;"
        f" it was at {recorded_at:%a %Y-%m-%d %H:%M} UTC"
    )
