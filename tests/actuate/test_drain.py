"""Marking nodes and evicting pods, against a small API server through the official client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.actuate.drain import KubernetesDrainer
from engine.actuate.failure import ActuationFailed
from engine.model.drain import Mark
from engine.model.eviction import EvictionStatus
from engine.model.pod import PodKey
from engine.model.reason import DisruptionReason
from engine.observe.api_server import ApiServer
from engine.observe.failure import ObservationFailed
from tests.builders import NOON, minutes
from tests.kubernetes_server import FakeApiServer, serving

DISRUPTED = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}
MARKED_AT = "2026-11-30T12:00:00Z"
MARK = Mark(NOON, DisruptionReason.DRIFTED)
EXCLUDED = "node.kubernetes.io/exclude-from-external-load-balancers"
REASON = "nodewright.dev/marked-for"
GPU = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NODE = "/api/v1/nodes/node-1"
EVICTION = "/api/v1/namespaces/default/pods/web-1/eviction"


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    node = {"metadata": {"name": "node-1", "resourceVersion": "7"}, "spec": {"taints": [GPU]}}
    with serving(FakeApiServer(nodes=[node])) as started:
        yield started


@pytest.fixture
def drainer(server: FakeApiServer, tmp_path: Path) -> KubernetesDrainer:
    return KubernetesDrainer(ApiServer(server.kubeconfig(tmp_path)))


def writes(server: FakeApiServer) -> list[Any]:
    return [body for method, _, body in server.requests if method != "GET"]


def test_marking_cordons_taints_and_takes_from_load_balancers_in_one_patch_of_the_version_that_was_read(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    assert drainer.mark("node-1", MARK)

    assert writes(server) == [
        {
            "metadata": {
                "resourceVersion": "7",
                "labels": {EXCLUDED: "nodewright"},
                "annotations": {REASON: "Drifted"},
            },
            "spec": {"unschedulable": True, "taints": [GPU, {**DISRUPTED, "timeAdded": MARKED_AT}]},
        }
    ]


def test_a_node_that_is_marked_already_is_left_as_it_is(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    drainer.mark("node-1", MARK)
    assert drainer.mark("node-1", MARK)

    assert len(writes(server)) == 1


def test_a_node_that_is_marked_keeps_the_time_and_the_reason_of_its_mark(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    drainer.mark("node-1", MARK)
    server.nodes[0]["spec"]["unschedulable"] = False
    drainer.mark("node-1", Mark(NOON + minutes(5), DisruptionReason.EXPIRED))

    node = server.nodes[0]
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["taints"] == [GPU, {**DISRUPTED, "timeAdded": MARKED_AT}]
    assert node["metadata"]["annotations"] == {REASON: "Drifted"}


def test_a_mark_without_a_time_gets_one_and_a_reason_that_outlived_its_mark_is_replaced(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    server.nodes[0]["spec"] = {"unschedulable": True, "taints": [DISRUPTED]}
    server.nodes[0]["metadata"]["annotations"] = {REASON: "Expired"}
    drainer.mark("node-1", MARK)

    assert server.nodes[0]["spec"]["taints"] == [{**DISRUPTED, "timeAdded": MARKED_AT}]
    assert server.nodes[0]["metadata"]["annotations"] == {REASON: "Expired"}

    server.nodes[0]["spec"] = {"taints": []}
    drainer.mark("node-1", MARK)
    assert server.nodes[0]["metadata"]["annotations"] == {REASON: "Drifted"}


def test_a_label_that_somebody_else_put_there_stays_when_the_mark_goes(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    server.nodes[0]["metadata"]["labels"] = {EXCLUDED: "true"}
    drainer.mark("node-1", MARK)
    drainer.unmark("node-1")

    assert server.nodes[0]["metadata"]["labels"] == {EXCLUDED: "true"}


def test_unmarking_restores_the_node(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    drainer.mark("node-1", MARK)
    assert drainer.unmark("node-1")

    assert server.nodes[0]["spec"] == {"taints": [GPU]}
    assert server.nodes[0]["metadata"].get("labels", {}) == {}
    assert server.nodes[0]["metadata"].get("annotations", {}) == {}


def test_a_node_that_changed_meanwhile_is_read_again(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    server.refuse("PATCH", NODE, 409, "the object has been modified")

    assert drainer.mark("node-1", MARK)
    assert server.nodes[0]["spec"]["unschedulable"] is True


def test_a_node_that_is_gone_is_told(drainer: KubernetesDrainer) -> None:
    assert not drainer.mark("node-9", MARK)
    assert not drainer.unmark("node-9")


def test_a_refused_change_is_a_failure_with_advice(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    server.refuse("PATCH", NODE, 403, "you may not")

    with pytest.raises(ActuationFailed, match="change of node node-1 with 403: you may not") as caught:
        drainer.mark("node-1", MARK)

    assert "patch nodes" in caught.value.hints[0]


def test_a_page_that_is_no_node_is_a_failure(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    server.refusals["GET", NODE] = [(200, "<html>log in</html>")]

    with pytest.raises(ActuationFailed, match="is no node: <html>"):
        drainer.mark("node-1", MARK)


def test_a_pod_is_evicted_through_the_eviction_api(server: FakeApiServer, drainer: KubernetesDrainer) -> None:
    (eviction,) = drainer.evict([PodKey("default", "web-1")])

    assert eviction.status is EvictionStatus.EVICTED
    ((method, path, body),) = server.requests
    assert (method, path, body["kind"], body["metadata"]["name"]) == ("POST", EVICTION, "Eviction", "web-1")


@pytest.mark.parametrize(
    ("status", "message", "details", "expected", "told"),
    [
        (
            429,
            "Cannot evict pod as it would violate the pod's disruption budget.",
            {"causes": [{"reason": "DisruptionBudget", "message": "The disruption budget infer needs 1 healthy pods"}]},
            EvictionStatus.REFUSED_BY_BUDGET,
            "The disruption budget infer needs 1 healthy pods",
        ),
        (
            500,
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            {},
            EvictionStatus.SEVERAL_BUDGETS,
            "more than one PodDisruptionBudget",
        ),
        (404, 'pods "web-1" not found', {}, EvictionStatus.GONE, "not found"),
        (500, "etcd is away", {}, EvictionStatus.FAILED, "etcd is away"),
    ],
)
def test_a_refused_eviction_is_a_value_and_does_not_stop_the_next(
    server: FakeApiServer,
    drainer: KubernetesDrainer,
    status: int,
    message: str,
    details: dict[str, Any],
    expected: EvictionStatus,
    told: str,
) -> None:
    server.refuse("POST", EVICTION, status, message, details=details)

    refused, other = drainer.evict([PodKey("default", "web-1"), PodKey("default", "web-2")])

    assert refused.status is expected
    assert told in refused.message
    assert other.status is EvictionStatus.EVICTED


def test_a_pod_whose_time_is_over_is_deleted_with_the_seconds_that_are_left(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    server.pods = [{"metadata": {"namespace": "default", "name": "web-1"}}]
    (deleted, gone) = drainer.delete([(PodKey("default", "web-1"), 7), (PodKey("default", "web-2"), 7)])

    assert (deleted.status, gone.status) == (EvictionStatus.EVICTED, EvictionStatus.GONE)
    method, path, body = server.requests[0]
    assert (method, path) == ("DELETE", "/api/v1/namespaces/default/pods/web-1")
    assert body["gracePeriodSeconds"] == 7


def test_a_deletion_that_is_forbidden_says_which_right_is_wanting(
    server: FakeApiServer, drainer: KubernetesDrainer
) -> None:
    server.refuse("DELETE", "/api/v1/namespaces/default/pods/web-1", 403, "you may not")

    with pytest.raises(ActuationFailed, match="deletion of pod default/web-1 with 403: you may not") as caught:
        drainer.delete([(PodKey("default", "web-1"), 7)])

    assert "delete pods" in caught.value.hints[0]


def test_no_answer_is_a_failure(unused_port: int, tmp_path: Path) -> None:
    nowhere = FakeApiServer(url=f"http://127.0.0.1:{unused_port}")
    drainer = KubernetesDrainer(ApiServer(nowhere.kubeconfig(tmp_path)))

    with pytest.raises(ObservationFailed, match=r"no answer to POST .*/web-1/eviction"):
        drainer.evict([PodKey("default", "web-1")])
