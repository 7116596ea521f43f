"""The control plane and its kubelets: what the other tests of this folder build on."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from engine.catalog.node_shape import node_shape
from engine.model import labels as keys
from engine.model.policy import BlockDevice
from engine.model.quantity import Resources
from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.kubelets import Kubelets, Pace
from engine.sandbox.machines_seen import instance_types
from engine.sandbox.plane_client import PlaneRefused
from engine.sandbox.plane_parts import API_SERVER, KWOK_NODE, PARTS
from engine.sandbox.processes import Process, is_alive, process_of
from tests import builders
from tests.cluster.api import Cluster, deployment, eventually, pod
from tests.cluster.conftest import JoinMachines, terminate
from tests.cluster.machines import launch

GPU = "nvidia.com/gpu"
GPU_TAINT = builders.taint(GPU, "true")
TOLERATES_GPU = {"key": GPU, "operator": "Exists"}
QUICK = Pace(poll_seconds=0.1)


def node_for(cluster: Cluster, instance_id: str) -> dict[str, Any] | None:
    nodes = cluster.list("Node")
    return next((node for node in nodes if node["spec"].get("providerID", "").endswith(f"/{instance_id}")), None)


def pool_of(environment: str, **more: object) -> Any:
    return builders.node_pool(environment, labels={"test.example.com/pool": environment}, taints=(GPU_TAINT,), **more)


def test_a_pending_gpu_pod_runs_once_an_instance_that_fits_it_has_joined(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    name = cluster.namespace
    cluster.create(
        pod(
            "infer",
            {"cpu": "2", "memory": "4Gi", GPU: "1"},
            nodeSelector={"test.example.com/pool": name},
            tolerations=[TOLERATES_GPU],
        )
    )
    pending = eventually(lambda: (cluster.get("Pod", "infer") or {})["status"].get("conditions"), "is unschedulable")
    assert (pending[0]["status"], pending[0]["reason"]) == ("False", "Unschedulable")

    kubelets(name, QUICK)
    instance_id = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")

    eventually(lambda: cluster.running("app=infer"), "the pod runs")
    node = node_for(cluster, instance_id)
    assert node is not None
    assert cluster.running()[0]["spec"]["nodeName"] == node["metadata"]["name"]
    assert node["spec"]["providerID"] == f"aws:///us-east-1b/{instance_id}"
    labels = node["metadata"]["labels"]
    assert labels[keys.INSTANCE_TYPE] == "g5.xlarge"
    assert labels[keys.ZONE] == "us-east-1b"
    assert labels[keys.NODE_POOL] == name
    assert labels[keys.CAPACITY_TYPE] == keys.ON_DEMAND
    promised = node_shape(
        instance_types("us-east-1")["g5.xlarge"],
        builders.node_class(block_devices=(BlockDevice("/dev/xvda", 100),)),
        builders.environment(),
    )
    assert Resources.parse(node["status"]["allocatable"]) == promised.allocatable
    assert promised.allocatable[GPU] == 1
    # What no kubelet says of itself: the engine adds it.
    assert keys.INSTANCE_GPU_NAME not in labels


def test_the_node_of_a_terminated_instance_is_deleted(cluster: Cluster, ec2: Any, kubelets: JoinMachines) -> None:
    name = cluster.namespace
    kubelets(name, QUICK)
    instance_id = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    eventually(lambda: node_for(cluster, instance_id), "the node registers")
    ec2.terminate_instances(InstanceIds=[instance_id])
    eventually(lambda: node_for(cluster, instance_id) is None, "the node is gone")


def test_gpus_appear_only_when_the_device_plugin_speaks_and_broken_ones_never(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    name = cluster.namespace
    kubelets(name, evolve(QUICK, device_plugin_seconds=1.5, missing_accelerators=1))
    instance_id = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.12xlarge")
    first = eventually(lambda: node_for(cluster, instance_id), "the node registers")
    assert GPU not in first["status"]["capacity"]
    eventually(
        lambda: (node_for(cluster, instance_id) or {})["status"]["allocatable"].get(GPU) == "3", "three of four GPUs"
    )


def test_a_startup_taint_that_the_user_data_sets_goes_once_its_daemon_runs(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    name = cluster.namespace
    startup = builders.taint("example.com/agent-not-ready")
    kubelets(name, evolve(QUICK, startup_seconds=1.0, startup_taints=(startup.key,)))
    pool = pool_of(name, startup_taints=(startup,))
    instance_id = launch(ec2, cluster.plane, name, pool, builders.node_class(), "g5.xlarge")

    def taints() -> set[str]:
        return {each["key"] for each in (node_for(cluster, instance_id) or {"spec": {}})["spec"].get("taints") or []}

    eventually(lambda: {startup.key, GPU} <= taints(), "the kubelet registers with both taints")
    eventually(lambda: startup.key not in taints(), "the daemon removes its own")
    assert GPU in taints()


def uid(node: dict[str, Any]) -> str:
    return str(node["metadata"]["uid"])


def is_ready(node: dict[str, Any] | None) -> bool:
    conditions = (node or {"status": {}})["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def test_a_node_registers_before_it_is_ready(cluster: Cluster, ec2: Any, kubelets: JoinMachines) -> None:
    name = cluster.namespace
    kubelets(name, evolve(QUICK, ready_seconds=2.0))
    instance_id = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    first = eventually(lambda: node_for(cluster, instance_id), "the node registers")
    assert not is_ready(first)
    eventually(lambda: is_ready(node_for(cluster, instance_id)), "the node is ready")


def test_nobody_reports_for_a_stopped_machine_and_it_registers_anew_when_it_starts_again(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    name = cluster.namespace
    kubelets(name, QUICK)
    instance_id = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    first = eventually(lambda: node_for(cluster, instance_id), "the node registers")
    ec2.stop_instances(InstanceIds=[instance_id])
    eventually(
        lambda: KWOK_NODE[0] not in (node_for(cluster, instance_id) or first)["metadata"]["annotations"], "kwok let go"
    )
    ec2.start_instances(InstanceIds=[instance_id])
    again = eventually(
        lambda: [node for node in [node_for(cluster, instance_id)] if node and uid(node) != uid(first)], "it registers"
    )
    eventually(lambda: is_ready(node_for(cluster, instance_id)), "it is ready again")
    assert again[0]["metadata"]["name"] == first["metadata"]["name"]


def test_kubelets_that_start_anew_know_their_nodes_and_leave_other_environments_alone(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    mine, other = cluster.namespace, f"{cluster.namespace}-other"
    for environment in (mine, other):
        kubelets(environment, QUICK)
        launch(ec2, cluster.plane, environment, pool_of(environment), builders.node_class(), "g5.xlarge")

    def nodes(environment: str) -> list[dict[str, Any]]:
        return cluster.list("Node", f"test.example.com/pool={environment}")

    eventually(lambda: nodes(mine) and nodes(other), "both register")
    again = Kubelets(ec2, cluster.plane.parts_client, mine, QUICK)
    again.step()
    assert (len(nodes(mine)), len(nodes(other))) == (1, 1)
    terminate(ec2, mine)
    again.step()
    again.stop()
    assert (len(nodes(mine)), len(nodes(other))) == (0, 1)


def test_a_machine_that_cannot_join_keeps_no_other_from_joining(cluster: Cluster, ec2: Any) -> None:
    name = cluster.namespace
    told: list[str] = []
    broken = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    nonsense = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
    ec2.modify_instance_attribute(InstanceId=broken, UserData={"Value": base64.b64encode(nonsense.encode())})
    sound = launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    joining = Kubelets(ec2, cluster.plane.parts_client, name, QUICK, tell=told.append)
    joining.step()
    joining.step()
    assert node_for(cluster, sound) is not None
    assert node_for(cluster, broken) is None
    assert [line for line in told if "does not join" in line] == [
        f"{broken} does not join: ValueError user data that no machine could read: 'spec'"
    ]
    terminate(ec2, name)
    joining.step()
    joining.stop()
    assert node_for(cluster, sound) is None


def test_an_eviction_that_a_budget_forbids_is_refused_with_429_and_names_the_budget(
    cluster: Cluster, ec2: Any, kubelets: JoinMachines
) -> None:
    name = cluster.namespace
    kubelets(name, QUICK)
    launch(ec2, cluster.plane, name, pool_of(name), builders.node_class(), "g5.xlarge")
    selector = {"test.example.com/pool": name}
    cluster.create(deployment("infer", 1, {GPU: "1"}, nodeSelector=selector, tolerations=[TOLERATES_GPU]))
    (running,) = eventually(lambda: cluster.running("app=infer"), "the replica runs")
    cluster.budget("infer", {"app": "infer"}, maxUnavailable=0)
    with pytest.raises(PlaneRefused, match="disruption budget") as refused:
        cluster.evict(running["metadata"]["name"])
    assert (refused.value.status, refused.value.reason) == (429, "TooManyRequests")


def test_a_restarted_api_server_has_all_objects_still_and_its_clients_go_on(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    cluster.create(pod("kept", {"cpu": "1"}))
    before = control_plane.process(API_SERVER)
    again = control_plane.restart(API_SERVER)
    assert control_plane.process(API_SERVER) != before
    assert again.endpoint == cluster.plane.endpoint
    assert cluster.get("Pod", "kept") is not None
    cluster.delete("Pod", "kept")


def test_a_paused_api_server_answers_nothing_and_goes_on_where_it_was(
    cluster: Cluster, control_plane: ControlPlane
) -> None:
    control_plane.pause(API_SERVER)
    try:
        assert control_plane.status() is None
    finally:
        control_plane.resume(API_SERVER)
    assert eventually(control_plane.status, "it answers again") == cluster.plane


def test_a_renewed_token_shuts_the_old_one_out(plane: Plane, control_plane: ControlPlane) -> None:
    again = control_plane.renew_token()
    with pytest.raises(PlaneRefused) as refused:
        plane.client().get("/api/v1/nodes")
    assert refused.value.status == 401
    assert again.client().get("/api/v1/nodes")["kind"] == "NodeList"
    assert again.kubeconfig.read_text(encoding="utf-8").count(again.token) == 1


def test_up_starts_only_what_has_died_and_on_the_same_data(cluster: Cluster, control_plane: ControlPlane) -> None:
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}})
    before = {part: control_plane.process(part) for part in PARTS}
    control_plane.stop("etcd")
    assert control_plane.status() is None
    control_plane.up()
    after = {part: control_plane.process(part) for part in PARTS}
    assert [part for part in PARTS if before[part] != after[part]] == ["etcd"]
    eventually(lambda: cluster.get("ConfigMap", "kept"), "the object is there")


def test_nobody_else_may_read_the_planes_secrets(plane: Plane, control_plane: ControlPlane) -> None:
    folder = control_plane.folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    secrets = [plane.kubeconfig, folder / "parts.kubeconfig", *(folder / "credentials").iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}


def test_a_plane_whose_owner_was_killed_ends_by_itself(control_plane: ControlPlane, tmp_path: Path) -> None:
    folder = tmp_path / "orphan"
    script = (
        "import os, sys, time; from pathlib import Path\n"
        "from engine.sandbox.control_plane import ControlPlane\n"
        "ControlPlane(Path(sys.argv[1]), Path(sys.argv[2]), owner=os.getpid()).up(); os._exit(9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(control_plane.program), str(folder)], check=False)
    orphan = ControlPlane(control_plane.program, folder)
    try:
        eventually(lambda: not any(orphan.process(part) for part in PARTS), "every part ends", seconds=30)
    finally:
        orphan.down()


def test_a_part_that_does_not_start_is_named_with_its_log_and_nothing_is_left_running(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    broken = ControlPlane(control_plane.program, tmp_path / "broken", {API_SERVER: ("--no-such-flag",)})
    with pytest.raises(Exception, match=r"kube-apiserver ended, see .*kube-apiserver\.log"):
        broken.up()
    assert not any(broken.process(part) for part in PARTS)


def test_a_pid_that_belongs_to_a_later_process_is_not_taken_for_the_part() -> None:
    mine = process_of(os.getpid())
    assert mine is not None
    assert is_alive(mine)
    assert not is_alive(Process(mine.pid, "long ago"))


def test_a_child_that_has_ended_is_gone_although_nobody_waited_for_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 20
    while process_of(child.pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.wait()
