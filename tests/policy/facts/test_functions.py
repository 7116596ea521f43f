"""The table of what expressions may call: each example is true on every engine that the table promises it for."""

from __future__ import annotations

import pytest

from engine.policy.cel.engines import ENGINES, engine_named
from engine.policy.cel.port import DoesNotCompile
from engine.policy.cel.portable_functions import FUNCTIONS, MACROS, METHODS
from engine.policy.cel.types import Scalar
from engine.policy.facts.functions import OFFERED, Offered

PROMISED = [(name, each) for each in OFFERED for name in ENGINES if each.is_portable or name == "cel-expr"]


@pytest.mark.parametrize(("engine", "offered"), PROMISED, ids=lambda value: getattr(value, "written", value))
def test_every_example_is_true(engine: str, offered: Offered) -> None:
    program = engine_named(engine).compile(offered.example, {}, Scalar.BOOL)
    answer = program.evaluate({})
    assert (answer.error, answer.value) == ("", True)


@pytest.mark.parametrize("offered", [each for each in OFFERED if not each.is_portable], ids=lambda each: each.written)
def test_what_is_called_not_portable_is_refused_by_the_second_engine(offered: Offered) -> None:
    with pytest.raises(DoesNotCompile):
        engine_named("cel-python").compile(offered.example, {}, Scalar.BOOL)


def test_everything_that_a_portable_rule_may_call_is_in_the_table() -> None:
    written = " ".join(each.written for each in OFFERED if each.is_portable)
    assert [name for name in (*FUNCTIONS, *METHODS, *MACROS, "size") if f"{name}(" not in written] == []
