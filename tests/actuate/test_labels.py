"""Labelling nodes, against a small API server through the official client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.actuate.failure import ActuationFailed
from engine.actuate.labels import KubernetesLabeler
from engine.observe.api_server import ApiServer
from tests.kubernetes_server import FakeApiServer, serving


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    node = {"metadata": {"name": "node-1", "resourceVersion": "7", "labels": {"own": "1"}}, "spec": {}}
    with serving(FakeApiServer(nodes=[node])) as started:
        yield started


def test_labels_are_merged_in_one_patch(server: FakeApiServer, tmp_path: Path) -> None:
    labeler = KubernetesLabeler(ApiServer(server.kubeconfig(tmp_path)))

    assert labeler.label("node-1", {"gpu": "a10g"})

    writes = [(method, path, body) for method, path, body in server.requests if method != "GET"]
    assert server.nodes[0]["metadata"]["labels"] == {"own": "1", "gpu": "a10g"}
    assert writes == [("PATCH", "/api/v1/nodes/node-1", {"metadata": {"labels": {"gpu": "a10g"}}})]


def test_a_node_that_is_gone_is_no_fault(server: FakeApiServer, tmp_path: Path) -> None:
    assert not KubernetesLabeler(ApiServer(server.kubeconfig(tmp_path))).label("node-2", {"gpu": "a10g"})


def test_a_refusal_says_which_right_is_missing() -> None:
    class Refusing:
        def ask(
            self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
        ) -> tuple[int, bytes]:
            return 403, b'{"message": "nodes is forbidden"}'

    with pytest.raises(ActuationFailed, match="labels of node node-1 with 403: nodes is forbidden") as refused:
        KubernetesLabeler(Refusing()).label("node-1", {"gpu": "a10g"})
    assert "the right to patch nodes" in refused.value.hints[0]
