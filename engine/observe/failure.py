"""Seeing failed."""

from __future__ import annotations

from engine.model.fault import Fault


class ObservationFailed(Fault):
    """A read was refused, cut short or not answered. Nothing may be concluded from it: it is never an empty answer."""
