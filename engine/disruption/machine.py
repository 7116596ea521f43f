"""A machine of ours as disruption sees it: its claim, its node, and what holds the node."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property

from attrs import evolve, field, frozen

from engine.disruption.change import Change
from engine.model.claim import Claim
from engine.model.node import Node
from engine.model.pod import Pod, PodKey, PodPhase
from engine.model.policy import NodePool
from engine.model.reason import DisruptionReason
from engine.model.refusal import KarpenterOwnsPool, PoolPaused
from engine.model.stay import Degraded, Overdue, PodsUnseen, SeveralNodes


@frozen
class Machine:
    """A claim of a known pool, that stays in the document unless a reason is found for it to go.

    ``workload`` is how many pods on its nodes run or are going, the daemons' and mirror pods apart; ``guarded_by`` is
    the first pod on it that must not be disrupted, a daemon's included (Karpenter counts those too). ``pods`` are
    those of the workload themselves. ``planned`` is how many pending pods this plan would have come to it. ``spare`` is
    how many devices it keeps free as its pool's headroom. ``empty_since`` None: it was not seen empty before. ``held``
    keeps it from any removal by choice; ``trouble`` is told where it stays all the same.

    ``is_coming``: it never was up, and is still expected to be. ``quiet_since`` is
    when a pod last came or left, None: never; its pods may move for money from ``may_move_at``
    on, None: at any time. ``successors`` are the claims that were launched to
    take its place. ``going_for`` is what it was marked for, None where that is not known or it is not marked.
    ``changes`` are in what ways it is other than what its pool would launch today, from ``template_today``, and
    ``drifted_since`` since when it is to be replaced, None: not seen before.
    """

    claim: Claim
    pool: NodePool
    node: Node | None
    is_initialized: bool
    workload: int = 0
    guarded_by: PodKey | None = None
    pods: Sequence[Pod] = field(default=(), eq=False, repr=False)
    planned: int = 0
    spare: int = 0
    empty_since: datetime | None = None
    held: PoolPaused | KarpenterOwnsPool | SeveralNodes | PodsUnseen | None = None
    trouble: Overdue | Degraded | None = None
    is_coming: bool = False
    initialized_at: datetime | None = None
    quiet_since: datetime | None = None
    may_move_at: datetime | None = None
    successors: tuple[str, ...] = ()
    going_for: DisruptionReason | None = None
    changes: tuple[Change, ...] = ()
    drifted_since: datetime | None = None
    template_today: str = ""

    @property
    def is_marked(self) -> bool:
        return self.node is not None and self.node.is_marked

    @property
    def serves(self) -> bool:
        """Whether pods run on it, or could: initialized and not on its way out."""
        return self.is_initialized and not self.is_marked

    @property
    def is_asked_for(self) -> bool:
        """Whether somebody asked for another node in its stead."""
        return self.node is not None and self.node.replace_asked

    @property
    def is_to_be_replaced(self) -> bool:
        return bool(self.changes) or self.is_asked_for

    @property
    def name(self) -> str:
        return self.claim.name

    @cached_property
    def displaced(self) -> tuple[Pod, ...]:
        """Those of its pods that would need another place, as they would wait for it; those that are going do not."""
        staying = (pod for pod in self.pods if not pod.deleting)
        waiting = (evolve(pod, node_name=None, phase=PodPhase.PENDING, nominated_node_name=None) for pod in staying)
        return tuple(sorted(waiting, key=lambda pod: (pod.key.namespace, pod.key.name)))
