"""Which facts an expression reads: exact paths, so that pods that are alike in them are asked once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.policy.cel.source_tree import Form, Node
from engine.policy.cel.types import CelType, MapOf, Record, Scalar

_INDEXES = frozenset({"_[_]", "_[?_]", "_?._"})


def reads_of(tree: Node, variables: Mapping[str, CelType]) -> frozenset[str]:
    """The paths that the expression may read, see `port.Program`.

    A key of a map is part of a path (``pod.labels.tier``) where it is a literal and the map's values are scalars;
    whether a key is there counts as reading it. Everything else in a map or a list is read as a whole.
    """
    return frozenset(_paths(tree, variables, frozenset()))


def _paths(node: Node, variables: Mapping[str, CelType], bound: frozenset[str]) -> Iterator[str]:
    found = _resolved(node, variables, bound)
    if found is not None:
        path, type_ = found
        yield path if isinstance(type_, Scalar) else f"{path}.*"
        return
    if (key_path := _presence(node, variables, bound)) is not None:
        yield key_path
        return
    for number, part in enumerate(node.parts):
        inside = bound if number == 0 else bound | set(node.variables)
        yield from _paths(part, variables, inside)


def _presence(node: Node, variables: Mapping[str, CelType], bound: frozenset[str]) -> str | None:
    """The path in ``has(path)`` and in ``'key' in path``, which ask for one key of a map."""
    if node.form is Form.PRESENCE:
        return _keyed(_resolved(node.parts[0], variables, bound), node.word)
    if node.form is Form.CALL and node.word == "@in":
        return _keyed(_resolved(node.parts[1], variables, bound), node.parts[0].text)
    return None


def _resolved(node: Node, variables: Mapping[str, CelType], bound: frozenset[str]) -> tuple[str, CelType] | None:
    """The path that the node is, with the type of what is there; None for everything that is computed."""
    if node.form is Form.NAME:
        name = node.word.removeprefix(".")
        return (name, variables[name]) if name in variables and name not in bound else None
    if node.form is Form.FIELD:
        return _step(_resolved(node.parts[0], variables, bound), node.word)
    if node.form is Form.CALL and node.word in _INDEXES:
        return _step(_resolved(node.parts[0], variables, bound), node.parts[1].text)
    return None


def _step(base: tuple[str, CelType] | None, name: str | None) -> tuple[str, CelType] | None:
    if base is None or name is None:
        return None
    path, type_ = base
    if isinstance(type_, Record):
        fields = {each.name: each.type for each in type_.fields}
        return (f"{path}.{name}", fields[name]) if name in fields else None
    keyed = _keyed(base, name)
    return (keyed, type_.value) if keyed is not None and isinstance(type_, MapOf) else None


def _keyed(base: tuple[str, CelType] | None, key: str | None) -> str | None:
    if base is None or key is None or key.endswith("*"):
        return None
    path, type_ = base
    return f"{path}.{key}" if isinstance(type_, MapOf) and isinstance(type_.value, Scalar) else None
