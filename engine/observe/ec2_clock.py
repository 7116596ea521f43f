"""EC2's clock, as its answers tell it: the one clock that all who run for an environment can go by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

# Clocks that are kept right differ by less, and a difference that changes by less is the same one.
TOLERANCE = timedelta(seconds=30)
_NO_TIME = timedelta()


class Ec2Clock:
    """``now`` is this machine's clock; ``ahead`` is by how much it is beyond EC2's, below zero where it is behind.

    It is zero, exactly, until EC2 is known to disagree by more than TOLERANCE.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.ahead = _NO_TIME

    def own(self) -> datetime:
        return self._now()

    def now(self) -> datetime:
        """The time by EC2's clock."""
        return self._now() - self.ahead

    def learn(self, answer: Mapping[str, Any], asked_at: datetime) -> None:
        """Compare with the date of an answer that was asked for at ``asked_at``, by this machine's clock.

        EC2 dated it (RFC 9110, section 6.6.1, whole seconds) some time between question and answer, so what is within
        the two is no difference, however slow the answer was.
        """
        dated = _date_of(answer)
        if dated is None:
            return
        ahead = max(asked_at - dated, _NO_TIME) or min(self._now() - dated, _NO_TIME)
        if abs(ahead - self.ahead) > TOLERANCE:
            self.ahead = ahead if abs(ahead) > TOLERANCE else _NO_TIME


def _date_of(answer: Mapping[str, Any]) -> datetime | None:
    """None where the answer bears no date that can be read: a proxy may take it off."""
    headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        dated = parsedate_to_datetime(headers.get("date", ""))
    except ValueError:
        return None
    return dated if dated.tzinfo is not None else dated.replace(tzinfo=UTC)
