"""Quantities mean what Kubernetes means by them, exactly."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.quantity import QuantityError, Resources, base_units, format_amount, parse_quantity

AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 10**15))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500m", Fraction(1, 2)),
        ("4", Fraction(4)),
        (4, Fraction(4)),
        (0.5, Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("5.", Fraction(5)),
        ("16Gi", Fraction(16 * 2**30)),
        ("1000Ti", Fraction(1000 * 2**40)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("100u", Fraction(1, 10_000)),
        ("-2k", Fraction(-2000)),
    ],
)
def test_a_quantity_has_its_exact_value(text: str | float, value: Fraction) -> None:
    assert parse_quantity(text) == value


@pytest.mark.parametrize(
    "text", ["", "Gi", "4 Gi", "1.2.3", "4gi", "16GB", "4K", "0x10", "١", "1e999", "NaN", "inf", "1_000"]
)
def test_what_kubernetes_refuses_is_refused_with_the_text_named(text: str) -> None:
    with pytest.raises(QuantityError, match=r"quantity|unit"):
        parse_quantity(text)


def test_an_amount_rounds_up_to_its_base_unit_as_kubernetes_rounds() -> None:
    assert base_units("cpu", "1.0001") == 1001
    assert base_units("memory", "0.1") == 1
    assert base_units("nvidia.com/gpu", "2") == 2


def test_a_negative_amount_is_refused_for_its_resource() -> None:
    with pytest.raises(QuantityError, match="memory: '-1Gi' is negative"):
        Resources.parse({"memory": "-1Gi"})


def test_a_request_of_zero_fits_where_the_resource_does_not_exist() -> None:
    assert Resources({"nvidia.com/gpu": 0}).fits_in(Resources({"cpu": 1}))
    assert not Resources({"nvidia.com/gpu": 1}).fits_in(Resources({"cpu": 1}))


@given(AMOUNTS, AMOUNTS)
def test_fitting_and_falling_short_are_each_others_opposite(asked: dict[str, int], room: dict[str, int]) -> None:
    fits = Resources(asked).fits_in(Resources(room))

    assert fits == (not list(Resources(asked).shortfalls(Resources(room))))


@given(AMOUNTS, AMOUNTS)
def test_adding_and_taking_away_again_changes_no_amount(first: dict[str, int], second: dict[str, int]) -> None:
    there_and_back = Resources(first) + Resources(second) - Resources(second)

    assert {name: there_and_back.amount(name) for name in first} == first


@given(AMOUNTS)
def test_the_order_in_which_a_bundle_is_written_does_not_show(amounts: dict[str, int]) -> None:
    backwards = Resources(dict(reversed(list(amounts.items()))))

    assert backwards == Resources(amounts)
    assert hash(backwards) == hash(Resources(amounts))
    assert list(backwards) == list(Resources(amounts))


@given(st.text(max_size=40))
def test_no_text_makes_parsing_fail_in_any_other_way(text: str) -> None:
    try:
        value = parse_quantity(text)
    except QuantityError:
        return
    assert abs(value) < 10**130


@pytest.mark.parametrize(
    ("resource", "amount", "shown"),
    [
        ("cpu", 3500, "3.5"),
        ("memory", 16 * 2**30, "16Gi"),
        ("memory", 15510 * 2**20, "15510Mi"),
        ("memory", 2**30 + 1, "1024Mi"),
        ("nvidia.com/gpu", 8, "8"),
        ("memory", 0, "0"),
    ],
)
def test_an_amount_is_shown_in_the_unit_that_people_write(resource: str, amount: int, shown: str) -> None:
    assert format_amount(resource, amount) == shown


def test_a_long_text_that_is_no_quantity_is_cut_where_it_is_told() -> None:
    with pytest.raises(QuantityError, match="is not a quantity") as told:
        parse_quantity("9" * 100_000)
    assert len(str(told.value)) < 200
