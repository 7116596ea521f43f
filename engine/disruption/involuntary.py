"""Why a machine has to go whatever a budget says: what the cloud does to it, or what has become of it."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from engine.model.reason import DisruptionReason


@frozen
class Cause:
    """``rule`` is for people, without the pool's name; ``since`` when it began. ``is_silent``: nothing answers on the
    node any more, so that its pods cannot be seen to end."""

    reason: DisruptionReason
    rule: str
    since: datetime
    is_silent: bool = False
