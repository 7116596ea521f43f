"""A set of variables, in which expressions are checked and facts taken in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field

from engine.policy.cel.checker_messages import CheckerMessages
from engine.policy.cel.messages import RecordMessages
from engine.policy.cel.port import Bound, DoesNotCompile
from engine.policy.cel.types import CelType

_USES_OF_AN_ACTIVATION = 1_000


@define(slots=True)
class Environment:
    """One set of variables. It keeps the facts that it took in last: rules of one pass read the same ones."""

    variables: Mapping[str, CelType]
    messages: RecordMessages
    library: Any = field(init=False)
    _taken: tuple[tuple[str, Bound | None], ...] = ()
    _activation: Any = None
    _uses: int = 0

    def __attrs_post_init__(self) -> None:
        self.library = self.messages.declaring(
            {name: self.messages.checked_as(type_) for name, type_ in self.variables.items()}
        )

    def compile(self, source: str) -> Any:
        """Raises DoesNotCompile."""
        try:
            return self.library.compile(source)
        except RuntimeError as error:
            read = CheckerMessages(source, self.variables, self.messages.records)
            raise DoesNotCompile(read.problems(str(error))) from None

    def activation(self, facts: Mapping[str, Bound]) -> Any:
        """The facts as taken in before, where they are the very same objects.

        What evaluations allocate lives as long as the facts they ran on, so these are taken in anew once in a while.
        """
        self._uses += 1
        if self._activation is None or self._uses > _USES_OF_AN_ACTIVATION or not self._are_taken(facts):
            self._taken = tuple((name, facts.get(name)) for name in self.variables)
            self._activation = self.library.Activation({name: each for name, each in self._taken if each is not None})
            self._uses = 0
        return self._activation

    def _are_taken(self, facts: Mapping[str, Bound]) -> bool:
        for name, bound in self._taken:  # noqa: SIM110 - this loop runs before each evaluation, all() takes twice as long
            if facts.get(name) is not bound:
                return False
        return True
