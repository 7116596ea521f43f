"""Why a pod got nothing, why a pool keeps less than it should: typed, with numbers. report/ puts them into words."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from attrs import frozen

from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.label_refusal import LabelDidNotCome
from engine.model.money import UsdPerHour
from engine.model.rule import LimitedResource
from engine.model.spare_refusal import GpuWaste, WaitsForSpareCapacity
from engine.model.volume_refusal import VolumeNotReady


@frozen
class TaintNotTolerated:
    """The pod does not tolerate one of the pool's taints."""

    code: ClassVar[str] = "taint-not-tolerated"
    taint: str


@frozen
class RequirementMismatch:
    """The pod's requirement and what the pool offers have no value in common. ``offered`` may be empty: undefined.

    ``nearest`` is, for a bound on numbers, the value offered that misses it least.
    """

    code: ClassVar[str] = "requirement-mismatch"
    key: str
    wanted: str
    offered: str
    nearest: str = ""


@frozen
class TooFewValues:
    """What the pod leaves of a pool shows fewer values of ``key`` than the pool's minValues, and the pool is strict.

    ``left`` are the values that are left, sorted, of at least ``min_values``.
    """

    code: ClassVar[str] = "too-few-values"
    key: str
    min_values: int
    left: tuple[str, ...]


@frozen
class Measured:
    """What a pod needs of a resource and what a type has of it once daemons have their ``daemon_overhead``."""

    resource: str
    needed: int
    has: int
    daemon_overhead: int = 0


@frozen
class NoTypeFits:
    """No permitted type holds the pod. ``needed`` and ``nearest_amount`` are of ``resource``, in base units.

    No type has enough of ``resource``; ``only_together``: each has enough of something, and none of it and ``also`` the
    others at once. ``nearest_type`` is the one that lacks fewest resources, then least, then costs least: ``also`` has
    what else it lacks. Its ``daemon_overhead`` is taken off.

    ``would_do`` is the cheapest type that would hold the pod but for ``barred_by``, a requirement of the pool or
    (``is_barred_by_pod``) of the pod; both are empty where there is none.
    """

    code: ClassVar[str] = "no-type-fits"
    resource: str
    needed: int
    nearest_amount: int
    nearest_type: str
    daemon_overhead: int = 0
    also: tuple[Measured, ...] = ()
    only_together: bool = False
    would_do: str = ""
    barred_by: str = ""
    is_barred_by_pod: bool = False


@frozen
class AcceleratorNotOffered:
    """No permitted type carries the accelerator asked for; ``offered`` are those that they do carry."""

    code: ClassVar[str] = "accelerator-not-offered"
    resource: str
    offered: tuple[str, ...]
    families: tuple[str, ...] = ()


@frozen
class NoPermittedType:
    """The pool's and the pod's requirements together leave no instance type of the catalog.

    ``decisive`` is the requirement that removed the last of them.
    """

    code: ClassVar[str] = "no-permitted-type"
    decisive: str


@frozen
class GpuPoolClosed:
    """A pod without an accelerator request does not go onto an accelerated node unless the pool is open to it."""

    code: ClassVar[str] = "gpu-pool-closed"


@frozen
class LimitReached:
    """A pool's limit: ``used`` runs or launches, ``planned`` this plan's, ``needed`` the least more that would do."""

    code: ClassVar[str] = "limit-reached"
    resource: str
    limit: int
    used: int
    planned: int
    needed: int


@frozen
class CapReached:
    """One pass's cap on launches or on added dollars an hour; the next pass goes on."""

    code: ClassVar[str] = "cap-reached"
    cap: str
    limit: str


@frozen
class OfferingsUnavailable:
    """Every offering that would do has refused a launch lately; the first comes back at ``until``. Where that is past,
    one launch of it is being tried.

    ``quota`` names the quota of the account that was used up, in Service Quotas; empty where that was not the reason.
    """

    code: ClassVar[str] = "offerings-unavailable"
    offerings: int
    until: datetime
    refusals: int
    last_code: str
    quota: str = ""


@frozen
class ReservedExhausted:
    """Only reserved capacity would do, and its ``slots``, of so many ``reservations``, are taken, by this plan too."""

    code: ClassVar[str] = "reserved-exhausted"
    reservations: int
    slots: int


@frozen
class NoOffering:
    """Types would fit, but none is sold in the zones and capacity types that are permitted, or none has a price."""

    code: ClassVar[str] = "no-offering"
    types: int
    unpriced: int


