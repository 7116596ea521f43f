"""Rules that are checked and ready to be evaluated. They never become part of a Policy, which is a plain value."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from engine.model.diagnostic import Position
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.model.rule import (
    AnyRule,
    DisruptionBudget,
    Expression,
    Guardrail,
    LimitedResource,
    LimitRule,
    RequirementRule,
    RuleKind,
    Selection,
)
from engine.policy.cel.cel_python import portable_problems
from engine.policy.cel.engines import engine_named
from engine.policy.cel.port import Bound, CelEngine, DoesNotCompile, Problem, Program
from engine.policy.cel.types import CelType, Scalar
from engine.policy.facts.schema import variables_for
from engine.policy.findings import Findings
from engine.policy.rules.expressions import Expanded, Expander, params_read
from engine.policy.rules.lints import expression_lints
from engine.policy.rules.unguarded import unguarded_keys

_LONGEST_MESSAGE = 5_120
_BUNDLES_KEPT = 8


@frozen(eq=False)
class CompiledRule:
    """``conditions`` and ``programs`` are by name and by YAML field; ``sources`` lead from offsets back to the file."""

    rule: AnyRule
    conditions: tuple[tuple[str, Program], ...]
    programs: Mapping[str, Program]
    sources: Mapping[str, Expanded]

    def matches_pod(self, pod: Pod) -> bool:
        """Whether ``match`` selects the pod; without a part about pods it selects all of them."""
        match = self.rule.match
        if match.namespaces and pod.key.namespace not in match.namespaces:
            return False
        return all(each.admits(pod.labels.get(each.key)) for each in match.pod_labels)

    def matches_pool(self, pool: NodePool) -> bool:
        """Whether ``match`` selects the pool, by name and by its nodes' labels."""
        return selects(self.rule.match, pool)

    def applies(self, facts: Mapping[str, Bound]) -> bool:
        """Whether all matchConditions hold. One that errs counts as matched: an error never switches a rule off."""
        return all(program.evaluate(facts).value is not False for _, program in self.conditions)

    def condition_error(self, facts: Mapping[str, Bound]) -> str:
        """Which matchCondition errs first, and what it came to; empty where none does."""
        for name, program in self.conditions:
            if error := program.evaluate(facts).error:
                return condition_erred(name, error)
        return ""

    def told(self, facts: Mapping[str, Bound]) -> str:
        """What a person is told: messageExpression's text, or message where that errs, is empty or too long."""
        program = self.programs.get("messageExpression")
        text = program.evaluate(facts).value if program is not None else None
        if isinstance(text, str) and 0 < len(text.encode()) <= _LONGEST_MESSAGE:
            return text
        return self.rule.message


def condition_erred(name: str, error: str) -> str:
    """For people: why a rule may hold where it was not meant to."""
    return f"condition {name} errs and so counts as met: {error}"


def selects(match: Selection, pool: NodePool) -> bool:
    """Whether a rule with this match is about the pool."""
    if match.node_pools and pool.name not in match.node_pools:
        return False
    return all(each.admits(pool.labels.get(each.key)) for each in match.node_pool_labels)


@frozen(eq=False)
class Bundle:
    """All rules of a policy, compiled, each kind in name order."""

    engine: CelEngine
    requirement_rules: tuple[CompiledRule, ...]
    limit_rules: tuple[CompiledRule, ...]
    disruption_budgets: tuple[CompiledRule, ...]
    guardrails: tuple[CompiledRule, ...]


_bundles: OrderedDict[tuple[str, str], tuple[Policy, Bundle]] = OrderedDict()


