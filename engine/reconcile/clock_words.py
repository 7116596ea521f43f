"""What a person should know of a clock that disagrees with EC2's."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from engine.model.snapshot import CloudFacts

_MINUTE = timedelta(minutes=1)


def clock_words(cloud: CloudFacts) -> Iterator[str]:
    """One line, to the minute, where the clocks differ; none where they agree."""
    if cloud.clock_ahead:
        minutes = max(1, round(abs(cloud.clock_ahead) / _MINUTE))
        side = "ahead of" if cloud.clock_ahead > timedelta() else "behind"
        yield f"this machine's clock is {minutes} min {side} EC2's, which decisions go by"
