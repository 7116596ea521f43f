"""One requirement rule, ready to be asked about many pods and types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress

from attrs import frozen

from engine.model.rule import Enforcement, RequirementRule
from engine.policy.cel.port import Answer, Bound, Program
from engine.policy.rules.class_keys import ReadPath, paths_of_match, read_paths
from engine.policy.rules.compiled import CompiledRule, condition_erred
from engine.policy.rules.ruling import TypeAt

TYPES = "instanceType"
_TIME = ("now", "windows")
_MESSAGE = "messageExpression"


@frozen(eq=False)
class Opinion:
    """What one rule says of the types that it was asked about, for pods that it cannot tell apart.

    ``noes`` are types that a ``require`` does not let through: with what it came to where it, or a condition that so
    counts as met, erred; else with an empty text. ``likes`` are weighted preferences. ``errors`` are of either kind.
    """

    noes: Mapping[TypeAt, str]
    likes: Mapping[TypeAt, float]
    errors: Mapping[TypeAt, str]


@frozen(eq=False)
class AskedRule:
    """``rule`` is the value, ``compiled`` its programs."""

    rule: RequirementRule
    compiled: CompiledRule

    @cached_property
    def main(self) -> Program:
        return self.compiled.programs["require" if self.rule.require is not None else "prefer"]

    @cached_property
    def reads(self) -> frozenset[ReadPath]:
        """What decides its answers; a message decides nothing."""
        programs = (*(program for _, program in self.compiled.conditions), self.main)
        return frozenset(path for program in programs for path in read_paths(program.reads))

    @cached_property
    def pod_paths(self) -> frozenset[ReadPath]:
        """What it can tell pods apart by, its match included."""
        return frozenset(path for path in self.reads if path.variable == "pod") | paths_of_match(self.rule.match)

    def paths(self, variable: str) -> Sequence[ReadPath]:
        return sorted(path for path in self.reads if path.variable == variable)

    @cached_property
    def variables(self) -> frozenset[str]:
        """The variables that it reads to decide."""
        return frozenset(path.variable for path in self.reads)

    @property
    def has_message_of_its_own(self) -> bool:
        """Whether it has more to say than its message, which is the same for everybody."""
        return _MESSAGE in self.compiled.programs

    @cached_property
    def _told(self) -> frozenset[ReadPath]:
        return read_paths(self.compiled.programs[_MESSAGE].reads) if self.has_message_of_its_own else frozenset()

    @cached_property
    def told_variables(self) -> frozenset[str]:
        """The variables that it reads to decide or to tell."""
        return self.variables | frozenset(path.variable for path in self._told)

    @cached_property
    def told_pod_paths(self) -> frozenset[ReadPath]:
        """What its message can tell pods apart by."""
        return frozenset(path for path in self._told if path.variable == "pod")

    @property
    def reads_time(self) -> bool:
        return not self.variables.isdisjoint(_TIME)

    @property
    def acts(self) -> bool:
        return self.rule.enforcement is Enforcement.DENY

    def opinion(self, facts: Mapping[str, Bound], types: Sequence[TypeAt], bound: tuple[Bound, ...]) -> Opinion:
        """What it says of each type, all other facts being the same; ``bound`` are the types as facts.

        Where a condition is false it says nothing; one that errs counts as met, and is told where the type is barred.
        """
        doubtful: dict[TypeAt, str] = {}
        for name, condition in self.compiled.conditions:
            asked = _each(condition, facts, bound)
            erred = {each: answer.error for each, answer in zip(types, asked, strict=True) if answer.error}
            doubtful = {each: condition_erred(name, error) for each, error in erred.items()} | doubtful
            met = [answer.error or answer.value is not False for answer in asked]
            # An engine takes the very same tuple in once.
            if not all(met):
                types, bound = tuple(compress(types, met)), tuple(compress(bound, met))
        answers = dict(zip(types, _each(self.main, facts, bound), strict=True))
        if self.rule.require is not None:
            noes = {
                each: _why_not(answer) or doubtful.get(each, "")
                for each, answer in answers.items()
                if not _is_yes(answer)
            }
            return Opinion(noes, {}, {each: error for each, error in noes.items() if error})
        scores = {each: _score(answer) for each, answer in answers.items()}
        return Opinion(
            noes={},
            likes={each: score * self.rule.weight for each, score in scores.items() if not isinstance(score, str)},
            errors={each: score for each, score in scores.items() if isinstance(score, str)},
        )


def _each(program: Program, facts: Mapping[str, Bound], types: Sequence[Bound]) -> Sequence[Answer]:
    if not types:
        return ()
    if any(path.variable == TYPES for path in read_paths(program.reads)):
        return program.evaluate_each(facts, TYPES, types)
    return [program.evaluate(facts)] * len(types)


def _is_yes(answer: Answer) -> bool:
    return answer.value is True and not answer.error


def _why_not(answer: Answer) -> str:
    """What a ``require`` that is not true came to: empty where it is false, and an error where it is anything else."""
    if answer.error:
        return answer.error
    return "" if answer.value is False else f"it came to {answer.value!r}, which is neither true nor false"


def _score(answer: Answer) -> float | str:
    """A ``prefer`` from 0.0 to 1.0, or what is wrong with it."""
    if answer.error:
        return answer.error
    value = answer.value
    if isinstance(value, float) and 0.0 <= value <= 1.0:
        return value
    return f"it came to {value!r}, which is not between 0.0 and 1.0"
