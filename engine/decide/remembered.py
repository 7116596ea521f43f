"""What the scheduler and the repacking answered about each environment, for as long as nothing has changed that it
follows from.

A repacking of a thousand nodes takes as long as many passes, and most passes see what the one before saw, or something
else about pods that bears on no place. Equal inputs give the very same answer, so that a plan made with it is the plan
that would have been made without.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import UTC, datetime, timedelta
from typing import TypeVar, cast

from attrs import evolve, field, frozen

from engine.decide.question import Seen
from engine.disruption.drift import Drift
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.policy.rules.compiled import bundle_of

Answer = TypeVar("Answer")

# What expressions read of the time.
_TIMES = ("now", "windows", "pod.waiting")
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)
_NO_TIME = timedelta()
_NOTHING = Ledger()


@frozen(eq=False)
class _World:
    """All that answers follow from. ``facts`` are those of the snapshot and the ledger that bear on places, pods apart;
    ``standing`` is how far each machine has come, and what the time opens or bars: which machines are offered, and what
    of the market is out."""

    seen: Seen
    facts: tuple[object, ...]
    standing: tuple[object, ...]

    @classmethod
    def of(cls, seen: Seen) -> _World:
        return cls(seen, _facts(seen), _standing(seen))

    def is_like(self, other: _World) -> bool:
        """A catalog is large, so only the very same one is taken for equal."""
        mine, theirs = self.seen, other.seen
        return (
            mine.catalog is theirs.catalog
            and (mine.policy, mine.environment) == (theirs.policy, theirs.environment)
            and (mine.snapshot.taken_at == theirs.snapshot.taken_at or not _rules_read_the_time(mine.policy))
            and self.standing == other.standing
            and self.facts == other.facts
            and _are_like(mine.snapshot.pods, theirs.snapshot.pods)
        )


@frozen(eq=False)
class Answers:
    """``before`` are those of the pass before, ``now`` those that this one has asked for. What is asked for no more is
    forgotten."""

    world: _World
    before: dict[Hashable, object]
    now: dict[Hashable, object] = field(factory=dict)

    def to(self, question: Hashable, ask: Callable[[], Answer]) -> Answer:
        """What ``ask`` says, asked only where that is not known. ``question`` tells it from all other questions about
        the same world."""
        if question not in self.now:
            self.now[question] = self.before[question] if question in self.before else ask()
        return cast("Answer", self.now[question])


_LAST: dict[str, Answers] = {}
_DRIFTS: dict[str, Drift] = {}


def answers(seen: Seen) -> Answers:
    """All that is known about what is seen."""
    last = _LAST.get(seen.environment.name)
    if last is not None and last.world.seen is seen:
        return last
    world = _World.of(seen)
    is_known = last is not None and last.world.is_like(world)
    found = _LAST[seen.environment.name] = Answers(world, last.now if last is not None and is_known else {})
    return found


def forget() -> None:
    """Nothing is known, as when a process starts: for who measures what an answer takes."""
    _LAST.clear()
    _DRIFTS.clear()


def drift_now(policy: Policy, catalog: Catalog, environment: Environment, snapshot: Snapshot) -> Drift:
    """What has drifted: claims are compared anew only where something has changed that their drift follows from."""
    last = _DRIFTS.get(environment.name)
    found = _DRIFTS[environment.name] = Drift.after(last, policy, catalog, environment, snapshot)
    return found


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


def _are_like(pods: tuple[Pod, ...], others: tuple[Pod, ...]) -> bool:
    """Whether no two of them, one by one, differ in anything that bears on places."""
    if pods is others:
        return True
    return len(pods) == len(others) and all(
        one is other or _on_places(one) == _on_places(other) for one, other in zip(pods, others, strict=True)
    )


def _on_places(pod: Pod) -> Pod:
    """The pod without what only tells how it has fared since it was bound, and how it would end."""
    return evolve(pod, started_at=None, ready_at=None, images=(), uid="", grace=_NO_TIME, ends_by=None)


def _facts(seen: Seen) -> tuple[object, ...]:
    snapshot = seen.snapshot
    return _without_pods(snapshot), _on_market(seen.learned), _on_market(snapshot.ledger)


def _without_pods(snapshot: Snapshot) -> Snapshot:
    """Without pods, the ledger and the time; and without what tells who may be disturbed, which says what is asked."""
    workload = evolve(snapshot.workload, disruption_budgets=(), owners=(), autoscalers=(), attachments=())
    return evolve(
        snapshot,
        taken_at=_ANY_TIME,
        pods=(),
        ledger=_NOTHING,
        cloud=evolve(snapshot.cloud, clock_ahead=_NO_TIME),
        workload=workload,
        problems=(),
        paused="",
        interruptions=(),
    )


def _on_market(ledger: Ledger) -> Ledger:
    """Without the clocks of machines: what follows from them is told of each machine."""
    return evolve(
        ledger,
        empty_since={},
        milestones={},
        disruptions={},
        counted_since=None,
        moved={},
        pods_seen={},
        drifted_since={},
        interruptions={},
        illnesses={},
    )


def _standing(seen: Seen) -> tuple[object, ...]:
    learned, now = seen.learned, seen.snapshot.taken_at
    until = (
        *(each.until for each in learned.unavailable.values()),
        *(each.until for each in learned.unavailable_groups.values()),
        *(each.until for each in learned.bring_ups.values()),
        *learned.label_doubts.values(),
    )
    machines = [
        (
            each.is_offered,
            each.counts_as_promised,
            each.is_settling,
            each.is_doomed,
            each.trouble is None,
            each.milestones.initialized_at is None,
            each.milestones.failed_at is None,
        )
        for each in seen.brought.values()
    ]
    return (
        machines,
        seen.gone,
        tuple(seen.doomed.causes),
        tuple(pod.key for pod in seen.displaced),
        [each <= now for each in until],
        [each.is_open_at(now) for each in seen.snapshot.cloud.reservations],
    )
