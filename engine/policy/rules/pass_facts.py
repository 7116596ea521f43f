"""The facts of one pass that many evaluations share, each taken in by the engine once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from attrs import frozen

from engine.model.environment import Environment
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.model.rule import Rule
from engine.model.snapshot import Snapshot
from engine.policy.cel.port import Bound, CelEngine, Plain
from engine.policy.cel.types import CelType, Scalar
from engine.policy.facts.schema import CLUSTER, NODE_POOL, POD, params_record, windows_record
from engine.policy.facts.values import Facts, cluster_facts, node_pool_facts, params_facts, pod_facts, window_facts
from engine.policy.rules.ruling import TypeAt
from engine.policy.windows import is_open


@frozen
class PoolMarket:
    """A pool as requirement rules see it: ``nodes`` and ``gpus`` that it has, and the types that it can buy."""

    pool: NodePool
    nodes: int
    gpus: int
    types: tuple[TypeAt, ...]


class PassFacts:
    """Of one snapshot. To take a fact in costs more than to evaluate with it."""

    def __init__(
        self,
        engine: CelEngine,
        policy: Policy,
        environment: Environment,
        snapshot: Snapshot,
        markets: Iterable[PoolMarket],
    ) -> None:
        self._engine = engine
        self._policy, self._environment, self._snapshot = policy, environment, snapshot
        self._pools = {each.pool.name: node_pool_facts(each.pool, each.nodes, each.gpus) for each in markets}
        self._bound: dict[tuple[str, str], Bound] = {}
        self._pod: tuple[Pod, Bound] | None = None

    def node_pool(self, pool: str) -> Facts:
        return self._pools[pool]

    @cached_property
    def cluster(self) -> Facts:
        return cluster_facts(self._environment, self._snapshot)

    def bound(self, variables: Iterable[str], rule: Rule, pod: Pod | None, pool: str) -> Mapping[str, Bound]:
        """These variables of a rule, as it would read them: what is a pass's, a pool's or a pod's.

        ``pod`` and ``pool`` may be missing where they are not asked for.
        """
        return {variable: self._bind(variable, rule, pod, pool) for variable in sorted(variables)}

    def _bind(self, variable: str, rule: Rule, pod: Pod | None, pool: str) -> Bound:
        if variable == "pod" and pod is not None:
            if self._pod is None or self._pod[0] is not pod:
                self._pod = (pod, self._engine.bind(POD, pod_facts(pod, self._snapshot.taken_at)))
            return self._pod[1]
        of = {"nodePool": pool, "params": rule.name}.get(variable, "")
        if (variable, of) not in self._bound:
            self._bound[variable, of] = self._engine.bind(*self._typed(variable, rule, pool))
        return self._bound[variable, of]

    def _typed(self, variable: str, rule: Rule, pool: str) -> tuple[CelType, Plain]:
        match variable:
            case "nodePool":
                return NODE_POOL, self._pools[pool]
            case "cluster":
                return CLUSTER, self.cluster
            case "params":
                return params_record(rule.params), params_facts(rule.params)
            case "windows":
                now, windows = self._snapshot.taken_at, self._policy.windows
                opened = {each.name: is_open(each, now) for each in windows}
                return windows_record([each.name for each in windows]), window_facts(opened)
            case "now":
                return Scalar.TIMESTAMP, self._snapshot.taken_at
            case _:
                raise LookupError(f"{rule.name} was asked without the {variable} that it reads")
