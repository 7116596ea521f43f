"""The simulated cluster's life: machines register, pods bind, nodes go, pods come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.constraint import TaintEffect
from engine.model.drain import Mark
from engine.model.eviction import EvictionStatus
from engine.model.node import Instance, InstanceState
from engine.model.pod import PodKey
from engine.model.reason import DisruptionReason
from engine.observe.cluster import ClusterFacts, decode_cluster
from engine.sandbox.cluster import SimulatedCluster
from engine.sandbox.cluster_objects import Machine, machines_of, passed_over
from engine.sandbox.cluster_state import STATE_FILE, SandboxClusterError
from tests import builders

MARK = Mark(builders.NOON, DisruptionReason.EMPTY)
GPU_TAINT = builders.taint("nvidia.com/gpu", "true")
POOL = builders.node_pool(taints=[GPU_TAINT], labels={"workload-type": "inference"})


def pod_object(
    name: str = "web-1", cpu: str = "1", gpu: int = 0, selector: dict[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "1Gi"} | ({"nvidia.com/gpu": str(gpu)} if gpu else {})
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}] if gpu else []
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "containers": [{"name": "main", "resources": {"requests": requests}}],
            "nodeSelector": selector or {},
            "tolerations": tolerations,
            **spec,
        },
    }


DAEMON_SET = {
    "kind": "DaemonSet",
    "metadata": {"name": "log-agent", "namespace": "kube-system"},
    "spec": {
        "template": {
            "spec": {
                "containers": [{"name": "agent", "resources": {"requests": {"cpu": "100m"}}}],
                "tolerations": [{"operator": "Exists"}],
            }
        }
    },
}


def machine(number: int = 1, claim: Claim | None = None, is_running: bool = True) -> Machine:
    return Machine(
        instance_id=f"i-{number:017x}",
        private_dns_name=f"ip-10-0-0-{number}.ec2.internal",
        zone="us-east-1a",
        instance_type="g5.xlarge",
        is_running=is_running,
        claim=claim or builders.claim(f"gpu-{number:05}", pool=POOL),
    )


Grown = Callable[..., SimulatedCluster]


@pytest.fixture
def cluster_of(tmp_path: Path) -> Grown:
    def grown(*objects: dict[str, Any]) -> SimulatedCluster:
        return SimulatedCluster(tmp_path, decode_cluster, lambda: objects, lambda: builders.NOON)

    return grown


def facts(cluster: SimulatedCluster) -> ClusterFacts:
    seen = cluster.read()
    return decode_cluster(seen.pods, seen.nodes, seen.daemon_sets)


def test_a_new_cluster_holds_its_first_objects_pending(cluster_of: Grown) -> None:
    seen = facts(cluster_of(pod_object(), DAEMON_SET))

    assert [(pod.key.name, pod.is_waiting, pod.created_at) for pod in seen.pods] == [("web-1", True, builders.NOON)]
    assert [each.name for each in seen.daemon_sets] == ["log-agent"]
    assert seen.nodes == seen.problems == ()


def test_a_running_machine_registers_a_node_as_its_claim_says(cluster_of: Grown) -> None:
    cluster = cluster_of()
    claim = builders.claim(pool=POOL)
    cluster.advance([machine(1, claim)])

    (node,) = facts(cluster).nodes

    assert node.instance_id == "i-00000000000000001"
    assert node.provider_id == "aws:///us-east-1a/i-00000000000000001"
    assert (node.ready, node.taints, node.allocatable) == (True, (GPU_TAINT,), claim.allocatable)
    assert node.labels["workload-type"] == "inference"
    assert node.labels[keys.HOSTNAME] == node.name == "ip-10-0-0-1.ec2.internal"
    assert claim.labels.items() <= node.labels.items()


def test_a_machine_that_does_not_run_yet_has_no_node(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([machine(is_running=False)])

    assert facts(cluster).nodes == ()


def test_a_node_whose_machine_stops_running_is_not_ready(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([machine()])
    cluster.advance([machine(is_running=False)])

    assert [node.ready for node in facts(cluster).nodes] == [False]


def test_startup_taints_are_gone_once_the_node_is_up(cluster_of: Grown) -> None:
    cluster = cluster_of(pod_object(gpu=1))
    pool = builders.node_pool(startup_taints=[builders.taint("starting")])
    cluster.advance([machine(1, builders.claim(pool=pool))])

    assert facts(cluster).nodes[0].taints == ()


def test_pods_bind_to_nodes_that_their_selector_taints_and_requests_permit(cluster_of: Grown) -> None:
    cluster = cluster_of(
        pod_object("fits", gpu=1, selector={"workload-type": "inference"}),
        pod_object("too-many-gpus", gpu=2),
        pod_object("does-not-tolerate"),
        pod_object("elsewhere", gpu=1, selector={"workload-type": "training"}),
    )
    cluster.advance([machine()])

    places = {pod.key.name: pod.node_name for pod in facts(cluster).pods}

    assert places == {
        "fits": "ip-10-0-0-1.ec2.internal",
        "too-many-gpus": None,
        "does-not-tolerate": None,
        "elsewhere": None,
    }


def test_a_pod_that_found_no_node_says_why_as_kube_scheduler_does(cluster_of: Grown) -> None:
    cluster = cluster_of(pod_object("too-many-gpus", gpu=2), pod_object("does-not-tolerate"))
    cluster.advance([machine(1), machine(2)])

    words = {pod["metadata"]["name"]: pod["status"]["conditions"][0] for pod in cluster.read().pods}

    assert words["too-many-gpus"] == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
    }
    assert words["does-not-tolerate"]["message"] == "0/2 nodes are available: 2 node(s) had untolerated taint(s)."


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
            "topology spread (DoNotSchedule)",
        ),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}},
            "required pod affinity",
        ),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}, "persistent volumes"),
        ({"resourceClaims": [{"name": "c"}]}, "resource claims"),
    ],
)
def test_a_pod_that_asks_for_more_than_the_simulated_scheduler_knows_is_bound_nowhere_and_told_why(
    cluster_of: Grown, spec: dict[str, Any], name: str
) -> None:
    cluster = cluster_of(pod_object(gpu=1, **spec), pod_object("plain", gpu=1))
    cluster.advance([machine(1), machine(2)])

    told = {pod["metadata"]["name"]: pod["status"].get("conditions", [{}])[0] for pod in cluster.read().pods}

    assert told["web-1"]["message"] == f"the simulated scheduler does not place {name}"
    assert "message" not in told["plain"]


def test_a_node_never_holds_more_than_it_has(cluster_of: Grown) -> None:
    cluster = cluster_of(*(pod_object(f"web-{number}", gpu=1) for number in range(5)), DAEMON_SET)
    cluster.advance([machine(number) for number in (1, 2, 3)])

    seen = facts(cluster)

    for node in seen.nodes:
        there = [pod for pod in seen.pods if pod.node_name == node.name and not pod.is_daemon]
        assert len(there) == 1
    assert sum(pod.is_waiting for pod in seen.pods) == 2


def test_pods_of_higher_priority_bind_first(cluster_of: Grown) -> None:
    cluster = cluster_of(pod_object("a-low", gpu=1), pod_object("z-high", gpu=1, priority=1000))
    cluster.advance([machine()])

    assert [pod.key.name for pod in facts(cluster).pods if pod.node_name] == ["z-high"]


def test_each_node_gets_one_pod_of_each_daemonset_that_may_run_there(cluster_of: Grown) -> None:
    picky = {
        **DAEMON_SET,
        "metadata": {"name": "picky", "namespace": "kube-system"},
        "spec": {"template": {"spec": {**DAEMON_SET["spec"]["template"]["spec"], "nodeSelector": {"no": "node"}}}},
    }
    cluster = cluster_of(DAEMON_SET, picky)
    cluster.advance([machine(1), machine(2)])
    cluster.advance([machine(1), machine(2)])

    daemons = [pod for pod in facts(cluster).pods if pod.is_daemon]

    assert sorted((pod.owner.name, pod.node_name) for pod in daemons if pod.owner) == [
        ("log-agent", "ip-10-0-0-1.ec2.internal"),
        ("log-agent", "ip-10-0-0-2.ec2.internal"),
    ]


def test_a_lost_machine_takes_its_node_and_its_pods_come_back_under_new_names(cluster_of: Grown) -> None:
    cluster = cluster_of(pod_object("web-1", gpu=1), DAEMON_SET)
    cluster.advance([machine(1)])
    cluster.advance([])

    seen = facts(cluster)

    assert seen.nodes == ()
    assert [(pod.key.name, pod.is_waiting) for pod in seen.pods] == [("web-1-r1", True)]

    cluster.advance([machine(2)])
    cluster.advance([])

    assert [pod.key.name for pod in facts(cluster).pods] == ["web-1-r2"]


def test_an_instance_whose_claim_left_the_document_keeps_its_node_until_it_is_gone(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([machine(1)])
    orphan = Machine("i-00000000000000001", "", "us-east-1a", "g5.xlarge", is_running=True, claim=None)

    cluster.advance([orphan])
    assert len(facts(cluster).nodes) == 1

    cluster.advance([])
    assert facts(cluster).nodes == ()


def test_a_machine_that_nobody_claimed_never_registers(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([Machine("i-1", "", "us-east-1a", "g5.xlarge", is_running=True, claim=None)])

    assert facts(cluster).nodes == ()


def test_a_marked_node_takes_no_pods_until_it_is_unmarked(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([machine()])
    name = facts(cluster).nodes[0].name

    assert cluster.mark(name, MARK)
    assert cluster.mark(name, Mark(builders.NOON + builders.minutes(1), DisruptionReason.DRIFTED))
    cluster.add_objects([pod_object(gpu=1)])
    cluster.advance([machine()])
    marked = facts(cluster)
    assert marked.nodes[0].is_marked
    assert (marked.nodes[0].marked_at, marked.nodes[0].marked_for) == (MARK.at, MARK.reason)
    assert [taint.effect for taint in marked.nodes[0].taints].count(TaintEffect.NO_SCHEDULE) == 2
    assert marked.pods[0].is_waiting

    assert cluster.unmark(name)
    cluster.advance([machine()])
    assert facts(cluster).pods[0].node_name == name
    assert facts(cluster).nodes[0].taints == (GPU_TAINT,)


def test_a_request_for_another_node_is_kept_on_the_node_until_it_is_taken_away(cluster_of: Grown) -> None:
    cluster = cluster_of()
    cluster.advance([machine()])
    name = facts(cluster).nodes[0].name

    assert cluster.annotate(name, {"nodewright.dev/replace": "2026-11-30T12:00:00Z", "own": "1"})
    cluster.advance([machine()])
    asked = facts(cluster).nodes[0]
    assert (asked.replace_asked, asked.replace_asked_at) == (True, builders.NOON)

    assert cluster.annotate(name, {"nodewright.dev/replace": None})
    assert not facts(cluster).nodes[0].replace_asked
    assert cluster.read().nodes[0]["metadata"]["annotations"]["own"] == "1"
    assert not cluster.annotate("no-such-node", {"own": "1"})


def test_marking_a_node_that_is_gone_says_so(cluster_of: Grown) -> None:
    assert not cluster_of().mark("no-such-node", MARK)
    assert not cluster_of().unmark("no-such-node")


def test_an_evicted_pod_is_pending_again_and_one_that_is_gone_is_told(cluster_of: Grown) -> None:
    cluster = cluster_of(pod_object("web-1", gpu=1))
    cluster.advance([machine()])

    first, second = cluster.evict([PodKey("default", "web-1"), PodKey("default", "nobody")])

    assert (first.status, second.status) == (EvictionStatus.EVICTED, EvictionStatus.GONE)
    assert [(pod.key.name, pod.is_waiting) for pod in facts(cluster).pods] == [("web-1-r1", True)]


def test_a_workload_is_applied_with_its_replicas_and_applying_it_again_adds_only_what_is_new(
    cluster_of: Grown,
) -> None:
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "llm"},
        "spec": {
            "replicas": 2,
            "template": {"metadata": {"labels": {"app": "llm"}}, "spec": pod_object(gpu=1)["spec"]},
        },
    }
    cluster = cluster_of()

    assert cluster.add_objects([{"kind": "List", "items": [deployment, {"kind": "Service"}]}]) == 2
    deployment["spec"]["replicas"] = 3  # type: ignore[index]
    assert cluster.add_objects([deployment]) == 1

    (one, *_) = pods = facts(cluster).pods
    assert [pod.key.name for pod in pods] == ["llm-0001", "llm-0002", "llm-0003"]
    assert one.owner is not None
    assert (one.owner.kind, one.owner.name, one.placing.requests["nvidia.com/gpu"]) == ("ReplicaSet", "llm", 1)


def test_a_workload_is_scaled_down_by_its_labels_those_that_wait_first(cluster_of: Grown) -> None:
    cluster = cluster_of(*(pod_object(f"web-{number}", gpu=1) for number in (1, 2, 3)), DAEMON_SET)
    cluster.advance([machine()])

    assert cluster.remove_pods({"app": "web"}, keep=1) == 2
    left = [pod for pod in facts(cluster).pods if not pod.is_daemon]
    assert [bool(pod.node_name) for pod in left] == [True]
    assert cluster.remove_pods({"app": "other"}) == 0


def test_what_happened_is_there_for_the_next_process(cluster_of: Grown) -> None:
    cluster_of(pod_object(gpu=1)).advance([machine()])

    assert [pod.node_name for pod in facts(cluster_of()).pods] == ["ip-10-0-0-1.ec2.internal"]


def test_looking_at_a_cluster_writes_nothing(cluster_of: Grown, tmp_path: Path) -> None:
    cluster_of(pod_object()).read()

    assert not (tmp_path / STATE_FILE).exists()


def test_a_broken_state_file_is_named_with_what_to_do(cluster_of: Grown, tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_text('{"schema": 1, "pods"', encoding="utf-8")

    with pytest.raises(SandboxClusterError, match=STATE_FILE) as caught:
        cluster_of().read()

    assert "delete" in caught.value.hints[0]


@pytest.mark.parametrize("broken", [{"kind": "Pod"}, {"kind": "Deployment", "metadata": {"name": "x"}}])
def test_a_manifest_that_lacks_what_its_kind_needs_is_named(cluster_of: Grown, broken: dict[str, Any]) -> None:
    with pytest.raises(SandboxClusterError, match=broken["kind"]):
        cluster_of().add_objects([broken])


def test_machines_are_the_live_instances_with_their_claims() -> None:
    def instance(number: int, state: InstanceState, claim: str) -> Instance:
        return Instance(
            id=f"i-{number}",
            claim=claim,
            state=state,
            instance_type="g5.xlarge",
            zone="us-east-1a",
            capacity_type=keys.ON_DEMAND,
            launched_at=builders.NOON,
        )

    held = builders.claim("gpu-00001")
    machines = machines_of(
        [
            instance(3, InstanceState.SHUTTING_DOWN, "gpu-00003"),
            instance(2, InstanceState.RUNNING, "gpu-00002"),
            instance(1, InstanceState.PENDING, "gpu-00001"),
        ],
        builders.document(held),
    )

    assert [(each.instance_id, each.is_running, each.claim) for each in machines] == [
        ("i-1", False, held),
        ("i-2", True, None),
    ]


def test_objects_that_the_cluster_does_not_hold_are_told_as_problems_by_name() -> None:
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "ml"}}
    listed = {"kind": "List", "items": [claim, {"kind": "PriorityClass", "metadata": {"name": "spare"}}]}
    told = [str(each) for each in passed_over([pod_object(), DAEMON_SET, listed])]
    assert told == [
        "PersistentVolumeClaim ml/data: a simulated cluster holds pods, workloads, DaemonSets and nodes alone",
        "PriorityClass spare: a simulated cluster holds pods, workloads, DaemonSets and nodes alone",
    ]
