"""The plan: everything one pass would do, and a reason for all that it would not."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from attrs import frozen

from engine.model.claim import Claim
from engine.model.document import DesiredDocument, RemovalRecord
from engine.model.drain import ForcedEviction
from engine.model.ledger import Ledger
from engine.model.money import UsdPerHour
from engine.model.packing_bound import PackingBound
from engine.model.pending import Pending
from engine.model.pod import PodKey
from engine.model.refusal import LostOffering, PoolRefusal, Refusal
from engine.model.replacement import DeleteFirst
from engine.model.reservation import IdleReservation
from engine.model.rule import ActionClass, Enforcement, RuleKind
from engine.model.stay import StayReason

SCHEMA_VERSION = 1


class LaunchReason(str, Enum):
    PENDING_PODS = "PendingPods"
    BASE_CAPACITY = "BaseCapacity"
    HEADROOM = "Headroom"
    REPLACEMENT = "Replacement"


@frozen
class RelaxedMinValues:
    """A pool's minValues of ``key`` that its pods do not allow: of ``min_values`` values ``left`` were left."""

    key: str
    min_values: int
    left: int


@frozen
class Launch:
    """One new machine. ``pods`` are those it is planned for; ``lost`` the next-best offerings, cheapest first.

    ``relaxed`` is what its pool asked for and these pods left no room for, in key order. ``gpus_wasted`` is how many of
    its GPUs they leave unused. ``next_best`` are keys of offerings, advice for the pass after a refusal: the same
    machine in other zones, then what lost. ``displaced`` are pods that run, on the machines that the claim replaces,
    and are to move here.
    """

    claim: Claim
    reason: LaunchReason
    pods: tuple[PodKey, ...] = ()
    lost: tuple[LostOffering, ...] = ()
    gpus_wasted: int = 0
    relaxed: tuple[RelaxedMinValues, ...] = ()
    next_best: tuple[str, ...] = ()
    displaced: tuple[PodKey, ...] = ()


class RemovalPhase(str, Enum):
    """A removal takes passes: MARK cordons and taints the node and evicts what is left; RELEASE lets the machine go."""

    MARK = "mark"
    RELEASE = "release"


@frozen
class Kept:
    """A machine that stays, with the first reason that keeps it. ``pending`` is what it is to go for all the same, once
    nothing keeps it. ``drained_by``: it is marked, and what is left of its pods is deleted by then, whatever holds
    them; None where nothing is."""

    claim: str
    node: str | None
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str
    usd_per_hour: UsdPerHour
    reason: StayReason
    pending: tuple[Pending, ...] = ()
    drained_by: datetime | None = None


@frozen
class Placement:
    """A pending pod that fits on what is there: a node, or a claim in flight."""

    pod: PodKey
    node: str | None
    claim: str | None


@frozen
class Removal:
    """``pods`` are asked to leave by this plan, and ``places`` are where those of the machine would go. ``saving`` is
    the machine's price less that of what takes its place, None where it goes by nobody's choice, or first.
    ``delete_first``: no place is made ready before. ``drained_by``: as of a machine that is kept."""

    record: RemovalRecord
    phase: RemovalPhase
    pods: tuple[PodKey, ...] = ()
    # Deleted whatever holds them there, and not asked: their pool's terminationGracePeriod comes to its end.
    forced: tuple[ForcedEviction, ...] = ()
    places: tuple[Placement, ...] = ()
    saving: UsdPerHour | None = None
    delete_first: DeleteFirst | None = None
    drained_by: datetime | None = None


@frozen
class Nomination:
    """A pending pod whose node has registered by now: kube-scheduler is told to bind it there."""

    pod: PodKey
    node: str


@frozen
class BindingDifference:
    """A pod that kube-scheduler bound to another node than the plan had for it. ``planned`` is a claim's name."""

    pod: PodKey
    planned: str
    node: str


@frozen
class Unplaced:
    """A pending pod that gets nothing in this plan; one refusal for each pool, best first."""

    pod: PodKey
    refusals: tuple[PoolRefusal, ...]


