"""A world in which pods that are asked to leave do so, and are made anew; images and prices can change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from attrs import evolve

from engine.model.plan import Kept, Launch, Plan, Removal, RemovalPhase
from engine.model.pod import Owner, Pod, PodKey, PodPhase
from engine.model.policy import Disruption, NodePool
from engine.model.snapshot import CloudFacts
from engine.model.stay import StayReason
from tests.builders import minutes, node_pool, pod
from tests.decide.world import IMAGES, World, policy

SET = Owner("ReplicaSet", "llm")
# Nothing goes for standing empty while a test looks.
STEADY = Disruption(consolidate_after=timedelta(days=9), budgets=())


def steady(name: str = "gpu", **more: object) -> NodePool:
    fields: dict[str, object] = {"disruption": STEADY, **more}
    return node_pool(name, **fields)  # type: ignore[arg-type]


def served(name: str, **more: object) -> Pod:
    """A pod that somebody makes again."""
    fields: dict[str, object] = {"gpu": 1, "owner": SET, **more}
    return pod(name, **fields)  # type: ignore[arg-type]


class GoingWorld(World):
    """``stays`` tells which pods the eviction API refuses. ``evicted`` are those that left, in their order;
    ``homeless`` those of them for which no open node had room at that moment."""

    def __init__(self, *args: object, stays: Callable[[Pod], bool] = lambda pod: False, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.stays = stays
        self.images: Mapping[str, str] = IMAGES
        self.evicted: list[PodKey] = []
        self.homeless: list[PodKey] = []

    def cloud(self) -> CloudFacts:
        images = {each.name: self.images for each in self.policy.node_classes}
        return evolve(super().cloud(), images=images)

    def apply(self, plan: Plan) -> None:
        super().apply(plan)
        for removal in plan.removals:
            for key in removal.pods if removal.phase is RemovalPhase.MARK else ():
                one = self.pods[key]
                if self.stays(one) or one.do_not_disrupt:
                    continue
                self.pods[key] = evolve(one, node_name=None, phase=PodPhase.PENDING)
                self.evicted.append(key)
                if self._node_for(self.pods[key]) is None:
                    self.homeless.append(key)
                else:
                    self.settle()

    def started(self, passes: int = 2, passing: timedelta = minutes(10)) -> GoingWorld:
        for _ in range(passes):
            self.turn(passing)
        return self

    def new_image(self) -> None:
        self.images = {variant: f"{image}-new" for variant, image in IMAGES.items()}

    def types(self) -> list[str]:
        return sorted(each.instance_type for each in self.running())


def of(*pods: Pod, pool: NodePool | None = None, **more: object) -> GoingWorld:
    return GoingWorld(policy(pool or steady()), pods, **more)


def stay(plan: Plan, node: str) -> StayReason:
    return next(each.reason for each in plan.kept if each.node == node)


def kept(plan: Plan, kind: type) -> list[Kept]:
    return [each for each in plan.kept if isinstance(each.reason, kind)]


def marks(plan: Plan) -> list[Removal]:
    return [each for each in plan.removals if each.phase is RemovalPhase.MARK]


def releases(plan: Plan) -> list[Removal]:
    return [each for each in plan.removals if each.phase is RemovalPhase.RELEASE]


def bought(plan: Plan) -> list[Launch]:
    return list(plan.launches)
