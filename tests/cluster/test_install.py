"""What an environment installs, on a real API server: through Pulumi, and with no more rights than its runner uses."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.actuate.drain import KubernetesDrainer
from engine.actuate.event_recorder import EventRecorder
from engine.actuate.lease import KubernetesLease
from engine.actuate.nominate import KubernetesNominator
from engine.actuate.registration import KubernetesRegistrar
from engine.converge.in_cluster_objects import cluster_objects
from engine.converge.in_cluster_plugin import kubernetes_plugin
from engine.converge.pulumi_cli import ToolchainError
from engine.converge.toolchain import find_toolchain, pulumi_home
from engine.decide.add_ons import add_ons
from engine.model.cluster_access import LEASE_NAMESPACE
from engine.model.drain import Mark
from engine.model.eviction import EvictionStatus
from engine.model.fault import Fault
from engine.model.in_cluster import ChangeKind, InstallOutcome
from engine.model.object_event import EventObject, EventReason, EventType, ObjectEvent
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.reason import DisruptionReason
from engine.observe.api_server import ApiServer
from engine.observe.cluster import KubernetesCluster
from engine.observe.live_cluster import LiveCluster
from engine.programs.cache import user_cache_dir
from engine.reconcile.installing import Installation, Proposed, install, installation, propose, propose_if_new, remove
from engine.sandbox.control_plane import Plane
from tests.cluster.api import Cluster, eventually, pod
from tests.cluster.installing import PROJECT, Project, project

pytestmark = pytest.mark.cluster

IMAGE = "registry.example.com/nodewright:1"
IN_LEASE_NAMESPACE = ("Role", "RoleBinding", "Lease")
CLUSTER_WIDE = ("ClusterRole", "ClusterRoleBinding", "PriorityClass")


@pytest.fixture
def of(tmp_path: Path, plane: Plane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "test")
    made = project(tmp_path, plane)
    yield made
    made.cluster.delete("Namespace", made.namespace)
    for kind in CLUSTER_WIDE:
        for one in made.cluster.list(kind, f"nodewright.dev/environment={made.environment}"):
            made.cluster.delete(kind, one["metadata"]["name"])
    for kind in IN_LEASE_NAMESPACE:
        Cluster(plane, LEASE_NAMESPACE).delete(kind, f"nodewright-{made.environment}")


@pytest.fixture
def pulumi() -> None:
    """The CLI and the Kubernetes plugin, never built by a test: that is `make`'s work."""
    try:
        kubernetes_plugin(os.environ, PROJECT / "tools")
        find_toolchain(
            os.environ.get("PATH", ""),
            user_cache_dir(os.environ),
            PROJECT / "tools",
            plugins_home=pulumi_home(os.environ),
            may_fetch=False,
        )
    except (Fault, ToolchainError) as missing:
        if os.environ.get("CI"):
            pytest.fail(f"the cluster's tests need Pulumi and its Kubernetes plugin: {missing}")
        pytest.skip(f"NO KUBERNETES PLUGIN, SO INSTALLING IS NOT TESTED: {missing}")


def parts(of: Project) -> Installation:
    return installation(of.workspace, of.environment, lambda line: None)


def changes(proposed: Proposed | InstallOutcome) -> list[tuple[str, str, str]]:
    return [(one.change.value, one.kind, one.name) for one in proposed.changes]


def installed(of: Project) -> InstallOutcome:
    made = parts(of)
    outcome = install(made, propose(made), lambda event: None)
    assert outcome.failures == ()
    return outcome


# --- through Pulumi


@pytest.mark.usefixtures("pulumi")
def test_what_was_proposed_stands_and_a_second_install_has_nothing_to_do(of: Project) -> None:
    of.asks_for({"gpu": "busybox, example.com/llm:7"}, runner="deployment", image=IMAGE)
    proposed = propose(parts(of))
    assert {change for change, _, _ in changes(proposed)} == {"create"}
    assert installed(of).is_settled

    cluster = of.cluster
    deployment = cluster.get("Deployment", "nodewright")
    assert deployment is not None
    assert deployment["spec"]["template"]["spec"]["containers"][0]["args"][2:4] == ["run", of.environment]
    assert cluster.get("ClusterRole", f"nodewright-{of.environment}") is not None
    daemon_set = cluster.get("DaemonSet", "nodewright-pre-pull-gpu")
    assert daemon_set is not None
    pulled = [one["image"] for one in daemon_set["spec"]["template"]["spec"]["containers"]]
    assert pulled == ["busybox", "example.com/llm:7"]

    assert changes(propose(parts(of))) == []
    assert propose_if_new(parts(of)).changes == ()


@pytest.mark.usefixtures("pulumi")
def test_a_pool_that_changes_updates_its_own_daemon_set_alone(of: Project) -> None:
    of.asks_for({"gpu": "example.com/llm:7", "other": "busybox"})
    installed(of)
    of.asks_for({"gpu": "example.com/llm:8", "other": "busybox"})
    assert changes(installed(of)) == [("update", "DaemonSet", "nodewright-pre-pull-gpu")]


