"""``nodewright up``: passes until there is nothing left to do, each change approved by a person or by ``--yes``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import evolve, frozen

from engine.model.canonical import digest
from engine.model.outcome import Outcome, OutcomeStatus
from engine.model.plan import Plan
from engine.reconcile import passes
from engine.reconcile.going_on import only_goes_on
from engine.reconcile.mailbox import Mailbox, settle_now
from engine.reconcile.passes import Proposal
from engine.reconcile.ports import OnEvent, Ports, Tell

# A removal takes two passes and a refused launch one more for each offering; beyond this the world is not at rest,
# unless machines come up so fast that a rollout never waits for one.
MOST_PASSES = 8


class Audience(Protocol):
    """Who watches and decides: a terminal, a log, a test."""

    def show(self, proposal: Proposal) -> None: ...

    def approve(self, plan: Plan) -> bool: ...

    def follow(self, plan: Plan) -> tuple[Tell, OnEvent, Callable[[], None]]:
        """Told that converging starts: how to tell a line, where events go, and what to call when it has ended."""

    def carry_on(self, plan: Plan) -> None:
        """Told of a plan that only carries on with what was approved: it is applied without a question."""

    def show_outcome(self, plan: Plan, outcome: Outcome) -> None: ...


@frozen
class Ending:
    """How it ended. ``is_done``: the world is as the policy wants it, as far as offerings, limits and caps allow.

    ``has_failed``: something went wrong that another pass would only repeat, or the world does not come to rest.
    ``goes_on``: the passes were used up in the middle of a rollout, which a later run goes on with.
    """

    passes: int
    changed: bool
    is_done: bool
    was_approved: bool = True
    has_failed: bool = False
    goes_on: bool = False
    last: Proposal | None = None


def up(ports: Ports, audience: Audience, reviewed: Plan | None = None) -> Ending:
    """Converge the environment. With ``reviewed`` exactly that plan is applied, and nothing beyond it but what it
    began: a node that it marked is drained and released.

    Raises Fault; KeyboardInterrupt, once the outcome is recorded and shown, when a person broke it off.
    """
    approved: list[Plan] = []
    changed, mail = False, Mailbox()
    for number in range(1, MOST_PASSES + 1):
        proposal = passes.propose(ports, mail)
        if not proposal.paused:
            passes.receive_nodes(ports, proposal)
        if reviewed is not None and not approved:
            proposal = evolve(proposal, plan=reviewed)
        if not proposal.needs_converging:
            passes.remember_clocks(ports, proposal.plan)
            proposal = _settled(ports, mail, proposal)
            return Ending(passes=number, changed=changed, is_done=True, last=proposal)
        if approved and _only_asks_again(proposal.plan, approved[-1]):
            return Ending(passes=number, changed=changed, is_done=False, last=proposal)
        if not _follows_from(proposal.plan, approved):
            if reviewed is not None and approved:
                return Ending(passes=number, changed=changed, is_done=False, last=proposal)
            audience.show(proposal)
            passes.refuse_if_paused(ports, proposal)
            if not audience.approve(proposal.plan):
                return Ending(passes=number, changed=changed, is_done=False, was_approved=False, last=proposal)
        else:
            audience.carry_on(proposal.plan)
        approved.append(proposal.plan)
        outcome = _applied(ports, proposal, audience)
        _settled(ports, mail, proposal)
        changed = True
        if outcome is not None and not _is_worth_another_pass(outcome):
            return Ending(passes=number, changed=changed, is_done=False, has_failed=True, last=proposal)
    goes_on = only_goes_on(proposal.plan) and (outcome is None or outcome.is_settled)
    return Ending(
        passes=MOST_PASSES, changed=changed, is_done=False, has_failed=not goes_on, goes_on=goes_on, last=proposal
    )


def _settled(ports: Ports, mail: Mailbox, proposal: Proposal) -> Proposal:
    """The messages that this pass has answered are deleted; with what there is to tell of them."""
    words = settle_now(ports.interruptions, mail, proposal.snapshot, ports.store.ledger().ledger)
    return evolve(proposal, problems=(*proposal.problems, *words))


def _applied(ports: Ports, proposal: Proposal, audience: Audience) -> Outcome | None:
    tell, on_progress, finish = audience.follow(proposal.plan)
    try:
        outcome = passes.apply(ports, proposal, tell, on_progress)
    finally:
        finish()
    if outcome is not None:
        audience.show_outcome(proposal.plan, outcome)
        if outcome.was_interrupted:
            raise KeyboardInterrupt
    return outcome


def _follows_from(plan: Plan, approved: list[Plan]) -> bool:
    """Whether a plan only carries on with what was approved: it drains and releases nodes that were marked then."""
    if not approved or plan.launches or not _only_sheds_templates(plan, approved[-1]):
        return False
    marked = {removal.record.claim for earlier in approved for removal in earlier.removals}
    return all(removal.record.claim in marked for removal in plan.removals)


def _only_asks_again(plan: Plan, before: Plan) -> bool:
    """Whether all that is left is to ask the same pods to leave: their budgets hold them back, and a later run asks."""
    asked = {(removal.record.claim, removal.pods, removal.forced) for removal in before.removals}
    waiting = all(
        (removal.pods or removal.forced) and (removal.record.claim, removal.pods, removal.forced) in asked
        for removal in plan.removals
    )
    return bool(plan.removals) and waiting and not (plan.launches or plan.foundation_changes)


def _only_sheds_templates(plan: Plan, before: Plan) -> bool:
    """Whether the foundation stays, but for launch templates that nothing needs once those nodes are gone."""
    now, then = plan.document.foundation, before.document.foundation
    kept = set(map(digest, now.launch_templates)) <= set(map(digest, then.launch_templates))
    return kept and evolve(now, launch_templates=()) == evolve(then, launch_templates=())


def _is_worth_another_pass(outcome: Outcome) -> bool:
    """A refused launch is a result that the next pass plans around; any other failure would only repeat itself."""
    if outcome.foundation_failures:
        return False
    return all(one.status not in (OutcomeStatus.FAILED_OTHER, OutcomeStatus.UNKNOWN) for one in outcome.claims)
