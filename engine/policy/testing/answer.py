"""What one rule says of the facts of one case, asked through the programs that a pass runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from attrs import frozen

from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import NOTHING
from engine.model.rule import DisruptionBudget, Guardrail, LimitRule, RequirementRule
from engine.policy.cel.port import Answer, Bound, CelEngine, Observed, Plain, Program
from engine.policy.cel.types import CelType
from engine.policy.facts.schema import RULE_PARTS, variables_for
from engine.policy.rules.asked import TYPES, AskedRule
from engine.policy.rules.ceilings import AskedLimit, base_amount
from engine.policy.rules.compiled import CompiledRule
from engine.policy.rules.parts import VOLUNTARY
from engine.policy.testing.cases import Outcome
from engine.policy.testing.given import BadFacts, Given

_LONGEST_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_ASKED = ("case", "")

# Takes the key of an expression among the rule's sources, and what its parts came to.
Note = Callable[[str, tuple[Observed, ...]], None]


@frozen
class Said:
    """What a rule says. ``because`` is an error, or why the rule was not asked; ``message`` is what it would tell."""

    outcome: Outcome
    number: Decimal | None = None
    because: str = ""
    message: str = ""
    observed: tuple[Observed, ...] = ()

    @property
    def lets_through(self) -> bool:
        return self.outcome in (Outcome.ELIGIBLE, Outcome.CANDIDATE, Outcome.PASSES, Outcome.NOT_MATCHED)

    def __str__(self) -> str:
        return self.outcome.value if self.number is None else f"{self.outcome.value} {plain_number(self.number)}"


def plain_number(number: Decimal) -> str:
    """Without an exponent, and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def said_of(
    compiled: CompiledRule, given: Given, wanted: Outcome, engine: CelEngine, windows: Sequence[str], note: Note
) -> Said:
    """What the rule says; ``wanted`` tells which of a budget's two questions is asked. Raises BadFacts."""
    return _Asking(compiled, given, engine, windows, note).said(wanted)


