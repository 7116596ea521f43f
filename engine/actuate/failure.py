"""Acting on a cluster failed."""

from __future__ import annotations

from engine.model.fault import Fault


class ActuationFailed(Fault):
    """The API server refused or did not answer a change. Nothing is known to have happened; the next pass looks."""
