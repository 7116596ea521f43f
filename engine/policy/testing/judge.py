"""Cases held against the rules of a policy: what each came to, and why one that failed did.

A case that proves nothing fails, too: its rule has to be there, to be asked, and to be what decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from attrs import frozen

from engine.model.catalog import Catalog
from engine.model.diagnostic import Position
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.model.rule import LimitRule
from engine.policy.cel.port import Answer, Observed
from engine.policy.findings import Findings, did_you_mean
from engine.policy.rules.ceilings import base_amount
from engine.policy.rules.compiled import Bundle, CompiledRule, bundle_of
from engine.policy.rules.types_at import sold_types
from engine.policy.testing.answer import Said, plain_number, readable, said_of
from engine.policy.testing.cases import OUTCOMES_OF, WITHOUT_MESSAGE, Case, Expectation, Outcome
from engine.policy.testing.coverage import Coverage, RuleCoverage
from engine.policy.testing.given import BadFacts, Given, World

_LONGEST_VALUE = 60
_MOST_VALUES = 12
_CLOSE = Decimal("1e-9")


@frozen
class CaseResult:
    """What a case came to. ``problem`` is empty for one that passes; ``values`` are what decided, each with its value.

    ``is_invalid``: the case itself is wrong, which was told among the findings.
    """

    file: str
    test: str
    name: str
    rule: str
    position: Position
    problem: str = ""
    values: tuple[tuple[str, str], ...] = ()
    is_invalid: bool = False

    @property
    def passes(self) -> bool:
        return not self.problem


class Judge:
    """Asks the rules of one policy. What is wrong with the cases themselves goes to ``findings``."""

    def __init__(self, policy: Policy, catalog: Catalog, environment: Environment, findings: Findings) -> None:
        bundle = bundle_of(policy)
        self._engine = bundle.engine
        self._rules = {each.rule.name: each for each in _every(bundle)}
        self._world = World(policy, sold_types(catalog), environment)
        self._windows = [window.name for window in policy.windows]
        self._findings = findings
        self._coverage = Coverage(self._windows)

    def result(self, case: Case, file: str, test: str) -> CaseResult:
        """What the case comes to."""
        blank = CaseResult(file, test, case.name, case.rule, case.position)
        missing = [name for name in (case.rule, *case.alongside) if name not in self._rules]
        if missing:
            hint = did_you_mean(missing[0], self._rules)
            problem = f"there is no rule {missing[0][:60]!r}{f': {hint}' if hint else ''}"
            return _failed(blank, problem)
        compiled = self._rules[case.rule]
        if not self._is_askable(case, compiled):
            return _failed(blank, "the case is not valid", is_invalid=True)
        try:
            said = self._said(case, compiled)
            others = {name: self._said(case, self._rules[name]) for name in case.alongside}
        except BadFacts as bad:
            for position, rule, message, hint in bad.problems:
                self._findings.error(position, rule, message, hint)
            return _failed(blank, "the case is not valid", is_invalid=True)
        problem = _difference(case, said, compiled) or _undecided(case, said, others)
        if not problem:
            return blank
        values = dict(_values(said.observed)) | self._values_of_stack(case, compiled)
        return _failed(blank, problem, tuple(values.items()))

    def coverage(self) -> tuple[RuleCoverage, ...]:
        """Of every rule, in the order of names."""
        return tuple(self._coverage.of(self._rules[name]) for name in sorted(self._rules))

    def _said(self, case: Case, compiled: CompiledRule) -> Said:
        given = Given(case, compiled.rule, self._world)
        is_own = compiled.rule.name == case.rule

        def note(part: str, observed: tuple[Observed, ...]) -> None:
            if is_own:
                self._coverage.note(compiled, part, observed)

        said = said_of(compiled, given, case.expectation.outcome, self._engine, self._windows, note)
        if is_own and said.outcome is not Outcome.NOT_MATCHED:
            self._coverage.count(compiled)
        return said

    def _values_of_stack(self, case: Case, compiled: CompiledRule) -> dict[str, str]:
        """Of parameters about which the case says nothing: another environment may have others."""
        rule = compiled.rule
        return {
            f"params.{name}": f"{_shown(Answer(rule.params[name]))} (from {place.file}:{place.line})"
            for name, place in Given(case, rule, self._world).of_stack().items()
        }

    def _is_askable(self, case: Case, compiled: CompiledRule) -> bool:
        """Whether the rule can say what is expected of it, and may read what it is given."""
        rule, sound = compiled.rule, True
        if case.expectation.outcome not in OUTCOMES_OF[rule.kind]:
            known = ", ".join(each.value for each in OUTCOMES_OF[rule.kind])
            message = f"a {rule.kind.value} never says {case.expectation.outcome.value}"
            self._findings.error(case.at("expect"), "bad-value", message, f"it says one of {known}")
            sound = False
        if case.message and case.expectation.outcome in WITHOUT_MESSAGE:
            message = f"a rule that comes to {case.expectation.outcome.value} tells nobody anything"
            self._findings.error(case.at("message"), "no-effect", message, "remove the message")
            sound = False
        strangers = [name for name in case.alongside if self._rules[name].rule.kind is not rule.kind]
        if strangers:
            message = f"{strangers[0]} is no {rule.kind.value}, so it says nothing of the same"
            self._findings.error(case.at("alongside"), "bad-value", message, "name rules of one kind")
            sound = False
        asked = [compiled, *(self._rules[name] for name in case.alongside)]
        known_facts = frozenset(name for each in asked for name in readable(each, self._windows))
        for name, position in Given(case, rule, self._world).own():
            if name not in known_facts:
                reads = ", ".join(sorted(known_facts))
                message = f"{rule.kind.value} {rule.name} does not read {name}, so giving it proves nothing"
                self._findings.error(position, "no-effect", message, f"it may read {reads}")
                sound = False
        return sound


def _every(bundle: Bundle) -> Sequence[CompiledRule]:
    return (*bundle.requirement_rules, *bundle.limit_rules, *bundle.disruption_budgets, *bundle.guardrails)


def _failed(
    blank: CaseResult, problem: str, values: tuple[tuple[str, str], ...] = (), *, is_invalid: bool = False
) -> CaseResult:
    return CaseResult(
        blank.file, blank.test, blank.name, blank.rule, blank.position, problem, values, is_invalid=is_invalid
    )


def _difference(case: Case, said: Said, compiled: CompiledRule) -> str:
    """What is other than expected; empty where nothing is."""
    wanted = case.expectation
    if said.outcome is Outcome.NOT_MATCHED and wanted.outcome is not Outcome.NOT_MATCHED:
        return f"the rule {case.rule} was not asked: {said.because}"
    if said.outcome is not wanted.outcome or not _is_number(wanted, said, compiled):
        because = f": {said.because}" if said.because else ""
        return f"expected {wanted}, and {case.rule} says {said}{because}"
    if case.message and case.message not in said.message:
        return f"the message lacks {case.message!r}: {said.message!r}"
    return ""


def _is_number(wanted: Expectation, said: Said, compiled: CompiledRule) -> bool:
    if wanted.number is None or said.number is None:
        return wanted.number == said.number
    if isinstance(compiled.rule, LimitRule):
        # As a pass counts: 4.3500000001 dollars are 4.35.
        resource = compiled.rule.resource
        return base_amount(resource, float(wanted.number)) == base_amount(resource, float(said.number))
    return abs(wanted.number - said.number) <= _CLOSE


def _undecided(case: Case, said: Said, others: Mapping[str, Said]) -> str:
    """Why the rule is not what decides: where it lets through, another does not; else another does the same.

    Scores are summed, so none of them decides alone.
    """
    if said.outcome is Outcome.SCORE:
        return ""
    for name, other in others.items():
        if said.lets_through:
            if not other.lets_through:
                return f"{case.rule} is not what decides: {name} says {other}"
        elif _is_as_strict(other, said):
            return f"{case.rule} is not what decides: {name} says {other} too"
    return ""


def _is_as_strict(other: Said, said: Said) -> bool:
    if other.lets_through:
        return False
    if other.number is None or said.number is None:
        return other.number is None
    return other.number <= said.number


def _values(observed: Sequence[Observed]) -> tuple[tuple[str, str], ...]:
    """The parts that were reached with what they came to, each text once."""
    found: dict[str, str] = {}
    for each in observed:
        text = " ".join(each.text.split())
        values = dict.fromkeys(map(_shown, each.answers))
        found.setdefault(text, " | ".join(list(values)[:3]))
    return tuple(list(found.items())[:_MOST_VALUES])


def _shown(answer: Answer) -> str:
    value = answer.value
    if answer.error:
        return f"error: {answer.error}"[:_LONGEST_VALUE]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return plain_number(Decimal(str(value)))
    return f'"{value}"'[:_LONGEST_VALUE] if isinstance(value, str) else str(value)
