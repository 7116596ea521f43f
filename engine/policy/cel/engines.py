"""Which engines there are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from engine.policy.cel.cel_expr import CelExprEngine
from engine.policy.cel.cel_python import CelPythonEngine
from engine.policy.cel.port import CelEngine

DEFAULT = "cel-expr"
ENGINES: dict[str, Callable[[], CelEngine]] = {"cel-expr": CelExprEngine, "cel-python": CelPythonEngine}


@cache
def engine_named(name: str) -> CelEngine:
    """One engine for the whole process: its environments are dear to make. Raises ValueError that lists the names."""
    if name not in ENGINES:
        raise ValueError(f"there is no CEL engine {name}: it is one of {', '.join(ENGINES)}")
    return ENGINES[name]()
