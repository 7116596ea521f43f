"""What a machine that stays is to go for, once nothing keeps it any more. A value."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from engine.model.reason import DisruptionReason


@frozen
class Pending:
    """One reason, since when its cause is there, and ``why``: what says so, for people, such as
    ``image ami-1 -> ami-2`` or ``expireAfter 720h``."""

    reason: DisruptionReason
    why: str
    since: datetime
