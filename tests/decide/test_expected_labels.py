"""A pod that selects on a label which comes after boot gets a node; a promise that is not kept is made once."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve

from engine.catalog.predicted_labels import GPU_PRODUCT, predicted_labels
from engine.decide.expected_labels import given_labels
from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.constraint import Operator, Requirement
from engine.model.label_refusal import LabelDidNotCome
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import Disruption, NodePool
from tests.builders import (
    G5_XLARGE,
    G6F_LARGE,
    M5_LARGE,
    P5_48XLARGE,
    TYPES,
    minutes,
    node_pool,
    pod,
    requirement,
    taint,
    toleration,
)
from tests.decide.world import World, policy

NO_GPU = taint("nvidia.com/gpu")
BEARS = (toleration("nvidia.com/gpu"),)
A10G = {GPU_PRODUCT: "NVIDIA-A10G"}
G5_ONLY = requirement(keys.INSTANCE_TYPE, "In", "g5.xlarge")
KINDS = {kind.name: kind for kind in TYPES}


def pool(name: str = "gpu", **more: object) -> NodePool:
    fields: dict[str, object] = {"taints": (NO_GPU,), "disruption": Disruption(consolidate_after=timedelta(0)), **more}
    return node_pool(name, **fields)  # type: ignore[arg-type]


def selecting(name: str = "llm", **labels: str) -> Pod:
    return pod(name, gpu=1, selector=labels or A10G, tolerations=BEARS)


def discovered(claim: Claim, node: Node) -> Node:
    """What feature discovery makes of a node."""
    return evolve(node, labels={**node.labels, **predicted_labels(KINDS[claim.inputs.instance_type])})


def test_a_pod_that_selects_on_a_gpu_product_gets_a_node_that_will_have_it() -> None:
    world = World(policy(pool()), [selecting()], reports=discovered)
    [launch] = world.decide().launches
    assert launch.claim.inputs.instance_type == "g5.xlarge"
    world.turn()
    [placed] = world.pods.values()
    assert placed.node_name is not None


def test_no_machine_is_given_a_label_that_comes_by_itself() -> None:
    [launch] = World(policy(pool()), [selecting()]).decide().launches
    assert GPU_PRODUCT not in launch.claim.labels


def test_a_product_that_is_dear_is_bought_when_it_is_asked_for() -> None:
    h100 = selecting(**{GPU_PRODUCT: "NVIDIA-H100-80GB-HBM3"})
    [launch] = World(policy(pool()), [h100]).decide().launches
    assert launch.claim.inputs.instance_type == P5_48XLARGE.name


def test_memory_can_be_asked_for_in_numbers() -> None:
    wants = Requirement("nvidia.com/gpu.memory", Operator.GT, ("40000",))
    large = pod("large", gpu=1, affinity=[[wants]], tolerations=BEARS)
    [launch] = World(policy(pool()), [large]).decide().launches
    assert launch.claim.inputs.instance_type == P5_48XLARGE.name


def test_a_machine_on_its_way_is_waited_for() -> None:
    world = World(policy(pool()), [selecting()], registers=lambda claim: False)
    world.turn(minutes(1))
    assert world.decide().launches == ()


def test_a_node_whose_labels_come_late_is_waited_for() -> None:
    """Ready, whole, and for three minutes without what feature discovery will write."""
    late = World(policy(pool(disruption=Disruption(consolidate_after=timedelta(hours=1)))), [selecting()])
    for _ in range(4):
        late.turn(minutes(1))
    late.reports = discovered
    late.turn(minutes(1))
    assert len(late.launched_ever) == 1
    assert all(each.node_name for each in late.pods.values())


def test_where_nothing_writes_labels_one_node_is_tried_and_no_more_that_day() -> None:
    """The node is let go as empty; what was learnt of it stays, for all types of the pool."""
    h100 = selecting("other", **{GPU_PRODUCT: "NVIDIA-H100-80GB-HBM3"})
    world = World(policy(pool()), [selecting()])
    for _ in range(12):
        world.turn(minutes(10))
    world.pods[h100.key] = h100
    for _ in range(12):
        last = world.turn(minutes(10))
    assert len(world.launched_ever) == 1
    assert world.running() == []
    told = [each.refusal for unplaced in last.unplaced for each in unplaced.refusals]
    assert {each.key for each in told if isinstance(each, LabelDidNotCome)} == {GPU_PRODUCT}


def test_a_broken_promise_is_tried_again_after_a_day() -> None:
    world = World(policy(pool()), [selecting()])
    for _ in range(12):
        world.turn(minutes(10))
    assert len(world.launched_ever) == 1
    world.now += timedelta(hours=25)
    assert len(world.decide().launches) == 1


def test_labels_that_come_to_other_types_are_doubted_of_one_type_alone() -> None:
    def all_but_g5(claim: Claim, node: Node) -> Node:
        return node if claim.inputs.instance_type == G5_XLARGE.name else discovered(claim, node)

    h100 = selecting("h100", **{GPU_PRODUCT: "NVIDIA-H100-80GB-HBM3"})
    world = World(policy(pool()), [selecting(), h100], reports=all_but_g5)
    for _ in range(6):
        world.turn(minutes(10))
    assert world.pods[h100.key].node_name is not None
    doubts = set(world.ledger.label_doubts)
    assert f"gpu g5.xlarge {GPU_PRODUCT}" in doubts
    assert not any(doubt.startswith(("gpu *", "gpu p5")) for doubt in doubts)


def test_a_doubt_ends_when_the_label_comes() -> None:
    world = World(policy(pool(min_nodes=1, requirements=(G5_ONLY,))))
    for _ in range(3):
        world.turn(minutes(10))
    assert world.ledger.label_doubts
    world.reports = discovered
    for _ in range(2):
        world.turn(minutes(10))
    assert world.ledger.label_doubts == {}


def test_a_pass_in_which_nothing_happened_leaves_the_doubts_as_they_are() -> None:
    world = World(policy(pool(min_nodes=1, requirements=(G5_ONLY,))))
    for _ in range(3):
        world.turn(minutes(10))
    before = dict(world.ledger.label_doubts)
    assert before
    world.turn(minutes(10))
    assert world.ledger.label_doubts == before


def test_a_pool_names_labels_of_its_own_and_takes_others_back() -> None:
    shared = pool(expected_labels={GPU_PRODUCT: "NVIDIA-A10G-SHARED", "nvidia.com/gpu.memory": None})
    rules = policy(shared)
    assert World(rules, [selecting(**{GPU_PRODUCT: "NVIDIA-A10G-SHARED"})]).decide().launches
    assert not World(rules, [selecting()]).decide().launches
    assert not World(rules, [selecting(**{"nvidia.com/gpu.memory": "23028"})]).decide().launches


def test_a_requirement_about_a_product_leaves_types_that_have_it_and_labels_them() -> None:
    """As any custom key of a pool, the label is the machine's from its start; only which types may have it is known."""
    wants = requirement(GPU_PRODUCT, "In", "NVIDIA-A10G", "NVIDIA-H100-80GB-HBM3")
    given = given_labels(pool(requirements=(wants,)), TYPES)
    assert set(given) == {"g5.xlarge", "g5.2xlarge", "g5.12xlarge", "p5.48xlarge"}
    assert given["p5.48xlarge"] == {GPU_PRODUCT: "NVIDIA-H100-80GB-HBM3"}
    [launch] = World(policy(pool(requirements=(wants,))), [pod(gpu=1, tolerations=BEARS)]).decide().launches
    assert launch.claim.labels[GPU_PRODUCT] == "NVIDIA-A10G"


def test_a_requirement_that_no_type_can_meet_speaks_of_the_pools_own_label() -> None:
    own = requirement(GPU_PRODUCT, "In", "ours")
    assert set(given_labels(pool(requirements=(own,)), TYPES)) == set(KINDS)
    asks = selecting(**{GPU_PRODUCT: "ours"})
    [launch] = World(policy(pool(requirements=(own,))), [asks]).decide().launches
    assert launch.claim.labels[GPU_PRODUCT] == "ours"


def test_types_without_a_gpu_meet_a_requirement_that_the_label_be_absent() -> None:
    none = requirement(GPU_PRODUCT, "DoesNotExist")
    assert set(given_labels(pool(requirements=(none,)), (G5_XLARGE, M5_LARGE, G6F_LARGE))) == {"m5.large", "g6f.large"}
