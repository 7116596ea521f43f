"""Why a machine stays, or why it leaves: its plan, disruption budgets and what would have to change."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from engine.decide.budgets_asked import budget_rules
from engine.decide.departures import standings_of
from engine.decide.fleet import Sighting
from engine.decide.machines import machines
from engine.disruption.budget_rules import RuleOnPool
from engine.disruption.budgets import PoolStanding
from engine.disruption.expired import expires_at
from engine.disruption.machine import Machine
from engine.disruption.said import BudgetState
from engine.model.claim import Claim
from engine.model.duration import format_duration
from engine.model.fault import Fault
from engine.model.plan import Kept, Removal, RemovalPhase
from engine.model.policy import NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.replacement import (
    AwaitsReplacement,
    MovedLately,
    NewlyUp,
    NoPlace,
    NotQuiet,
    PodHolds,
    RolloutWaits,
    StandsIn,
    Unbalanced,
)
from engine.model.stay import (
    BaseCapacity,
    BelowConsolidateAfter,
    BudgetExhausted,
    ConsolidationOff,
    DoNotDisrupt,
    InUse,
    KeepsHeadroom,
    NoOtherPlace,
    NotInitialized,
    OutsideWindow,
    PoolUnknown,
    RemovalCap,
    RepaidTooLate,
    RuleKeeps,
    SavesTooLittle,
    StayReason,
    TooYoung,
)
from engine.reconcile.explaining import Asked, unknown
from engine.reconcile.explaining_budgets import explain_budget
from engine.report.explain_report import NodeExplanation, RuleSaid
from engine.report.explain_steps import steps_of
from engine.report.removal_words import budget_words, going_words, targets_of
from engine.report.stay_words import stay_words
from engine.report.words import counted

# What pods are not let wait for, where there is an end to it.
_BY_THE_END = (DisruptionReason.DRIFTED, DisruptionReason.EXPIRED)


def explain_node(asked: Asked, name: str) -> NodeExplanation:
    """``name`` is a node's, or its claim's. Raises Fault."""
    sighting = machine_named(asked, name)
    claim, node = sighting.claim, sighting.node.name if sighting.node is not None else ""
    kept = next((each for each in asked.plan.kept if each.claim == claim.name), None)
    removal = next((each for each in asked.plan.removals if each.record.claim == claim.name), None)
    said = kept or removal
    inputs, now = claim.inputs, asked.snapshot.taken_at
    has_pool = asked.policy.node_pool(claim.node_pool) is not None
    budgets = (
        explain_budget(asked.policy, asked.environment, claim.node_pool, None, asked.snapshot, plan=asked.plan)
        if has_pool
        else ()
    )
    machine = _machine(asked, claim)
    return NodeExplanation(
        node=node,
        claim=claim.name,
        node_pool=claim.node_pool,
        machine=f"{inputs.instance_type} {inputs.capacity_type} in {inputs.zone} at {claim.usd_per_hour}",
        environment=asked.environment.name,
        at=now,
        outcome=_leaves(removal, asked) if removal is not None else _stays(kept, now),
        code=kept.reason.code if kept is not None else removal.phase.value if removal is not None else "",
        to_change=_to_change(kept.reason, asked) if kept is not None else "",
        pending=kept.pending if kept is not None else (),
        grace=_grace(said, asked.policy.node_pool(claim.node_pool)) if said is not None else "",
        drained_by=said.drained_by if said is not None else None,
        expires_at=expires_at(machine) if machine is not None else None,
        rules=tuple(_rules(asked, machine)) if machine is not None else (),
        budgets=budgets,
    )


def machine_named(asked: Asked, name: str) -> Sighting:
    """The machine of a claim, or behind a node. Raises Fault where there is none that the published document keeps."""
    fleet = asked.seen.fleet
    known: dict[str, Sighting] = {}
    for sighting in fleet.sightings:
        known[sighting.claim.name] = sighting
        for each in (sighting.node, *sighting.other_nodes):
            if each is not None:
                known[each.name] = sighting
    if name in known:
        return known[name]
    for leaving in fleet.leaving:
        if name in (leaving.record.claim, leaving.record.node):
            reason = leaving.record.reason.value
            raise Fault(
                f"{name} is on its way out already: the published document lets its machine go, {reason}",
                "nothing more is to be done about it",
            )
    if name in {node.name for node in asked.snapshot.nodes}:
        fault = unknown("machine of ours behind node", name, ())
        fault.hints = ("nothing here removes it: it is another program's, such as a Karpenter's, or a person's",)
        raise fault
    raise unknown("node or machine", name, sorted(known))


def _leaves(removal: Removal, asked: Asked) -> str:
    record, now = removal.record, asked.snapshot.taken_at
    act = "is let go" if removal.phase is RemovalPhase.RELEASE else "is cordoned and drained, and then let go"
    parts = (budget_words(record), going_words(removal, targets_of(asked.plan), now), _held(removal, asked))
    return "; ".join(filter(None, (f"It {act}: {record.reason.value}, by {record.rule}", *parts))) + "."


def _held(removal: Removal, asked: Asked) -> str:
    """Which of the pods that are asked to leave will be refused for now."""
    blocked = asked.snapshot.blocked_evictions
    held = [f"{pod} ({blocked[pod]})" for pod in removal.pods if pod in blocked]
    return f"not free to leave yet: {', '.join(held)}" if held else ""


def _stays(kept: Kept | None, now: datetime) -> str:
    if kept is None:
        return "It is on its way out already: the published document lets it go."
    return f"It stays: {stay_words(kept.reason, now)}."


def _grace(of: Kept | Removal, pool: NodePool | None) -> str:
    """What the pool's terminationGracePeriod means for a machine that is marked, or is to be."""
    if pool is None or pool.termination_grace_period is None:
        return ""
    grace = f"terminationGracePeriod {format_duration(pool.termination_grace_period)}"
    if of.drained_by is not None:
        by = f"{of.drained_by:%Y-%m-%d %H:%M:%SZ}"
        return f"What is left of its pods is deleted by {by}, whatever holds them: {grace} since its mark."
    if isinstance(of, Removal):
        is_to_be_marked = of.phase is RemovalPhase.MARK
    else:
        is_to_be_marked = any(each.reason in _BY_THE_END for each in of.pending)
    return f"Once it is marked, its pods are gone within {grace}, whatever holds them." if is_to_be_marked else ""


