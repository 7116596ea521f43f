"""What is told of machines that wait for others to take their place, and of those that do not wait. Values."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import ClassVar

from attrs import frozen

from engine.model.pod import PodKey
from engine.model.refusal import PoolRefusal


@frozen
class AwaitsReplacement:
    """The machine may go once ``claims`` are up: on their way already, or launched by this plan. ``why`` is the reason
    that it goes for, and what that says of it: ``Drifted: label stage none -> two``."""

    code: ClassVar[str] = "awaits-replacement"
    claims: tuple[str, ...]
    why: str = ""


@frozen
class StandsIn:
    """The machine came to take the place of ``claims``, whose machines are still there: ``nodes`` are their names, or
    their claims' while they have none. ``pods`` of theirs are to move to it."""

    code: ClassVar[str] = "stands-in"
    claims: tuple[str, ...]
    nodes: tuple[str, ...]
    pods: tuple[PodKey, ...] = ()


@frozen
class NoPlace:
    """The machine may go, and ``pod`` would find no other place: ``refusals`` are that pod's, best first.

    An empty ``pod``: it is the pool's base capacity that would be short.
    """

    code: ClassVar[str] = "no-place"
    pod: str
    refusals: tuple[PoolRefusal, ...]


class Hold(str, Enum):
    """Why a pod cannot be asked to leave its node."""

    NOBODYS = "nobodys"
    BEARS_THE_MARK = "bears-the-mark"
    BUDGET = "pdb"
    SEVERAL_BUDGETS = "two-pdbs"


@frozen
class PodHolds:
    """``pod`` cannot be asked to leave: nobody would make it again, it would come back to the marked node, or one or
    more PodDisruptionBudgets, ``budgets`` as NAMESPACE/NAME, hold it."""

    code: ClassVar[str] = "pod-holds"
    pod: str
    hold: Hold
    budgets: tuple[str, ...] = ()


@frozen
class RolloutWaits:
    """The machine drifted, and so did others: ``canaries`` of the pool go first. ``proven`` of those that took their
    place are up for long enough, ``on_trial`` are not yet; ``until`` is when the next one is, None while none is up.
    ``change`` says what it would be launched with otherwise today: ``Drifted: label stage none -> two``."""

    code: ClassVar[str] = "rollout-waits"
    canaries: int
    proven: int
    on_trial: int
    until: datetime | None = None
    change: str = ""


@frozen
class NotQuiet:
    """A pod came to the node, or left it, at ``since``; the node may go for money from ``until`` on."""

    code: ClassVar[str] = "not-quiet"
    since: datetime
    until: datetime


@frozen
class NewlyUp:
    """The node is up since then, and goes for money from ``until`` on."""

    code: ClassVar[str] = "newly-up"
    since: datetime
    until: datetime


@frozen
class MovedLately:
    """Pods on the node moved for money a while ago, and do so again from ``until`` on."""

    code: ClassVar[str] = "moved-lately"
    until: datetime


@frozen
class Unbalanced:
    """The pool's consolidation is Balanced: ``saved_percent`` of its cost would be saved for ``disturbed_percent`` of
    what it takes to move all of its pods, and that is less than half."""

    code: ClassVar[str] = "unbalanced"
    saved_percent: int
    disturbed_percent: int


@frozen
class DeleteFirst:
    """Why a machine goes before there is another place for its pods: ``refusals`` are why none can be made first. Of
    what the pool's own limits, a rule's ceiling or a reservation leave no room for; none: its policy says so."""

    refusals: tuple[PoolRefusal, ...] = ()
