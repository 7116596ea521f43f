"""The DisruptionBudgets of a policy at one moment: what they say of a pool, and whether a node may go at all.

An error is never taken for an answer. A ``candidate`` that errs keeps its node, a number that errs is 0, and so is one
that counts what the ledger does not know. What only warns or counts is asked as well, and told, and keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cached_property

from attrs import evolve, frozen

from engine.disruption.budgets import PoolStanding
from engine.disruption.machine import Machine
from engine.disruption.said import BudgetSaid, BudgetState
from engine.model.ledger import Disruption
from engine.model.pod import Pod
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import DisruptionBudget, Window
from engine.model.stay import OutsideWindow, RuleKeeps
from engine.policy.cel.port import Bound, CelEngine, Observed
from engine.policy.cel.types import Scalar
from engine.policy.facts.schema import CLUSTER, NODE, NODE_POOL, params_record, windows_record
from engine.policy.facts.values import Facts, node_facts, node_pool_facts, params_facts, window_facts
from engine.policy.rules.compiled import Bundle, CompiledRule
from engine.policy.windows import is_open, next_opening, opening_of

Kept = RuleKeeps | OutsideWindow
PodsOn = Callable[[Machine], Sequence[Pod]]


@frozen
class Gone:
    """Removals by choice by claim name, complete from ``counted_since`` on; None: it is not known what went before."""

    disruptions: Mapping[str, Disruption]
    counted_since: datetime | None


class BudgetRules:
    """``cluster`` are the facts of that name; ``pods_on`` gives every pod on a machine's node that has not finished."""

    def __init__(
        self, bundle: Bundle, windows: Sequence[Window], cluster: Facts, gone: Gone, pods_on: PodsOn, now: datetime
    ) -> None:
        self._bundle = bundle
        self._cluster = cluster
        self._pods_on = pods_on
        self.windows = {window.name: window for window in windows}
        self.gone = gone
        self.now = now
        self._nodes: dict[str, Bound] = {}

    def on(self, standing: PoolStanding) -> tuple[RuleOnPool, ...]:
        """The rules that select the pool, in name order."""
        return tuple(
            RuleOnPool(each, each.rule, standing, self)
            for each in self._bundle.disruption_budgets
            if isinstance(each.rule, DisruptionBudget) and each.matches_pool(standing.pool)
        )

    @property
    def read_the_time(self) -> bool:
        """Whether a rule reads ``now``, and so may say something else at any moment."""
        return self._read("now")

    def _read(self, wanted: str) -> bool:
        """Whether any expression reads a path, something below it, or all of what it is a part of."""
        whole = f"{wanted}."
        read = (f"{path.removesuffix('.*')}." for path in self._paths)
        return any(path.startswith(whole) or whole.startswith(path) for path in read)

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(
            path
            for each in self._bundle.disruption_budgets
            for program in (*(program for _, program in each.conditions), *each.programs.values())
            for path in program.reads
        )

    @property
    def engine(self) -> CelEngine:
        return self._bundle.engine

    @cached_property
    def shared(self) -> Mapping[str, Bound]:
        """What all expressions may read, whatever pool and node they are about."""
        bind = self.engine.bind
        names = sorted(self.windows)
        open_now = window_facts({name: is_open(self.windows[name], self.now) for name in names})
        return {
            "cluster": bind(CLUSTER, self._cluster),
            "windows": bind(windows_record(names), open_now),
            "now": bind(Scalar.TIMESTAMP, self.now),
        }

    def node(self, machine: Machine) -> Bound:
        """The facts of a machine, taken in once for all rules. Raises TypeError or ValueError for one that is odd."""
        name = machine.claim.name
        if name not in self._nodes:
            facts = node_facts(machine.claim, machine.node, self._pods_on(machine), self.now)
            if not self._read("node.pods"):
                # They are most of the work, and what is counted of them is counted already.
                facts["pods"] = []
            self._nodes[name] = self.engine.bind(NODE, facts)
        return self._nodes[name]


