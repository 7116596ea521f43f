"""What is installed in a cluster, as values: the runner, its access, and the images that each pool's nodes keep."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from engine.decide.add_ons import add_ons, kubernetes_name
from engine.decide.pre_pull import MOST_READ_IMAGES, daemon_set_name, pre_pulls
from engine.model import labels as keys
from engine.model.environment import InCluster, RunnerKind
from engine.model.fault import Fault
from engine.model.in_cluster import AddOns
from engine.model.node import Node
from engine.model.pod import Owner, Pod, PodPhase
from engine.model.policy import NodePool, Policy
from engine.model.quantity import NOTHING
from tests import builders
from tests.builders import NOON, pod, taint, toleration

PULLING = InCluster(pre_pull=True)


def node(name: str, pool: str) -> Node:
    return Node(name=name, allocatable=NOTHING, created_at=NOON, labels={keys.NODE_POOL: pool})


def pool(name: str = "gpu", *, images: tuple[str, ...] = (), **more: object) -> NodePool:
    return evolve(builders.node_pool(name), pre_pull=images, **more)


def using(image: str, count: int = 1, *, on: str | None = "gpu-1", **more: object) -> list[Pod]:
    named = image.rsplit("/", 1)[-1].replace(":", "-").replace("@", "-")
    pods = [pod(f"{named}-{at}", node=on, gpu=1, **more) for at in range(count)]
    return [evolve(one, images=(image,)) for one in pods]


def pulled(pods: list[Pod], *pools: NodePool, standing: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """The images of each pool's DaemonSet, with one node in each."""
    policy = Policy(node_pools=pools, node_classes=())
    nodes = [node(f"{one.name}-1", one.name) for one in pools]
    made = pre_pulls(PULLING, policy, pods, nodes, {one.name: standing for one in pools})
    return {one.node_pool: one.images for one in made}


def installed(asked: InCluster | None, **more: object) -> AddOns:
    environment = evolve(builders.environment(), in_cluster=asked, **more)
    return add_ons(environment, Policy(node_pools=(), node_classes=()))


# --- pre-pull


def test_a_pool_that_names_no_image_and_runs_no_pod_has_no_daemon_set() -> None:
    assert pulled([], pool()) == {}


def test_images_of_a_pools_annotation_are_pulled_whether_or_not_pods_are_read() -> None:
    named = pool(images=("example.com/llm:2", "example.com/base:1"))
    [made] = pre_pulls(InCluster(), Policy((named,), ()), using("example.com/read:1"), [node("gpu-1", "gpu")])
    assert made.images == ("example.com/base:1", "example.com/llm:2")
    assert made.read_from_pods == ()


def test_images_of_pods_that_run_on_a_pool_are_pulled_on_that_pool_alone() -> None:
    assert pulled(using("a:1", on="gpu-1"), pool("gpu"), pool("other")) == {"gpu": ("a:1",)}


def test_a_waiting_pods_image_is_pulled_on_every_pool_that_it_could_go_to() -> None:
    barred = pool("barred", taints=(taint("team", "x"),))
    elsewhere = pool("elsewhere", labels={"tier": "batch"})
    there = pool("there", labels={"tier": "live"})
    waiting = using("a:1", on=None, selector={"tier": "live"}, tolerations=[toleration("nvidia.com/gpu")])
    assert pulled(waiting, barred, elsewhere, there) == {"there": ("a:1",)}


def test_a_waiting_pod_without_accelerators_is_no_reason_to_pull_its_image_on_gpu_nodes() -> None:
    plain = evolve(pod("web"), images=("web:1",))
    assert pulled([plain], pool()) == {}
    assert pulled([plain], pool(open_to_all_pods=True)) == {"gpu": ("web:1",)}


def test_daemons_and_pods_that_are_done_or_going_count_for_nothing() -> None:
    [daemon] = using("agent:1", owner=Owner("DaemonSet", "agent"))
    [done] = using("job:1", phase=PodPhase.SUCCEEDED)
    [going] = using("old:1")
    assert pulled([daemon, done, evolve(going, deleting=True)], pool()) == {}


def test_only_the_most_used_images_of_pods_are_kept_and_all_that_the_pool_names() -> None:
    pods = [one for at in range(MOST_READ_IMAGES + 3) for one in using(f"i{at}:1", at + 1)]
    kept = pulled(pods, pool(images=("i0:1",)))["gpu"]
    assert kept == tuple(sorted(["i0:1", *(f"i{at}:1" for at in range(3, MOST_READ_IMAGES + 3))]))


def test_the_order_of_pods_changes_nothing() -> None:
    pods = [one for at in range(9) for one in using(f"i{at}:1", 2)]
    shuffled = random.Random(1).sample(pods, len(pods))
    assert pulled(shuffled, pool()) == pulled(pods, pool())


def test_one_pod_more_or_less_does_not_change_a_daemon_set_that_stands() -> None:
    pods = [one for at in range(MOST_READ_IMAGES) for one in using(f"i{at}:1", 2)]
    before = pulled(pods, pool())["gpu"]
    rival = using("z:1", 3)
    assert pulled([*pods, *rival], pool(), standing=before)["gpu"] == before
    assert pulled(pods[1:], pool(), standing=before)["gpu"] == before


def test_an_image_that_is_used_far_more_displaces_the_least_used() -> None:
    pods = [one for at in range(MOST_READ_IMAGES) for one in using(f"i{at}:1", 2)]
    before = pulled(pods, pool())["gpu"]
    after = pulled([*pods, *using("z:1", 5)], pool(), standing=before)["gpu"]
    assert "z:1" in after
    assert len(set(before) & set(after)) == MOST_READ_IMAGES - 1


