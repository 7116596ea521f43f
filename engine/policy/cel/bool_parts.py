"""The bool sub-expressions of a source, reached or not: what coverage asks both outcomes of."""

from __future__ import annotations

from collections.abc import Mapping

from engine.policy.cel.cel_expr import CelExprEngine
from engine.policy.cel.checked_messages import read_checked
from engine.policy.cel.engines import engine_named
from engine.policy.cel.port import Span
from engine.policy.cel.source_tree import Form, source_tree
from engine.policy.cel.types import CelType


def bool_parts(source: str, variables: Mapping[str, CelType]) -> tuple[Span, ...]:
    """Outermost first, literals apart, each place once. Raises DoesNotCompile.

    The first engine's checker tells which they are: it knows the type of every part, whatever engine evaluates.
    """
    engine = engine_named(CelExprEngine.name)
    if not isinstance(engine, CelExprEngine):
        raise TypeError(f"{CelExprEngine.name} is {type(engine).__name__}")
    checked = read_checked(engine.environment(variables).compile(source).serialize())
    found = (
        node.span for node in source_tree(source, checked).walk() if node.is_bool and node.form is not Form.LITERAL
    )
    return tuple(dict.fromkeys(found))
