"""What a person, or the world, did that stops a command. Always a message that can be acted on, never a traceback."""

from __future__ import annotations


class Fault(Exception):
    """``message`` says what happened to which object and what was expected; ``hint`` what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
