"""What is stored can be read again, and the same value always gives the same bytes."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.canonical import UnreadableValue, canonical_json, digest, from_json
from engine.model.document import DesiredDocument, Foundation
from engine.model.environment import NetworkMode
from engine.model.money import UsdPerHour
from engine.model.plan import Unplaced
from engine.model.pod import Placing, PodKey
from engine.model.policy import Policy
from engine.model.quantity import Resources
from engine.model.refusal import GpuPoolClosed, LimitReached, LostOffering, OfferingsUnavailable, PoolRefusal
from engine.model.snapshot import Snapshot
from tests.policy.rules.rule_texts import RULES, load_rules

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
FOUNDATION = Foundation(NetworkMode.OWNED, "10.0.0.0/16", {"b": "2", "a": "1"}, {}, (), (), ())


def test_a_refusal_keeps_its_code_and_numbers_through_storage() -> None:
    refusals = (
        PoolRefusal("core", LimitReached("nvidia.com/gpu", limit=50, used=50, planned=0, needed=1)),
        PoolRefusal("batch", GpuPoolClosed()),
        PoolRefusal("spot", OfferingsUnavailable(3, NOON, 2, "InsufficientInstanceCapacity")),
    )
    unplaced = Unplaced(PodKey("default", "llm-0"), refusals)

    stored = canonical_json(unplaced)

    assert b'"code":"limit-reached"' in stored
    assert from_json(Unplaced, stored) == unplaced


def test_the_order_of_a_mapping_does_not_change_the_digest() -> None:
    other = Foundation(NetworkMode.OWNED, "10.0.0.0/16", {"a": "1", "b": "2"}, {}, (), (), ())

    assert digest(other) == digest(FOUNDATION)


def test_a_moment_is_stored_in_utc_whatever_its_zone() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))

    assert canonical_json(Snapshot("prod", elsewhere)) == canonical_json(Snapshot("prod", NOON))


def test_a_snapshot_with_a_document_can_be_read_again() -> None:
    snapshot = Snapshot("prod", NOON, document=DesiredDocument("prod", 3, FOUNDATION, ()))

    assert from_json(Snapshot, canonical_json(snapshot)) == snapshot


@given(st.integers(-(10**15), 10**15))
def test_no_price_loses_a_fraction_in_storage(micros: int) -> None:
    lost = LostOffering("g5.xlarge/us-east-1b/spot", UsdPerHour(micros), UsdPerHour(-micros))

    assert from_json(LostOffering, canonical_json(lost)) == lost


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"environment": 1}', "null", '{"environment":"e","version":"x"}', '{"surprise": 1}']
)
def test_what_was_not_written_by_us_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnreadableValue, match="no readable DesiredDocument"):
        from_json(DesiredDocument, text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"environment":\n', "no readable DesiredDocument: line 2, column 1: Expecting value"),
        ('{"environment": "e"}', "the field 'version' is missing"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_by_its_place_and_not_in_words_of_python(text: str, told: str) -> None:
    with pytest.raises(UnreadableValue) as refused:
        from_json(DesiredDocument, text)

    assert told in str(refused.value)
    assert "Error" not in str(refused.value)


def test_a_field_of_a_newer_version_is_refused_rather_than_lost() -> None:
    stored = canonical_json(DesiredDocument("prod", 3, FOUNDATION, ())).replace(
        b'"version":3', b'"version":3,"lanes":2'
    )

    with pytest.raises(UnreadableValue, match="lanes"):
        from_json(DesiredDocument, stored)


def test_rules_of_every_kind_keep_their_kind_and_their_parameters_types_through_storage() -> None:
    policy = load_rules(*RULES.values())

    read = from_json(Policy, canonical_json(policy))

    assert read == policy
    assert [(type(rule), repr(rule.params)) for rule in read.rules] == [
        (type(rule), repr(rule.params)) for rule in policy.rules
    ]
    assert {rule.kind.value for rule in read.rules} == set(RULES)


def test_a_parameter_that_is_no_single_value_is_refused() -> None:
    stored = canonical_json(load_rules(RULES["LimitRule"])).replace(b'"day":8', b'"day":[8]')

    with pytest.raises(UnreadableValue, match=r"\[8\] is no bool, number or string"):
        from_json(Policy, stored)


def test_half_a_surrogate_pair_in_a_name_is_stored_and_read_back() -> None:
    odd = Unplaced(PodKey("default", "llm-\ud800"), ())
    assert from_json(Unplaced, canonical_json(odd)) == odd
    assert digest(odd) != digest(Unplaced(PodKey("default", "llm-?"), ()))


@pytest.mark.parametrize("amount", [b"{}", b'"8"', b"1.5", b"true", b"null"])
def test_an_amount_that_is_no_whole_number_is_refused_by_name(amount: bytes) -> None:
    stored = canonical_json(Placing(Resources({"cpu": 1500}))).replace(b"1500", amount)

    with pytest.raises(UnreadableValue, match="is no amount of cpu in base units, a whole number"):
        from_json(Placing, stored)


def test_a_time_without_a_zone_is_refused_as_nobody_can_tell_when_it_is() -> None:
    stored = canonical_json(Snapshot("prod", datetime(2026, 11, 30, tzinfo=UTC))).replace(b"00:00:00Z", b"00:00:00")

    with pytest.raises(UnreadableValue, match="'2026-11-30T00:00:00' says no time zone"):
        from_json(Snapshot, stored)
