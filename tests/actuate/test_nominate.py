"""Nominating pods: one patch of their status, and a refusal that stops nothing."""

from __future__ import annotations

import json

import pytest

from engine.actuate.nominate import KubernetesNominator, Waiting
from engine.model.fault import Fault
from engine.model.pod import PodKey

POD = PodKey("ai", "llm-0")


class Server:
    def __init__(self, status: int, message: str = "no") -> None:
        self.status, self.message = status, message
        self.asked: list[tuple[str, str, object, str]] = []

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> tuple[int, bytes]:
        self.asked.append((method, path, body, content_type))
        return self.status, f'{{"message": "{self.message}"}}'.encode()


def test_a_nomination_is_one_merge_patch_of_the_status() -> None:
    server = Server(200)

    assert KubernetesNominator(server).nominate(POD, "node-1") == ""
    assert server.asked == [
        (
            "PATCH",
            "/api/v1/namespaces/ai/pods/llm-0/status",
            {"status": {"nominatedNodeName": "node-1"}},
            "application/merge-patch+json",
        )
    ]


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_or_changed_is_no_refusal(status: int) -> None:
    assert KubernetesNominator(Server(status)).nominate(POD, "node-1") == ""


def test_a_pod_that_was_bound_meanwhile_is_no_refusal() -> None:
    """The words are kube-apiserver 1.37's."""
    told = "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node"
    assert KubernetesNominator(Server(422, told)).nominate(POD, "node-1") == ""


@pytest.mark.parametrize(
    ("status", "words"), [(403, "may not patch pods/status"), (422, "takes no nominatedNodeName"), (500, "with 500")]
)
def test_a_refusal_says_what_stands_in_the_way(status: int, words: str) -> None:
    assert words in KubernetesNominator(Server(status)).nominate(POD, "node-1")


def metadata(name: str, version: str) -> dict[str, object]:
    return {"metadata": {"namespace": "ai", "name": name, "resourceVersion": version}}


@pytest.mark.parametrize(
    ("items", "pods"),
    [([metadata("llm-0", "7"), metadata("llm-1", "9")], {POD: 7, PodKey("ai", "llm-1"): 9}), (None, {})],
)
def test_how_pods_stand_that_are_bound_to_no_node_is_one_list_of_metadata(
    items: list[object] | None, pods: dict[PodKey, int]
) -> None:
    class Lists(Server):
        def ask(self, method: str, path: str, **_: object) -> tuple[int, bytes]:
            assert (method, path) == ("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D")
            return 200, json.dumps({"metadata": {"resourceVersion": "12"}, "items": items}).encode()

    assert KubernetesNominator(Lists(200)).waiting() == Waiting(12, pods)


def test_a_refused_list_of_those_that_wait_is_a_fault() -> None:
    with pytest.raises(Fault, match="a list of the pods that wait with 403"):
        KubernetesNominator(Server(403)).waiting()
