"""What guardrails say of a finished plan."""

from __future__ import annotations

from collections.abc import Mapping

from engine.model.environment import Environment
from engine.model.plan import Plan, Verdict, VerdictOutcome
from engine.model.policy import Policy
from engine.model.rule import Guardrail
from engine.model.snapshot import Snapshot
from engine.policy.cel.port import Answer, Bound, Observed
from engine.policy.facts.schema import COST, PLAN
from engine.policy.facts.values import cost_facts, plan_facts
from engine.policy.rules.class_keys import read_paths
from engine.policy.rules.compiled import Bundle, CompiledRule
from engine.policy.rules.pass_facts import PassFacts

_OF_THE_PLAN = ("plan", "cost")


class Guardrails:
    """One pass's guardrails; what does not change from plan to plan is taken in once."""

    def __init__(self, bundle: Bundle, policy: Policy, environment: Environment, snapshot: Snapshot) -> None:
        self._compiled = [each for each in bundle.guardrails if isinstance(each.rule, Guardrail)]
        self._engine = bundle.engine
        self._pools = [pool.name for pool in policy.node_pools]
        self._facts = PassFacts(bundle.engine, policy, environment, snapshot, ())

    @property
    def rules(self) -> tuple[Guardrail, ...]:
        return tuple(each.rule for each in self._compiled if isinstance(each.rule, Guardrail))

    def verdicts(self, plan: Plan) -> tuple[Verdict, ...]:
        """Of each guardrail whose conditions are met, in the order of names. Nothing is blocked by that alone."""
        of_plan = self._of(plan)
        judged = (self._judged(each, of_plan) for each in self._compiled)
        return tuple(verdict for verdict in judged if verdict is not None)

    def observe(self, plan: Plan, rule: str) -> tuple[Answer, tuple[Observed, ...]]:
        """What a guardrail and the parts of its expression come to for a plan. Slow: for people."""
        compiled = next(each for each in self._compiled if each.rule.name == rule)
        return compiled.programs["expression"].observe(self._facts_for(compiled, self._of(plan)))

    def _of(self, plan: Plan) -> dict[str, Bound]:
        return {
            "plan": self._engine.bind(PLAN, plan_facts(plan, self._pools)),
            "cost": self._engine.bind(COST, cost_facts(plan)),
        }

    def _facts_for(self, compiled: CompiledRule, of_plan: dict[str, Bound]) -> dict[str, Bound]:
        programs = (*(program for _, program in compiled.conditions), *compiled.programs.values())
        read = {path.variable for program in programs for path in read_paths(program.reads)}
        return {**self._facts.bound(read.difference(_OF_THE_PLAN), compiled.rule, None, ""), **of_plan}

    def _judged(self, compiled: CompiledRule, of_plan: dict[str, Bound]) -> Verdict | None:
        facts = self._facts_for(compiled, of_plan)
        if not compiled.applies(facts):
            return None
        answer = compiled.programs["expression"].evaluate(facts)
        error = answer.error
        if not error and not isinstance(answer.value, bool):
            error = f"it came to {answer.value!r}, which is neither true nor false"
        outcome = VerdictOutcome.HOLDS if answer.value is True else VerdictOutcome.VIOLATED
        outcome = VerdictOutcome.ERROR if error else outcome
        return Verdict(
            rule=compiled.rule.name,
            kind=compiled.rule.kind,
            enforcement=compiled.rule.enforcement,
            outcome=outcome,
            message="" if outcome is VerdictOutcome.HOLDS else _message(compiled, facts),
            error=error,
        )


def _message(compiled: CompiledRule, facts: Mapping[str, Bound]) -> str:
    erred = compiled.condition_error(facts)
    return f"{compiled.told(facts)} ({erred})" if erred else compiled.told(facts)
