"""What a node of ours lacks, step by step from its first sight until pods may run on it."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

from attrs import evolve

from engine.decide import decide
from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.ledger import Ledger, Milestones
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts, Snapshot
from engine.reconcile.hands import Chores, chores_of, nominate_and_register
from engine.reconcile.ports import Ports
from engine.reconcile.registrations import Registration, Step, registrations
from tests.builders import (
    ANYTHING,
    NOON,
    catalog,
    claim,
    document,
    environment,
    minutes,
    node,
    node_pool,
    pod,
    snapshot,
    taint,
)
from tests.decide.test_fleet import instance
from tests.decide.world import policy

POOL = node_pool(taints=[taint("gpu")], startup_taints=[taint("cilium")])
ONE = claim("gpu-1", pool=POOL)
UNREGISTERED = Taint(keys.UNREGISTERED_TAINT, "", TaintEffect.NO_EXECUTE)
CAME = node("n", instance_id="i-1", taints=[taint("gpu"), UNREGISTERED], created=NOON)
NO_GPU = Resources({**CAME.allocatable, NVIDIA_GPU: 0})
WANTED = PodKey("default", "wanted")


def looked(there: Node, at: float = 1.0, milestones: Milestones | None = None) -> tuple[Plan, Snapshot]:
    """``at`` minutes after NOON, with a pod waiting that was planned for the machine."""
    ledger = Ledger(
        instance_ids={"gpu-1": "i-1"},
        planned={str(WANTED): "gpu-1"},
        milestones={"gpu-1": milestones or Milestones(asked_at=NOON, launched_at=NOON)},
    )
    seen = snapshot(
        pods=[pod("wanted", gpu=1, tolerations=[ANYTHING])],
        nodes=[there],
        document=document(ONE),
        ledger=ledger,
        taken_at=NOON + minutes(at),
        cloud=CloudFacts(instances=(instance(),)),
    )
    return decide(seen, policy(POOL), catalog(), environment()), seen


def only(there: Node, at: float = 1.0) -> Registration:
    [found] = registrations(*looked(there, at))
    return found


def chores(there: Node) -> Chores:
    return chores_of(*looked(there))


class TestANodeThatCameClosed:
    def test_is_opened_at_once_when_it_is_whole(self) -> None:
        found = only(CAME)
        assert (found.step, found.taints) == (Step.REGISTER, ONE.taints)
        assert found.labels[keys.REGISTERED] == "true"
        assert found.labels.keys() >= ONE.labels.keys() - CAME.labels.keys()

    def test_is_held_while_its_gpus_are_not_there(self) -> None:
        assert only(evolve(CAME, allocatable=NO_GPU)).step is Step.HOLD

    def test_is_held_while_a_startup_taint_is_on_it(self) -> None:
        assert only(evolve(CAME, taints=(*CAME.taints, taint("cilium")))).step is Step.HOLD

    def test_tells_its_pods_when_it_opens_and_not_before(self) -> None:
        assert [told.pod for told in chores(CAME).nominations] == [WANTED]
        assert chores(evolve(CAME, allocatable=NO_GPU)).nominations == ()


class TestAHeldNode:
    HELD = evolve(
        CAME,
        # Kubernetes itself adds the second taint to a node that is cordoned.
        taints=(taint("gpu"), taint("node.kubernetes.io/unschedulable")),
        unschedulable=True,
        labels={**CAME.labels, **ONE.labels, keys.REGISTERED: "true", keys.HELD: "true"},
    )

    def test_stays_closed_and_its_pods_untold_until_its_gpus_come(self) -> None:
        without = evolve(self.HELD, allocatable=NO_GPU)
        assert registrations(*looked(without)) == ()
        assert chores(without).nominations == ()

    def test_opens_once_it_is_whole(self) -> None:
        assert only(self.HELD).step is Step.OPEN
        assert [told.node for told in chores(self.HELD).nominations] == ["n"]

    def test_is_not_bought_again_meanwhile(self) -> None:
        plan, _ = looked(evolve(self.HELD, allocatable=NO_GPU))
        assert plan.launches == ()
        assert [(placed.pod, placed.node) for placed in plan.placements] == [(WANTED, "n")]

    def test_that_is_marked_for_removal_is_not_offered(self) -> None:
        marked = evolve(self.HELD, taints=(*self.HELD.taints, taint(keys.DISRUPTED_TAINT)))
        plan, _ = looked(marked)
        assert plan.placements == ()


def test_a_node_that_came_open_is_never_closed() -> None:
    assert only(evolve(CAME, taints=(taint("gpu"),), allocatable=NO_GPU)).step is Step.REGISTER


def test_an_operators_cordon_is_not_ours_to_end() -> None:
    cordoned = evolve(
        CAME, taints=(taint("gpu"),), unschedulable=True, labels={**CAME.labels, **ONE.labels, keys.REGISTERED: "true"}
    )
    assert all(not found.opens for found in registrations(*looked(cordoned)))


def test_a_registered_node_that_lacks_nothing_is_left_alone() -> None:
    whole = evolve(
        CAME,
        taints=(taint("gpu"),),
        labels={**CAME.labels, **ONE.labels, keys.REGISTERED: "true", keys.INITIALIZED: "true"},
    )
    assert registrations(*looked(whole)) == ()


def opened(*waiting: Pod, allocatable: Sequence[Resources] = (CAME.allocatable,) * 2) -> list[str]:
    """The order in which two nodes are opened; the first pod is planned for the first, all others for the second."""
    claims = [claim(f"gpu-{number}", pool=POOL) for number in (1, 2)]
    nodes = [
        evolve(node(f"n-{number}", instance_id=f"i-{number}", taints=CAME.taints, created=NOON), allocatable=room)
        for number, room in enumerate(allocatable, 1)
    ]
    planned = {str(each.key): "gpu-1" if each is waiting[0] else "gpu-2" for each in waiting}
    ledger = Ledger(
        instance_ids={each.name: f"i-{number}" for number, each in enumerate(claims, 1)},
        planned=planned,
        milestones={each.name: Milestones(asked_at=NOON, launched_at=NOON) for each in claims},
    )
    seen = snapshot(
        pods=waiting,
        nodes=nodes,
        document=document(*claims),
        ledger=ledger,
        taken_at=NOON + minutes(1),
        cloud=CloudFacts(
            instances=tuple(evolve(instance(), id=f"i-{number}", claim=f"gpu-{number}") for number in (1, 2))
        ),
    )
    found = chores_of(decide(seen, policy(POOL), catalog(), environment()), seen)
    assert {each.node for each in found.nominations} == {"n-1", "n-2"}
    return [each.node for each in found.registrations]


def test_the_node_of_the_most_urgent_pod_is_opened_first() -> None:
    """kube-scheduler keeps no room for pods of lower priority than the one that it looks at."""
    low, other = (pod(name, gpu=1, tolerations=[ANYTHING], priority=at) for name, at in (("low", -10), ("other", 0)))
    assert opened(low, other) == ["n-2", "n-1"]


def test_a_node_with_room_to_spare_is_opened_after_those_that_their_pods_fill() -> None:
    """Else a pod that is not told its own node yet goes there, and its own stays empty."""
    one, other = (pod(name, gpu=1, tolerations=[ANYTHING]) for name in ("one", "other"))
    ample = Resources({**CAME.allocatable, NVIDIA_GPU: 2})
    assert opened(one, other, allocatable=(ample, CAME.allocatable)) == ["n-2", "n-1"]
    assert opened(one, other, allocatable=(CAME.allocatable, ample)) == ["n-1", "n-2"]


def test_pods_are_told_their_node_again_once_it_is_open() -> None:
    """One that was tried between being told and the opening has forgotten it."""
    done: list[str] = []

    class Recorder:
        def nominate(self, pod: PodKey, node_name: str) -> str:
            done.append(f"{pod.name} to {node_name}")
            return ""

        def waiting(self) -> None:
            return None

        def register(self, node_name: str, *_: object, hold: bool) -> bool:
            done.append(f"{node_name} opened")
            return not hold

    ports = SimpleNamespace(nominator=Recorder(), registrar=Recorder())
    nominate_and_register(cast("Ports", ports), chores(CAME))
    assert done == ["wanted to n", "n opened", "wanted to n"]
