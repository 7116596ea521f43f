"""One expression on many values of one variable, in one evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

from attrs import define
from cel_expr_python import cel

from engine.policy.cel.answers import FALSE, PYTHON_TYPES, TRUE, finite
from engine.policy.cel.environment import Environment
from engine.policy.cel.port import Answer, Bound
from engine.policy.cel.types import CelType, Record, Scalar

_ITEMS = "items__"


@define(eq=False)
class Batch:
    """The expression in a loop over many values of one variable.

    It keeps the values that it took in last: most loops are over the very same tuple as the one before. ``unread`` are
    fields that the expression does not look at. The library takes messages in anew for each loop, whole, so they go
    without these.
    """

    others: tuple[str, ...]
    library: Any
    loop: Any
    made: Any
    unread: tuple[str, ...]
    _items: Sequence[Bound] | None = None
    _taken: Any = None

    def answers(self, facts: Mapping[str, Bound], items: Sequence[Bound], result: Scalar) -> tuple[Answer, ...] | None:
        """None when anything at all erred."""
        data = {name: facts[name] for name in self.others if name in facts}
        if items is not self._items:
            self._taken = self._copies(items) if self.made else list(items)
            # What is no tuple could change.
            self._items = items if isinstance(items, tuple) else None
        data[_ITEMS] = self._taken
        try:
            found = self.loop.eval(self.library.Activation(data)).plain_value()
        except RuntimeError:
            return None
        if not isinstance(found, list) or len(found) != len(items):
            return None
        expected = PYTHON_TYPES[result]
        if any(type(each) is not expected for each in found):
            return None
        if result is Scalar.BOOL:
            return tuple([TRUE if each else FALSE for each in found])
        return tuple(finite(each) for each in found)

    def _copies(self, items: Sequence[Bound]) -> Any:
        batch = self.made(items=items)
        for each in batch.items:
            for name in self.unread:
                each.ClearField(name)
        return batch


def batch_of(source: str, reads: Set[str], environment: Environment, variable: str) -> Batch | None:
    """The source in a loop over the variable's values; None where the parser does not go one level deeper."""
    others = {name: type_ for name, type_ in environment.variables.items() if name != variable}
    type_ = environment.variables[variable]
    messages = environment.messages
    declared = {name: messages.checked_as(each) for name, each in others.items()}
    name, made = messages.batch_of(type_) if isinstance(type_, Record) else ("", None)
    declared[_ITEMS] = cel.Type(name) if name else cel.Type.List(messages.checked_as(type_))
    library = messages.declaring(declared)
    try:
        loop = library.compile(f"{_ITEMS}{'.items' if name else ''}.map({variable}, {source}\n)")
    except RuntimeError:
        return None
    return Batch(tuple(others), library, loop, made, _unread(type_, reads, variable))


def _unread(type_: CelType, reads: Set[str], variable: str) -> tuple[str, ...]:
    """The fields of a record that no path is in."""
    fields = {path.split(".")[1] for path in reads if path.startswith(f"{variable}.")}
    if not isinstance(type_, Record) or variable in reads or "*" in fields:
        return ()
    return tuple(each.name for each in type_.fields if each.name not in fields)
