"""What a snapshot is of, in words."""

from __future__ import annotations

from datetime import datetime


def moved_words(recorded_at: datetime, at: datetime) -> str:
    """That a snapshot is decided as of another time than its own."""
    return (
        f"decided as if the snapshot were taken at {at:%a %Y-%m-%d %H:%M} UTC;"
        f" it was at {recorded_at:%a %Y-%m-%d %H:%M} UTC"
    )
