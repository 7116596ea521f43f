"""What a change of policy does, as values: what the screens, the Markdown and the JSON of ``diff`` are made from.

``base`` is how things are, ``head`` how they would be. Nothing here is a forecast: both sides are plans of one pass
over the same recorded moment.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Generic, TypeVar

from attrs import frozen

from engine.model.diagnostic import Diagnostic
from engine.model.money import FREE, UsdPerHour
from engine.model.rule import Enforcement, LimitedResource, RuleKind
from engine.policy.rules.ruling import TypeAt
from engine.report.snapshot_words import PodCounts

T = TypeVar("T")

WINDOW, SETTING = "window", "setting"
# What the name of a part begins with that is a rule's parameter.
PARAMETER = "params."
_RULE_KINDS = frozenset(kind.value for kind in RuleKind)
# What people read of a rule, by its YAML fields: no decision goes by it.
_WORDS = frozenset({"message", "messageExpression", "remedy", "docs", "labels"})
# Where files lie, and what a sandbox is made of.
_SETTINGS_WITHOUT_EFFECT = frozenset({"nodewright:policies", "nodewright:sandbox"})


@frozen
class Both(Generic[T]):
    base: T
    head: T

    @property
    def differs(self) -> bool:
        return self.base != self.head


class Change(str, Enum):
    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@frozen
class PoolDifference:
    """A pool after the plan of each side: ``nodes`` kept and launched, less those that leave or begin to.

    ``gpus`` are whole accelerators. ``there`` is whether the side's files have the pool.
    """

    name: str
    nodes: Both[int]
    gpus: Both[int]
    usd_per_hour: Both[UsdPerHour]
    there: Both[bool] = Both(True, True)

    @property
    def differs(self) -> bool:
        return self.nodes.differs or self.gpus.differs or self.usd_per_hour.differs or self.there.differs


@frozen
class LimitChange:
    """A pool's limit in base units; None is no limit."""

    node_pool: str
    resource: str
    limit: Both[int | None]


@frozen
class CeilingChange:
    """A limit rule's ceiling for a group at that moment, in the unit of `CeilingReached`; None: the rule sets none."""

    rule: str
    group: str
    resource: LimitedResource
    limit: Both[int | None]
    used: int


@frozen
class HeadroomChange:
    """Devices that a pool keeps free once each side's plan is done, in a zone or, where that is empty, anywhere.

    ``spare`` of ``wanted``; both are 0 on a side that keeps none there.
    """

    node_pool: str
    zone: str
    resource: str
    spare: Both[int]
    wanted: Both[int]


@frozen
class WorkloadPods:
    """``name`` is who owns the pods, such as ``Deployment inference/llm``."""

    name: str
    pods: int


@frozen
class TypesChange:
    """Types that are gained or lost for the same reason, in words."""

    types: tuple[TypeAt, ...]
    because: str


@frozen
class ClassDifference:
    """Pods that gain and lose types for the same reasons, each those of them that would hold it.

    ``fewest`` and ``most`` are how many types one of the pods may get on each side.
    """

    workloads: tuple[WorkloadPods, ...]
    gained: tuple[TypesChange, ...]
    lost: tuple[TypesChange, ...]
    fewest: Both[int]
    most: Both[int]

    @property
    def pods(self) -> int:
        return sum(each.pods for each in self.workloads)


@frozen
class BlockedDifference:
    """Waiting pods that get nothing on one side only; ``reasons`` are pools' refusals there, the nearest first."""

    workloads: tuple[WorkloadPods, ...]
    reasons: tuple[str, ...]
    is_new: bool

    @property
    def pods(self) -> int:
        return sum(each.pods for each in self.workloads)


@frozen
class RemovalDifference:
    """A machine that leaves, or begins to, on one side only."""

    claim: str
    node_pool: str
    instance_type: str
    usd_per_hour: UsdPerHour
    reason: str
    rule: str
    is_new: bool


@frozen
class KeptDifference:
    """Machines of a pool that stay on both sides, for another reason."""

    node_pool: str
    claims: tuple[str, ...]
    because: Both[str]


@frozen
class VerdictDifference:
    """What a rule says of the whole plan; empty where it says nothing."""

    rule: str
    kind: RuleKind
    enforcement: Enforcement
    said: Both[str]


@frozen
class ErrorsDifference:
    """How often a rule gave no answer, and what one of these came to."""

    rule: str
    errors: Both[int]
    sample: str