def test_a_workload_that_is_scaled_to_nothing_keeps_its_image_until_another_version_is_used() -> None:
    assert pulled([], pool(), standing=("example.com:5000/llm:1",)) == {"gpu": ("example.com:5000/llm:1",)}
    newer = using("example.com:5000/llm:2")
    assert pulled(newer, pool(), standing=("example.com:5000/llm:1",)) == {"gpu": ("example.com:5000/llm:2",)}


def test_pre_pull_pods_bear_the_pools_taints_and_those_of_a_node_that_still_starts() -> None:
    tainted = pool(images=("a:1",), taints=(taint("nvidia.com/gpu", "true"),), startup_taints=(taint("driver"),))
    [made] = pre_pulls(InCluster(), Policy((tainted,), ()), [], [])
    for one in (*tainted.taints, *tainted.startup_taints, taint(keys.UNREGISTERED_TAINT, effect="NoExecute")):
        assert any(each.tolerates(one) for each in made.tolerations)
    assert not any(each.tolerates(taint(keys.DISRUPTED_TAINT)) for each in made.tolerations)


def test_each_pool_has_a_daemon_set_name_of_its_own_that_kubernetes_takes() -> None:
    names = ["gpu", "a.b", "a-b", "x" * 60, "x" * 61, "y" * 253]
    made = [daemon_set_name(name) for name in names]
    assert made[0] == "nodewright-pre-pull-gpu"
    assert len(set(made)) == len(names)
    assert all(len(name) <= 63 and kubernetes_name(name) == name for name in made)


# --- the runner and its access


def test_an_environment_that_asks_for_nothing_is_refused_by_its_name() -> None:
    with pytest.raises(Fault, match="environment test installs nothing"):
        installed(None)


def test_a_runner_without_an_image_is_refused_and_the_key_named() -> None:
    with pytest.raises(Fault, match=r"nodewright:inCluster\.runner is deployment") as refused:
        installed(InCluster(runner=RunnerKind.DEPLOYMENT))
    assert "nodewright:inCluster.image" in refused.value.hints[0]


def test_a_deployment_runs_without_end_and_a_cron_job_once_by_its_schedule() -> None:
    without_end = installed(InCluster(runner=RunnerKind.DEPLOYMENT, image="nw:1")).runner
    once = installed(InCluster(runner=RunnerKind.CRON_JOB, image="nw:1", schedule="7 * * * *")).runner
    assert without_end is not None
    assert once is not None
    assert (without_end.arguments[2:], without_end.schedule) == (
        ("run", "test", "--metrics-address", "0.0.0.0:8080"),
        None,
    )
    assert (once.arguments[2:], once.schedule) == (("run", "test", "--once"), "7 * * * *")


@pytest.mark.parametrize(
    ("store", "backend", "kept", "state_is_scratch"),
    [
        (".nodewright", None, ["/nodewright/.nodewright"], False),
        ("/data/documents", None, ["/data/documents"], True),
        ("/data/documents", "s3://bucket/state", ["/data/documents"], True),
        (".nodewright", "file:///data/pulumi", ["/data/pulumi", "/nodewright/.nodewright"], False),
        ("/data", "file:///data/pulumi", ["/data"], True),
    ],
)
def test_what_lies_in_files_is_kept_on_a_volume(
    store: str, backend: str | None, kept: list[str], state_is_scratch: bool
) -> None:
    runner = installed(InCluster(runner=RunnerKind.DEPLOYMENT, image="nw:1"), store=store, backend=backend).runner
    assert runner is not None
    assert [volume.path for volume in runner.volumes] == kept
    assert ("/nodewright/.nodewright" in runner.scratch) is state_is_scratch


def test_the_access_holds_no_secret_and_no_way_to_make_a_pod_or_to_make_or_delete_a_node() -> None:
    """A pod is deleted where its node's terminationGracePeriod ends, and only then."""
    made = installed(InCluster())
    granted = {
        (resource, verb)
        for rule in (*made.cluster_rules, *made.lease_rules)
        for resource in rule.resources
        for verb in rule.verbs
    }
    assert {verb for resource, verb in granted if resource == "nodes"} == {"get", "list", "watch", "patch"}
    assert {verb for resource, verb in granted if resource == "pods"} == {"list", "watch", "delete"}
    assert not {"secrets", "configmaps", "*"} & {resource for resource, _ in granted}
    assert "*" not in {verb for _, verb in granted}


def test_a_lease_can_be_changed_only_by_its_name_and_in_one_namespace() -> None:
    made = installed(InCluster(namespace="nw"))
    assert not any({"update", "patch"} & set(rule.verbs) for rule in made.cluster_rules if "leases" in rule.resources)
    [by_name] = [rule for rule in made.lease_rules if "update" in rule.verbs]
    assert by_name.resource_names == ("nodewright-test",)
    assert made.lease_namespace == "kube-system", "whatever namespace the runner is in: others meet it there"


def test_a_name_that_kubernetes_refuses_is_changed_into_one_that_no_other_has() -> None:
    assert kubernetes_name("nodewright-prod") == "nodewright-prod"
    assert kubernetes_name("nodewright-Prod_EU") != kubernetes_name("nodewright-prod-eu") == "nodewright-prod-eu"
    assert len(kubernetes_name("x" * 200)) == 63