@frozen
class PoolNotReady:
    """The pool cannot launch: its node class is unknown, or a selector of it matches nothing."""

    code: ClassVar[str] = "pool-not-ready"
    why: str


@frozen
class PoolIsStatic:
    """A pool with replicas makes no node for a pod."""

    code: ClassVar[str] = "pool-is-static"


@frozen
class UnsupportedConstraint:
    """The pod uses a constraint that this engine does not place yet, so it would only guess."""

    code: ClassVar[str] = "unsupported-constraint"
    constraints: tuple[str, ...]


@frozen
class PoolPaused:
    """The pool is paused: nothing of it is launched, nor removed by choice. ``why`` is what its file says."""

    code: ClassVar[str] = "pool-paused"
    why: str


@frozen
class KarpenterOwnsPool:
    """A Karpenter that is live in the cluster has a NodePool of this name, or owns the machine: two would act on it."""

    code: ClassVar[str] = "karpenter-owns-pool"
    node_pool: str


@frozen
class BringUpsFailed:
    """``failures`` machines of the pool in a row did not come up in time. The next is tried, alone, at ``until``; where
    that is past, one is being tried."""

    code: ClassVar[str] = "bring-ups-failed"
    failures: int
    until: datetime


@frozen
class FoundationBusy:
    """The launch needs a launch template that ``stack`` has yet to make, and an update of that stack is under way."""

    code: ClassVar[str] = "foundation-busy"
    stack: str


@frozen
class RuleForbids:
    """Requirement rules leave none of the ``types`` instance types that would fit; ``rule`` removed the last of them.

    ``message`` is that rule's. Of the types, ``errors`` went because a rule could not be evaluated: ``sample`` is what
    one of these came to, empty when there is none. ``example`` is the cheapest that ``rule`` removed, as
    TYPE/CAPACITY-TYPE.
    """

    code: ClassVar[str] = "rule-forbids"
    rule: str
    message: str
    types: int
    errors: int = 0
    sample: str = ""
    example: str = ""


@frozen
class CeilingReached:
    """A limit rule's ceiling: ``used`` runs or launches in the group, ``planned`` is this plan's, ``needed`` the least
    more that would do. Amounts are in the unit of ``resource``: cpu in millicores, memory in bytes, usdPerHour in
    millionths of a dollar, others as a count.

    ``error`` is what the rule came to where it gave no number: then ``limit`` is what is used, so nothing is added.
    ``message`` is the rule's, for this group.
    """

    code: ClassVar[str] = "ceiling-reached"
    rule: str
    group: str
    resource: LimitedResource
    limit: int
    used: int
    planned: int
    needed: int
    error: str = ""
    message: str = ""


@frozen
class GuardrailBlocks:
    """A guardrail does not let the plan through, so what it blocks is not done. ``message`` is the guardrail's;
    ``error`` what it came to where it gave no answer."""

    code: ClassVar[str] = "guardrail-blocks"
    rule: str
    message: str
    error: str = ""


PoolClosed = PoolNotReady | PoolPaused | KarpenterOwnsPool | BringUpsFailed

Refusal = (
    TaintNotTolerated
    | RequirementMismatch
    | TooFewValues
    | NoTypeFits
    | AcceleratorNotOffered
    | NoPermittedType
    | GpuPoolClosed
    | LimitReached
    | CapReached
    | OfferingsUnavailable
    | ReservedExhausted
    | NoOffering
    | PoolNotReady
    | PoolIsStatic
    | UnsupportedConstraint
    | PoolPaused
    | KarpenterOwnsPool
    | BringUpsFailed
    | FoundationBusy
    | RuleForbids
    | CeilingReached
    | GuardrailBlocks
    | VolumeNotReady
    | SpreadUnsatisfiable
    | AffinityUnsatisfiable
    | AntiAffinityInTheWay
    | HostPortTaken
    | GpuWaste
    | WaitsForSpareCapacity
    | LabelDidNotCome
)


@frozen
class PoolRefusal:
    """One pool's refusal of one pod; ``node_pool`` empty: a refusal that is no pool's."""

    node_pool: str
    refusal: Refusal


@frozen
class LostOffering:
    """An offering that would have done and lost: dearer by ``extra_usd_per_hour``."""

    offering: str
    usd_per_hour: UsdPerHour
    extra_usd_per_hour: UsdPerHour
