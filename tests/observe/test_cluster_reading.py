"""Reading an API server through the official client: whole lists or a failed read, with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from engine.model.workload import AttachLimit, Namespace, VolumeAttachment
from engine.observe.cluster import PAGE, KubernetesCluster
from engine.observe.failure import ObservationFailed
from tests.builders import NOON
from tests.kubernetes_server import FakeApiServer, kubeconfig_text, serving
from tests.observe.kubernetes_objects import (
    EBS,
    FULL_DAEMON_SET,
    hold_a_namespace_and_two_csi_nodes,
    node_object,
    pod_object,
)


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with serving(FakeApiServer()) as started:
        yield started


def test_every_page_of_every_list_is_read(server: FakeApiServer, tmp_path: Path) -> None:
    server.pods = [pod_object(name=f"web-{number}") for number in range(2 * PAGE + 1)]
    server.nodes = [node_object()]
    server.daemonsets = [FULL_DAEMON_SET]

    facts = KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert len({pod.key for pod in facts.pods}) == 2 * PAGE + 1
    assert [node.name for node in facts.nodes] == ["node-1"]
    assert [each.name for each in facts.daemon_sets] == ["d"]
    assert facts.problems == ()


def test_a_broken_object_is_a_problem_and_no_failure(server: FakeApiServer, tmp_path: Path) -> None:
    server.pods = [pod_object({"containers": 7}), pod_object(name="whole")]

    facts = KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert [str(problem) for problem in facts.problems] == ["Pod default/web-1: containers is 7, expected a list"]
    assert len(facts.pods) == 2


def test_the_readers_clock_ends_durations(server: FakeApiServer, tmp_path: Path) -> None:
    server.pods = [pod_object(None, annotations={"karpenter.sh/do-not-disrupt": "1h"})]

    facts = KubernetesCluster(server.kubeconfig(tmp_path), now=lambda: NOON + timedelta(hours=2)).read()

    assert not facts.pods[0].do_not_disrupt


def test_a_list_that_changes_faster_than_it_is_read_is_begun_again(server: FakeApiServer, tmp_path: Path) -> None:
    server.pods = [pod_object(name=f"web-{number}") for number in range(PAGE + 1)]
    server.refuse("GET", "/api/v1/pods?continue", 410, "the provided continue parameter is too old")

    assert len(KubernetesCluster(server.kubeconfig(tmp_path)).read().pods) == PAGE + 1


def test_a_read_that_is_cut_short_each_time_is_a_failed_read(server: FakeApiServer, tmp_path: Path) -> None:
    server.pods = [pod_object(name=f"web-{number}") for number in range(PAGE + 1)]
    for _ in range(4):
        server.refuse("GET", "/api/v1/pods?continue", 410, "the provided continue parameter is too old")

    with pytest.raises(ObservationFailed, match="list of pods with 410") as caught:
        KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert "run it again" in caught.value.hints[0]


def test_a_kind_that_no_decision_needs_is_a_problem_where_it_is_forbidden_and_empty_where_it_is_not_served(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.refuse("GET", "/apis/autoscaling/v2/horizontalpodautoscalers", 403, "you may not")

    facts = KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert [problem.kind for problem in facts.problems] == ["horizontalpodautoscalers"]
    assert "you may not" in facts.problems[0].what
    assert (facts.workload.autoscalers, facts.karpenter.node_pools) == ((), ())


def test_namespaces_and_attach_limits_are_read(server: FakeApiServer, tmp_path: Path) -> None:
    hold_a_namespace_and_two_csi_nodes(server.others)

    workload = KubernetesCluster(server.kubeconfig(tmp_path)).read().workload

    assert workload.namespaces == (Namespace("ml", {"team": "ml", "kubernetes.io/metadata.name": "ml"}),)
    assert workload.attach_limits == (AttachLimit("n1", EBS, 25), AttachLimit("n2", EBS, 39))


def test_volume_attachments_are_read(server: FakeApiServer, tmp_path: Path) -> None:
    spec = {"nodeName": "n1", "source": {"persistentVolumeName": "pvc-1"}}
    server.others["/apis/storage.k8s.io/v1/volumeattachments"] = [{"metadata": {"name": "csi-1"}, "spec": spec}]

    workload = KubernetesCluster(server.kubeconfig(tmp_path)).read().workload

    assert workload.attachments == (VolumeAttachment("csi-1", "n1", "pvc-1"),)


@pytest.mark.parametrize("path", ["/api/v1/namespaces", "/apis/storage.k8s.io/v1/csinodes"])
def test_namespaces_and_attach_limits_that_may_not_be_read_are_a_named_problem(
    server: FakeApiServer, tmp_path: Path, path: str
) -> None:
    hold_a_namespace_and_two_csi_nodes(server.others)
    server.pods = [pod_object(name="whole")]
    server.refuse("GET", path, 403, "you may not")

    facts = KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert [problem.kind for problem in facts.problems] == [path.rpartition("/")[2]]
    assert [pod.key.name for pod in facts.pods] == ["whole"]


def test_disruption_budgets_that_may_not_be_read_are_a_failed_read(server: FakeApiServer, tmp_path: Path) -> None:
    server.refuse("GET", "/apis/policy/v1/poddisruptionbudgets", 403, "you may not")

    with pytest.raises(ObservationFailed, match="poddisruptionbudgets"):
        KubernetesCluster(server.kubeconfig(tmp_path)).read()


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "log in again"), (403, "ClusterRole that may read the list of nodes")]
)
def test_a_refusal_says_what_was_refused_and_what_to_do(
    server: FakeApiServer, tmp_path: Path, status: int, advice: str
) -> None:
    for _ in range(2):  # a 401 is asked again with credentials that are read anew
        server.refuse("GET", "/api/v1/nodes", status, "you may not")

    with pytest.raises(ObservationFailed, match=f"refused the list of nodes with {status}: you may not") as caught:
        KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert server.url in str(caught.value)
    assert advice in caught.value.hints[0]


@pytest.mark.parametrize("answer", ["<html>log in</html>", [], {"items": "all"}])
def test_an_answer_that_is_no_list_is_a_failed_read_and_not_an_empty_cluster(
    server: FakeApiServer, tmp_path: Path, answer: object
) -> None:
    server.refusals["GET", "/api/v1/nodes"] = [(200, answer)]

    with pytest.raises(ObservationFailed, match="nodes"):
        KubernetesCluster(server.kubeconfig(tmp_path)).read()


def test_an_empty_cluster_is_empty(server: FakeApiServer, tmp_path: Path) -> None:
    facts = KubernetesCluster(server.kubeconfig(tmp_path)).read()

    assert (facts.pods, facts.nodes, facts.daemon_sets, facts.problems) == ((), (), (), ())


def test_an_endpoint_that_refuses_is_named(tmp_path: Path, unused_port: int) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(kubeconfig_text(f"http://127.0.0.1:{unused_port}"), encoding="utf-8")

    with pytest.raises(ObservationFailed, match=rf"127\.0\.0\.1:{unused_port} gave no answer") as caught:
        KubernetesCluster(str(file)).read()

    assert any("kubectl get nodes" in hint for hint in caught.value.hints)


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ObservationFailed, match="nowhere gives no cluster") as caught:
        KubernetesCluster(str(tmp_path / "nowhere")).read()

    assert "cluster.kubeconfig" in caught.value.hints[0]


@pytest.mark.parametrize("content", ["", "{", "- 1", "apiVersion: v1\nkind: Config\n", "a: [b"])
def test_a_broken_kubeconfig_is_no_traceback(tmp_path: Path, content: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(content, encoding="utf-8")

    with pytest.raises(ObservationFailed, match="kubeconfig gives no cluster"):
        KubernetesCluster(str(file)).read()


def test_a_context_that_does_not_exist_is_named(server: FakeApiServer, tmp_path: Path) -> None:
    with pytest.raises(ObservationFailed, match="with the context prod"):
        KubernetesCluster(server.kubeconfig(tmp_path), context="prod").read()


def test_the_clusters_release_is_read_without_the_plus_of_eks(server: FakeApiServer, tmp_path: Path) -> None:
    assert KubernetesCluster(server.kubeconfig(tmp_path)).kubernetes_version() == "1.33"