@pytest.mark.usefixtures("pulumi")
def test_another_kind_of_runner_takes_the_place_of_the_first(of: Project) -> None:
    of.asks_for(runner="deployment", image=IMAGE)
    installed(of)
    of.asks_for(runner="cronJob", image=IMAGE, schedule="7 * * * *")
    assert set(changes(installed(of))) == {("create", "CronJob", "nodewright"), ("delete", "Deployment", "nodewright")}
    job = of.cluster.get("CronJob", "nodewright")
    assert job is not None
    assert (job["spec"]["schedule"], job["spec"]["concurrencyPolicy"]) == ("7 * * * *", "Forbid")
    # It goes once the garbage collector has seen to its pods.
    eventually(lambda: of.cluster.get("Deployment", "nodewright") is None, "the Deployment is gone")


@pytest.mark.usefixtures("pulumi")
def test_what_somebody_deleted_or_changed_by_hand_is_put_right(of: Project) -> None:
    of.asks_for({"gpu": "busybox"}, runner="deployment", image=IMAGE)
    installed(of)
    of.cluster.delete("DaemonSet", "nodewright-pre-pull-gpu")
    of.cluster.scale("nodewright", 0)
    assert installed(of).is_settled
    assert of.cluster.get("DaemonSet", "nodewright-pre-pull-gpu") is not None
    deployment = of.cluster.get("Deployment", "nodewright")
    assert deployment is not None
    assert deployment["spec"]["replicas"] == 1


@pytest.mark.usefixtures("pulumi")
def test_a_namespace_of_somebody_elses_stays_when_all_is_removed(of: Project) -> None:
    of.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of.namespace}})
    installed(of)
    assert remove(parts(of), lambda event: None).is_settled
    namespace = of.cluster.get("Namespace", of.namespace)
    assert namespace is not None
    assert "deletionTimestamp" not in namespace["metadata"]


@pytest.mark.usefixtures("pulumi")
def test_removing_leaves_nothing_behind(of: Project) -> None:
    of.asks_for({"gpu": "busybox"}, runner="cronJob", image=IMAGE)
    installed(of)
    outcome = remove(parts(of), lambda event: None)
    assert outcome.is_settled
    assert {one.change for one in outcome.changes} == {ChangeKind.DELETE}
    assert of.cluster.get("Namespace", of.namespace) is None
    for kind in CLUSTER_WIDE:
        assert of.cluster.list(kind, f"nodewright.dev/environment={of.environment}") == []
    assert remove(parts(of), lambda event: None) == InstallOutcome()


@pytest.mark.usefixtures("pulumi")
def test_an_object_that_is_refused_is_named_the_others_stand_and_the_next_run_tries_again(of: Project) -> None:
    of.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": of.namespace}})
    quotas = f"/api/v1/namespaces/{of.namespace}/resourcequotas"
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    of.cluster.client.create(quotas, {**quota, "spec": {"hard": {"count/cronjobs.batch": "0"}}})
    eventually(lambda: "status" in of.cluster.client.get(f"{quotas}/none"), "the quota counts")
    of.asks_for({"gpu": "busybox"}, runner="cronJob", image=IMAGE)

    made = parts(of)
    outcome = install(made, propose(made), lambda event: None)
    [failure] = outcome.failures
    assert failure.startswith("CronJob nodewright: ")
    assert "quota" in failure
    assert of.cluster.get("DaemonSet", "nodewright-pre-pull-gpu") is not None
    assert changes(propose_if_new(parts(of))) == [("create", "CronJob", "nodewright")]

    of.cluster.client.delete(f"{quotas}/none")
    assert changes(installed(of)) == [("create", "CronJob", "nodewright")]


@pytest.mark.usefixtures("pulumi")
def test_an_api_server_that_is_away_is_named_and_nothing_is_begun(of: Project) -> None:
    stack = of.root / "stacks" / f"Pulumi.{of.environment}.yaml"
    config = yaml.safe_load(stack.read_text())
    kubeconfig = of.root / "away.yaml"
    kubeconfig.write_text(of.plane.kubeconfig.read_text().replace(of.plane.endpoint, "https://127.0.0.1:9"))
    config["config"]["nodewright:cluster"]["kubeconfig"] = str(kubeconfig)
    stack.write_text(yaml.safe_dump(config))
    with pytest.raises(Fault, match=r"https://127\.0\.0\.1:9 gave no answer"):
        propose(parts(of))


# --- the runner's rights


@pytest.fixture
def runner(of: Project, cluster: Cluster) -> ApiServer:
    """The API server as the runner sees it: with its service account's token, and the rights that an install grants."""
    of.asks_for()
    environment = of.workspace.environment(of.environment)
    for one in cluster_objects(add_ons(environment, Policy((), ()))):
        of.cluster.client.create(_path(one.manifest), one.manifest)
    path = f"/api/v1/namespaces/{of.namespace}/serviceaccounts/nodewright/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = of.cluster.client.create(path, request)["status"]["token"]
    kubeconfig = yaml.safe_load(of.plane.kubeconfig.read_text())
    for user in kubeconfig["users"]:
        user["user"] = {"token": token}
    (of.root / "runner.yaml").write_text(yaml.safe_dump(kubeconfig))
    return ApiServer(str(of.root / "runner.yaml"))


