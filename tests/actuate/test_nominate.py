"""Nominating pods: one patch of their status, and a refusal that stops nothing."""

from __future__ import annotations

import pytest

from engine.actuate.nominate import KubernetesNominator
from engine.model.pod import PodKey

POD = PodKey("ai", "llm-0")


class Server:
    def __init__(self, status: int, message: str = "no") -> None:
        self.status, self.message = status, message
        self.asked: list[tuple[str, str, object, str]] = []

    def ask(
        self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
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
