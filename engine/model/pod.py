"""Pods and the daemonsets that put one on each node."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from enum import Enum
from functools import cached_property, total_ordering

from attrs import field, frozen

from engine.model import labels as keys
from engine.model.constraint import (
    DISRUPTED,
    HostPort,
    Operator,
    PodTerm,
    PreferredNodeTerm,
    Requirement,
    Toleration,
    TopologySpread,
)
from engine.model.quantity import NOTHING, Resources

_WITHOUT_POOL = Requirement(keys.NODE_POOL, Operator.DOES_NOT_EXIST)


# Who makes one pod for each node: a daemonset, and the node itself for its mirror pods.
DAEMON_OWNERS = frozenset({"DaemonSet", "Node"})


class PodPhase(str, Enum):
    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@frozen
class Owner:
    """The controller of a pod, such as ``ReplicaSet`` ``llm-7d9c``."""

    kind: str
    name: str


@total_ordering
@frozen(cache_hash=True)
class PodKey:
    namespace: str
    name: str

    def __lt__(self, other: PodKey) -> bool:
        # Written out: tens of thousands are sorted in a pass, and what attrs makes takes several times as long.
        return (self.namespace, self.name) < (other.namespace, other.name)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@frozen
class Placing:
    """What decides where a pod may go; equal values are placed alike, so pods group by it.

    ``requests`` are effective requests in base units (containers, init containers, sidecars, overhead; one ``pods``).
    ``affinity_terms`` are required node affinity: terms are ORed, requirements inside one are ANDed; ``()`` is none.
    ``spreads`` are topology spread constraints, of both kinds; ``pod_affinity`` and ``pod_anti_affinity`` are required
    terms. What is ``preferred`` only scores. ``volume_claims`` names the PersistentVolumeClaims of the pod's namespace
    that it mounts, those of ephemeral volumes by the names that they are made under. ``volume_terms`` is where its
    volumes can be reached, as node affinity is written and in force beside it; it is no word of the pod's own, so it
    takes no domain away from what the pod is spread over.
    ``unsupported`` names constraints of the pod that this engine does not place yet: such a pod is refused, with them.
    """

    requests: Resources
    node_selector: Mapping[str, str] = field(factory=dict)
    affinity_terms: tuple[tuple[Requirement, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    unsupported: tuple[str, ...] = ()
    spreads: tuple[TopologySpread, ...] = ()
    pod_affinity: tuple[PodTerm, ...] = ()
    pod_anti_affinity: tuple[PodTerm, ...] = ()
    preferred_terms: tuple[PreferredNodeTerm, ...] = ()
    preferred_pod_affinity: tuple[PodTerm, ...] = ()
    preferred_pod_anti_affinity: tuple[PodTerm, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    volume_claims: tuple[str, ...] = ()
    volume_terms: tuple[tuple[Requirement, ...], ...] = ()

    @cached_property
    def content(self) -> tuple[Hashable, ...]:
        """All of it, to be hashed and compared: equal content is placed alike."""
        return (
            self.requests,
            tuple(sorted(self.node_selector.items())),
            self.affinity_terms,
            self.tolerations,
            self.unsupported,
            self.spreads,
            self.pod_affinity,
            self.pod_anti_affinity,
            self.preferred_terms,
            self.preferred_pod_affinity,
            self.preferred_pod_anti_affinity,
            self.host_ports,
            self.volume_claims,
            self.volume_terms,
        )

    @cached_property
    def bears_the_mark(self) -> bool:
        """Whether it tolerates what a node that is to leave is tainted with."""
        return any(each.tolerates(DISRUPTED) for each in self.tolerations)

    @property
    def refuses_every_pool(self) -> bool:
        """Whether it asks for a node outside of every NodePool, as Karpenter's pods and our own runner's do."""
        return bool(self.affinity_terms) and all(_WITHOUT_POOL in term for term in self.affinity_terms)


@frozen
class Pod:
    """``nominated_node_name`` is the node that ``status`` names for it before it is bound.

    ``started_at`` is when the first of its containers ran, which is after its image was pulled; ``ready_at`` since when
    its Ready condition holds. ``images`` are those of its containers, init containers included, in order. ``grace`` is
    how long it is given to end once it is asked to; ``ends_by`` is when that time is over, of a pod that is going.
    ``warm_up`` is for how long it serves nobody once it starts anew, None: as long as its node's pool says.
    """

    key: PodKey
    placing: Placing
    created_at: datetime
    phase: PodPhase = PodPhase.PENDING
    node_name: str | None = None
    labels: Mapping[str, str] = field(factory=dict)
    owner: Owner | None = None
    priority: int = 0
    priority_class: str = ""
    do_not_disrupt: bool = False
    deleting: bool = False
    scheduling_gated: bool = False
    nominated_node_name: str | None = None
    started_at: datetime | None = None
    ready_at: datetime | None = None
    images: tuple[str, ...] = ()
    uid: str = ""
    grace: timedelta = timedelta(seconds=30)
    ends_by: datetime | None = None
    warm_up: timedelta | None = None

    @property
    def is_daemon(self) -> bool:
        return self.owner is not None and self.owner.kind in DAEMON_OWNERS

    @property
    def is_finished(self) -> bool:
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED)

    @property
    def is_to_be_bound(self) -> bool:
        """Whether the scheduler looks for a node for it: pending, bound nowhere, not going, not held back by a gate."""
        waits = self.phase is PodPhase.PENDING and self.node_name is None
        return waits and not (self.deleting or self.is_daemon or self.scheduling_gated)

    @property
    def is_waiting(self) -> bool:
        """Whether this pod waits for a node that could be ours: one that refuses every pool's nodes does not."""
        return self.is_to_be_bound and not self.placing.refuses_every_pool


@frozen
class DaemonSet:
    """A daemonset's pod template: its requests are overhead on each node that it can run on."""

    name: str
    placing: Placing = Placing(requests=NOTHING)