def bundle_of(policy: Policy) -> Bundle:
    """The policy's rules, compiled once for each policy and engine.

    Raises InvalidInput for rules that do not compile, which a policy that was loaded never holds.
    """
    key = (policy.digest, policy.cel_engine)
    kept = _bundles.get(key)
    # Policies that tests make by hand have no digest of their own.
    if kept is not None and kept[0].rules == policy.rules and kept[0].windows == policy.windows:
        _bundles.move_to_end(key)
        return kept[1]
    findings = Findings()
    compiled = compile_rules(policy.rules, [window.name for window in policy.windows], policy.cel_engine, findings)
    findings.raise_errors()
    bundle = _bundle(compiled, engine_named(policy.cel_engine))
    _bundles[key] = (policy, bundle)
    while len(_bundles) > _BUNDLES_KEPT:
        _bundles.popitem(last=False)
    return bundle


def _bundle(compiled: Sequence[CompiledRule], engine: CelEngine) -> Bundle:
    def of(kind: RuleKind) -> tuple[CompiledRule, ...]:
        return tuple(sorted((each for each in compiled if each.rule.kind is kind), key=lambda each: each.rule.name))

    return Bundle(
        engine,
        of(RuleKind.REQUIREMENT_RULE),
        of(RuleKind.LIMIT_RULE),
        of(RuleKind.DISRUPTION_BUDGET),
        of(RuleKind.GUARDRAIL),
    )


def compile_rules(
    rules: Sequence[AnyRule], windows: Sequence[str], engine: str, findings: Findings
) -> tuple[CompiledRule, ...]:
    """The rules that compile; every problem of every rule goes to ``findings``, at its place.

    ``windows`` are the names of all windows of the calendars.
    """
    compiled = (_Compiling(rule, windows, engine_named(engine), findings).rule() for rule in rules)
    return tuple(each for each in compiled if each is not None)


