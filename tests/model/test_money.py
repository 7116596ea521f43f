"""Prices are exact and never without their unit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model.money import FREE, UsdPerHour, total


def test_a_price_of_five_decimals_is_kept_exactly() -> None:
    assert UsdPerHour.parse("0.37853").micros == 378_530


@pytest.mark.parametrize("text", ["", "free", "-1", "NaN", "Infinity", "1e30", "1.0 USD"])
def test_what_is_no_price_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a price"):
        UsdPerHour.parse(text)


def test_a_price_is_shown_with_its_unit() -> None:
    assert str(UsdPerHour.parse("1.006")) == "$1.0060/h"
    assert str(UsdPerHour.parse("12345.678")) == "$12,345.68/h"
    assert str(UsdPerHour.parse("1") - UsdPerHour.parse("3")) == "-$2.0000/h"
    assert str(FREE) == "$0.00/h"


@given(st.lists(st.integers(0, 10**12)))
def test_a_sum_of_prices_loses_nothing(micros: list[int]) -> None:
    assert total(UsdPerHour(each) for each in micros).micros == sum(micros)
