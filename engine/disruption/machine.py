"""A machine of ours as disruption sees it: its claim, its node, and what holds the node."""

from __future__ import annotations

from datetime import datetime

from attrs import frozen

from engine.model.claim import Claim
from engine.model.node import Node
from engine.model.pod import PodKey
from engine.model.policy import NodePool
from engine.model.refusal import KarpenterOwnsPool, PoolPaused
from engine.model.stay import Degraded, Overdue, SeveralNodes


@frozen
class Machine:
    """A claim of a known pool, that stays in the document unless a reason is found for it to go.

    ``workload`` is how many pods on its nodes run or are going, the daemons' and mirror pods apart; ``guarded_by`` is
    the first pod on it that must not be disrupted, a daemon's included (Karpenter counts those too). ``movable`` are
    those of a marked node's pods that have a place elsewhere, where all have one. ``planned`` is how many pods, pending
    or movable, this plan would have come to it. ``spare`` is how many devices it keeps free as its pool's
    headroom. ``empty_since`` None: it was not seen empty before. ``held`` keeps it
    from any removal by choice; ``trouble`` is told where it stays all the same.
    """

    claim: Claim
    pool: NodePool
    node: Node | None
    is_initialized: bool
    workload: int = 0
    guarded_by: PodKey | None = None
    movable: tuple[PodKey, ...] = ()
    planned: int = 0
    spare: int = 0
    empty_since: datetime | None = None
    held: PoolPaused | KarpenterOwnsPool | SeveralNodes | None = None
    trouble: Overdue | Degraded | None = None

    @property
    def is_marked(self) -> bool:
        return self.node is not None and self.node.is_marked

    @property
    def serves(self) -> bool:
        """Whether pods run on it, or could: initialized and not on its way out."""
        return self.is_initialized and not self.is_marked
