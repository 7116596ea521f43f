"""What is told of a machine that goes, behind its rule and its budget."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model.money import UsdPerHour
from engine.report.replacement_words import going_words
from tests.report.scenes import plan


@pytest.mark.parametrize(
    ("micros", "words"),
    [(400_000, "; saves $0.4000/h"), (-300_000, "; costs $0.3000/h more"), (0, ""), (3, ""), (-3, "")],
)
def test_a_saving_is_told_where_there_is_one_to_see(micros: int, words: str) -> None:
    removal = evolve(plan().removals[0], places=(), delete_first=None, saving=UsdPerHour(micros))

    assert going_words(removal, lambda refusal: "") == words
