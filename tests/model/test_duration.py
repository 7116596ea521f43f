"""Durations as Karpenter's files write them."""

from datetime import timedelta

import pytest

from engine.model.duration import DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("720h", timedelta(hours=720)),
        ("300s", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("0s", timedelta(0)),
        ("1.5h", timedelta(minutes=90)),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "5", "5 m", "1d", "-5m", "h", "5m5", "1h 30m", "999999999999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (timedelta(seconds=5), "5s"),
        (timedelta(minutes=90), "1h30m"),
        (timedelta(days=12, hours=4, minutes=3), "12d4h"),
        (timedelta(0), "0s"),
    ],
)
def test_a_duration_is_shown_in_two_units_at_most(duration: timedelta, shown: str) -> None:
    assert format_duration(duration) == shown


@pytest.mark.parametrize("text", ["1h\n", "\t1h", "1h\u2003", "\u0661h", "h" * 100_000])
def test_only_blanks_may_stand_around_a_duration_and_its_digits_are_plain(text: str) -> None:
    with pytest.raises(DurationError, match="is not a duration") as told:
        parse_duration(text)
    assert len(str(told.value)) < 200
