"""Draining in whole decisions: a node with daemons, and case 46 (aws#7708, core#1702): a grace period that comes to its
end under a pod that must not be disrupted."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import evolve

from engine.model.plan import Plan, RemovalPhase
from engine.model.pod import Owner, PodPhase
from engine.model.policy import Disruption
from engine.model.reason import DisruptionReason
from engine.model.stay import DoNotDisrupt
from tests.builders import minutes, node_pool, pod
from tests.decide.world import policy
from tests.disruption.going_world import STEADY, GoingWorld, served, stay

HOUR = timedelta(hours=1)
AT_ONCE = Disruption(consolidate_after=timedelta(), budgets=())


class DrainWorld(GoingWorld):
    """Marks tell their time, and who is deleted is made anew, as who is asked is. ``deleted`` are those, with when;
    ``marked`` is when each node was marked first."""

    def __init__(self, *args: object, **more: object) -> None:
        super().__init__(*args, **more)  # type: ignore[arg-type]
        self.deleted: list[tuple[str, datetime]] = []
        self.marked: dict[str, datetime] = {}

    def mark(self, name: str) -> None:
        before = self.nodes[name]
        if not before.is_marked:
            super().mark(name)
            self.marked[name] = self.now
            self.nodes[name] = evolve(self.nodes[name], marked_at=self.now, marked_for=DisruptionReason.DRIFTED)

    def apply(self, plan: Plan) -> None:
        super().apply(plan)
        for key in [each.pod for removal in plan.removals for each in removal.forced]:
            self.deleted.append((key.name, self.now))
            self.pods[key] = evolve(self.pods[key], node_name=None, phase=PodPhase.PENDING, do_not_disrupt=False)
        for key in [key for removal in plan.removals for key in removal.pods if key in self.pods]:
            if self.pods[key].is_daemon:
                del self.pods[key]


def guarded(grace: timedelta | None) -> DrainWorld:
    """A machine of an older image, with a pod that must not be disrupted."""
    pool = node_pool(disruption=STEADY, termination_grace_period=grace)
    world = DrainWorld(policy(pool), [served("train", do_not_disrupt=True)])
    world.started()
    world.new_image()
    return world


def test_a_drifted_node_with_a_guarded_pod_goes_at_the_end_of_its_grace_period_another_being_up() -> None:
    world = guarded(HOUR)
    (old,) = world.nodes
    for _ in range(12):
        world.turn(minutes(10))

    assert world.deleted == [("train", world.marked[old] + HOUR)]
    assert world.evicted == []
    [machine] = world.running()
    assert f"node-{machine.id}" != old
    [train] = world.pods.values()
    assert train.node_name == f"node-{machine.id}"


def test_without_a_grace_period_it_stays_and_says_for_whom() -> None:
    world = guarded(None)
    (old,) = world.nodes
    for _ in range(12):
        plan = world.turn(minutes(10))

    assert (world.deleted, world.evicted, [*world.nodes]) == ([], [], [old])
    assert stay(plan, old) == DoNotDisrupt(pod="default/train")


def test_an_empty_node_is_let_go_once_its_daemons_have_left() -> None:
    world = DrainWorld(policy(node_pool(disruption=AT_ONCE)), [served("web")])
    world.started()
    (name,) = world.nodes
    logs = pod("logs", node=name, owner=Owner("DaemonSet", "logs"))
    world.pods[logs.key] = logs
    world.finish([each for each in world.pods.values() if each.key.name == "web"])

    steps = []
    for _ in range(4):
        plan = world.turn(minutes(1))
        steps += [(each.phase, [key.name for key in each.pods]) for each in plan.removals]
    assert steps == [(RemovalPhase.MARK, []), (RemovalPhase.MARK, ["logs"]), (RemovalPhase.RELEASE, [])]
    assert world.running() == []
