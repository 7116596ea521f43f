"""What the Pulumi program of an environment's add-ons declares: objects, names, options, pods."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from engine.converge.in_cluster_objects import cluster_objects
from engine.converge.in_cluster_pods import TOOL_IMAGE
from engine.converge.in_cluster_program import declare_add_ons
from engine.decide.add_ons import add_ons
from engine.model import labels as keys
from engine.model.environment import Cluster, Environment, InCluster, RunnerKind
from engine.model.in_cluster import AddOns
from engine.model.policy import Policy
from tests import builders
from tests.builders import node_pool, taint
from tests.converge.programs import STACK, Registered, registered_by

_RUNNING = InCluster(namespace="nw", runner=RunnerKind.DEPLOYMENT, image="example.com/nw:1")
_REACHED_BY = {"kubeconfig": "/etc/kube.yaml", "context": "prod"}


def environment(asked: InCluster = _RUNNING, **cluster: str) -> Environment:
    of = builders.environment()
    return evolve(of, in_cluster=asked, cluster=evolve(of.cluster, **{**_REACHED_BY, **cluster}))


def made(asked: InCluster = _RUNNING, *, images: str = "", owns_namespace: bool = True) -> AddOns:
    gpu = node_pool(taints=[taint("nvidia.com/gpu", "true")], pre_pull=tuple(filter(None, images.split(","))))
    return add_ons(environment(asked), Policy((gpu,), ()), owns_namespace=owns_namespace)


def declared(of: AddOns, cluster: Cluster | None = None) -> dict[str, Registered]:
    """Every Kubernetes object that the program registers, by kind and name."""
    registered = registered_by(lambda: declare_add_ons(of, cluster or environment().cluster))
    return {f"{one.type.rsplit(':', 1)[-1]} {one.name}": one for one in registered.values()}


def pod_of(of: AddOns, kind: str) -> dict[str, Any]:
    [found] = [one.manifest for one in cluster_objects(of) if one.kind == kind]
    spec: dict[str, Any] = found["spec"]["jobTemplate"]["spec"] if kind == "CronJob" else found["spec"]
    return dict(spec["template"]["spec"])


def test_a_deployment_comes_with_its_namespace_account_access_and_volume() -> None:
    assert set(declared(made())) - {"Stack nodewright-test"} == {
        "kubernetes cluster",
        "Namespace nw",
        "ServiceAccount nodewright",
        "ClusterRole nodewright-test",
        "ClusterRoleBinding nodewright-test",
        "Role nodewright-test",
        "RoleBinding nodewright-test",
        "PersistentVolumeClaim nodewright-state",
        "Deployment nodewright",
    }


def test_every_object_is_in_its_namespace_under_its_own_name_and_marked_as_ours() -> None:
    for one in cluster_objects(made(images="a:1")):
        metadata = one.manifest["metadata"]
        assert metadata["name"] == one.name
        assert metadata["labels"][keys.TAG_ENVIRONMENT] == "test"
        is_cluster_wide = one.kind in {"Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass"}
        holds_the_lease = one.kind in {"Role", "RoleBinding"}
        own = "kube-system" if holds_the_lease else "nw"
        assert metadata.get("namespace") == (None if is_cluster_wide else own)


def test_urns_are_of_the_official_types_so_that_the_official_plugin_takes_them() -> None:
    objects = declared(made(images="a:1"))
    assert objects["DaemonSet nodewright-pre-pull-gpu"].urn == (
        f"urn:pulumi:{STACK}::nodewright::kubernetes:apps/v1:DaemonSet::nodewright-pre-pull-gpu"
    )
    assert objects["ClusterRole nodewright-test"].type == "kubernetes:rbac.authorization.k8s.io/v1:ClusterRole"


def test_the_provider_reaches_the_cluster_as_the_stack_file_says() -> None:
    provider = declared(made())["kubernetes cluster"]
    assert provider.inputs["kubeconfig"] == "/etc/kube.yaml"
    assert provider.inputs["context"] == "prod"
    assert provider.inputs["clusterIdentifier"] == "cluster"
    assert all(one.provider.startswith(provider.urn) for key, one in declared(made()).items() if key[0].isupper()
               and not key.startswith("Stack"))  # fmt: skip


def test_a_namespace_that_was_there_before_is_neither_made_nor_deleted() -> None:
    assert "Namespace nw" not in declared(made(owns_namespace=False))


def test_what_runs_pods_comes_after_all_that_its_pods_name_and_waits_for_no_rollout() -> None:
    objects = declared(made(images="a:1"))
    access = {"nw", "nodewright", "nodewright-test"}
    for key, needed in (
        ("Deployment nodewright", {*access, "nodewright-state"}),
        ("DaemonSet nodewright-pre-pull-gpu", {*access, "nodewright-test-pre-pull"}),
    ):
        assert needed <= {urn.rsplit("::", 1)[-1] for urn in objects[key].dependencies}
        assert objects[key].inputs["metadata"]["annotations"]["pulumi.com/skipAwait"] == "true"


def test_a_cron_job_never_runs_twice_at_once_and_leaves_out_what_comes_too_late() -> None:
    asked = evolve(_RUNNING, runner=RunnerKind.CRON_JOB, schedule="*/7 * * * *")
    objects = declared(made(asked))
    spec = objects["CronJob nodewright"].inputs["spec"]
    assert (spec["schedule"], spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == (
        "*/7 * * * *", "Forbid", 120.0,
    )  # fmt: skip
    assert spec["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"
    assert "Deployment nodewright" not in objects


def test_a_deployment_has_one_pod_and_starts_no_second_before_the_first_has_stopped() -> None:
    spec = declared(made())["Deployment nodewright"].inputs["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1.0, {"type": "Recreate"})
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] >= 600


def test_the_runner_is_locked_down_and_writes_only_where_something_is_mounted() -> None:
    pod = pod_of(made(), "Deployment")
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounted = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    assert mounted["/nodewright/.nodewright"] == "state"
    assert {"/tmp", "/home/nodewright"} <= set(mounted)
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}


def test_the_runner_stays_away_from_the_nodes_that_it_manages() -> None:
    affinity = pod_of(made(), "Deployment")["affinity"]["nodeAffinity"]
    assert affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] == [
        {"matchExpressions": [{"key": "karpenter.sh/nodepool", "operator": "DoesNotExist"}]}
    ]


def test_a_pre_pull_pod_runs_a_program_of_its_own_in_every_image_and_asks_for_next_to_nothing() -> None:
    pod = pod_of(made(images="a:1,b:1"), "DaemonSet")
    assert [one["image"] for one in pod["initContainers"]] == [TOOL_IMAGE]
    assert [one["image"] for one in pod["containers"]] == ["a:1", "b:1"]
    assert len({one["name"] for one in pod["containers"]}) == 2
    for one in pod["containers"]:
        [mount] = one["volumeMounts"]
        assert one["command"][0].startswith(f"{mount['mountPath']}/")
        assert one["resources"]["requests"] == {"cpu": "1m", "memory": "4Mi"}
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in one["env"]


def test_a_pre_pull_pod_goes_to_its_pool_alone_and_gives_way_to_every_other() -> None:
    objects = made(images="a:1")
    pod = pod_of(objects, "DaemonSet")
    assert pod["nodeSelector"] == {"karpenter.sh/nodepool": "gpu"}
    assert {"key": "nvidia.com/gpu", "operator": "Equal", "value": "true", "effect": "NoSchedule"} in pod["tolerations"]
    [priority] = [one.manifest for one in cluster_objects(objects) if one.kind == "PriorityClass"]
    assert priority["metadata"]["name"] == pod["priorityClassName"]
    assert (priority["value"], priority["preemptionPolicy"]) == (-1000, "Never")


def test_without_images_there_is_no_priority_class() -> None:
    assert not {one.kind for one in cluster_objects(made())} & {"PriorityClass", "DaemonSet"}


def test_the_manifests_are_plain_json() -> None:
    for one in cluster_objects(made(images="a:1")):
        assert json.loads(json.dumps(one.manifest)) == one.manifest