class RuleOnPool:
    """One rule's word on one pool."""

    def __init__(self, compiled: CompiledRule, rule: DisruptionBudget, standing: PoolStanding, rules: BudgetRules):
        self.rule = rule
        self._compiled = compiled
        self._standing = standing
        self._rules = rules

    def is_about(self, reason: DisruptionReason) -> bool:
        return reason in (self.rule.reasons or VOLUNTARY_REASONS)

    @cached_property
    def said(self) -> BudgetSaid:
        """Its numbers, whatever reason of its own a node goes for."""
        rule, now = self.rule, self._rules.now
        said = BudgetSaid(
            name=rule.name,
            state=BudgetState.ACTIVE,
            rule=rule.name,
            message=rule.message,
            enforcement=rule.enforcement,
            windows=rule.windows,
        )
        if not self._compiled.applies(self._facts):
            return evolve(said, state=BudgetState.UNASKED)
        windows = [self._rules.windows[name] for name in rule.windows]
        opened = opening_of(windows, now)
        if windows and opened is None:
            shut = evolve(said, opens_at=next_opening(windows, now))
            if not rule.blocks_outside:
                return evolve(shut, state=BudgetState.SHUT)
            return evolve(shut, state=BudgetState.BLOCKING, allowed=0, arithmetic="nothing outside its windows")
        return self._numbers(evolve(said, opened_at=opened))

    def outside_window(self) -> OutsideWindow | None:
        """Why nothing goes at all: the rule's windows are shut, and outside of them it lets nothing go."""
        if self.said.state is not BudgetState.BLOCKING:
            return None
        return OutsideWindow(rule=self.rule.name, windows=self.rule.windows, opens=self.said.opens_at)

    def no_candidate(self, machine: Machine, reason: DisruptionReason) -> RuleKeeps | None:
        """Why the rule does not let this machine go; None also where it says nothing, or nothing of single machines."""
        program = self._compiled.programs.get("candidate")
        if program is None or self.said.state is not BudgetState.ACTIVE:
            return None
        try:
            node = self._rules.node(machine)
        except (TypeError, ValueError) as odd:
            return RuleKeeps(rule=self.rule.name, message=self.rule.message, error=str(odd))
        facts = {**self._facts, "node": node, "reason": self._rules.engine.bind(Scalar.STRING, reason.value)}
        answer = program.evaluate(facts)
        if answer.value is True:
            return None
        error = "" if answer.value is False else answer.error or f"{answer.value!r} is no bool"
        return RuleKeeps(rule=self.rule.name, message=self._compiled.told(facts), error=error)

    def observe(self, machine: Machine, reason: DisruptionReason) -> tuple[Observed, ...]:
        """What the parts of ``candidate`` came to for the machine; nothing where there is no such part. For people."""
        program = self._compiled.programs.get("candidate")
        if program is None:
            return ()
        node, given = self._rules.node(machine), self._rules.engine.bind(Scalar.STRING, reason.value)
        return program.observe({**self._facts, "node": node, "reason": given})[1]

    def _numbers(self, said: BudgetSaid) -> BudgetSaid:
        at_once, why_not = self._number("budget")
        if at_once is not None:
            text = self.rule.budget.text.strip() if self.rule.budget is not None else ""
            said = evolve(said, allowed=at_once, arithmetic=f"{text} = {at_once}" if text != str(at_once) else text)
        most, why_not_so_many = self._number("maxPerWindow")
        if most is not None and said.opened_at is not None:
            since, known_since = said.opened_at, self._rules.gone.counted_since
            if known_since is None or known_since > since:
                # An error of its own: until the window opens anew, nobody knows how many have gone.
                why_not_so_many = why_not_so_many or f"how many have gone since {since:%Y-%m-%d %H:%M} UTC is not known"
            said = evolve(said, per_opening=most, begun=self._begun_since(since))
        error = why_not or why_not_so_many
        return evolve(said, allowed=0, error=error) if error else said

    def _number(self, part: str) -> tuple[int | None, str]:
        """A part's number, at least 0, and why it is none; None where the rule has no such part."""
        program = self._compiled.programs.get(part)
        if program is None:
            return None, ""
        answer = program.evaluate(self._facts)
        if isinstance(answer.value, int) and not isinstance(answer.value, bool):
            return max(answer.value, 0), ""
        return 0, f"{part}: {answer.error or f'{answer.value!r} is no whole number'}"

    def _begun_since(self, moment: datetime) -> frozenset[str]:
        """The claims of the pool that went since then for a reason of the rule, or for which anything was done."""
        return frozenset(
            claim
            for claim, each in self._rules.gone.disruptions.items()
            if each.node_pool == self._standing.pool.name and self.is_about(each.reason) and each.acted_at >= moment
        )

    @cached_property
    def _facts(self) -> Mapping[str, Bound]:
        bind = self._rules.engine.bind
        standing = self._standing
        pool = node_pool_facts(standing.pool, nodes=standing.base, gpus=standing.gpus)
        params = params_facts(self.rule.params)
        return {
            **self._rules.shared,
            "nodePool": bind(NODE_POOL, pool),
            "params": bind(params_record(self.rule.params), params),
        }
