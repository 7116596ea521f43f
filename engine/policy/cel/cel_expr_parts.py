"""Parts of a checked expression, each evaluated alone by cel-expr."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from cel_expr_python import cel

from engine.policy.cel.checked_messages import CheckedExpr, write_checked
from engine.policy.cel.outcomes import Outcome, Scope
from engine.policy.cel.port import Answer
from engine.policy.cel.source_tree import Node

_SCALARS = (bool, int, float, str, datetime, timedelta)


class LibraryParts:
    """Keeps each part ready to run. ``take`` makes of a moment or a span of time what the library takes anywhere."""

    def __init__(self, library: Any, checked: Any, take: Callable[[Any], Any], told: Callable[[str], str]) -> None:
        self._library = library
        self._checked = checked
        self._take = take
        self._told = told
        self._ready: dict[Node, Any] = {}

    def on(self, facts: Mapping[str, Any]) -> FactParts:
        """The parts on these facts."""
        return FactParts(self, facts)

    def ready(self, node: Node) -> Any:
        """The part as an expression of its own."""
        if node not in self._ready:
            alone = CheckedExpr()
            alone.CopyFrom(self._checked)
            alone.expr.CopyFrom(node.message)
            self._ready[node] = self._library.deserialize(write_checked(alone))
        return self._ready[node]

    def outcome(self, node: Node, data: Mapping[str, Any]) -> Outcome:
        """What the part comes to on the data."""
        try:
            found = self.ready(node).eval(data=data)
        except RuntimeError as error:
            return Outcome(Answer(error=self._told(str(error))))
        try:
            plain = found.plain_value()
        except (TypeError, SystemError):  # an optional, or a list of them: the library gives neither out
            return Outcome(None)
        if found.type() == cel.Type.ERROR:
            return Outcome(Answer(error=self._told(str(plain))))
        return Outcome(Answer(value=plain) if isinstance(plain, _SCALARS) else None, plain)

    def taken(self, value: Any) -> Any:
        return self._take(value)


class FactParts:
    """The parts on certain facts; each is evaluated once for each turn of the loops around it."""

    def __init__(self, parts: LibraryParts, facts: Mapping[str, Any]) -> None:
        self._parts = parts
        self._facts = facts
        self._known: dict[tuple[Node, int], Outcome] = {}
        self._scopes: list[Scope] = []

    def outcome(self, node: Node, scope: Scope) -> Outcome:
        key = (node, id(scope))
        if key not in self._known:
            self._scopes.append(scope)  # as long as it lives, no other scope has its id
            self._known[key] = self._parts.outcome(node, {**self._facts, **scope})
        return self._known[key]

    def turns(self, node: Node, over: Outcome) -> Sequence[Scope]:
        values = over.raw
        names = node.variables
        if isinstance(values, Mapping):
            pairs = [(self._parts.taken(key), self._parts.taken(value)) for key, value in values.items()]
            return [dict(zip(names, pair, strict=False)) for pair in pairs]
        if len(names) == 1:
            return [{names[0]: self._parts.taken(value)} for value in values]
        return [dict(zip(names, (at, self._parts.taken(value)), strict=True)) for at, value in enumerate(values)]

    def bound(self, node: Node, value: Outcome) -> Scope:
        return {node.variables[0]: self._parts.taken(value.raw)}
