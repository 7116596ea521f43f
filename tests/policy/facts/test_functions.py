"""The table of what expressions may call: each example is true on every engine that the table promises it for."""

from __future__ import annotations

import pytest

from engine.policy.cel.engines import ENGINES, engine_named
from engine.policy.cel.types import Scalar
from engine.policy.facts.functions import OFFERED, Offered

PROMISED = [(name, each) for each in OFFERED for name in ENGINES if each.is_portable or name == "cel-expr"]


@pytest.mark.parametrize(("engine", "offered"), PROMISED, ids=lambda value: getattr(value, "written", value))
def test_every_example_is_true(engine: str, offered: Offered) -> None:
    program = engine_named(engine).compile(offered.example, {}, Scalar.BOOL)
    answer = program.evaluate({})
    assert (answer.error, answer.value) == ("", True)
