"""What a case says of a budget is what a pass says of the same node at the same moment."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve

from engine.disruption.budget_rules import BudgetRules, RuleOnPool
from engine.disruption.budgets import PoolStanding
from engine.disruption.machine import Machine
from engine.disruption.said import BudgetState
from engine.model.reason import DisruptionReason
from engine.model.stay import RuleKeeps
from engine.policy.facts.values import cluster_facts
from engine.policy.rules.compiled import bundle_of
from tests.builders import NOON, environment, snapshot
from tests.disruption.rule_world import known
from tests.disruption.test_empty import machine
from tests.policy.rules.rule_texts import load_rules
from tests.policy.testing.case_texts import case, judged

HEAD = "apiVersion: nodewright.dev/v1alpha1\nkind: DisruptionBudget\nmetadata: {name: b}\n"
ERRS = "1 / (nodePool.nodes - 1)"
OLD = "candidate: node.age > duration('2h')"
BUDGETS = {
    "all of it": "windows: [business], candidate: node.age > duration('2h'), budget: 2, maxPerWindow: 3",
    "the window alone": "windows: [business]",
    "silent outside": "windows: [business], outside: ignore, budget: 1, candidate: reason == 'NoReason'",
    "no window": "budget: nodePool.nodes - 5, candidate: reason == 'Empty'",
    "some reasons": "reasons: [Drifted], budget: 4",
    "a number that errs": f"budget: {ERRS}",
    "a later number that errs": f"windows: [business], budget: 2, maxPerWindow: {ERRS}",
    "a candidate that errs": f"candidate: {ERRS} > 0",
    "a condition that is false": "matchConditions: [{name: no, expression: nodePool.nodes > 1}], budget: 2",
    "a condition that errs": f"matchConditions: [{{name: no, expression: {ERRS} > 0}}], budget: 2, {OLD}",
    "another pool": "match: {nodePools: [cpu]}, budget: 2",
}
MOMENTS = {"open": NOON + timedelta(hours=3), "shut": NOON + timedelta(hours=15)}


@pytest.mark.parametrize("reason", [DisruptionReason.EMPTY, DisruptionReason.DRIFTED])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_says_to_a_case_what_it_says_to_a_pass(budget: str, moment: str, reason: DisruptionReason) -> None:
    at = MOMENTS[moment]
    text = f"{HEAD}spec: {{{BUDGETS[budget]}, message: nodes leave slowly}}\n"
    policy = load_rules(text, OTHER_POOL) if "cpu" in text else load_rules(text)
    pool = next(each for each in policy.node_pools if each.name == "gpu")
    one = machine("gpu-1", pool)
    assert one.node is not None
    one = evolve(one, node=evolve(one.node, created_at=at - timedelta(hours=3)))
    facts = cluster_facts(environment(), snapshot())
    rules = BudgetRules(bundle_of(policy), policy.windows, facts, known(), lambda machine: (), at)
    found = rules.on(PoolStanding(pool, 1, 0, 1))

    node = ", node: {age: 3h}" if "candidate" in text else ""
    given = f'{{now: "{at.isoformat()}", reason: {reason.value}, nodePool: {{use: gpu, nodes: 1}}{node}}}'
    texts = (text, OTHER_POOL) if "cpu" in text else (text,)
    for expected in _expected(found, one, reason):
        assert judged(case("b", expected, given), *texts).problem == "", expected


OTHER_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: cpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-nodes}
      requirements:
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
"""


def _expected(found: tuple[RuleOnPool, ...], one: Machine, reason: DisruptionReason) -> list[str]:
    """What a case has to expect of the rule, for each question that there is."""
    if (
        not found
        or not found[0].is_about(reason)
        or found[0].said.state not in (BudgetState.ACTIVE, BudgetState.BLOCKING)
    ):
        return ["not-matched"]
    rule = found[0]
    said, keeps = rule.said, rule.outside_window() or rule.no_candidate(one, reason)
    asked = []
    if rule.rule.candidate is not None or rule.rule.windows:
        erred = isinstance(keeps, RuleKeeps) and keeps.error
        asked.append("error" if erred else "kept" if keeps is not None else "candidate")
    if said.error:
        asked.append("error")
    elif said.allowed is not None or said.per_opening is not None:
        numbers = [each for each in (said.allowed, said.per_opening) if each is not None]
        asked.append(f"allowed {min(numbers)}")
    return asked
