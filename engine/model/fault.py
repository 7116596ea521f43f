"""What a person, or the world, did that stops a command. Always a message that can be acted on, never a traceback."""

from __future__ import annotations


class Fault(Exception):
    """The message says what happened to which object and what was expected; ``hints`` what to do, easiest first."""

    def __init__(self, message: str, hints: tuple[str, ...] | str = ()) -> None:
        super().__init__(message)
        self.hints: tuple[str, ...] = (hints,) if isinstance(hints, str) else hints
