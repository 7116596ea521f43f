"""Seeing failed."""

from __future__ import annotations

from engine.model.fault import Fault


class ObservationFailed(Fault):
    """A read was refused, cut short or not answered. Nothing may be concluded from it: it is never an empty answer."""


class Refused(ObservationFailed):
    """The API server answered with a status that is no success."""

    def __init__(self, status: int, message: str, hints: tuple[str, ...] | str = ()) -> None:
        super().__init__(message, hints)
        self.status = status


class NotSynced(ObservationFailed):
    """Not all of a cluster is known yet, or not for sure any more: no decision may be made from it."""
