"""One machine that is to leave, as a pass finds it: its node, the pods there, and what a removal of it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve, frozen

from engine.decide.draining import Drained, drained
from engine.decide.fleet import Fleet, Sighting
from engine.model.constraint import DISRUPTED
from engine.model.document import RemovalRecord
from engine.model.ledger import Ledger
from engine.model.plan import Removal, RemovalPhase
from engine.model.pod import Owner, Pod, PodPhase
from engine.model.policy import NodePool
from engine.model.reason import DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.stay import StayReason
from engine.model.workload import Workload
from tests.builders import NOON, claim, node, node_pool, pod, snapshot

SET, DAEMONS = Owner("ReplicaSet", "llm"), Owner("DaemonSet", "logs")
CLAIM, NODE = "gpu-00001", "node-1"


def on_node(name: str, owner: Owner | None = SET, **more: Any) -> Pod:
    """A running pod of the node; ``more`` are fields of Pod, and ``tolerations``."""
    made = pod(name, node=NODE, owner=owner, tolerations=more.pop("tolerations", ()))
    return evolve(made, phase=PodPhase.RUNNING, ready_at=NOON, **more)


@frozen
class Scene:
    """``marked_at`` None: the node bears no mark yet. ``now`` is the moment of the pass."""

    pods: tuple[Pod, ...]
    pool: NodePool = node_pool()
    marked_at: datetime | None = NOON
    now: datetime = NOON
    workload: Workload = Workload()
    reason: DisruptionReason = DisruptionReason.DRIFTED
    ledger: Ledger = Ledger()

    def removal(self, phase: RemovalPhase, pods: Iterable[Pod] = ()) -> Removal:
        one = claim(CLAIM)
        keys = tuple(sorted(each.key for each in pods))
        record = RemovalRecord(one.name, one.node_pool, self.reason, "gpu: drifted", NOON, one.usd_per_hour, NODE)
        return Removal(record, phase, pods=keys)

    def drained(
        self,
        *removals: Removal,
        stays: Mapping[str, StayReason] | None = None,
        blocked: GuardrailBlocks | None = None,
    ) -> Drained:
        mark: dict[str, Any] = {}
        if self.marked_at is not None:
            mark = {
                "unschedulable": True,
                "taints": (DISRUPTED,),
                "marked_at": self.marked_at,
                "marked_for": self.reason,
            }
        there = node(NODE, **mark)
        sighting = Sighting(claim(CLAIM), node=there, pods=self.pods)
        fleet = Fleet((sighting,), (), (), {})
        seen = snapshot(pods=self.pods, nodes=[there], taken_at=self.now, workload=self.workload, ledger=self.ledger)
        return drained(removals, stays or {}, fleet, {CLAIM: self.pool}, seen, blocked)

    def marked(self, *pods: Pod) -> Drained:
        """What comes of a removal that asks these pods."""
        return self.drained(self.removal(RemovalPhase.MARK, pods))

    def released(self) -> Drained:
        """What comes of a removal that lets the machine go."""
        return self.drained(self.removal(RemovalPhase.RELEASE))


def asked(found: Drained) -> list[str]:
    """The pods that are asked to leave."""
    return [key.name for removal in found.removals for key in removal.pods]


def forced(found: Drained) -> list[str]:
    """The pods that are deleted."""
    return [each.pod.name for removal in found.removals for each in removal.forced]


def phases(found: Drained) -> list[RemovalPhase]:
    return [removal.phase for removal in found.removals]
