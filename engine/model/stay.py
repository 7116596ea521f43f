"""Why a machine stays: typed, with numbers. report/ puts them into words."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import ClassVar

from attrs import frozen

from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.money import UsdPerHour
from engine.model.pod import PodKey
from engine.model.refusal import GuardrailBlocks, KarpenterOwnsPool, PoolPaused, PoolRefusal
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


@frozen
class RuleKeeps:
    """A disruption budget's ``candidate`` does not let the node go. ``message`` is the rule's; ``error`` what it came
    to where it gave no answer, which keeps the node as no does."""

    code: ClassVar[str] = "rule-keeps"
    rule: str
    message: str
    error: str = ""


@frozen
class OutsideWindow:
    """None of the ``windows`` of a disruption budget is open, and outside of them it lets nothing go. The first opens
    at ``opens``; None is not within eight years."""

    code: ClassVar[str] = "outside-window"
    rule: str
    windows: tuple[str, ...]
    opens: datetime | None


@frozen
class BelowConsolidateAfter:
    """An empty node that has not stood empty long enough."""

    code: ClassVar[str] = "consolidate-after"
    empty_since: datetime
    until: datetime


@frozen
class InUse:
    """The node has ``pods`` pods that are not daemons, or is needed by pods of this plan."""

    code: ClassVar[str] = "in-use"
    pods: int
    planned: int


@frozen
class KeepsHeadroom:
    """``devices`` of the node are free, and the pool keeps so many spare for pods to come."""

    code: ClassVar[str] = "headroom"
    devices: int


@frozen
class BudgetExhausted:
    """``used`` of the ``allowed`` nodes are out already. ``error`` is what a rule's budget came to where it gave no
    number: then none may go."""

    code: ClassVar[str] = "budget-exhausted"
    budget: str
    allowed: int
    used: int
    error: str = ""


@frozen
class BaseCapacity:
    """The pool keeps ``nodes`` nodes without pods."""

    code: ClassVar[str] = "base-capacity"
    nodes: int


@frozen
class DoNotDisrupt:
    """The node, or ``pod`` on it, carries the do-not-disrupt annotation."""

    code: ClassVar[str] = "do-not-disrupt"
    pod: str = ""


@frozen
class ConsolidationOff:
    """The pool's policy never removes it: consolidation Never, consolidateAfter Never, or the pool is static."""

    code: ClassVar[str] = "consolidation-off"
    why: str


@frozen
class PoolUnknown:
    """No policy file names the claim's pool any more. That removes nothing."""

    code: ClassVar[str] = "pool-unknown"
    node_pool: str


@frozen
class NotInitialized:
    """The machine is launching or its node is not ready. ``stands_in``: for whom it comes, where that is for others."""

    code: ClassVar[str] = "not-initialized"
    stands_in: StandsIn | None = None


class Milestone(str, Enum):
    """How far a machine should have come."""

    LAUNCHED = "launched"
    REGISTERED = "registered"
    INITIALIZED = "initialized"


@frozen
class Overdue:
    """The machine should have reached ``milestone`` by ``deadline``. It is offered to no pod any more, and counts
    against limits; it stays since nothing proves that it is not there, or for the ``pods`` pods that run on it."""

    code: ClassVar[str] = "overdue"
    milestone: Milestone
    deadline: datetime
    pods: int = 0


@frozen
class Degraded:
    """The node advertises ``has`` of the ``promised`` devices of one resource, and no grace is left."""

    code: ClassVar[str] = "degraded"
    resource: str
    has: int
    promised: int


@frozen
class RemovalCap:
    code: ClassVar[str] = "removal-cap"
    cap: int


@frozen
class SeveralNodes:
    """The machine goes by ``nodes`` at once: a mark would close one of them, and pods could still come by another."""

    code: ClassVar[str] = "several-nodes"
    nodes: tuple[str, ...]


@frozen
class PodsUnseen:
    """Not one pod of the whole cluster was seen, although daemonsets have theirs on ``nodes`` nodes that are up. So
    nobody knows what runs on the machine."""

    code: ClassVar[str] = "pods-unseen"
    nodes: int


@frozen
class SavesTooLittle:
    """Without the node ``saving`` would be saved an hour, once its pods are elsewhere. ``least`` is asked for: an
    amount of its own, or a part of what goes. Below nothing: the others would cost more."""

    code: ClassVar[str] = "saves-too-little"
    saving: UsdPerHour
    least: UsdPerHour


@frozen
class RepaidTooLate:
    """Moving its pods costs ``cost_micros`` millionths of a dollar, for the time in which they start anew, and the
    ``saving`` repays that in ``repaid_in`` seconds, not ``within`` those that are asked for."""

    code: ClassVar[str] = "repaid-too-late"
    cost_micros: int
    saving: UsdPerHour
    repaid_in: int
    within: int


@frozen
class TooYoung:
    """The node is up for ``age_seconds``, and none goes for a saving before ``least_seconds``."""

    code: ClassVar[str] = "too-young"
    age_seconds: int
    least_seconds: int


@frozen
class NoOtherPlace:
    """``pod`` and others on the node, ``pods`` in all, would find no place but for it. ``refusals`` are that pod's."""

    code: ClassVar[str] = "no-other-place"
    pod: PodKey
    pods: int
    refusals: tuple[PoolRefusal, ...] = ()


# Why a node that may be vacated for a saving is not.
NotWorthVacating = SavesTooLittle | RepaidTooLate | TooYoung | NoOtherPlace


@frozen
class TooManyUnhealthy:
    """The node has been unhealthy for too long, by ``condition``, and so are more of its pool than may be by chance:
    ``unhealthy`` of ``nodes`` are, and above ``limit`` it is taken for a fault of what watches them."""

    code: ClassVar[str] = "too-many-unhealthy"
    condition: str
    unhealthy: int
    nodes: int
    limit: int


StayReason = (
    BelowConsolidateAfter
    | Drains
    | DetachesVolumes
    | InUse
    | KeepsHeadroom
    | BudgetExhausted
    | BaseCapacity
    | DoNotDisrupt
    | ConsolidationOff
    | PoolUnknown
    | NotInitialized
    | Overdue
    | Degraded
    | RemovalCap
    | PoolPaused
    | KarpenterOwnsPool
    | SeveralNodes
    | PodsUnseen
    | GuardrailBlocks
    | RuleKeeps
    | OutsideWindow
    | TooManyUnhealthy
    | AwaitsReplacement
    | StandsIn
    | NoPlace
    | PodHolds
    | RolloutWaits
    | NotQuiet
    | NewlyUp
    | MovedLately
    | Unbalanced
    | SavesTooLittle
    | RepaidTooLate
    | TooYoung
    | NoOtherPlace
)
