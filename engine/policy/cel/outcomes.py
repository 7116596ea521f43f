"""What each part of an expression comes to, and which part erred. Slow: for people, and once for each kind of error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import evolve, frozen

from engine.policy.cel.port import Answer, Observed
from engine.policy.cel.source_tree import Form, Node

LOOP_STEPS = 10_000
"""So many turns of loops an evaluation may take: cel-expr's limit, which the other engine keeps too."""

STOPPED = f"stopped after {LOOP_STEPS:,} turns of loops; the turns of a loop in a loop multiply"

MOST_TURNS = 256
"""So many turns of an outermost loop are looked into, fewer inside; what only a later one does stays unseen."""

Scope = Mapping[str, Any]
"""What the loops around set, by variable."""

NO_LOOPS: Scope = {}


@frozen
class Outcome:
    """What a part came to. ``answer`` is None for what is neither a scalar nor an error: a record, a list, a map.

    ``raw`` is None too for what cannot be had from the library; what reads it further in is not looked into.
    """

    answer: Answer | None
    raw: Any = None

    @property
    def has_erred(self) -> bool:
        return self.answer is not None and bool(self.answer.error)

    @property
    def has_stopped(self) -> bool:
        return self.answer is not None and self.answer.error == STOPPED

    def is_exactly(self, truth: bool) -> bool:
        return self.answer is not None and self.answer.value is truth


class Parts(Protocol):
    """How an engine evaluates one part of an expression alone."""

    def outcome(self, node: Node, scope: Scope) -> Outcome: ...

    def turns(self, node: Node, over: Outcome) -> Sequence[Scope]:
        """What a loop sets at each of its turns."""
        ...

    def bound(self, node: Node, value: Outcome) -> Scope:
        """What ``cel.bind`` sets."""
        ...


def observed_parts(tree: Node, source: str, parts: Parts) -> tuple[Observed, ...]:
    """Every part that was reached and came to a scalar or an error, outermost first; see `port.Program.observe`."""
    answers: dict[Node, list[Answer]] = {}
    for node, outcome in _visits(tree, NO_LOOPS, parts):
        if outcome.answer is not None and node.form is not Form.LITERAL:
            answers.setdefault(node, []).append(outcome.answer)
    return tuple(
        Observed(node.span, source[node.span.start : node.span.end], tuple(answers[node]), node.is_bool)
        for node in tree.walk()
        if node in answers
    )


def error_pointer(tree: Node, parts: Parts) -> int:
    """Where the innermost part stands whose error became the expression's; -1 when the expression does not err."""
    found = _erring(tree, NO_LOOPS, parts)
    return found[0].pointer if found is not None else -1


def innermost_error(tree: Node, parts: Parts) -> Answer | None:
    """That part's own error and where it stands; None when the expression does not err."""
    found = _erring(tree, NO_LOOPS, parts)
    return evolve(found[1], error_at=found[0].pointer) if found is not None else None


def _visits(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Outcome]]:
    yield node, parts.outcome(node, scope)
    for part, inner in _reached(node, scope, parts):
        yield from _visits(part, inner, parts)


def _erring(node: Node, scope: Scope, parts: Parts) -> tuple[Node, Answer] | None:
    answer = parts.outcome(node, scope).answer
    if answer is None or not answer.error:
        return None
    if answer.error == STOPPED:
        return _stopping(node, scope, parts), answer
    for part, inner in _reached(node, scope, parts):
        if (found := _erring(part, inner, parts)) is not None:
            return found
    return node, answer


def _stopping(node: Node, scope: Scope, parts: Parts) -> Node:
    """The loop that took all the turns; its own turns are not gone through once more."""
    outer = node.parts[:1] if node.form in _REACH_OF_FORMS else node.parts
    for part in outer:
        if parts.outcome(part, scope).has_stopped:
            return _stopping(part, scope, parts)
    return node


def _reached(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
    """The parts that an evaluation of the node gets to, each with what the loops around set."""
    reach = _REACH.get(node.word, _all_parts) if node.form is Form.CALL else _REACH_OF_FORMS.get(node.form, _all_parts)
    yield from reach(node, scope, parts)


def _all_parts(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
    for part in node.parts:
        yield part, scope


def _until(decisive: bool) -> Callable[[Node, Scope, Parts], Iterator[tuple[Node, Scope]]]:
    def reach(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
        for part in node.parts:
            yield part, scope
            if parts.outcome(part, scope).is_exactly(decisive):
                return

    return reach


def _branch(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
    condition, then, otherwise = node.parts
    yield condition, scope
    outcome = parts.outcome(condition, scope)
    if outcome.is_exactly(True):
        yield then, scope
    elif outcome.is_exactly(False):
        yield otherwise, scope


def _bind(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
    value, rest = node.parts
    yield value, scope
    outcome = parts.outcome(value, scope)
    if not outcome.has_erred and outcome.raw is not None:
        yield rest, {**scope, **parts.bound(node, outcome)}


def _loop(node: Node, scope: Scope, parts: Parts) -> Iterator[tuple[Node, Scope]]:
    over, *turn = node.parts
    yield over, scope
    outcome = parts.outcome(over, scope)
    if outcome.has_erred or outcome.raw is None or not turn:
        return
    has_condition = len(turn) > 1
    decisive = _DECISIVE.get(node.word)
    for set_here in parts.turns(node, outcome)[: max(MOST_TURNS >> 4 * len(scope), 8)]:
        inner = {**scope, **set_here}
        yield turn[0], inner
        first = parts.outcome(turn[0], inner)
        if has_condition and first.is_exactly(True):
            for part in turn[1:]:
                yield part, inner
        if decisive is not None and first.is_exactly(decisive):
            return


_DECISIVE = {"all": False, "exists": True}
_REACH = {"_&&_": _until(False), "_||_": _until(True), "_?_:_": _branch}
_REACH_OF_FORMS = {Form.LOOP: _loop, Form.BIND: _bind}
