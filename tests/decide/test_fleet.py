"""Claims, instances and nodes find each other, and absence proves nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve

from engine.decide.fleet import Fleet, Sighting, match
from engine.model import labels as keys
from engine.model.constraint import Taint
from engine.model.document import RemovalRecord
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState, Node
from engine.model.pod import PodPhase
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.reason import DisruptionReason
from engine.model.snapshot import CloudFacts, KarpenterFacts
from tests.builders import NOON, P5_48XLARGE, claim, document, minutes, node, node_pool, pod, snapshot, taint, usd

ONE = claim("gpu-1", pool=node_pool(startup_taints=[taint("cilium", "wait")]))


def instance(claim: str = "gpu-1", id_: str = "i-1", state: str = "running", after: float = 0) -> Instance:
    return Instance(
        id=id_,
        claim=claim,
        state=InstanceState(state),
        instance_type="g5.xlarge",
        zone="us-east-1a",
        capacity_type=keys.ON_DEMAND,
        launched_at=NOON + minutes(after),
    )


def record(claim: str = "gpu-9", reason: DisruptionReason = DisruptionReason.EMPTY) -> RemovalRecord:
    return RemovalRecord(claim=claim, node_pool="gpu", reason=reason, rule="gpu: test", since=NOON, usd_per_hour=usd(1))


def fleet(instances: Iterable[Instance] = (), nodes: Iterable[Node] = (), **more: Any) -> Fleet:
    published = more.pop("document", document(ONE))
    absent = more.pop("absent", ())
    cloud = CloudFacts(instances=tuple(instances), absent_claims=tuple(absent))
    return match(snapshot(nodes=nodes, cloud=cloud, document=published, **more))


def only(found: Fleet) -> Sighting:
    (sighting,) = found.sightings
    return sighting


def test_a_node_belongs_to_the_claim_whose_tag_its_instance_carries() -> None:
    nodes = [node("z", instance_id="i-3"), node("n", instance_id="i-1"), node("a", instance_id="i-2")]
    found = fleet([instance()], nodes)
    assert only(found).node == node("n", instance_id="i-1")
    assert [each.name for each in found.foreign_nodes] == ["a", "z"]


def test_an_empty_read_of_instances_loses_neither_claim_nor_node() -> None:
    found = fleet([], [node("n", instance_id="i-1")], ledger=Ledger(instance_ids={"gpu-1": "i-1"}))
    assert only(found).node is not None
    assert found.foreign_nodes == ()


def test_a_node_without_provider_id_belongs_to_nobody() -> None:
    found = fleet([], [node("bare")])
    assert only(found).node is None
    assert [each.name for each in found.foreign_nodes] == ["bare"]


def test_of_two_live_instances_the_recorded_one_is_the_claims() -> None:
    doubled = [instance(id_="i-1"), instance(id_="i-2", after=1)]
    assert only(fleet(doubled)).instance == only(fleet(reversed(doubled))).instance == doubled[0]
    assert only(fleet(doubled, ledger=Ledger(instance_ids={"gpu-1": "i-2"}))).instance == doubled[1]


@pytest.mark.parametrize("state", ["shutting-down", "terminated"])
def test_an_instance_that_is_going_is_seen_dead(state: str) -> None:
    sighting = only(fleet([instance(state=state)]))
    assert sighting.instance is None
    assert sighting.seen_dead is not None


def test_a_live_instance_outweighs_a_dead_one_of_the_same_claim() -> None:
    sighting = only(fleet([instance(id_="i-1", state="terminated"), instance(id_="i-2", after=1)]))
    assert sighting.instance is not None
    assert sighting.instance.id == "i-2"
    assert sighting.seen_dead is None


def test_finished_pods_are_on_no_node() -> None:
    pods = [pod("a", node="n"), pod("b", node="n", phase=PodPhase.SUCCEEDED)]
    found = only(fleet([instance()], [node("n", instance_id="i-1")], pods=pods))
    assert [each.key.name for each in found.pods] == ["a"]


def short(gpus: int) -> Node:
    return evolve(node("n"), allocatable=Resources({**node().allocatable, NVIDIA_GPU: gpus}))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (node("n"), True),
        (short(0), True),
        (node("n", ready=False), False),
        (node("n", deleting=True), False),
        (node("n", taints=[taint("cilium", "wait")]), False),
        (node("n", taints=[taint("node.kubernetes.io/not-ready")]), False),
        (node("n", taints=[taint(keys.UNREGISTERED_TAINT)]), False),
        (node("n", taints=[taint("team", "a")]), True),
        (node("n", taints=[taint(keys.DISRUPTED_TAINT)], unschedulable=True), True),
        (evolve(node("n"), allocatable=Resources({"cpu": 0, "memory": 2**30, "pods": 58})), False),
        (None, False),
    ],
)
def test_a_node_is_up_once_it_can_run_pods(seen: Node | None, expected: bool) -> None:
    assert Sighting(claim=ONE, node=seen).is_up is expected


def test_a_resource_that_a_node_never_reports_keeps_it_from_nothing() -> None:
    with_efa = evolve(ONE, allocatable=ONE.allocatable + Resources({"vpc.amazonaws.com/efa": 1}))
    assert Sighting(claim=with_efa, node=node("n")).is_up
    assert Sighting(claim=with_efa, node=node("n")).short_of is None


def test_any_missing_accelerator_is_one_too_few() -> None:
    big = claim("gpu-8", P5_48XLARGE)
    seven = evolve(node("n", P5_48XLARGE), allocatable=Resources({**big.allocatable, NVIDIA_GPU: 7}))
    assert Sighting(claim=big, node=seven).short_of == (NVIDIA_GPU, 7, 8)
    assert Sighting(claim=big, node=node("n", P5_48XLARGE)).short_of is None
    assert Sighting(claim=ONE, node=short(0)).short_of == (NVIDIA_GPU, 0, 1)
    assert Sighting(claim=ONE).short_of is None


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (taint("agent.example.com/not-ready"), True),
        (taint("agent", effect="NoExecute"), True),
        (taint("agent", effect="PreferNoSchedule"), False),
        (taint("cilium", "wait"), False),
        (taint("node.kubernetes.io/disk-pressure"), False),
        (taint("node.cloudprovider.kubernetes.io/uninitialized"), False),
        (taint(keys.DISRUPTED_TAINT), False),
    ],
)
def test_a_taint_that_nobody_foretold_is_foreign(seen: Taint, expected: bool) -> None:
    assert Sighting(claim=ONE, node=node("n", taints=[seen])).is_foreign_tainted is expected


def test_the_pools_own_taint_is_not_foreign() -> None:
    tainted = claim("gpu-1", pool=node_pool(taints=[taint("gpu")]))
    assert not Sighting(claim=tainted, node=node("n", taints=[taint("gpu")])).is_foreign_tainted


def test_a_node_that_a_live_karpenter_owns_is_foreign_whatever_its_instance_says() -> None:
    seen = [node("n", instance_id="i-1")]
    for facts in ({"nodes": ("n",)}, {"instance_ids": ("i-1",)}):
        found = fleet([instance()], seen, karpenter=KarpenterFacts(is_live=True, **facts))
        assert only(found).node is None
        assert only(found).is_karpenters
        assert found.foreign_nodes == tuple(seen)
    idle = fleet([instance()], seen, karpenter=KarpenterFacts(nodes=("n",), instance_ids=("i-1",)))
    assert only(idle).node is not None
    assert not only(idle).is_karpenters


def leaving(*removals: RemovalRecord, settled: int = 0, **more: Any) -> list[tuple[str, bool]]:
    found = fleet(document=document(ONE, version=5, removals=removals), ledger=Ledger(settled_version=settled), **more)
    return [(each.record.claim, each.may_run) for each in found.leaving]


def test_a_removal_record_is_carried_until_its_document_is_settled() -> None:
    assert leaving(record(), settled=4) == [("gpu-9", True)]
    assert leaving(record(), settled=5) == []


def test_a_removal_record_is_carried_while_its_machine_is_alive() -> None:
    assert leaving(record(), settled=5, instances=[instance("gpu-9")]) == [("gpu-9", True)]


@pytest.mark.parametrize(
    ("left", "more"),
    [
        (record(), {"instances": [instance("gpu-9", state="terminated")]}),
        (record(), {"absent": ["gpu-9"]}),
        (record(reason=DisruptionReason.LOST), {}),
        (record(reason=DisruptionReason.LAUNCH_REFUSED), {}),
    ],
)
def test_a_machine_that_is_known_to_be_gone_is_carried_but_does_not_count(
    left: RemovalRecord, more: dict[str, object]
) -> None:
    assert leaving(left, settled=4, **more) == [("gpu-9", False)]


def test_the_node_of_a_machine_that_is_leaving_is_not_foreign() -> None:
    found = fleet(
        [instance("gpu-9", "i-9")],
        [node("n", instance_id="i-9")],
        document=document(ONE, removals=(record(),)),
    )
    assert found.foreign_nodes == ()
