"""How types are spelt for people: in messages, in tables and in hover texts."""

from __future__ import annotations

from engine.policy.cel.types import CelType, ListOf, MapOf, Record


def spelled(type_: CelType) -> str:
    """``list<pod>``, ``map<string, int>``, ``duration``, or a record's name."""
    if isinstance(type_, ListOf):
        return f"list<{spelled(type_.element)}>"
    if isinstance(type_, MapOf):
        return f"map<string, {spelled(type_.value)}>"
    return type_.name if isinstance(type_, Record) else type_.value
