"""Small memory between passes. Losing it costs time, never safety."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from engine.model.interruption import Interruption
from engine.model.money import UsdPerHour
from engine.model.outcome import ClaimOutcome
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason


@frozen
class Unavailable:
    """What refused a launch, an offering or more than one: out until ``until``; ``refusals`` in a row set the back-off.

    ``quota`` names the quota of the account that was used up; empty where that was not the reason.
    """

    until: datetime
    refusals: int
    code: str
    quota: str = ""


@frozen
class Milestones:
    """When one claim's machine came how far, as first seen; None is not yet.

    ``asked_at`` is when a pass first saw the claim published; ``launched_at`` is EC2's launch time; ``registered_at``
    when its Node object was made; ``initialized_at`` when the node was first seen whole; ``image_pulled_at`` when the
    first container of a pod that is no daemon's ran there, ``first_pod_ready_at`` when the first such pod was ready.
    ``accelerators_short_since``: since when the node advertises fewer accelerators than it should. ``failed_at``: when
    a deadline had passed and no pod was there that it would have hurt; from then on the machine is on its way out.
    ``node_gone_since``: since when a node that was there is shown no more, although other nodes are.
    """

    launched_at: datetime | None = None
    registered_at: datetime | None = None
    initialized_at: datetime | None = None
    image_pulled_at: datetime | None = None
    first_pod_ready_at: datetime | None = None
    accelerators_short_since: datetime | None = None
    failed_at: datetime | None = None
    asked_at: datetime | None = None
    node_gone_since: datetime | None = None


@frozen
class FailedBringUps:
    """``failures`` machines of one pool in a row did not come up in time. After too many it launches nothing until
    ``until``, and then one at a time."""

    failures: int
    until: datetime


@frozen
class Owed:
    """Machines that a pool lost by no choice of ours, and has not launched again: what may be replaced, one for one,
    while rules let nothing else be launched.

    ``capacity`` is theirs together, one ``nodes`` each; ``since`` is when the last of them went.
    """

    capacity: Resources
    usd_per_hour: UsdPerHour
    since: datetime


@frozen
class Illness:
    """One condition of a node that says that it is not well: ``since`` when, ``well_since`` None while it says so.

    A condition that is well again keeps its clock until it has been so for a while: a reason that flaps resets nothing.
    """

    since: datetime
    well_since: datetime | None = None


@frozen
class PodsSeen:
    """How many pods, daemons apart, a node had when it was last looked at, and since when as many."""

    pods: int
    since: datetime


@frozen
class Moved:
    """A controller's pods moved for money, last ``at`` then; ``times`` in a row it were pods that came since the time
    before, so that nobody knows what moving them was good for."""

    at: datetime
    times: int


@frozen
class Disruption:
    """A removal by choice: ``begun_at`` its mark, ``acted_at`` the last pass that did anything for it."""

    node_pool: str
    reason: DisruptionReason
    begun_at: datetime
    acted_at: datetime


@frozen
class Ledger:
    """``unavailable`` by Offering.key; ``empty_since`` by claim name; ``instance_ids`` by claim name, once launched.

    ``unavailable_groups`` are offerings that one refusal bars together, by the name of what they share: a quota, the
    subnets of a node class in a zone, a capacity type.

    ``moved`` by ``NAMESPACE/KIND/NAME`` of a controller. ``pods_seen`` and
    ``drifted_since`` by claim name. ``milestones`` by claim name. ``planned`` are the claims that
    waiting pods were planned for, by ``NAMESPACE/NAME``: kept until the pod is bound, so that a binding that differs
    can be told. ``bring_ups`` by pool name: those whose
    last machine failed to come up. ``label_doubts`` are labels that were foretold of nodes and did not come, as ``POOL
    TYPE KEY``: not believed again until then. ``disruptions`` by claim name, for budgets that count what goes in one
    opening of a window: all removals by choice of the last eight days, and complete from ``counted_since`` on; None is
    unknown.

    ``interruptions`` by claim name: what AWS said of a machine that it takes away, the message itself gone by now.
    ``illnesses`` by claim name and the condition's type.

    ``owed`` by pool name. ``outcomes`` are the last pass's that still need an answer: launches that were refused or
    failed.
    ``settled_version`` is the newest document that converge reported settled: its removal records are done with.
    """

    unavailable: Mapping[str, Unavailable] = field(factory=dict)
    empty_since: Mapping[str, datetime] = field(factory=dict)
    instance_ids: Mapping[str, str] = field(factory=dict)
    outcomes: tuple[ClaimOutcome, ...] = ()
    settled_version: int = 0
    milestones: Mapping[str, Milestones] = field(factory=dict)
    planned: Mapping[str, str] = field(factory=dict)
    bring_ups: Mapping[str, FailedBringUps] = field(factory=dict)
    owed: Mapping[str, Owed] = field(factory=dict)
    disruptions: Mapping[str, Disruption] = field(factory=dict)
    counted_since: datetime | None = None
    label_doubts: Mapping[str, datetime] = field(factory=dict)
    unavailable_groups: Mapping[str, Unavailable] = field(factory=dict)
    moved: Mapping[str, Moved] = field(factory=dict)
    pods_seen: Mapping[str, PodsSeen] = field(factory=dict)
    drifted_since: Mapping[str, datetime] = field(factory=dict)
    interruptions: Mapping[str, Interruption] = field(factory=dict)
    illnesses: Mapping[str, Mapping[str, Illness]] = field(factory=dict)