def _path(manifest: Any) -> str:
    version, kind, metadata = manifest["apiVersion"], manifest["kind"], manifest["metadata"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    within = f"/namespaces/{metadata['namespace']}" if "namespace" in metadata else ""
    return f"{root}{within}/{kind.lower()}s"


def test_the_runner_may_read_all_that_decisions_need(of: Project, runner: ApiServer) -> None:
    facts = KubernetesCluster(str(of.root / "runner.yaml")).read()
    assert [str(problem) for problem in facts.problems if "403" in str(problem) or "forbidden" in str(problem)] == []


def test_the_runner_may_follow_all_that_decisions_need(runner: ApiServer) -> None:
    live = LiveCluster(runner)
    live.start()
    try:
        eventually(live.is_synced, "every kind is seen whole")
        problems = [str(problem) for problem in live.facts().problems]
        assert [problem for problem in problems if "403" in problem or "forbidden" in problem] == []
    finally:
        live.stop()


def test_the_runner_may_do_all_that_a_pass_does(of: Project, runner: ApiServer, cluster: Cluster) -> None:
    node = f"node-{of.environment}"
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}})
    cluster.create(pod("here", {"cpu": "1"}, nodeSelector={"nowhere": of.environment}))
    cluster.create(pod("leaving", {"cpu": "1"}, nodeName=node))
    try:
        assert KubernetesRegistrar(runner).label(node, {"a": "b"})
        assert KubernetesDrainer(runner).mark(node, Mark(datetime.now(UTC), DisruptionReason.EMPTY))
        assert KubernetesDrainer(runner).unmark(node)
        assert KubernetesNominator(runner).nominate(PodKey(cluster.namespace, "here"), node) == ""
        [eviction] = KubernetesDrainer(runner).evict([PodKey(cluster.namespace, "leaving")])
        assert eviction.status is EvictionStatus.EVICTED
        [deletion] = KubernetesDrainer(runner).delete([(PodKey(cluster.namespace, "here"), 1)])
        assert deletion.status is EvictionStatus.EVICTED
        lease = KubernetesLease(runner, LEASE_NAMESPACE, f"nodewright-{of.environment}", "me", keeps=False)
        assert lease.take() == ""
        assert lease.renew()
        lease.release()
        assert Cluster(of.cluster.plane, LEASE_NAMESPACE).get("Lease", f"nodewright-{of.environment}") is not None
        recorder = EventRecorder(runner, of.environment)
        about = EventObject("Pod", cluster.namespace, "here")
        recorder.record([ObjectEvent(about, next(iter(EventReason)), next(iter(EventType)), "told by a test")])
        assert eventually(lambda: recorder.failures == 0 and _ours(cluster), "the event is written")
    finally:
        cluster.delete("Node", node)


def _ours(cluster: Cluster) -> list[Any]:
    return [one for one in cluster.list("Event") if one.get("message") == "told by a test"]


@pytest.mark.parametrize(
    ("verb", "group", "resource", "name"),
    [
        ("create", "", "nodes", ""),
        ("delete", "", "nodes", "any"),
        ("create", "", "pods", ""),
        ("deletecollection", "", "pods", ""),
        ("patch", "", "pods", "any"),
        ("list", "", "secrets", ""),
        ("list", "", "configmaps", ""),
        ("patch", "apps", "deployments", "any"),
        ("update", "coordination.k8s.io", "leases", "somebody-elses"),
        ("list", "coordination.k8s.io", "leases", ""),
        ("create", "rbac.authorization.k8s.io", "clusterroles", ""),
        ("create", "", "serviceaccounts/token", ""),
    ],
)
@pytest.mark.usefixtures("runner")
def test_the_runner_may_do_nothing_else(of: Project, verb: str, group: str, resource: str, name: str) -> None:
    assert not _may(of, verb, group, resource, name)


@pytest.mark.usefixtures("runner")
def test_the_runner_may_see_karpenter_and_keda_where_there_are_such(of: Project) -> None:
    assert _may(of, "watch", "karpenter.sh", "nodeclaims", "")
    assert _may(of, "list", "karpenter.sh", "nodepools", "")
    assert _may(of, "list", "keda.sh", "scaledobjects", "")
    assert _may(of, "list", "coordination.k8s.io", "leases", "karpenter-leader-election")


def _may(of: Project, verb: str, group: str, resource: str, name: str) -> bool:
    plural, _, subresource = resource.partition("/")
    attributes = {
        "namespace": of.namespace,
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "name": name,
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{of.namespace}:nodewright",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{of.namespace}", "system:authenticated"],
            "resourceAttributes": attributes,
        },
    }
    answer = of.cluster.client.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(json.loads(json.dumps(answer))["status"]["allowed"])
