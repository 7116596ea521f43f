"""What a reader of single values takes, as a JSON Schema beside the reader, so that editors can be told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Shape = Mapping[str, object]
F = TypeVar("F", bound=Callable[..., object])

_MARK = "shape"


def shaped(shape: Shape) -> Callable[[F], F]:
    """Marks a reader with the shape of what it takes as it should be written: what it reads leniently is left out."""

    def mark(read: F) -> F:
        setattr(read, _MARK, shape)
        return read

    return mark


def shape_of(read: object) -> Shape | None:
    """The shape of what a reader takes; None for one that has not been marked."""
    found: Shape | None = getattr(read, _MARK, None)
    return found


def text_like(pattern: str) -> Shape:
    """A string of which the whole is of the pattern."""
    return {"type": "string", "pattern": f"^(?:{pattern})$"}
