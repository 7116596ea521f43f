"""Registering and labelling nodes, against a small API server through the official client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.actuate.failure import ActuationFailed
from engine.actuate.registration import KubernetesRegistrar
from engine.model.constraint import Taint, TaintEffect
from engine.observe.api_server import ApiServer
from tests.kubernetes_server import FakeApiServer, serving


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    node = {"metadata": {"name": "node-1", "resourceVersion": "7", "labels": {"own": "1"}}, "spec": {}}
    with serving(FakeApiServer(nodes=[node])) as started:
        yield started


def test_labels_are_merged_in_one_patch(server: FakeApiServer, tmp_path: Path) -> None:
    registrar = KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path)))

    assert registrar.label("node-1", {"gpu": "a10g"})

    writes = [(method, path, body) for method, path, body in server.requests if method != "GET"]
    assert server.nodes[0]["metadata"]["labels"] == {"own": "1", "gpu": "a10g"}
    assert writes == [("PATCH", "/api/v1/nodes/node-1", {"metadata": {"labels": {"gpu": "a10g"}}})]


def test_annotations_are_merged_in_one_patch_and_none_takes_one_away(server: FakeApiServer, tmp_path: Path) -> None:
    server.nodes[0]["metadata"]["annotations"] = {"own": "1", "going": "2"}
    registrar = KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path)))

    assert registrar.annotate("node-1", {"asked": "now", "going": None})
    assert not registrar.annotate("node-2", {"asked": "now"})

    assert server.nodes[0]["metadata"]["annotations"] == {"own": "1", "asked": "now"}
    assert server.nodes[0]["metadata"]["labels"] == {"own": "1"}


def test_a_node_that_is_gone_is_no_fault(server: FakeApiServer, tmp_path: Path) -> None:
    assert not KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path))).label("node-2", {"gpu": "a10g"})


def test_a_refusal_says_which_right_is_missing() -> None:
    class Refusing:
        def ask(
            self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
        ) -> tuple[int, bytes]:
            return 403, b'{"message": "nodes is forbidden"}'

    with pytest.raises(ActuationFailed, match="labels of node node-1 with 403: nodes is forbidden") as refused:
        KubernetesRegistrar(Refusing()).label("node-1", {"gpu": "a10g"})
    assert "the right to patch nodes" in refused.value.hints[0]


class TestARegistration:
    PROMISED = (Taint("nvidia.com/gpu", "true", TaintEffect.NO_SCHEDULE),)

    def registered(self, server: FakeApiServer, tmp_path: Path, *taints: dict[str, str]) -> list[dict[str, str]]:
        server.nodes[0]["spec"]["taints"] = list(taints)
        assert KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path))).register(
            "node-1", {"gpu": "a10g"}, self.PROMISED, hold=False
        )
        assert server.nodes[0]["metadata"]["labels"] == {"own": "1", "gpu": "a10g"}
        left: list[dict[str, str]] = server.nodes[0]["spec"]["taints"]
        return left

    def test_takes_the_unregistered_taint_away_and_adds_what_the_claim_promised(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        unregistered = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
        left = self.registered(server, tmp_path, unregistered, {"key": "booting", "effect": "NoSchedule"})
        assert left == [
            {"key": "booting", "effect": "NoSchedule"},
            {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
        ]

    def test_is_one_write_so_nothing_runs_on_a_node_that_lacks_its_labels(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        self.registered(server, tmp_path, {"key": "karpenter.sh/unregistered", "effect": "NoExecute"})
        [written] = [body for method, _, body in server.requests if method != "GET"]
        assert written["metadata"]["labels"] == {"gpu": "a10g"}
        assert [each["key"] for each in written["spec"]["taints"]] == ["nvidia.com/gpu"]

    def test_keeps_a_taint_of_the_claim_as_the_kubelet_registered_it(
        self, server: FakeApiServer, tmp_path: Path
    ) -> None:
        own = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule", "timeAdded": "2026-11-30T12:00:00Z"}
        assert self.registered(server, tmp_path, own) == [own]

    def test_of_a_node_that_is_gone_is_no_fault(self, server: FakeApiServer, tmp_path: Path) -> None:
        registrar = KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path)))
        assert not registrar.register("node-2", {}, self.PROMISED, hold=True)


class TestAHeldNode:
    def test_is_cordoned_until_it_is_opened(self, server: FakeApiServer, tmp_path: Path) -> None:
        registrar = KubernetesRegistrar(ApiServer(server.kubeconfig(tmp_path)))
        assert registrar.register("node-1", {"gpu": "a10g"}, (), hold=True)
        assert server.nodes[0]["spec"]["unschedulable"] is True
        assert server.nodes[0]["metadata"]["labels"]["nodewright.dev/held"] == "true"

        # Kubernetes' own node controller does this in its own time.
        cordoned = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        before = server.nodes[0]["spec"].get("taints") or []
        server.nodes[0]["spec"]["taints"] = [*before, cordoned]
        assert registrar.open("node-1", {"whole": "1"})
        assert server.nodes[0]["spec"]["taints"] == before
        assert not server.nodes[0]["spec"].get("unschedulable")
        assert server.nodes[0]["metadata"]["labels"] == {"own": "1", "gpu": "a10g", "whole": "1"}
