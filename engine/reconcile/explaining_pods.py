"""Where a pod goes and why there, or why no pool has a node for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.decide.ceilings import pool_market
from engine.decide.offered import BarrierKind, Offered, is_placeable
from engine.model.money import UsdPerHour
from engine.model.plan import Launch, Unplaced
from engine.model.pod import Pod
from engine.model.quantity import format_amount
from engine.model.refusal import CeilingReached
from engine.policy.rules.ceilings import LimitRules
from engine.policy.rules.compiled import bundle_of
from engine.policy.rules.eligibility import RuleVerdict
from engine.reconcile.diffing_classes import Workloads
from engine.reconcile.explaining import Asked, unknown
from engine.report.affinity_notes import ignored_words
from engine.report.explain_report import PodExplanation, PoolSaid, RuleSaid
from engine.report.explain_steps import answer_words, steps_of
from engine.report.words import counted, refusal_words
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind

# The cheapest types that rules bar, and the cheapest that they let through.
_BARRED_SHOWN, _LET_THROUGH_SHOWN = 2, 1


def explain_pod(asked: Asked, name: str) -> PodExplanation:
    """``name`` is NAMESPACE/NAME, or a name that only one pod has. Raises Fault."""
    pod = _named(asked, name)
    launch = next((each for each in asked.plan.launches if pod.key in each.pods), None)
    return PodExplanation(
        pod=str(pod.key),
        workload=Workloads(asked.snapshot).name(pod.key),
        environment=asked.environment.name,
        at=asked.snapshot.taken_at,
        asks=", ".join(
            f"{resource} {format_amount(resource, amount)}"
            for resource, amount in pod.placing.requests.items()
            if resource != "pods"
        ),
        outcome=_outcome(asked, pod, launch),
        losers=tuple(_losers(launch)) if launch is not None else (),
        pools=tuple(_pools(asked, pod)) if is_placeable(pod) else (),
        ignored=ignored_words(pod.placing),
    )


def _named(asked: Asked, name: str) -> Pod:
    pods = asked.snapshot.pods
    found = [pod for pod in pods if name in (str(pod.key), pod.key.name)]
    exact = [pod for pod in found if str(pod.key) == name]
    if len(exact or found) != 1:
        raise unknown("pod", name, sorted(str(pod.key) for pod in found or pods))
    return (exact or found)[0]


def _outcome(asked: Asked, pod: Pod, launch: Launch | None) -> str:
    if pod.node_name is not None:
        return f"It is bound to node {pod.node_name}. What follows is what it could get a node of, were it to wait."
    if not pod.is_waiting:
        return "It does not wait for a node of any pool."
    if launch is not None:
        claim = launch.claim
        inputs = claim.inputs
        offering = f"{inputs.instance_type} {inputs.capacity_type} in {inputs.zone}"
        others = f" with {counted(len(launch.pods) - 1, 'more pod')}" if len(launch.pods) > 1 else ""
        return f"A new {offering} is launched for it in pool {claim.node_pool}{others}, at {claim.usd_per_hour}."
    placement = next((each for each in asked.plan.placements if each.pod == pod.key), None)
    if placement is not None and placement.node is not None:
        return f"It fits on node {placement.node}, which is there."
    if placement is not None:
        return f"It fits on machine {placement.claim}, which is on its way."
    if everywhere := _of_any_pool(asked, pod):
        return f"It gets nothing of any pool: {everywhere}."
    return "It gets nothing: no pool has, or may make, a node for it now."


def _of_any_pool(asked: Asked, pod: Pod) -> str:
    """Why the pod gets nothing whichever pool is asked, such as a volume claim that is not there; empty for none."""
    unplaced = next((each for each in asked.plan.unplaced if each.pod == pod.key), None)
    return _refused(unplaced, "", asked)


def _losers(launch: Launch) -> Iterator[str]:
    for lost in launch.lost:
        name, zone, capacity_type = lost.offering.split("/")[:3]
        extra = lost.extra_usd_per_hour
        dearer = f"{extra} dearer for the same pods"
        if extra.micros < 0:
            dearer = f"{UsdPerHour(-extra.micros)} cheaper, but a preference or the plan for other pods decided"
        yield f"{name} {capacity_type} in {zone} at {lost.usd_per_hour}: {dearer}"


def _pools(asked: Asked, pod: Pod) -> Iterator[PoolSaid]:
    offered = asked.offered((pod,))
    pod_class = offered.class_of[pod.key]
    unplaced = next((each for each in asked.plan.unplaced if each.pod == pod.key), None)
    names = [pool.name for pool in asked.policy.node_pools]
    for name in _nearest_first(names, unplaced):
        yield PoolSaid(
            node_pool=name,
            words=_refused(unplaced, name, asked) or _has(asked, offered, pod_class, name, unplaced),
            rules=(*_ceilings(asked, offered, unplaced, pod, name), *_rules(offered, pod, pod_class, name)),
        )


def _nearest_first(names: Iterable[str], unplaced: Unplaced | None) -> list[str]:
    nearest = [each.node_pool for each in unplaced.refusals] if unplaced is not None else []
    return sorted(names, key=lambda name: (nearest.index(name) if name in nearest else len(nearest), name))


def _refused(unplaced: Unplaced | None, pool: str, asked: Asked) -> str:
    refusals = unplaced.refusals if unplaced is not None else ()
    found = (each.refusal for each in refusals if each.node_pool == pool)
    return next((refusal_words(each, asked.snapshot.taken_at) for each in found), "")


def _ceilings(asked: Asked, offered: Offered, unplaced: Unplaced | None, pod: Pod, pool: str) -> Iterator[RuleSaid]:
    """The limit rules whose ceilings keep the pod from the pool: its group, and the group's ceiling, with values."""
    refusals = unplaced.refusals if unplaced is not None else ()
    reached = {
        each.refusal.rule: each.refusal
        for each in refusals
        if each.node_pool == pool and isinstance(each.refusal, CeilingReached)
    }
    if not reached:
        return
    markets = [pool_market(state) for state in offered.states]
    rules = LimitRules(bundle_of(asked.policy), asked.policy, asked.environment, asked.seen.snapshot, markets)
    for limit in rules.asked:
        if limit.rule.name not in reached:
            continue
        for part in rules.observe(limit, pod, pool):
            yield RuleSaid(
                rule=limit.rule.name,
                enforcement=limit.rule.enforcement,
                about=part.name,
                outcome=answer_words(part.answer),
                message=reached[limit.rule.name].message if part.name == "ceiling" else "",
                steps=steps_of(part.observed),
            )


