"""The last repacking of each environment, for as long as nothing has changed that it follows from.

A repacking of a thousand nodes takes as long as many passes, and most passes see what the one before saw. Equal inputs
give the very same answer, so that a plan made with it is the plan that would have been made without.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from engine.decide.guarding import Closed
from engine.decide.question import Seen
from engine.model.policy import Policy
from engine.policy.rules.compiled import bundle_of
from engine.scheduling.movable import MoveCost
from engine.scheduling.repacking import Repacking

# What expressions read of the time.
_TIMES = ("now", "windows", "pod.waiting")


@frozen(eq=False)
class _Asked:
    seen: Seen
    closed: Closed
    machines: tuple[tuple[str, ...], tuple[str, ...]]
    cost: MoveCost

    def is_like(self, other: _Asked) -> bool:
        """A catalog is large, so only the very same one is taken for equal."""
        mine, theirs = self.seen, other.seen
        return (
            (self.machines, self.cost, self.closed) == (other.machines, other.cost, other.closed)
            and mine.catalog is theirs.catalog
            and (mine.policy, mine.environment) == (theirs.policy, theirs.environment)
            and (mine.snapshot.taken_at == theirs.snapshot.taken_at or not _rules_read_the_time(mine.policy))
            and _world(mine) == _world(theirs)
        )


_LAST: dict[str, tuple[_Asked, Repacking]] = {}


def remembered(
    seen: Seen,
    closed: Closed,
    machines: tuple[tuple[str, ...], tuple[str, ...]],
    cost: MoveCost,
    repack: Callable[[], Repacking],
) -> Repacking:
    """What ``repack`` says, asked only where the last answer is of another question. ``machines`` are the claims that
    may go, and those that take nobody."""
    asked = _Asked(seen, closed, machines, cost)
    known = _LAST.get(seen.environment.name)
    if known is None or not known[0].is_like(asked):
        known = (asked, repack())
        _LAST[seen.environment.name] = known
    return known[1]


def _rules_read_the_time(policy: Policy) -> bool:
    """Whether a rule that bears on places may say something else at any moment."""
    if not policy.rules:
        return False
    bundle = bundle_of(policy)
    return any(
        path.startswith(_TIMES) or path.startswith("pod.*") or path == "pod"
        for each in (*bundle.requirement_rules, *bundle.limit_rules)
        for program in (*(program for _, program in each.conditions), *each.programs.values())
        for path in program.reads
    )


def _world(seen: Seen) -> tuple[object, ...]:
    """All that is seen, but for the time, and for what goes on in the ledger without bearing on places. What the time
    opens or bars is among it: which machines are offered, and what of the market is out."""
    snapshot, learned, now = seen.snapshot, seen.learned, seen.snapshot.taken_at
    return (
        snapshot.document,
        snapshot.pods,
        snapshot.nodes,
        snapshot.daemon_sets,
        snapshot.cloud,
        snapshot.workload,
        snapshot.karpenter,
        snapshot.busy_stacks,
        learned.planned,
        learned.owed,
        learned.bring_ups,
        learned.unavailable,
        learned.unavailable_groups,
        learned.label_doubts,
        [
            until <= now
            for until in (
                *(each.until for each in learned.unavailable.values()),
                *(each.until for each in learned.unavailable_groups.values()),
                *(each.until for each in learned.bring_ups.values()),
                *learned.label_doubts.values(),
            )
        ],
        [each.is_open_at(now) for each in snapshot.cloud.reservations],
        [
            (each.is_offered, each.is_initialized, each.counts_as_promised, each.is_settling)
            for each in seen.brought.values()
        ],
    )
