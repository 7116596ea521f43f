"""The first engine: Google's CEL through cel-expr-python. It checks types, and evaluates what it has checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from attrs import evolve

from engine.policy.cel.answers import (
    CEL_TYPES,
    FALSE,
    TRUE,
    read_answer,
    result_problem,
    result_types,
    told,
)
from engine.policy.cel.batch import Batch, batch_of
from engine.policy.cel.cel_expr_parts import LibraryParts
from engine.policy.cel.checked_messages import read_checked
from engine.policy.cel.checker_messages import worded
from engine.policy.cel.environment import Environment
from engine.policy.cel.messages import RecordMessages
from engine.policy.cel.outcomes import LOOP_STEPS, error_pointer, observed_parts
from engine.policy.cel.port import Answer, Bound, DoesNotCompile, Observed, Plain
from engine.policy.cel.reads import reads_of
from engine.policy.cel.source_tree import Node, source_tree
from engine.policy.cel.types import CelType, Scalar
from engine.policy.cel.written import written_problems


class CelExprEngine:
    """Keeps one environment for each set of variables, and one message type for each Record."""

    name = "cel-expr"

    def __init__(self) -> None:
        self.messages = RecordMessages()
        self._environments: dict[frozenset[tuple[str, CelType]], Environment] = {}

    def compile(
        self, source: str, variables: Mapping[str, CelType], result: CelType | tuple[CelType, ...]
    ) -> CelExprProgram:
        """Raises DoesNotCompile with every problem; TypeError for a result that is no Scalar."""
        wanted = result_types(result)
        environment = self.environment(variables)
        expression = environment.compile(source)
        checked = expression.return_type()
        program = read_checked(expression.serialize())
        tree = source_tree(source, program)
        parts = LibraryParts(environment.library, program, self.messages.anywhere, told)
        problems = written_problems(tree, variables, lambda node: parts.outcome(node, {}))
        of_type = [each for each in wanted if checked == CEL_TYPES[each]]
        if not of_type:
            problems = (*problems, result_problem(worded(checked.name(), self.messages.records).lower(), wanted))
        if problems:
            raise DoesNotCompile(problems)
        return CelExprProgram(source, of_type[0], environment, expression, tree, parts)

    def bind(self, type_: CelType, plain: Plain) -> Bound:
        """A protobuf message for a record; see `RecordMessages`."""
        bound: Bound = self.messages.intakes.take(type_, plain)
        return bound

    def environment(self, variables: Mapping[str, CelType]) -> Environment:
        """The environment in which these variables are declared."""
        key = frozenset(variables.items())
        if key not in self._environments:
            self._environments[key] = Environment(MappingProxyType(dict(variables)), self.messages)
        return self._environments[key]


class CelExprProgram:
    """A checked expression of cel-expr."""

    def __init__(
        self,
        source: str,
        result: Scalar,
        environment: Environment,
        expression: Any,
        tree: Node,
        parts: LibraryParts,
    ) -> None:
        self.source = source
        self.result: CelType = result
        self.reads = reads_of(tree, environment.variables)
        self._expected = result
        self._environment = environment
        self._expression = expression
        self._tree = tree
        self._parts = parts
        self._batches: dict[str, Batch | None] = {}

    def evaluate(self, facts: Mapping[str, Bound]) -> Answer:
        """See `port.Program`; 3 to 6 microseconds where the facts are the ones of the evaluation before."""
        answer = self._answer(facts)
        return self._pointed(answer, facts) if answer.error else answer

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> tuple[Answer, ...]:
        """See `port.Program`. All items go into one evaluation; where it errs, into two halves, down to single ones.

        Where an error stands is looked up for the first item with each error only; the others get the same place.
        """
        if not any(path == variable or path.startswith(f"{variable}.") for path in self.reads):
            return (self.evaluate({**facts, variable: items[0]}),) * len(items) if items else ()
        if variable not in self._batches:
            self._batches[variable] = self._batch(variable)
        answers = self._each(self._batches[variable], facts, variable, items)
        pointed: dict[str, Answer] = {}
        for item, answer in zip(items, answers, strict=True):
            if answer.error and answer.error not in pointed:
                pointed[answer.error] = self._pointed(answer, {**facts, variable: item})
        return tuple(pointed.get(each.error, each) for each in answers) if pointed else answers

    def observe(self, facts: Mapping[str, Bound]) -> tuple[Answer, tuple[Observed, ...]]:
        """See `port.Program`; loops are looked into for their first turns, see `outcomes.MOST_TURNS`."""
        return self.evaluate(facts), observed_parts(self._tree, self.source, self._parts.on(facts))

    def _each(
        self, batch: Batch | None, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]
    ) -> tuple[Answer, ...]:
        if batch is None or len(items) <= 1:
            return tuple(self._answer({**facts, variable: item}) for item in items)
        if len(items) < LOOP_STEPS and (answers := batch.answers(facts, items, self._expected)) is not None:
            return answers
        half = len(items) // 2
        return (
            *self._each(batch, facts, variable, items[:half]),
            *self._each(batch, facts, variable, items[half:]),
        )

    def _batch(self, variable: str) -> Batch | None:
        return batch_of(self.source, self.reads, self._environment, variable)

    def _pointed(self, answer: Answer, facts: Mapping[str, Bound]) -> Answer:
        return evolve(answer, error_at=error_pointer(self._tree, self._parts.on(facts)))

    def _answer(self, facts: Mapping[str, Bound]) -> Answer:
        try:
            found = self._expression.eval(self._environment.activation(facts))
        except RuntimeError as error:
            return Answer(error=told(str(error)))
        plain = found.plain_value()
        if plain is True:
            return TRUE
        if plain is False:
            return FALSE
        return read_answer(found, plain, self._expected)