def _has(asked: Asked, offered: Offered, pod_class: PodClass, pool: str, unplaced: Unplaced | None) -> str:
    refusal = offered.refusal(pod_class, pool)
    if refusal is not None:
        return refusal_words(refusal, asked.snapshot.taken_at)
    kinds = _let_through(offered, pod_class, pool)
    types = len({kind.instance_type.name for kind in kinds})
    cheapest = f"; the cheapest is {' '.join(kinds[0].type_at)} at {kinds[0].usd_per_hour}" if kinds else ""
    has = "would have" if _refused(unplaced, "", asked) else "has"
    return f"{has} {counted(types, 'type')} for it{cheapest}"


def _let_through(offered: Offered, pod_class: PodClass, pool: str) -> list[Kind]:
    holding = offered.holding(pod_class, pool)
    return [kind for kind in holding if offered.barrier(pod_class, pool, kind.type_at) is None]


def _rules(offered: Offered, pod: Pod, pod_class: PodClass, pool: str) -> Iterator[RuleSaid]:
    """Requirement rules, asked about the cheapest types that they bar, and the cheapest that they let through."""
    kinds = {kind.type_at: kind for kind in reversed(offered.holding(pod_class, pool))}
    barriers = {type_at: offered.barrier(pod_class, pool, type_at) for type_at in reversed(kinds)}
    barred = [each for each, barrier in barriers.items() if barrier and barrier.kind is BarrierKind.RULE]
    passed = [each for each, barrier in barriers.items() if barrier is None]
    for type_at in (*barred[:_BARRED_SHOWN], *passed[:_LET_THROUGH_SHOWN]):
        for verdict in offered.eligibility.verdicts(pod, pool, *type_at):
            yield _said(verdict, " ".join(type_at))


def _said(verdict: RuleVerdict, about: str) -> RuleSaid:
    rule, answer = verdict.rule, verdict.answer
    refuses = verdict.applies and rule.require is not None and answer.value is not True
    outcome = answer_words(answer) if verdict.applies else "not asked: a condition of it is false"
    if verdict.applies and rule.prefer is not None:
        outcome = f"{outcome}, weight {rule.weight:g}"
    return RuleSaid(
        rule=rule.name,
        enforcement=rule.enforcement,
        about=about,
        outcome=outcome,
        message=verdict.message if refuses else "",
        steps=steps_of(verdict.observed) if verdict.applies else (),
    )
