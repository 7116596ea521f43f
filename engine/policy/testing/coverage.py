"""What cases made of each bool sub-expression of a rule: whether it was true in one and false in another.

Places are those of the file: a variable that several expressions read is one text, and what it came to in any of them
counts. What tells a message decides nothing, and is not asked for.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from engine.model.diagnostic import Position
from engine.model.rule import LimitRule
from engine.policy.cel.bool_parts import bool_parts
from engine.policy.cel.port import Observed
from engine.policy.cel.types import CelType
from engine.policy.facts.schema import variables_for
from engine.policy.rules.compiled import CompiledRule
from engine.policy.rules.expressions import Expanded
from engine.policy.rules.placing import position_in

MESSAGE = "messageExpression"
# A text at its place: one that starts where another does is longer.
_Place = tuple[str, int, int, str]


@frozen
class Gap:
    """A sub-expression that no case made come to each of ``missing``."""

    position: Position
    text: str
    missing: tuple[bool, ...]


@frozen
class RuleCoverage:
    """``seen`` of ``asked`` outcomes. A rule that no case evaluated is not covered, however little there is to it."""

    rule: str
    position: Position
    cases: int
    seen: int
    asked: int
    gaps: tuple[Gap, ...]

    @property
    def percent(self) -> float:
        if not self.cases:
            return 0.0
        return 100.0 * self.seen / self.asked if self.asked else 100.0

    def reaches(self, threshold: float) -> bool:
        return self.percent >= threshold


class Coverage:
    """Of all rules, filled case by case."""

    def __init__(self, windows: Sequence[str]) -> None:
        self._windows = windows
        self._seen: dict[str, dict[_Place, set[bool]]] = {}
        self._cases: dict[str, int] = {}

    def count(self, compiled: CompiledRule) -> None:
        """A case had the rule evaluated."""
        self._cases[compiled.rule.name] = self._cases.get(compiled.rule.name, 0) + 1

    def note(self, compiled: CompiledRule, part: str, observed: Iterable[Observed]) -> None:
        """What one evaluation came to; ``part`` is a key of the rule's sources."""
        seen = self._seen.setdefault(compiled.rule.name, {})
        for each in observed:
            if each.is_bool:
                outcomes = seen.setdefault(_place(compiled, part, each.span.start, each.text), set())
                outcomes.update(answer.value for answer in each.answers if isinstance(answer.value, bool))

    def of(self, compiled: CompiledRule) -> RuleCoverage:
        """What there is to say of one rule."""
        name = compiled.rule.name
        places: dict[_Place, Position] = {}
        for part, source in compiled.sources.items():
            if part != MESSAGE:
                for span in bool_parts(source.text, self._variables(compiled, part)):
                    text = source.text[span.start : span.end]
                    places.setdefault(_place(compiled, part, span.start, text), _position(source, span.start))
        seen = self._seen.get(name, {})
        gaps = []
        for place, position in sorted(places.items()):
            missing = tuple(each for each in (True, False) if each not in seen.get(place, ()))
            gaps += [Gap(position, place[3], missing)] if missing else []
        asked = 2 * len(places)
        return RuleCoverage(
            rule=name,
            position=compiled.rule.position,
            cases=self._cases.get(name, 0),
            seen=asked - sum(len(gap.missing) for gap in gaps),
            asked=asked,
            gaps=tuple(gaps),
        )

    def _variables(self, compiled: CompiledRule, part: str) -> Mapping[str, CelType]:
        rule = compiled.rule
        return variables_for(
            rule.kind,
            part.partition("[")[0],
            rule.params,
            self._windows,
            time_sensitive=rule.is_time_sensitive,
            grouped=isinstance(rule, LimitRule) and rule.group_by is not None,
        )


def _place(compiled: CompiledRule, part: str, offset: int, text: str) -> _Place:
    position = _position(compiled.sources[part], offset)
    return position.file, position.line, position.column, text


def _position(source: Expanded, offset: int) -> Position:
    """Where a sub-expression begins in the file. One that begins with a whole variable begins where that is read."""
    at = bisect_right(source.pieces, offset, key=lambda piece: piece.start) - 1
    before = source.pieces[at - 1] if at > 0 and source.pieces[at].length == 0 else None
    if before is not None and source.text[offset] == "(":
        return position_in(before.expression, before.offset + before.length)
    return source.position(offset)
