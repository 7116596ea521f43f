"""Fixtures of policy tests: whole facts from a few words, and every wrong word told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.policy.cel.port import Plain
from engine.policy.cel.types import Record, Scalar
from engine.policy.facts.fixtures import FixtureError, fixture, fixture_value
from engine.policy.facts.schema import INSTANCE_TYPE, NODE, PLAN, POD, RECORDS, params_record, windows_record
from tests.policy.facts.conforming import misfits


def told(record: Record, **overrides: Plain) -> list[str]:
    with pytest.raises(FixtureError) as caught:
        fixture(record, overrides)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_fixture_of_nothing_has_every_field(record: Record) -> None:
    assert list(misfits(record, fixture(record, {}))) == []


def test_overrides_lie_over_the_defaults_in_their_order() -> None:
    facts = fixture(POD, {"gpus": 4, "labels": {"tier": "bronze", "a": "b"}, "labels.tier": "gold"})
    assert (facts["gpus"], facts["labels"], facts["namespace"]) == (4, {"tier": "gold", "a": "b"}, "default")


def test_a_maps_key_may_hold_dots_and_slashes() -> None:
    facts = fixture(POD, {"nodeSelector.karpenter.sh/capacity-type": "spot", "requests.nvidia.com/gpu": 2})
    assert facts["nodeSelector"] == {"karpenter.sh/capacity-type": "spot"}
    assert facts["requests"] == {"nvidia.com/gpu": 2}


def test_one_fixture_leaves_the_next_one_alone() -> None:
    fixture(POD, {"labels.tier": "gold"})
    assert fixture(POD, {})["labels"] == {}


def test_durations_and_times_are_text_and_an_int_does_for_a_double() -> None:
    assert fixture(POD, {"waiting": "1h30m"})["waiting"] == timedelta(minutes=90)
    assert repr(fixture(INSTANCE_TYPE, {"price": 5})["price"]) == "5.0"
    assert fixture_value(Scalar.TIMESTAMP, "2026-11-30T12:00:00Z", "now") == datetime(2026, 11, 30, 12, tzinfo=UTC)


def test_lists_of_records_are_lists_of_overrides() -> None:
    facts = fixture(NODE, {"pods": [{"priority": 5, "gpus": 2}, {"labels.tier": "gold", "gpus": 1}]})
    assert list(misfits(NODE, facts)) == []
    assert [each["priority"] for each in facts["pods"]] == [5, 0]  # type: ignore[index, union-attr]


def test_what_follows_from_an_override_is_told_too_and_may_be_overridden() -> None:
    node = fixture(NODE, {"pods": [{"gpus": 2, "doNotDisrupt": True}, {"gpus": 1}]})
    assert (node["empty"], node["gpusUsed"], node["doNotDisrupt"]) == (False, 3, True)
    assert fixture(NODE, {})["empty"] is True
    assert fixture(NODE, {"pods": [{}], "gpusUsed": 7})["gpusUsed"] == 7
    assert fixture(PLAN, {"launches": [{}, {}]})["launchCount"] == 2
    kind = fixture(INSTANCE_TYPE, {"name": "p5.48xlarge"})
    assert (kind["family"], kind["size"]) == ("p5", "48xlarge")


def test_parameters_and_windows_have_fixtures_as_well() -> None:
    assert fixture(params_record({"most": 5, "share": 0.5}), {"share": 1}) == {"most": 0, "share": 1.0}
    assert fixture(windows_record(["night", "business"]), {"night": True}) == {"business": False, "night": True}


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        ({"gpu": 1}, "gpu: pod has no field gpu (did you mean gpus?)"),
        ({"label.tier": "gold"}, "label.tier: pod has no field label (did you mean labels?)"),
        ({"gpus": "two"}, "gpus: expected int, found the string 'two' (write a whole number without quotes)"),
        ({"gpus": True}, "gpus: expected int, found true (write a whole number without quotes)"),
        ({"gpus": 1.5}, "gpus: expected int, found 1.5 (write a whole number without quotes)"),
        ({"gpus": 2**63}, f"gpus: expected int, found {2**63} (write a whole number without quotes)"),
        ({"bound": "yes"}, "bound: expected bool, found the string 'yes' (write true or false)"),
        ({"labels.tier": 1}, 'labels.tier: expected string, found 1 (write "1")'),
        ({"labels.on": True}, 'labels.on: expected string, found true (write "true")'),
        ({"labels": ["a"]}, "labels: expected map<string, string>, found a list"),
        ({"tolerations": {}}, "tolerations: expected list<toleration>, found a map"),
        (
            {"tolerations": [{}, {"effekt": ""}]},
            "tolerations[1].effekt: toleration has no field effekt (did you mean effect?)",
        ),
        (
            {"waiting": "2 days"},
            "waiting: expected duration, found the string '2 days'"
            " (write hours, minutes and seconds, such as 2h or 1h30m)",
        ),
        ({"priority.high": 1}, "priority.high: int has no parts that a dot could name"),
        ({"labels.": "x"}, "labels.: map<string, string> has no parts that a dot could name"),
    ],
)
def test_a_wrong_override_is_told_with_what_was_expected(overrides: dict[str, Plain], problem: str) -> None:
    assert told(POD, **overrides) == [problem]


def test_all_wrong_overrides_are_told_at_once() -> None:
    assert len(told(POD, gpu=1, labels=3, priority="high")) == 3


@pytest.mark.parametrize("given", ["noon", "2026-11-30T12:00:00", 5])
def test_a_time_needs_its_zone(given: Plain) -> None:
    with pytest.raises(FixtureError, match="write a time with its zone"):
        fixture_value(Scalar.TIMESTAMP, given, "now")