def _to_change(reason: StayReason, asked: Asked) -> str:
    """What would have to be otherwise for the machine to leave."""
    now = asked.snapshot.taken_at
    match reason:
        case InUse(pods=pods, planned=planned):
            return f"Its {counted(pods + planned, 'pod')} would have to end or go elsewhere first."
        case BelowConsolidateAfter(until=until):
            return f"It would have to stand empty for {format_duration(until - now)} more, till {until:%H:%M} UTC."
        case BudgetExhausted(budget=budget, error=error):
            mended = f"Budget {budget} would have to give a number again" if error else "A node that is out would"
            return f"{mended}." if error else f"{mended} have to come back, or budget {budget} to allow more."
        case KeepsHeadroom():
            return "The pool would have to keep less headroom, or to have as much free elsewhere."
        case BaseCapacity():
            return "The pool would have to have more nodes than its base capacity, or a smaller one."
        case DoNotDisrupt():
            return "The annotation would have to go."
        case OutsideWindow(windows=windows, opens=opens):
            when = f", at {opens:%Y-%m-%d %H:%M} UTC" if opens is not None else ""
            return f"Window {' or '.join(windows)} would have to open{when}."
        case _:
            return _to_change_by_hand(reason)


def _to_change_by_hand(reason: StayReason) -> str:
    match reason:
        case ConsolidationOff():
            return "The pool's consolidationPolicy or consolidateAfter would have to be another."
        case RuleKeeps(rule=rule, error=error):
            return f"Rule {rule} would have to {'be mended' if error else 'take it for a candidate'}: see below."
        case GuardrailBlocks(rule=rule):
            return f"Guardrail {rule} would have to hold for the plan: nodewright explain rule {rule}."
        case RemovalCap():
            return "Nothing: a later pass gets to it, or raise nodewright:caps in the stack file."
        case PoolUnknown(node_pool=pool):
            return f"A policy file would have to have the pool {pool}."
        case NotInitialized():
            return "It would have to come up first."
        case _:
            return _to_change_elsewhere(reason)


