"""Label selectors (apimachinery metav1.LabelSelector): of pods, of namespaces, of what a budget protects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.model.constraint import LabelSelector, Operator, Requirement
from engine.observe.affinity import requirement
from engine.observe.json_fields import Json, mapping, objects, texts

_OPERATORS = frozenset({Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST})


def label_selector(holder: Json, key: str) -> LabelSelector:
    """What ``holder`` selects under ``key``: None, which is nothing, where it is absent. Raises BrokenObject."""
    if holder.get(key) is None:
        return None
    return in_one_order(_required(mapping(holder, key)))


def in_one_order(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Each once, however and in whatever order it was written: selectors that say the same are equal."""
    return tuple(sorted(dict.fromkeys(requirements), key=_order))


def _required(selector: Json) -> Iterator[Requirement]:
    for key, value in texts(selector, "matchLabels").items():
        yield Requirement(key=key, operator=Operator.IN, values=(value,))
    for expression in objects(selector, "matchExpressions"):
        yield requirement(expression, "label selector", _OPERATORS)


def _order(required: Requirement) -> tuple[str, str, tuple[str, ...]]:
    return required.key, required.operator.value, required.values
