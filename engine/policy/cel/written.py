"""What the type checker lets through and nobody can have meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from engine.policy.cel.outcomes import Outcome
from engine.policy.cel.port import Problem
from engine.policy.cel.regular_expressions import pattern_error
from engine.policy.cel.source_tree import Form, Node
from engine.policy.cel.types import CelType


def written_problems(
    tree: Node, variables: Mapping[str, CelType], alone: Callable[[Node], Outcome]
) -> tuple[Problem, ...]:
    """Problems of a checked expression, in the order of the source. ``alone`` evaluates a part without any facts."""
    found = [problem for node in tree.walk() for problem in _problems(node, variables, alone)]
    return tuple(sorted(found, key=lambda each: each.offset))


def _problems(node: Node, variables: Mapping[str, CelType], alone: Callable[[Node], Outcome]) -> Iterator[Problem]:
    if node.form is Form.PRESENCE and node.parts[0].record:
        yield Problem(
            node.span.start,
            "cel-always-there",
            f"{node.word} is a field, which is always there: has() says nothing about it",
            "compare its value; has() is for a map's keys",
        )
    for name in node.variables:
        if name in variables:
            yield Problem(
                node.pointer, "cel-hidden-name", f"this loop's {name} hides the variable {name}", "name it otherwise"
            )
    if node.form is Form.CALL and node.parts and all(part.form is Form.LITERAL for part in node.parts):
        outcome = alone(node)
        if outcome.answer is not None and outcome.answer.error:
            yield Problem(node.pointer, "cel-always-errs", f"this always errs: {outcome.answer.error}")
    pattern = node.parts[-1].text if node.form is Form.CALL and node.word == "matches" else None
    if pattern is not None and (reason := pattern_error(pattern)):
        message = f"this is no regular expression of RE2: {reason}"
        yield Problem(node.parts[-1].span.start, "cel-always-errs", message)