def _to_change_elsewhere(reason: StayReason) -> str:
    """What would have to be otherwise with other machines, or with pods."""
    match reason:
        case AwaitsReplacement(claims=claims):
            return f"Nothing: it goes once {' and '.join(claims) or 'another'} is up."
        case StandsIn(nodes=nodes):
            return f"Nothing: its pods come once {' and '.join(nodes)} {'goes' if len(nodes) == 1 else 'go'}."
        case NoPlace(pod=pod):
            return f"There would have to be room for {f'pod {pod}' if pod else 'another node of the pool'} elsewhere."
        case PodHolds(pod=pod):
            return f"Pod {pod} would have to be free to leave."
        case RolloutWaits(canaries=canaries):
            return f"{counted(canaries, 'node')} of the new kind would have to be up for its pool's rollout-soak."
        case NotQuiet(until=until) | NewlyUp(until=until) | MovedLately(until=until):
            return f"Nothing: it may go from {until:%H:%M} UTC on."
        case SavesTooLittle() | RepaidTooLate() | TooYoung() | NoOtherPlace() | Unbalanced():
            return "Its pods would have to cost less elsewhere, or its pool to ask less of a move."
        case _:
            return "What keeps it would have to be mended first."


def _machine(asked: Asked, claim: Claim) -> Machine | None:
    """As disruption sees it; None where it is lost, or its pool is unknown."""
    seen = asked.seen
    known = machines(seen.brought, seen.gone, asked.plan.placements, asked.policy, seen.snapshot)
    return next((each for each in known if each.claim.name == claim.name), None)


def _rules(asked: Asked, machine: Machine) -> Iterator[RuleSaid]:
    """Every disruption budget that is about the machine's pool, for each reason that it is about."""
    rules = budget_rules(asked.seen.fleet, asked.policy, asked.environment, asked.seen.snapshot)
    if rules is None:
        return
    standings = standings_of(asked.snapshot, asked.policy)
    standing = standings.get(machine.pool.name, PoolStanding(machine.pool, 0, 0, 0))
    for rule in rules.on(standing):
        yield from _of_rule(rule, machine)


def _of_rule(rule: RuleOnPool, machine: Machine) -> Iterator[RuleSaid]:
    """Reasons that are answered alike are told together."""
    alike: dict[RuleSaid, list[str]] = {}
    for reason in VOLUNTARY_REASONS:
        if rule.is_about(reason):
            alike.setdefault(_about(rule, machine, reason), []).append(reason.value)
    for said, reasons in alike.items():
        yield RuleSaid(said.rule, said.enforcement, ", ".join(reasons), said.outcome, said.message, said.steps)


def _about(rule: RuleOnPool, machine: Machine, reason: DisruptionReason) -> RuleSaid:
    name, enforcement, state = rule.rule.name, rule.rule.enforcement, rule.said.state
    if state is BudgetState.UNASKED:
        return RuleSaid(name, enforcement, "", "says nothing: a condition of it is false")
    if state is BudgetState.SHUT:
        return RuleSaid(name, enforcement, "", "says nothing outside its windows")
    if state is BudgetState.BLOCKING:
        return RuleSaid(name, enforcement, "", "lets nothing go outside its windows", rule.rule.message)
    if rule.rule.candidate is None:
        return RuleSaid(name, enforcement, "", "says nothing of single machines: see its budget")
    kept = rule.no_candidate(machine, reason)
    try:
        steps = steps_of(rule.observe(machine, reason))
    except (TypeError, ValueError):
        steps = ()
    if kept is None:
        return RuleSaid(name, enforcement, "", "it may go", steps=steps)
    return RuleSaid(
        name, enforcement, "", f"error: {kept.error}" if kept.error else "it may not go", kept.message, steps
    )
