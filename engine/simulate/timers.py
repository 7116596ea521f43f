"""When a pass would come to something else although nothing happens: the times that a plan and its memory name."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from attrs import fields

from engine.model.ledger import Milestones
from engine.model.plan import Plan
from engine.model.policy import NodePool, Policy
from engine.model.stay import StayReason


def next_timer(plan: Plan, policy: Policy) -> datetime | None:
    """The first time after the plan's that something in it waits for; None is nothing.

    Read from every time that a reason to stay names, whichever reason that is, from what is barred until when, and
    from the deadlines of machines that are not up. Windows of budgets are not looked at.
    """
    return min((each for each in _named(plan, policy) if each > plan.decided_at), default=None)


def _named(plan: Plan, policy: Policy) -> Iterator[datetime]:
    for kept in plan.kept:
        yield from _times(kept.reason)
    ledger = plan.ledger
    yield from (barred.until for barred in ledger.unavailable.values())
    yield from (barred.until for barred in ledger.unavailable_groups.values())
    yield from (failed.until for failed in ledger.bring_ups.values())
    pools = {pool.name: pool for pool in policy.node_pools}
    for claim in plan.document.claims:
        pool = pools.get(claim.node_pool)
        if pool is None:
            continue
        if pool.expire_after is not None:
            yield claim.created_at + pool.expire_after
        milestones = ledger.milestones.get(claim.name)
        if milestones is not None:
            yield from _deadlines(milestones, pool)


def _deadlines(seen: Milestones, pool: NodePool) -> Iterator[datetime]:
    if seen.accelerators_short_since is not None:
        yield seen.accelerators_short_since + pool.accelerator_grace
    if seen.node_gone_since is not None:
        yield seen.node_gone_since + pool.registration_deadline
    if seen.initialized_at is not None:
        return
    if seen.launched_at is not None:
        yield seen.launched_at + pool.registration_deadline
        yield seen.launched_at + pool.initialization_deadline
    elif seen.asked_at is not None:
        yield seen.asked_at + pool.launch_deadline


def _times(reason: StayReason) -> Iterator[datetime]:
    for each in fields(type(reason)):
        value = getattr(reason, each.name)
        if isinstance(value, datetime):
            yield value
