"""What a file of policy tests holds, as values: cases about one rule each, and scenarios about whole plans."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum

from attrs import field, frozen

from engine.model.diagnostic import Position
from engine.model.rule import RuleKind
from engine.policy.findings import ObjectFindings
from engine.policy.located import Path


class Outcome(str, Enum):
    """What a rule may say, in the words of ``expect``. NOT_MATCHED: it was not asked. An error is a word of its own."""

    ELIGIBLE = "eligible"
    EXCLUDED = "excluded"
    SCORE = "score"
    CEILING = "ceiling"
    CANDIDATE = "candidate"
    KEPT = "kept"
    ALLOWED = "allowed"
    PASSES = "passes"
    BLOCKS = "blocks"
    ERROR = "error"
    NOT_MATCHED = "not-matched"


WITH_NUMBER = frozenset({Outcome.SCORE, Outcome.CEILING, Outcome.ALLOWED})
# A rule that lets something through has nothing to tell, and neither has one that is not asked.
WITHOUT_MESSAGE = frozenset({Outcome.ELIGIBLE, Outcome.CANDIDATE, Outcome.PASSES, Outcome.SCORE, Outcome.NOT_MATCHED})
_OF_ANY_KIND = (Outcome.ERROR, Outcome.NOT_MATCHED)
OUTCOMES_OF: Mapping[RuleKind, tuple[Outcome, ...]] = {
    RuleKind.REQUIREMENT_RULE: (Outcome.ELIGIBLE, Outcome.EXCLUDED, Outcome.SCORE, *_OF_ANY_KIND),
    RuleKind.LIMIT_RULE: (Outcome.CEILING, *_OF_ANY_KIND),
    RuleKind.DISRUPTION_BUDGET: (Outcome.CANDIDATE, Outcome.KEPT, Outcome.ALLOWED, *_OF_ANY_KIND),
    RuleKind.GUARDRAIL: (Outcome.PASSES, Outcome.BLOCKS, *_OF_ANY_KIND),
}


@frozen
class Expectation:
    """``number`` is there for a score, a ceiling and what is allowed, in the unit that the rule gives it in."""

    outcome: Outcome
    number: Decimal | None = None

    def __str__(self) -> str:
        return self.outcome.value if self.number is None else f"{self.outcome.value} {self.number}"


@frozen
class Case:
    """One case. ``given`` are the paths of what the file's defaults and the case itself say, which goes over them.

    ``alongside`` are rules that are asked about the same: ``rule`` has to be the one that decides. ``message`` has to
    occur in what the rule tells. ``item`` is the object in its file.
    """

    name: str
    rule: str
    alongside: tuple[str, ...]
    expectation: Expectation
    message: str
    path: Path
    item: ObjectFindings = field(eq=False, repr=False)

    @property
    def given(self) -> tuple[Path, ...]:
        return (("spec", "defaults"), (*self.path, "given"))

    @property
    def position(self) -> Position:
        return self.item.at((*self.path, "name"))

    def at(self, *path: str | int) -> Position:
        """Where a part of the case stands."""
        return self.item.at((*self.path, *path))


@frozen
class Dollars:
    """Dollars an hour as a person wrote them: compared to as many decimals as they have."""

    text: str
    amount: Decimal

    def equals(self, micros: int) -> bool:
        return (Decimal(micros) / 1_000_000).quantize(self.amount) == self.amount


@frozen
class PlanExpectation:
    """What a plan has to come to; None is not asked. Each of ``messages`` occurs in something that the plan tells."""

    launches: int | None = None
    removals: int | None = None
    unplaced: int | None = None
    added_usd_per_hour: Dollars | None = None
    messages: tuple[str, ...] = ()


@frozen
class Scenario:
    """A whole decision on a recorded snapshot. ``snapshot`` is relative to the test file; ``at`` None is its own time.

    ``environment`` empty is the one that the tests run in.
    """

    name: str
    snapshot: str
    at: datetime | None
    environment: str
    expectation: PlanExpectation
    path: Path
    item: ObjectFindings = field(eq=False, repr=False)

    @property
    def position(self) -> Position:
        return self.item.at((*self.path, "name"))

    def position_of(self, *path: str | int) -> Position:
        return self.item.at((*self.path, *path))


@frozen
class PolicyTest:
    """One PolicyTest object. ``file`` is its display path."""

    name: str
    file: str
    cases: tuple[Case, ...]
    scenarios: tuple[Scenario, ...]