class _Asking:
    def __init__(
        self, compiled: CompiledRule, given: Given, engine: CelEngine, windows: Sequence[str], note: Note
    ) -> None:
        self._compiled, self._rule, self._given = compiled, compiled.rule, given
        self._engine, self._note = engine, note
        self._types = _variables_of(compiled, windows)
        self._observed: tuple[Observed, ...] = ()
        self._facts: dict[str, Bound] = {name: self._bound(name) for name in self._types if name != "group"}

    def said(self, wanted: Outcome) -> Said:
        unmatched = self._unmatched()
        if unmatched:
            return Said(Outcome.NOT_MATCHED, because=unmatched)
        group_error = self._set_group()
        for name, program in self._compiled.conditions:
            self._asked(f"matchConditions[{name}]", program)
        if group_error:
            said = Said(Outcome.ERROR, because=f"groupBy: {group_error}")
        elif self._compiled.applies(self._facts):
            said = self._main(wanted)
        else:
            return Said(Outcome.NOT_MATCHED, because="one of its matchConditions is false", observed=self._observed)
        return Said(said.outcome, said.number, said.because, self._compiled.told(self._facts), self._observed)

    def _main(self, wanted: Outcome) -> Said:
        match self._rule:
            case RequirementRule():
                return self._requirement(self._rule)
            case LimitRule():
                return self._ceiling(self._rule)
            case DisruptionBudget():
                return self._budget(self._rule, wanted)
            case Guardrail():
                return self._truth("expression", Outcome.PASSES, Outcome.BLOCKS)

    def _requirement(self, rule: RequirementRule) -> Said:
        part = "require" if rule.require is not None else "prefer"
        answer = self._asked(part, self._compiled.programs[part])
        # What a pass makes of the answer, asked in the way of a pass.
        opinion = AskedRule(rule, self._compiled).opinion(self._facts, (_ASKED,), (self._facts[TYPES],))
        if opinion.errors:
            return Said(Outcome.ERROR, because=opinion.errors[_ASKED])
        if part == "prefer":
            return Said(Outcome.SCORE, Decimal(str(answer.value)))
        return Said(Outcome.EXCLUDED if _ASKED in opinion.noes else Outcome.ELIGIBLE)

    def _ceiling(self, rule: LimitRule) -> Said:
        answer = self._asked("ceiling", self._compiled.programs["ceiling"])
        amount = base_amount(rule.resource, answer.value)
        error = answer.error or amount.error
        if error:
            return Said(Outcome.ERROR, because=error)
        # Less than nothing is nothing.
        return Said(Outcome.CEILING, max(Decimal(str(answer.value)), Decimal(0)))

    def _budget(self, rule: DisruptionBudget, wanted: Outcome) -> Said:
        if rule.windows and self._given.open_windows.isdisjoint(rule.windows):
            shut = f"none of its windows is open: {', '.join(rule.windows)}"
            if not rule.blocks_outside:
                return Said(Outcome.NOT_MATCHED, because=shut)
            blocked = Said(Outcome.ALLOWED, Decimal(0)) if wanted is Outcome.ALLOWED else Said(Outcome.KEPT)
            return Said(blocked.outcome, blocked.number, because=shut)
        candidate, numbers = self._candidate(rule), self._numbers()
        if wanted is Outcome.ALLOWED:
            return numbers or self._without("budget or maxPerWindow")
        if wanted in (Outcome.CANDIDATE, Outcome.KEPT):
            return candidate or self._without("candidate")
        every = [each for each in (candidate, numbers) if each is not None]
        return next(
            (each for each in every if each.outcome is Outcome.ERROR), every[0] if every else Said(Outcome.CANDIDATE)
        )

    def _without(self, part: str) -> Said:
        return Said(Outcome.NOT_MATCHED, because=f"it has no {part} to ask")

    def _candidate(self, rule: DisruptionBudget) -> Said | None:
        """Without an expression its windows alone say so, where it has any."""
        if rule.candidate is None:
            has_numbers = rule.budget is not None or rule.max_per_window is not None
            told = "it has no candidate, and allowed N asks how many may go" if has_numbers else ""
            return Said(Outcome.CANDIDATE, because=told) if rule.windows else None
        return self._truth("candidate", Outcome.CANDIDATE, Outcome.KEPT)

    def _numbers(self) -> Said | None:
        """What may go at once, and in one opening in which nothing has gone: the least of the two."""
        least: Said | None = None
        for part in ("budget", "maxPerWindow"):
            if part in self._compiled.programs:
                answer = self._asked(part, self._compiled.programs[part])
                if not isinstance(answer.value, int) or isinstance(answer.value, bool):
                    return Said(Outcome.ERROR, because=f"{part}: {answer.error or 'it is no whole number'}")
                allowed = Decimal(max(answer.value, 0))
                if least is None or least.number is None or allowed < least.number:
                    least = Said(Outcome.ALLOWED, allowed)
        return least

    def _truth(self, part: str, if_true: Outcome, if_false: Outcome) -> Said:
        answer = self._asked(part, self._compiled.programs[part])
        if answer.value is True:
            return Said(if_true)
        if answer.value is False:
            return Said(if_false)
        return Said(Outcome.ERROR, because=answer.error or f"it came to {answer.value!r}")

    def _unmatched(self) -> str:
        """Why ``match`` does not select what the case is about; empty where it does."""
        by_pod, by_pool = _matched_by(self._compiled)
        if by_pool and not self._compiled.matches_pool(self._given.matched_pool):
            named = self._rule.match.node_pools
            hint = f"; give nodePool: {{use: {named[0]}}}" if named and not self._given.says("nodePool") else ""
            return f"match does not select the pool {self._given.matched_pool.name}{hint}"
        if isinstance(self._rule, DisruptionBudget) and self._given.reason not in _reasons(self._rule):
            return f"it is not about the reason {self._given.reason}"
        if by_pod:
            pod = self._pod()
            if not self._compiled.matches_pod(pod):
                told = ", ".join(f"{key}={value}" for key, value in sorted(pod.labels.items()))
                return f"match does not select the pod {pod.key} with {f'the labels {told}' if told else 'no labels'}"
        return ""

    def _pod(self) -> Pod:
        facts = self._given.plain("pod")
        if not isinstance(facts, Mapping):
            raise TypeError(f"a pod is {facts!r}")
        labels = facts["labels"]
        told = {str(key): str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {}
        key = PodKey(str(facts["namespace"]), str(facts["name"]))
        return Pod(key=key, placing=Placing(requests=NOTHING), created_at=_LONGEST_AGO, labels=told)

    def _set_group(self) -> str:
        """The group that a limit rule is asked about; what its ``groupBy`` erred with, else an empty text."""
        if "group" not in self._types:
            return ""
        program = self._compiled.programs.get("groupBy")
        group: Plain = self._given.node_pool["name"]
        error = ""
        if self._given.says("group"):
            group = self._given.plain("group")
        elif program is not None:
            answer = self._asked("groupBy", program)
            group, error = ("", answer.error) if answer.error else (str(answer.value), "")
        self._facts["group"] = self._engine.bind(self._types["group"], group)
        return error

    def _asked(self, part: str, program: Program) -> Answer:
        answer, observed = program.observe(self._facts)
        self._note(part, observed)
        self._observed += observed
        return answer

    def _bound(self, variable: str) -> Bound:
        plain = self._given.plain(variable)
        try:
            return self._engine.bind(self._types[variable], plain)
        except (TypeError, ValueError, OverflowError) as odd:
            place = self._given.place_of(variable)
            raise BadFacts([(place, "bad-fact", f"{variable} holds what no fact can be: {odd}", "")]) from None


def _variables_of(compiled: CompiledRule, windows: Sequence[str]) -> Mapping[str, CelType]:
    """All that any part of the rule may read."""
    rule = compiled.rule
    found: dict[str, CelType] = {}
    for part in RULE_PARTS[rule.kind]:
        if part.name in compiled.programs or part.name == "matchConditions":
            found |= variables_for(
                rule.kind,
                part.name,
                rule.params,
                windows,
                time_sensitive=rule.is_time_sensitive,
                grouped=isinstance(rule, LimitRule) and rule.group_by is not None,
            )
    return found


def readable(compiled: CompiledRule, windows: Sequence[str]) -> frozenset[str]:
    """What a case may give for the rule: what it reads, and what its ``match`` looks at."""
    by_pod, by_pool = _matched_by(compiled)
    of_match = {name for name, is_asked in (("pod", by_pod), ("nodePool", by_pool)) if is_asked}
    of_budgets = {"windows", "now", "reason"} if isinstance(compiled.rule, DisruptionBudget) else set()
    return frozenset(_variables_of(compiled, windows)) | of_match | of_budgets


def _reasons(rule: DisruptionBudget) -> Sequence[str]:
    return [each.value for each in rule.reasons or VOLUNTARY]


def _matched_by(compiled: CompiledRule) -> tuple[bool, bool]:
    """Whether the rule's match is about a pod, and about a pool."""
    match compiled.rule:
        case RequirementRule():
            return True, True
        case LimitRule() as rule:
            asked = AskedLimit(rule, compiled)
            return asked.is_of_pods, asked.is_of_some_pools
        case DisruptionBudget():
            return False, True
        case _:
            return False, False