@frozen
class BaseShortfall:
    """A pool that keeps fewer nodes than its base capacity, and why no more are launched."""

    node_pool: str
    wanted: int
    have: int
    refusal: Refusal


@frozen
class HeadroomUse:
    """Devices that a pool keeps free for pods to come, in one ``zone`` of it or, where that is empty, anywhere.

    ``spare`` are free once this plan is done, or held by pods that make way; ``refusals`` are why they are no more,
    each told once; none where they are as many as ``wanted``.
    """

    node_pool: str
    zone: str
    resource: str
    wanted: int
    spare: int
    refusals: tuple[Refusal, ...] = ()


@frozen
class LimitUse:
    """How much of a limit runs, is launching and is planned; amounts in base units, usdPerHour in millionths.

    Of a pool's own limit, or of a limit ``rule``'s for one ``group``: then ``resource`` is a `LimitedResource`, and
    ``node_pool`` is empty where the group is of pods, or spans pools.
    """

    node_pool: str
    resource: str
    limit: int
    used: int
    planned: int
    rule: str = ""
    group: str = ""


class VerdictOutcome(str, Enum):
    """What a rule said of the plan. ``ERROR``: it gave no answer, which is never taken for one."""

    HOLDS = "holds"
    VIOLATED = "violated"
    ERROR = "error"


@frozen
class Verdict:
    """A rule's word on the plan. ``message`` is the rule's, empty where it holds; ``error`` what it came to without an
    answer. ``blocked`` is what was left out of the plan on its account; ``()`` for a rule that only warns or counts.
    ``pods`` and ``types`` are a ``require``'s: how many waiting pods it keeps, or would keep, from how many
    instance types in all, or could not judge.
    """

    rule: str
    kind: RuleKind
    enforcement: Enforcement
    outcome: VerdictOutcome
    message: str = ""
    error: str = ""
    blocked: tuple[ActionClass, ...] = ()
    pods: int = 0
    types: int = 0


@frozen
class Plan:
    """Same inputs, byte-identical plan. ``hash`` is of all that the plan does: not of itself, nor of when it was
    decided, nor of ``ledger``, nor of ``packing``, nor of ``idle_reservations``, which are in id order.

    ``document`` is the desired document that this plan proposes; equal to the published one when nothing changes but
    the version. ``base_version`` is the version it was decided on, 0 when none was published.
    ``repriced`` are claims whose reservation has ended: they are on-demand from now on, in name order.
    ``ledger`` is the memory that the next pass starts from. ``paused`` says why nothing of this plan is to be done;
    empty is not paused. ``nominations`` and ``binding_differences`` are in pod order; ``headroom`` in that of pools,
    resources and zones. ``verdicts`` are in the order of
    rules' names: of each guardrail, and of other rules where they have something to say of the whole plan. ``packing``
    is None where nothing is launched for a pod, or not all that was to be.
    """

    environment: str
    decided_at: datetime
    base_version: int
    policy_digest: str
    catalog_digest: str
    launches: tuple[Launch, ...]
    removals: tuple[Removal, ...]
    kept: tuple[Kept, ...]
    placements: tuple[Placement, ...]
    unplaced: tuple[Unplaced, ...]
    base_shortfalls: tuple[BaseShortfall, ...]
    limits: tuple[LimitUse, ...]
    usd_per_hour_before: UsdPerHour
    usd_per_hour_after: UsdPerHour
    document: DesiredDocument
    foundation_changes: bool
    ledger: Ledger
    nominations: tuple[Nomination, ...] = ()
    headroom: tuple[HeadroomUse, ...] = ()
    idle_reservations: tuple[IdleReservation, ...] = ()
    binding_differences: tuple[BindingDifference, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    packing: PackingBound | None = None
    paused: str = ""
    repriced: tuple[str, ...] = ()
    hash: str = ""
    schema: int = SCHEMA_VERSION

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do: no launch, no removal, no claim that has another price, and the foundation
        stands as declared."""
        return not (self.launches or self.removals or self.foundation_changes or self.repriced)
