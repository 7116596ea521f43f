"""One input of a machine that is not what its pool would launch it with today. A value."""

from __future__ import annotations

from attrs import frozen


@frozen
class Change:
    """``what`` names the input as a person knows it (``image``, ``label team``); the rest is what was and what is."""

    what: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.what} {self.before or 'none'} -> {self.after or 'none'}"