@frozen
class MomentDifference:
    """One environment at one recorded moment. ``note`` says what the moment is where it is no recorded snapshot.

    ``nodes`` are those that the snapshot's document has. Removals are machines that leave or begin to. Launches are of
    this one pass, which caps may cut short. ``foundation_differs``: network, roles or what a pool boots are others.
    """

    environment: str
    snapshot: str
    note: str
    taken_at: datetime
    nodes: int
    pods: PodCounts
    launches: Both[int]
    removals: Both[int]
    usd_per_hour: Both[UsdPerHour]
    pools: tuple[PoolDifference, ...] = ()
    ceilings: tuple[CeilingChange, ...] = ()
    headroom: tuple[HeadroomChange, ...] = ()
    classes: tuple[ClassDifference, ...] = ()
    blocked: tuple[BlockedDifference, ...] = ()
    removed: tuple[RemovalDifference, ...] = ()
    kept: tuple[KeptDifference, ...] = ()
    verdicts: tuple[VerdictDifference, ...] = ()
    errors: tuple[ErrorsDifference, ...] = ()
    foundation_differs: bool = False

    @property
    def has_effect(self) -> bool:
        counts = self.launches.differs or self.removals.differs or self.usd_per_hour.differs
        parts = (
            self.ceilings,
            self.headroom,
            self.classes,
            self.blocked,
            self.removed,
            self.kept,
            self.verdicts,
            self.errors,
        )
        pools = any(pool.differs for pool in self.pools)
        return counts or pools or self.foundation_differs or any(parts)

    @property
    def more_removals(self) -> int:
        return self.removals.head - self.removals.base

    @property
    def more_usd_per_hour(self) -> UsdPerHour:
        return self.usd_per_hour.head - self.usd_per_hour.base

    @property
    def more_gpus(self) -> int:
        return sum(pool.gpus.head - pool.gpus.base for pool in self.pools)


@frozen
class PartChange:
    """A part of a definition as text; None where the side lacks it. A rule's parameter is ``params.NAME``.

    ``place`` is FILE:LINE where it is the stack file that says so.
    """

    name: str
    text: Both[str | None]
    place: str = ""


@frozen
class DefinitionChange:
    """A rule, pool, class or window, or a setting of the stack file. ``place`` is FILE:LINE where that is known.

    Of a rule that differs only by what a stack file says of it, that is the stack file's.
    """

    kind: str
    name: str
    change: Change
    place: str = ""
    parts: tuple[PartChange, ...] = ()

    @property
    def is_of_rules(self) -> bool:
        return self.kind in _RULE_KINDS or self.kind == WINDOW

    @property
    def has_effect(self) -> bool:
        """Whether decisions may go by it at some moment, if at none of those compared."""
        if self.kind == SETTING:
            return self.name not in _SETTINGS_WITHOUT_EFFECT
        return self.change is not Change.CHANGED or not self.parts or bool(self.weighty_parts)

    @property
    def weighty_parts(self) -> tuple[PartChange, ...]:
        """Those that decisions may go by."""
        is_rule = self.kind in _RULE_KINDS
        return tuple(part for part in self.parts if not (is_rule and part.name in _WORDS))


@frozen
class CalendarChange:
    """From ``start`` to ``end`` another number of a pool's nodes may be out at once for a reason; in words."""

    node_pool: str
    reason: str
    start: datetime
    end: datetime
    allowed: Both[str]


@frozen
class EnvironmentDifference:
    """``change`` None: both sides have the environment. ``invalid`` are the findings of a side that does not load."""

    name: str
    change: Change | None = None
    invalid: Both[tuple[Diagnostic, ...]] = Both((), ())
    definitions: tuple[DefinitionChange, ...] = ()
    limits: tuple[LimitChange, ...] = ()
    calendar: tuple[CalendarChange, ...] = ()
    moments: tuple[MomentDifference, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        return bool(self.invalid.base or self.invalid.head)

    @property
    def has_effect(self) -> bool:
        return self.shows_effect or any(each.has_effect for each in self.definitions)

    @property
    def shows_effect(self) -> bool:
        """Whether anything that was compared comes out otherwise, and not the definitions alone."""
        own = self.change is not None or bool(self.limits or self.calendar)
        return own or any(moment.has_effect for moment in self.moments)


@frozen
class FindingChange:
    finding: Diagnostic
    is_new: bool


@frozen
class PolicyDifference:
    """``base`` and ``head`` name the sides as the person did, with the commit where it is one.

    ``over`` are thresholds that are passed, each a sentence.
    """

    sides: Both[str]
    environments: tuple[EnvironmentDifference, ...]
    findings: tuple[FindingChange, ...] = ()
    over: tuple[str, ...] = ()

    @property
    def is_invalid(self) -> bool:
        return any(each.is_invalid for each in self.environments)

    @property
    def has_effect(self) -> bool:
        return bool(self.findings) or any(each.has_effect for each in self.environments)

    @property
    def more_usd_per_hour(self) -> UsdPerHour:
        """The most that any moment adds."""
        added = (moment.more_usd_per_hour for each in self.environments for moment in each.moments)
        return max(added, default=FREE)

    @property
    def more_removals(self) -> int:
        """The most that any moment adds."""
        added = (moment.more_removals for each in self.environments for moment in each.moments)
        return max(added, default=0)
