"""Whether a NodePool insists on its minValues."""

from __future__ import annotations

import pytest

from tests.policy.texts import CLASS, POOL, added, findings_of, pool_of


@pytest.mark.parametrize(("written", "best_effort"), [("Strict", False), ("BestEffort", True)])
def test_a_pool_says_whether_it_insists(written: str, best_effort: bool) -> None:
    text = added(POOL, "metadata:", f"  annotations: {{nodewright.dev/min-values-policy: {written}}}").text
    assert pool_of(text).min_values_best_effort is best_effort


def test_a_pool_that_says_nothing_insists() -> None:
    assert pool_of(POOL).min_values_best_effort is False


def test_another_word_is_told_with_the_two_that_there_are() -> None:
    edited = added(POOL, "metadata:", "  annotations: {nodewright.dev/min-values-policy: Relaxed}")
    found = next(each for each in findings_of(edited.text, CLASS) if each.rule == "bad-annotation")
    assert found.position is not None
    assert found.position.line == edited.line
    assert "'Relaxed'" in found.message
    assert found.hint == "it is one of BestEffort, Strict"
