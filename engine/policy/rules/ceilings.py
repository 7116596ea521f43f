"""What limit rules come to: the group that a pool or a pod counts in, and a group's ceiling as a number.

An error is never taken for a number, nor for a group: who asks has to hold still where there is one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Iterable, Mapping
from decimal import ROUND_FLOOR, Decimal
from functools import cached_property

from attrs import frozen

from engine.model.environment import Environment
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.model.rule import LimitedResource, LimitRule
from engine.model.snapshot import Snapshot
from engine.policy.cel.port import Answer, Bound, Observed, Program
from engine.policy.cel.types import Scalar
from engine.policy.rules.class_keys import PodSorter, ReadPath, paths_of_match, read_paths
from engine.policy.rules.compiled import Bundle, CompiledRule
from engine.policy.rules.pass_facts import PassFacts, PoolMarket

_IN_BASE_UNITS = {LimitedResource.CPU: 1000, LimitedResource.USD_PER_HOUR: 1_000_000}


@frozen
class Group:
    """What ``groupBy`` came to. Where it erred, ``name`` is empty and ``error`` says how."""

    name: str
    error: str = ""


@frozen
class Amount:
    """A ceiling in base units, or why there is none: an error."""

    limit: int
    error: str = ""


@frozen
class LimitPart:
    """An expression of a limit rule, by its YAML field: what it and its parts came to."""

    name: str
    answer: Answer
    observed: tuple[Observed, ...]


@frozen(eq=False)
class AskedLimit:
    """``rule`` is the value, ``compiled`` its programs."""

    rule: LimitRule
    compiled: CompiledRule

    @property
    def group_by(self) -> Program | None:
        return self.compiled.programs.get("groupBy")

    @cached_property
    def grouped_by(self) -> frozenset[str]:
        """The variables that ``groupBy`` reads."""
        return _variables(self.group_by) if self.group_by is not None else frozenset()

    @property
    def is_of_pods(self) -> bool:
        """Whether it counts pods, and not all that pools have."""
        match = self.rule.match
        return "pod" in self.grouped_by or bool(match.namespaces or match.pod_labels)

    @property
    def is_of_some_pools(self) -> bool:
        """Whether a pod counts by the pool that it is in: capacity outside of the known pools is none of it."""
        match = self.rule.match
        by_pool = self.group_by is None or "nodePool" in self.grouped_by
        return by_pool or bool(match.node_pools or match.node_pool_labels)


class LimitRules:
    """One pass's limit rules. Pure: what is remembered changes no answer."""

    def __init__(
        self,
        bundle: Bundle,
        policy: Policy,
        environment: Environment,
        snapshot: Snapshot,
        markets: Iterable[PoolMarket],
    ) -> None:
        """``markets`` are all pools."""
        self.asked = [
            AskedLimit(compiled.rule, compiled)
            for compiled in bundle.limit_rules
            if isinstance(compiled.rule, LimitRule)
        ]
        self._engine = bundle.engine
        self._facts = PassFacts(bundle.engine, policy, environment, snapshot, markets)
        self._groups: dict[Hashable, Group | None] = {}
        self._sorters = {each.rule.name: PodSorter(_pod_paths(each), snapshot.taken_at) for each in self.asked}

    def group_of_pool(self, asked: AskedLimit, pool: NodePool) -> Group | None:
        """The group that all of a pool counts in; None: the rule is not about the pool."""
        if not asked.compiled.matches_pool(pool):
            return None
        return self._group(asked, None, pool.name)

    def group_of_pod(self, asked: AskedLimit, pod: Pod, pool: NodePool | None) -> Group | None:
        """The group that a pod counts in on the nodes of a pool, None being no pool that is known."""
        if asked.is_of_some_pools and (pool is None or not asked.compiled.matches_pool(pool)):
            return None
        at = pool.name if pool is not None and asked.is_of_some_pools else ""
        key = (asked.rule.name, at, self._sorters[asked.rule.name].key(pod))
        if key not in self._groups:
            self._groups[key] = self._group(asked, pod, at) if asked.compiled.matches_pod(pod) else None
        return self._groups[key]

    def ceiling(self, asked: AskedLimit, group: Group, pool: str) -> Amount | None:
        """The ceiling of a group; ``pool`` counts where there is no ``groupBy``. None: a condition is not met."""
        if group.error:
            return Amount(0, group.error)
        programs = (asked.compiled.programs["ceiling"], *(program for _, program in asked.compiled.conditions))
        variables = frozenset(variable for program in programs for variable in _variables(program))
        facts = self._bound(asked, variables, group.name, pool)
        if not asked.compiled.applies(facts):
            return None
        answer = programs[0].evaluate(facts)
        return Amount(0, answer.error) if answer.error else base_amount(asked.rule.resource, answer.value)

    def told(self, asked: AskedLimit, group: str, pool: str) -> str:
        """What the rule has to say of a group."""
        program = asked.compiled.programs.get("messageExpression")
        if program is None:
            return asked.rule.message
        return asked.compiled.told(self._bound(asked, _variables(program), group, pool))

    def observe(self, asked: AskedLimit, pod: Pod, pool: str) -> tuple[LimitPart, ...]:
        """What ``groupBy`` and then ``ceiling`` come to for a pod in a pool, part by part. Slow: for people.

        Where ``groupBy`` errs there is no group, and no ceiling to ask for.
        """
        at = pool if asked.is_of_some_pools or not asked.is_of_pods else ""
        group, told = pool, []
        if asked.group_by is not None:
            facts = self._facts.bound(asked.grouped_by, asked.rule, pod if asked.is_of_pods else None, at)
            answer, observed = asked.group_by.observe(facts)
            told.append(LimitPart("groupBy", answer, observed))
            if not isinstance(answer.value, str):
                return tuple(told)
            group = answer.value
        program = asked.compiled.programs["ceiling"]
        told.append(LimitPart("ceiling", *program.observe(self._bound(asked, _variables(program), group, at))))
        return tuple(told)

    def _group(self, asked: AskedLimit, pod: Pod | None, pool: str) -> Group:
        if asked.group_by is None:
            return Group(pool)
        answer = asked.group_by.evaluate(self._facts.bound(asked.grouped_by, asked.rule, pod, pool))
        if answer.error or not isinstance(answer.value, str):
            return Group("", answer.error or f"groupBy came to {answer.value!r}, which is no text")
        return Group(answer.value)

    def _bound(self, asked: AskedLimit, variables: Iterable[str], group: str, pool: str) -> Mapping[str, Bound]:
        facts = dict(self._facts.bound((each for each in variables if each != "group"), asked.rule, None, pool))
        return {**facts, "group": self._engine.bind(Scalar.STRING, group)}


def base_amount(resource: LimitedResource, value: object) -> Amount:
    """A ceiling as a rule gives it, in base units: less than nothing is nothing, infinity is an error, and more than 64
    bits hold is no more than that."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return Amount(0, f"it came to {value!r}, which is no amount")
    # A price is a decimal that binary cannot hold: 4.35 means 4350000 millionths.
    exact = Decimal(str(value)) * _IN_BASE_UNITS.get(resource, 1)
    return Amount(min(max(0, int(exact.to_integral_value(ROUND_FLOOR))), sys.maxsize))


def _variables(program: Program) -> frozenset[str]:
    return frozenset(path.variable for path in read_paths(program.reads))


def _pod_paths(asked: AskedLimit) -> Iterable[ReadPath]:
    read = read_paths(asked.group_by.reads) if asked.group_by is not None else frozenset()
    return {path for path in read if path.variable == "pod"} | paths_of_match(asked.rule.match)
