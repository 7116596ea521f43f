"""What goes wrong while a loop runs, told once when it begins and once when it is over."""

from __future__ import annotations

from typing import Protocol

from engine.model.fault import Fault


class Told(Protocol):
    """Who hears of it."""

    def say(self, line: str) -> None: ...

    def warn(self, fault: Fault) -> None: ...


class Troubles:
    """By subject, such as ``policy`` or a stack's name. The same words about the same subject are told once."""

    def __init__(self, audience: Told) -> None:
        self._audience = audience
        self._standing: dict[str, str] = {}
        self.count = 0

    def tell(self, subject: str, fault: Fault) -> None:
        """It is so; counted each time, told when it was not so before."""
        self.count += 1
        if self._standing.get(subject) != str(fault):
            self._standing[subject] = str(fault)
            self._audience.warn(fault)

    def over(self, subject: str, line: str = "") -> None:
        """It is so no more; ``line`` says what that means, where it is worth saying."""
        if self._standing.pop(subject, None) is not None and line:
            self._audience.say(line)

    def standing(self) -> tuple[str, ...]:
        """The subjects that are in trouble now, in the order in which it began."""
        return tuple(self._standing)


def as_fault(error: BaseException) -> Fault:
    """Any error as something that can be told; one of ours says that it is."""
    if isinstance(error, Fault):
        return error
    return Fault(
        f"internal: {type(error).__name__}: {error}", "this is a fault in nodewright; NODEWRIGHT_DEBUG=1 shows where"
    )