class _Compiling:
    """One rule on its way."""

    def __init__(self, rule: AnyRule, windows: Sequence[str], engine: CelEngine, findings: Findings) -> None:
        self._rule, self._windows, self._engine, self._findings = rule, windows, engine, findings
        self._is_whole = True
        self._params_read: set[str] = set()
        self._told_of_variables: set[tuple[Position, str]] = set()
        self._expander = Expander(rule.variables, self._tell)

    def rule(self) -> CompiledRule | None:
        """The rule, or None when any part of it does not compile."""
        programs: dict[str, Program] = {}
        sources: dict[str, Expanded] = {}
        conditions: list[tuple[str, Program]] = []
        for part, expression, results in expressions_of(self._rule):
            found = self._compiled(part, expression, results)
            if found is not None:
                sources[part], programs[part] = found
        for condition in self._rule.match_conditions:
            found = self._compiled("matchConditions", condition.expression, (Scalar.BOOL,))
            if found is not None:
                sources[f"matchConditions[{condition.name}]"] = found[0]
                conditions.append((condition.name, found[1]))
        self._tell_unused()
        self._tell_unguarded(sources)
        return CompiledRule(self._rule, tuple(conditions), programs, sources) if self._is_whole else None

    def _compiled(
        self, part: str, expression: Expression, results: tuple[CelType, ...]
    ) -> tuple[Expanded, Program] | None:
        expanded = self._expander.expanded(expression)
        if expanded is None:
            return None
        variables = self._variables(part)
        try:
            program = self._engine.compile(expanded.text, variables, results)
        except DoesNotCompile as refused:
            self._refuse(expanded, part, expression, refused.problems)
            return None
        self._lint(expanded, part, variables, program)
        if self._rule.is_portable:
            for problem in portable_problems(expanded.text, variables):
                hint = problem.hint or "write it with what both engines know, or set portable: false"
                self._refuse(expanded, part, expression, (evolve(problem, hint=hint),))
        return expanded, program

    def _refuse(self, expanded: Expanded, part: str, expression: Expression, problems: Sequence[Problem]) -> None:
        """Tells each problem at its place; what is wrong inside a variable for the first part that reads it."""
        for problem in problems:
            position = expanded.position(problem.offset)
            own = expanded.piece_at(problem.offset).expression is expression
            if not own and (position, problem.rule) in self._told_of_variables:
                continue
            self._told_of_variables |= set() if own else {(position, problem.rule)}
            message = problem.message if own else f"{problem.message}, as {part} reads it"
            self._tell(position, problem.rule, message, self._hint(expanded, problem.offset) or problem.hint)

    def _lint(self, expanded: Expanded, part: str, variables: Mapping[str, CelType], program: Program) -> None:
        for lint in expression_lints(program, part, variables, self._engine):
            position = expanded.position(lint.offset)
            if lint.is_error:
                self._tell(position, lint.rule, lint.message, lint.hint)
            else:
                self._findings.warning(position, lint.rule, lint.message, lint.hint)
        self._params_read |= params_read(expanded.text)

    def _variables(self, part: str) -> Mapping[str, CelType]:
        rule = self._rule
        return variables_for(
            rule.kind,
            part,
            rule.params,
            self._windows,
            time_sensitive=rule.is_time_sensitive,
            grouped=isinstance(rule, LimitRule) and rule.group_by is not None,
        )

    def _hint(self, expanded: Expanded, offset: int) -> str:
        reads_time = expanded.text[offset:].startswith(("now", "windows"))
        if reads_time and isinstance(self._rule, RequirementRule) and not self._rule.is_time_sensitive:
            return "a RequirementRule reads time only with timeSensitive: true"
        return ""

    def _tell_unused(self) -> None:
        """A variable that nobody reads is not checked either, so it may not stay.

        While something else is wrong in the file, nobody can say what would be read.
        """
        if self._findings.has_errors_in(self._rule.position.file):
            return
        for name in self._rule.params:
            if not self._params_read & {name, "*"}:
                message = f"nothing in the rule reads the parameter {name}, so its value has no effect"
                self._findings.warning(self._rule.position, "unused-param", message, f"read it as params.{name}")
        for variable in self._rule.variables:
            if variable.name in self._expander.unused():
                position = variable.expression.position
                message = f"nothing reads the variable {variable.name}"
                self._tell(position, "unused-variable", message, f"read it as variables.{variable.name}, or remove it")

    def _tell_unguarded(self, sources: Mapping[str, Expanded]) -> None:
        for each in unguarded_keys(self._rule, {part: expanded.text for part, expanded in sources.items()}):
            position = sources[each.part].position(each.offset)
            self._findings.warning(position, "unguarded-key", each.message, each.hint)

    def _tell(self, position: Position, rule: str, message: str, hint: str) -> None:
        self._is_whole = False
        self._findings.error(position, rule, message, hint)


def expressions_of(rule: AnyRule) -> Iterator[tuple[str, Expression, tuple[CelType, ...]]]:
    """Each expression of a rule with its YAML field and what it may come to; match conditions and variables apart."""
    parts: list[tuple[str, Expression | None, tuple[CelType, ...]]]
    match rule:
        case RequirementRule():
            parts = [("require", rule.require, (Scalar.BOOL,)), ("prefer", rule.prefer, (Scalar.DOUBLE,))]
        case LimitRule():
            numbers = (Scalar.DOUBLE, Scalar.INT) if rule.resource is LimitedResource.USD_PER_HOUR else (Scalar.INT,)
            parts = [("groupBy", rule.group_by, (Scalar.STRING,)), ("ceiling", rule.ceiling, numbers)]
        case DisruptionBudget():
            parts = [
                ("candidate", rule.candidate, (Scalar.BOOL,)),
                ("budget", rule.budget, (Scalar.INT,)),
                ("maxPerWindow", rule.max_per_window, (Scalar.INT,)),
            ]
        case Guardrail():
            parts = [("expression", rule.expression, (Scalar.BOOL,))]
    parts.append(("messageExpression", rule.message_expression, (Scalar.STRING,)))
    yield from ((part, expression, results) for part, expression, results in parts if expression is not None)
