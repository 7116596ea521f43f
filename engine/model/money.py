"""Prices. One unit, dollars an hour, held as whole micro-dollars so that sums are exact."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

from attrs import frozen

_MICROS = 1_000_000


@frozen(order=True)
class UsdPerHour:
    """An amount of US dollars an hour, in millionths."""

    micros: int

    @classmethod
    def parse(cls, text: str | int | float) -> UsdPerHour:
        """From a decimal such as ``"1.006"``; raises ValueError when it is no finite, non-negative number."""
        try:
            value = Decimal(str(text))
        except InvalidOperation:
            raise ValueError(f"{text!r} is not a price; write dollars an hour, such as 1.006") from None
        if not value.is_finite() or value < 0 or value > 10**9:
            raise ValueError(f"{text!r} is not a price; write dollars an hour, zero or more, such as 1.006")
        return cls(int((value * _MICROS).to_integral_value(ROUND_HALF_UP)))

    def __add__(self, other: UsdPerHour) -> UsdPerHour:
        return UsdPerHour(self.micros + other.micros)

    def __sub__(self, other: UsdPerHour) -> UsdPerHour:
        return UsdPerHour(self.micros - other.micros)

    def scaled(self, factor: Decimal) -> UsdPerHour:
        """This price times a factor (a discount of 20 % is ``Decimal("0.8")``), rounded half up."""
        return UsdPerHour(int((Decimal(self.micros) * factor).to_integral_value(ROUND_HALF_UP)))

    def __str__(self) -> str:
        dollars = Decimal(abs(self.micros)) / _MICROS
        sign = "-" if self.micros < 0 else ""
        # Cents hide the difference between two small nodes, so small amounts show four digits.
        return f"{sign}${dollars:,.4f}/h" if 0 < dollars < 10 else f"{sign}${dollars:,.2f}/h"


FREE = UsdPerHour(0)


def total(prices: Iterable[UsdPerHour]) -> UsdPerHour:
    """The exact sum."""
    return UsdPerHour(sum(price.micros for price in prices))
