"""Faults strike what they name, as often as they say, and a bad file says what is wrong with it."""

from pathlib import Path

import pytest

from engine.sandbox.faults import (
    Call,
    Delay,
    Die,
    Effects,
    Error,
    FaultBook,
    FaultFileError,
    NoCapacity,
    read_faults,
    write_faults,
)

G5_SPOT = Call("RunInstances", "g5.xlarge", "us-east-1a", "spot")
G5_ON_DEMAND = Call("RunInstances", "g5.xlarge", "us-east-1a", "on-demand")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "faults.json"


def codes(book: FaultBook, call: Call, times: int) -> list[str]:
    effects = [book.effects_on(call) for _ in range(times)]
    return [one.refusal.code if one.refusal else "" for one in effects]


def test_without_a_file_nothing_is_wrong(file: Path) -> None:
    assert FaultBook(file).effects_on(G5_SPOT) == Effects()


def test_no_capacity_strikes_its_offering_only_and_as_often_as_it_says(file: Path) -> None:
    write_faults(file, [NoCapacity("g5.*", capacity_type="spot", times=2)])
    book = FaultBook(file)
    assert codes(book, G5_ON_DEMAND, 1) == [""]
    assert codes(book, Call("RunInstances", "g6.xlarge", "us-east-1a", "spot"), 1) == [""]
    assert codes(book, G5_SPOT, 3) == ["InsufficientInstanceCapacity"] * 2 + [""]


def test_no_capacity_names_type_and_zone_as_aws_does(file: Path) -> None:
    write_faults(file, [NoCapacity()])
    refusal = FaultBook(file).effects_on(G5_ON_DEMAND).refusal
    assert refusal is not None
    assert "sufficient g5.xlarge capacity in the Availability Zone you requested (us-east-1a)" in refusal.message
    assert refusal.status == 500


def test_a_changed_file_is_taken_up_and_counts_anew(file: Path) -> None:
    book = FaultBook(file)
    write_faults(file, [Error("CreateTags", "RequestLimitExceeded", status=503, times=1)])
    assert codes(book, Call("CreateTags"), 2) == ["RequestLimitExceeded", ""]
    write_faults(file, [Error("CreateTags", "Unavailable", status=503, times=1)])
    assert codes(book, Call("CreateTags"), 2) == ["Unavailable", ""]


def test_delays_add_up_with_other_faults(file: Path) -> None:
    write_faults(file, [Delay("RunInstances", 1.5), Delay("*", 0.5), Error("RunInstances", "Boom", times=1)])
    effects = FaultBook(file).effects_on(G5_SPOT)
    assert effects.delay_seconds == 2.0
    assert effects.refusal is not None


def test_death_comes_at_the_named_launch_once_even_after_a_restart(file: Path) -> None:
    write_faults(file, [Die(at=2, when="after")])
    book = FaultBook(file)
    assert [book.effects_on(call).die for call in (G5_SPOT, Call("DescribeVpcs"), G5_SPOT, G5_SPOT)] == [
        None,
        None,
        "after",
        None,
    ]
    restarted = FaultBook(file)
    assert [restarted.effects_on(G5_SPOT).die for _ in range(3)] == [None] * 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object with a list"),
        ('{"faults": [{"fault": "flood"}]}', r"faults\[0\]: expected .* no-capacity, delay, error, die"),
        ('{"faults": [{"fault": "delay", "action": "X"}]}', "seconds"),
        ('{"faults": [{"fault": "delay", "action": "X", "seconds": 1, "second": 1}]}', "unknown second"),
        ('{"faults": [{"fault": "die", "at": 1, "when": "later"}]}', '"before" or "after"'),
    ],
)
def test_a_bad_file_is_refused_with_the_place_and_what_was_expected(file: Path, text: str, complaint: str) -> None:
    file.write_text(text)
    with pytest.raises(FaultFileError, match=complaint):
        read_faults(file)
