"""What the checker finds wrong with a plan."""

from __future__ import annotations

from attrs import frozen


@frozen
class Violation:
    """``rule`` is the name of what is broken, ``subject`` the pod, claim or pool that breaks it, ``what`` the facts."""

    rule: str
    subject: str
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.subject}: {self.what}"
