"""Guardrails: a plan that one of them does not let through is made again without what it blocks.

Twice at most: what fails then holds everything. A hold launches only what takes the place of machines that were lost,
and lets nothing go by choice. A guardrail that errs blocks what it names, and removals always; yet it does not keep a
lost machine from being replaced, since nobody knows that it would. One that says no does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve, frozen

from engine.model.environment import Environment
from engine.model.plan import Plan, Verdict, VerdictOutcome
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.rule import ActionClass, Enforcement, Guardrail
from engine.model.snapshot import Snapshot
from engine.policy.rules.compiled import bundle_of
from engine.policy.rules.guardrails import Guardrails


@frozen
class Closed:
    """What a plan leaves out, each class with what blocks it. ``may_replace``: lost machines are replaced all the same.

    ``remove`` is about removals by choice, ``replace`` about those of them that others take the place of. What is lost,
    or never came up, leaves whatever anybody says.
    """

    add: GuardrailBlocks | None = None
    remove: GuardrailBlocks | None = None
    may_replace: bool = True
    replace: GuardrailBlocks | None = None


NOTHING_CLOSED = Closed()
_REPLACED = (DisruptionReason.DRIFTED, DisruptionReason.EXPIRED, DisruptionReason.UNDERUTILIZED)
_BLOCKABLE = (ActionClass.ADD, ActionClass.REMOVE, ActionClass.REPLACE)


@frozen
class Guarded:
    """The plan that guardrails let through, with their verdicts. ``closes_launches``: one of them blocks launches."""

    plan: Plan
    closes_launches: bool = False


def guarded(draft: Callable[[Closed], Plan], policy: Policy, environment: Environment, snapshot: Snapshot) -> Guarded:
    """``draft`` makes the plan without what is closed."""
    plan = draft(NOTHING_CLOSED)
    if not any(isinstance(rule, Guardrail) for rule in policy.rules):
        return Guarded(plan)
    guardrails = Guardrails(bundle_of(policy), policy, environment, snapshot)
    blocks = {rule.name: frozenset(rule.blocks) for rule in guardrails.rules}

    def judged(finished: Plan) -> tuple[Verdict, ...]:
        return tuple(_with_blocked(each, blocks[each.rule]) for each in guardrails.verdicts(finished))

    told = judged(plan)
    closed = _closed(NOTHING_CLOSED, told)
    if _still_does(plan, told):
        plan = draft(closed)
        again = judged(plan)
        told = _first_failures(told, again)
        if failing := _still_does(plan, again):
            plan, told = _held(draft, judged, _closed(closed, failing), failing, told)
    verdicts = tuple(sorted((*plan.verdicts, *told), key=lambda each: each.rule))
    closes_launches = any(ActionClass.ADD in each.blocked for each in told)
    return Guarded(evolve(plan, verdicts=verdicts), closes_launches)


def _held(
    draft: Callable[[Closed], Plan],
    judged: Callable[[Plan], tuple[Verdict, ...]],
    closed: Closed,
    failing: Sequence[Verdict],
    told: tuple[Verdict, ...],
) -> tuple[Plan, tuple[Verdict, ...]]:
    """The hold plan, and all that there is to tell."""
    blocking = _as_refusal(failing[0])
    hold = Closed(closed.add or blocking, closed.remove or blocking, may_replace=not _forbids_launches(failing))
    plan = draft(hold)
    if plan.launches:
        last = judged(plan)
        told = _first_failures(told, last)
        if _forbids_launches(last):
            plan = draft(evolve(hold, may_replace=False))
    return plan, told


def _with_blocked(verdict: Verdict, blocks: frozenset[ActionClass]) -> Verdict:
    """The verdict with what it blocks: an error blocks removals too."""
    if verdict.enforcement is not Enforcement.DENY or verdict.outcome is VerdictOutcome.HOLDS:
        return verdict
    if verdict.outcome is VerdictOutcome.ERROR:
        blocks |= {ActionClass.REMOVE}
    return evolve(verdict, blocked=tuple(each for each in _BLOCKABLE if each in blocks))


def _closed(before: Closed, verdicts: Sequence[Verdict]) -> Closed:
    add, remove, replace = before.add, before.remove, before.replace
    for each in verdicts:
        add = add or (_as_refusal(each) if ActionClass.ADD in each.blocked else None)
        remove = remove or (_as_refusal(each) if ActionClass.REMOVE in each.blocked else None)
        replace = replace or (_as_refusal(each) if ActionClass.REPLACE in each.blocked else None)
    return Closed(add, remove, replace=replace)


def _as_refusal(verdict: Verdict) -> GuardrailBlocks:
    return GuardrailBlocks(verdict.rule, verdict.message, verdict.error)


def _still_does(plan: Plan, verdicts: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts that block what the plan does. One that blocks what it leaves out anyway changes nothing."""
    done = {ActionClass.ADD} if plan.launches else set()
    if any(removal.record.reason in VOLUNTARY_REASONS for removal in plan.removals):
        done.add(ActionClass.REMOVE)
    is_replacing = any(removal.record.reason in _REPLACED for removal in plan.removals)
    if is_replacing or any(launch.claim.replaces for launch in plan.launches):
        done.add(ActionClass.REPLACE)
    return tuple(each for each in verdicts if done.intersection(each.blocked))


def _forbids_launches(verdicts: Sequence[Verdict]) -> bool:
    return any(each.outcome is VerdictOutcome.VIOLATED and ActionClass.ADD in each.blocked for each in verdicts)


def _first_failures(before: Sequence[Verdict], later: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """One verdict a rule: the first that did not hold, since that is what a person wants to know of."""
    told = {each.rule: each for each in later}
    told |= {each.rule: each for each in before if each.outcome is not VerdictOutcome.HOLDS or each.rule not in told}
    return tuple(told[rule] for rule in sorted(told))
