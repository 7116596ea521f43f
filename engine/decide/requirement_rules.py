"""Requirement rules in a pass: who is asked about what, and what is told of it afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Unplaced, Verdict, VerdictOutcome
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import NODES
from engine.model.refusal import PoolRefusal, RuleForbids
from engine.model.rule import RequirementRule
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import gpu_count
from engine.policy.rules.compiled import bundle_of
from engine.policy.rules.eligibility import Eligibility, RuleEffect
from engine.policy.rules.pass_facts import PoolMarket
from engine.policy.rules.ruling import Rulings, TypeAt
from engine.scheduling.problem import ExistingNode, PoolState


class RequirementRules:
    """Asks nothing, and costs nothing, where there are no such rules or no pod waits."""

    def __init__(self, policy: Policy, catalog: Catalog, environment: Environment, snapshot: Snapshot) -> None:
        self._policy, self._catalog = policy, catalog
        self._environment, self._snapshot = environment, snapshot
        self._has_rules = any(isinstance(rule, RequirementRule) for rule in policy.rules)
        self._eligibility: Eligibility | None = None

    def rulings(
        self, pods: Sequence[Pod], states: Iterable[PoolState], existing: Iterable[ExistingNode]
    ) -> Mapping[PodKey, Rulings]:
        """What the rules say of pods that look for a node. The pools are those of the first call."""
        if not (self._has_rules and pods):
            return {}
        if self._eligibility is None:
            self._eligibility = eligibility(
                self._policy, self._catalog, self._environment, self._snapshot, states, existing
            )
        return self._eligibility.rulings(pods)

    def told(self, unplaced: Iterable[Unplaced], pods: Iterable[Pod]) -> tuple[Unplaced, ...]:
        """The same answers, with the message that a rule has for each pod in place of the one that it has for all."""
        answers = tuple(unplaced)
        if self._eligibility is None or not any(_forbids(each) for answer in answers for each in answer.refusals):
            return answers
        by_key = {pod.key: pod for pod in pods}
        return tuple(
            evolve(answer, refusals=tuple(self._with_message(each, by_key[answer.pod]) for each in answer.refusals))
            for answer in answers
        )

    def verdicts(self, pods: Iterable[Pod]) -> tuple[Verdict, ...]:
        """Of rules that only warn or count, what they would do to these pods; of all, where they erred."""
        return tuple(map(_verdict, self._eligibility.effects(pods))) if self._eligibility is not None else ()

    def _with_message(self, each: PoolRefusal, pod: Pod) -> PoolRefusal:
        if self._eligibility is None or not isinstance(each.refusal, RuleForbids):
            return each
        instance_type, _, capacity_type = each.refusal.example.partition("/")
        message = self._eligibility.message(each.refusal.rule, pod, each.node_pool, (instance_type, capacity_type))
        return evolve(each, refusal=evolve(each.refusal, message=message))


def eligibility(
    policy: Policy,
    catalog: Catalog,
    environment: Environment,
    snapshot: Snapshot,
    states: Iterable[PoolState],
    existing: Iterable[ExistingNode] = (),
) -> Eligibility:
    """A policy's requirement rules at one moment, asked about what pools can buy and what is on its way to them."""
    coming: dict[str, set[TypeAt]] = {}
    for node in existing:
        if node.node is None:
            type_at = (node.labels.get(keys.INSTANCE_TYPE, ""), node.labels.get(keys.CAPACITY_TYPE, ""))
            coming.setdefault(node.labels.get(keys.NODE_POOL, ""), set()).add(type_at)
    markets = [_market(state, coming.get(state.pool.name, set())) for state in states if not state.pool.is_static]
    return Eligibility(bundle_of(policy), policy, catalog, environment, snapshot, markets)


def _market(state: PoolState, coming: set[TypeAt]) -> PoolMarket:
    sold = {(each.instance_type.name, each.offering.capacity_type) for each in state.options}
    return PoolMarket(
        pool=state.pool,
        nodes=state.used.amount(NODES),
        gpus=gpu_count(state.used),
        types=tuple(sorted(sold | coming)),
    )


def _forbids(each: PoolRefusal) -> bool:
    return isinstance(each.refusal, RuleForbids)


def _verdict(effect: RuleEffect) -> Verdict:
    rule = effect.rule
    # A preference keeps nobody from anything; where it errs it only scores nothing.
    bars = rule.require is not None
    return Verdict(
        rule=rule.name,
        kind=rule.kind,
        enforcement=rule.enforcement,
        outcome=VerdictOutcome.ERROR if effect.errors else VerdictOutcome.VIOLATED,
        message=rule.message,
        error=effect.sample,
        pods=effect.pods if bars else 0,
        types=effect.types if bars else 0,
    )
