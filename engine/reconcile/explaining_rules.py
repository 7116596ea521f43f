"""What one rule says, whom it is about, and what it does at this moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.decide.offered import Offered, is_placeable
from engine.disruption.explained import BudgetExplanation
from engine.model.claim import Claim
from engine.model.constraint import Requirement
from engine.model.diagnostic import InvalidInput
from engine.model.fault import Fault
from engine.model.plan import LimitUse, Verdict, VerdictOutcome
from engine.model.pod import Pod
from engine.model.rule import AnyRule, DisruptionBudget, Guardrail, LimitedResource, LimitRule, RequirementRule
from engine.policy.rules.compiled import CompiledRule, bundle_of, expressions_of
from engine.policy.rules.guardrails import Guardrails
from engine.reconcile.explaining import Asked, unknown
from engine.reconcile.explaining_budgets import explain_budget
from engine.reconcile.workspace import Workspace
from engine.report.ceiling_words import CEILING_UNITS, ceiling_words
from engine.report.explain_report import InForce, RuleExplanation, RuleSaid
from engine.report.explain_steps import answer_words, steps_of
from engine.report.words import counted
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.problem import PoolState


def explain_rule(asked: Asked, name: str, workspace: Workspace) -> RuleExplanation:
    """``workspace`` tells of the other environments. Raises Fault where the policy has no such rule."""
    rule = next((each for each in asked.policy.rules if each.name == name), None)
    if rule is None:
        raise unknown("rule", name, [each.name for each in asked.policy.rules])
    compiled = _compiled(asked, rule)
    pods = tuple(pod for pod in asked.snapshot.pods if is_placeable(pod) and compiled.matches_pod(pod))
    pools = tuple(pool.name for pool in asked.policy.node_pools if compiled.matches_pool(pool))
    offered = asked.offered(pods) if isinstance(rule, RequirementRule) else None
    effect = None
    if offered is not None:
        effect = next((each for each in offered.eligibility.effects(pods) if each.rule.name == name), None)
    verdict = next((each for each in asked.plan.verdicts if each.rule == name), None)
    errors = effect.errors if effect is not None else int(verdict is not None and bool(verdict.error))
    sample = effect.sample if effect is not None else verdict.error if verdict is not None else ""
    is_budget = isinstance(rule, DisruptionBudget)
    return RuleExplanation(
        rule=name,
        kind=rule.kind,
        place=f"{rule.position.file}:{rule.position.line}",
        message=rule.message,
        environment=asked.environment.name,
        at=asked.snapshot.taken_at,
        in_force=tuple(_in_force(workspace, name)),
        settings=_settings(rule),
        expressions=_expressions(rule),
        matches=_matches(asked, rule, pods, pools, offered),
        node_pools=pools,
        errors=errors,
        sample=sample,
        now=tuple(_now(asked, rule, pods, offered, verdict)),
        said=tuple(_observed(asked, rule, verdict)),
        budgets=_budgets(asked, name) if is_budget else (),
    )


def _budgets(asked: Asked, name: str) -> tuple[BudgetExplanation, ...]:
    return explain_budget(asked.policy, asked.environment, name, None, asked.snapshot, plan=asked.plan)


def _compiled(asked: Asked, rule: AnyRule) -> CompiledRule:
    bundle = bundle_of(asked.policy)
    every = (*bundle.requirement_rules, *bundle.limit_rules, *bundle.disruption_budgets, *bundle.guardrails)
    return next(each for each in every if each.rule.name == rule.name)


def _in_force(workspace: Workspace, name: str) -> Iterator[InForce]:
    """Every environment that has the rule; one whose files do not load is passed over."""
    for environment in workspace.environment_names():
        try:
            policy = workspace.policy(workspace.environment(environment))
        except (InvalidInput, Fault):
            continue
        for rule in policy.rules:
            if rule.name == name:
                yield InForce(environment, rule.enforcement, rule.params)


def _expressions(rule: AnyRule) -> dict[str, str]:
    conditions = {f"matchConditions[{each.name}]": each.expression.text.strip() for each in rule.match_conditions}
    variables = {f"variables.{each.name}": each.expression.text.strip() for each in rule.variables}
    return {**conditions, **variables, **{part: text.text.strip() for part, text, _ in expressions_of(rule)}}


def _settings(rule: AnyRule) -> dict[str, str]:
    """What of the rule is no CEL, by its YAML field, as far as it says anything."""
    match = rule.match
    told = {
        "match.nodePools": ", ".join(match.node_pools),
        "match.nodePools.selector": _selector(match.node_pool_labels),
        "match.pods.namespaces": ", ".join(match.namespaces),
        "match.pods.selector": _selector(match.pod_labels),
        **_settings_of_its_kind(rule),
    }
    return {field: text for field, text in told.items() if text}


def _settings_of_its_kind(rule: AnyRule) -> dict[str, str]:
    match rule:
        case RequirementRule():
            return {"weight": f"{rule.weight:g}"} if rule.prefer is not None else {}
        case LimitRule():
            return {"resource": rule.resource.value}
        case DisruptionBudget():
            outside = "block" if rule.blocks_outside else "ignore"
            return {
                "reasons": ", ".join(each.value for each in rule.reasons),
                "windows": ", ".join(rule.windows),
                "outside": outside if rule.windows else "",
            }
        case Guardrail():
            return {"blocks": ", ".join(each.value for each in rule.blocks)}


def _selector(labels: Sequence[Requirement]) -> str:
    """``team In vision and canary DoesNotExist``."""
    return " and ".join(" ".join((each.key, each.operator.value, ",".join(each.values))).rstrip() for each in labels)


def _matches(
    asked: Asked, rule: AnyRule, pods: Sequence[Pod], pools: Sequence[str], offered: Offered | None
) -> dict[str, int]:
    nodes = sum(claim.node_pool in pools for claim in _claims(asked))
    found = {"pools": len(pools), "nodes": nodes}
    if offered is not None or (isinstance(rule, LimitRule) and (rule.match.namespaces or rule.match.pod_labels)):
        found |= {"pods": len(pods), "waiting_pods": sum(pod.is_waiting for pod in pods)}
    if offered is not None:
        found["kinds_of_pods"] = len(offered.classes)
    return found


def _claims(asked: Asked) -> Iterator[Claim]:
    if asked.snapshot.document is not None:
        yield from asked.snapshot.document.claims


def _now(
    asked: Asked, rule: AnyRule, pods: Sequence[Pod], offered: Offered | None, verdict: Verdict | None
) -> Iterator[str]:
    if offered is not None and isinstance(rule, RequirementRule) and rule.require is not None:
        yield from _barred(rule, offered)
    if isinstance(rule, LimitRule):
        uses = (use for use in asked.plan.limits if use.rule == rule.name)
        yield from (_use_words(rule.resource, use) for use in uses)
    if verdict is not None and verdict.outcome is not VerdictOutcome.HOLDS:
        blocked = ", ".join(each.value for each in verdict.blocked)
        blocks = f", and blocks {blocked}" if blocked else ""
        told = verdict.error if verdict.outcome is VerdictOutcome.ERROR else verdict.message
        counts = f" ({counted(verdict.pods, 'pod')}, {counted(verdict.types, 'type')})" if verdict.pods else ""
        yield f"{verdict.outcome.value}{blocks}: {told}{counts}"
    elif verdict is not None:
        yield "holds for the plan of this moment"


def _use_words(resource: LimitedResource, use: LimitUse) -> str:
    """``vision: 8 used and 4 planned of 16 GPUs``."""
    limit, used, planned = (ceiling_words(resource, each) for each in (use.limit, use.used, use.planned))
    group = f"{use.group}: " if use.group else ""
    return f"{group}{used} used and {planned} planned of {limit} {CEILING_UNITS[resource]}"


def _barred(rule: RequirementRule, offered: Offered) -> Iterator[str]:
    """How many pods it keeps from how many types that would hold them, where no rule before it in name order does."""
    pods, types = 0, set()
    for pod_class in offered.classes:
        held = (
            (state.pool.name, kind.type_at) for state in offered.states for kind in _held(offered, pod_class, state)
        )
        bars = ((type_at, pod_class.rulings.bar(pool, type_at)) for pool, type_at in held)
        barred = {type_at[0] for type_at, bar in bars if bar is not None and bar.rule == rule.name}
        pods += len(pod_class.pods) if barred else 0
        types |= barred
    yield f"keeps {counted(pods, 'pod')} from {counted(len(types), 'type')}, as the first rule that does"


def _held(offered: Offered, pod_class: PodClass, state: PoolState) -> Sequence[Kind]:
    """The kinds of a pool's nodes that pods would be on, were it not for rules."""
    is_closed = state.pool.is_static or pod_class.demand.barring_taint(state.pool.taints) is not None
    return () if is_closed else offered.holding(pod_class, state.pool.name)


def _observed(asked: Asked, rule: AnyRule, verdict: Verdict | None) -> Iterator[RuleSaid]:
    """Of a guardrail, the values that its verdict comes from.

    What it blocks is not in the pass's plan any more, so there it may well hold: those values would explain nothing.
    """
    if isinstance(rule, Guardrail):
        guardrails = Guardrails(bundle_of(asked.policy), asked.policy, asked.environment, asked.snapshot)
        about, (answer, observed) = "the plan", guardrails.observe(asked.plan, rule.name)
        if verdict is not None and verdict.blocked and answer.value is True:
            about, (answer, observed) = "the plan without guardrails", guardrails.observe(asked.unguarded, rule.name)
        yield RuleSaid(rule.name, rule.enforcement, about, answer_words(answer), steps=steps_of(observed))
