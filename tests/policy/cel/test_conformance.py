"""The engines pass the language's own cases to the measure that the docs state.

The cases stand beside the checkout where they are at hand.
"""

from __future__ import annotations

import pytest

from tests.policy.cel.conformance import CASES, ENGINES, TABLE, Rate, cases, rates, table, total

needs_cases = pytest.mark.skipif(
    not CASES.is_file(), reason=f"the conformance cases of CEL are not at hand: no {CASES}"
)


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Rate]]:
    return {name: rates(cases(), passes) for name, passes in ENGINES.items()}


@needs_cases
def test_cel_expr_passes_ninety_six_percent_of_the_cases_without_messages(
    measured: dict[str, dict[str, Rate]],
) -> None:
    found = total(measured["cel-expr"])
    assert found.of > 1600
    assert round(100 * found.passed / found.of) >= 96


@needs_cases
def test_cel_expr_passes_every_case_of_what_rules_are_made_of(measured: dict[str, dict[str, Rate]]) -> None:
    whole = ("basic", "logic", "comparisons", "conversions", "integer_math", "fp_math", "lists", "macros", "string")
    assert [
        name for name in (*whole, "timestamps") if measured["cel-expr"][name].passed < measured["cel-expr"][name].of
    ] == []


@needs_cases
def test_the_table_in_the_docs_is_what_the_engines_do(measured: dict[str, dict[str, Rate]]) -> None:
    """Written anew by ``python -m tests.policy.cel.conformance``."""
    assert TABLE.read_text(encoding="utf-8") == table(measured)
