"""A world whose machines are taken away or fall ill: pods leave what is marked, and their owners make them anew."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from attrs import evolve

from engine.model.interruption import Interruption, InterruptionKind
from engine.model.node import NodeCondition
from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Owner, Pod, PodPhase
from engine.model.policy import NodePool, Policy
from engine.model.snapshot import Snapshot
from tests.builders import NOON, minutes, node_pool, pod, requirement
from tests.decide.world import World, policy

SET = Owner("ReplicaSet", "llm")
CAPACITY_TYPE = "karpenter.sh/capacity-type"


def replicas(count: int, **more: Any) -> list[Pod]:
    return [pod(f"llm-{number}", gpu=1, owner=SET, **more) for number in range(count)]


def spot_pool(**more: Any) -> NodePool:
    return node_pool(requirements=(requirement(CAPACITY_TYPE, "In", "spot", "on-demand"),), **more)


class TakingWorld(World):
    """``messages`` are in the queue until a pass has been applied; ``evicts``: whether pods that are asked do leave.
    ``ails`` is what the nodes of instances say of their health."""

    def __init__(self, rules: Policy, pods: Iterable[Pod] = (), **more: Any) -> None:
        super().__init__(rules, pods, **more)
        self.messages: tuple[Interruption, ...] = ()
        self.ails: dict[str, NodeCondition] = {}
        self.evicts = True

    def snapshot(self, **more: Any) -> Snapshot:
        return super().snapshot(**{"interruptions": self.messages, **more})

    def apply(self, plan: Plan) -> None:
        super().apply(plan)
        self.messages = ()
        for removal in plan.removals:
            if removal.phase is RemovalPhase.MARK and self.evicts:
                for key in removal.pods:
                    gone = self.pods.pop(key)
                    again = evolve(gone.key, name=f"{gone.key.name}-again")
                    self.pods[again] = evolve(gone, key=again, node_name=None, phase=PodPhase.PENDING)

    def say(self, kind: InterruptionKind, instance: str, deadline: datetime | None = None) -> None:
        self.messages = (*self.messages, Interruption(kind, instance, self.now, deadline))

    def settle(self) -> None:
        super().settle()
        self.show_ails()

    def show_ails(self) -> None:
        """What ails a node is shown on it for as long as it is there, marked or not."""
        for instance, ail in self.ails.items():
            if (node := self.nodes.get(f"node-{instance}")) is not None:
                # The cluster tells of a transition at every turn: the reason flaps.
                told = evolve(ail, since=self.now if ail.status != "True" else ail.since)
                is_ready = ail.type != "Ready" or ail.status == "True"
                self.nodes[node.name] = evolve(node, conditions=(told,), ready=is_ready)

    def instance_of(self, one: Pod) -> str:
        return (self.pods[one.key].node_name or "").removeprefix("node-")


def running(pods: Iterable[Pod], **more: Any) -> TakingWorld:
    """A world whose pods run, each on a machine of its own, all of them up."""
    made = TakingWorld(policy(spot_pool(**more)), pods)
    made.turn(minutes(1))
    made.turn(minutes(1))
    assert all(each.node_name for each in made.pods.values())
    return made


def again(world: TakingWorld, most: int = 6, passing: timedelta = minutes(1)) -> list[Plan]:
    return [world.turn(passing) for _ in range(most)]


def condition(kind: str, status: str, since: datetime = NOON) -> NodeCondition:
    return NodeCondition(kind, status, since)
