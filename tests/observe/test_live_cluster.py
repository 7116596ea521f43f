"""A live cluster: known once all is listed, current by events, and closed to decisions while anything is in doubt."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.model.snapshot import KarpenterFacts
from engine.model.workload import AttachLimit
from engine.observe.api_server import ApiServer
from engine.observe.failure import NotSynced
from engine.observe.live_cluster import LiveCluster
from engine.observe.watch import Patience
from tests.builders import NOON
from tests.kubernetes_server import FakeApiServer, serving
from tests.observe.kubernetes_objects import (
    EBS,
    FULL_DAEMON_SET,
    hold_a_namespace_and_two_csi_nodes,
    node_object,
    pod_object,
)

PODS, NODES = "/api/v1/pods", "/api/v1/nodes"
POOLS, CLAIMS = "/apis/karpenter.sh/v1/nodepools", "/apis/karpenter.sh/v1/nodeclaims"
LEASES = "/apis/coordination.k8s.io/v1/leases"
NAMESPACES, CSI_NODES = "/api/v1/namespaces", "/apis/storage.k8s.io/v1/csinodes"
BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
QUICK = Patience(refused=0.05, absent=0.05, first_pause=0.01, longest_pause=0.05)


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with serving(FakeApiServer()) as started:
        yield started


@pytest.fixture
def start(server: FakeApiServer, tmp_path: Path) -> Iterator[Callable[..., LiveCluster]]:
    started: list[LiveCluster] = []

    def made(now: Callable[[], datetime] = lambda: NOON) -> LiveCluster:
        live = LiveCluster(ApiServer(server.kubeconfig(tmp_path)), now=now, patience=QUICK)
        started.append(live)
        live.start()
        return live

    yield made
    for live in started:
        live.stop()


def until(live: LiveCluster, holds: Callable[[], bool]) -> None:
    ends_at = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < ends_at, live.unsynced()
        live.wait_for_change(live.revision(), 0.2)


def lease(second: int, holder: str = "karpenter-1") -> dict[str, Any]:
    return {
        "metadata": {"name": "karpenter-leader-election", "namespace": "kube-system"},
        "spec": {"holderIdentity": holder, "renewTime": f"2026-11-30T12:00:{second:02}.000000Z"},
    }


def test_nothing_is_told_before_all_is_listed(server: FakeApiServer, tmp_path: Path) -> None:
    live = LiveCluster(ApiServer(server.kubeconfig(tmp_path)))

    with pytest.raises(NotSynced, match="pods: it was not listed yet"):
        live.facts()
    assert not live.is_synced()


def test_all_that_a_cluster_holds_is_known_once_it_is_synced(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    server.pods = [pod_object(name="web-2"), pod_object(name="web-1")]
    server.nodes = [node_object()]
    server.daemonsets = [FULL_DAEMON_SET]
    server.others[POOLS] = [{"metadata": {"name": "gpu"}}]
    provider = {"nodeName": "node-9", "providerID": "aws:///us-east-1a/i-9"}
    server.others[CLAIMS] = [{"metadata": {"name": "gpu-x"}, "status": provider}]
    live = start()
    until(live, live.is_synced)

    facts = live.facts()

    assert [pod.key.name for pod in facts.pods] == ["web-1", "web-2"]
    assert [node.name for node in facts.nodes] == ["node-1"]
    assert [each.name for each in facts.daemon_sets] == ["d"]
    assert facts.karpenter == KarpenterFacts(False, ("gpu",), ("node-9",), ("i-9",))
    assert facts.problems == ()


def test_an_event_wakes_who_waits_and_parts_that_did_not_change_are_the_same_values(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    server.nodes = [node_object()]
    live = start()
    until(live, live.is_synced)
    before, revision = live.facts(), live.revision()

    server.change("ADDED", PODS, pod_object())

    assert live.wait_for_change(revision, 10) > revision
    after = live.facts()
    assert [pod.key.name for pod in after.pods] == ["web-1"]
    assert after.nodes is before.nodes
    assert after.workload is before.workload


def test_a_heartbeat_of_a_node_is_no_change(server: FakeApiServer, start: Callable[..., LiveCluster]) -> None:
    server.nodes = [node_object()]
    live = start()
    until(live, live.is_synced)
    revision = live.revision()

    beat = node_object()
    beat["metadata"]["managedFields"] = [{"time": "2026-11-30T12:34:56Z"}]
    beat["status"].setdefault("conditions", []).append({"type": "MemoryPressure", "lastHeartbeatTime": "now"})
    server.change("MODIFIED", NODES, beat)
    another = node_object()
    another["metadata"]["name"] = "node-2"
    server.change("ADDED", NODES, another)
    until(live, lambda: len(live.facts().nodes) == 2)

    assert live.revision() == revision + 1


def test_a_namespace_and_a_nodes_attach_limit_change_as_they_are_told(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    hold_a_namespace_and_two_csi_nodes(server.others)
    live = start()
    until(live, live.is_synced)
    server.await_watches(NAMESPACES)
    server.await_watches(CSI_NODES)

    server.change("MODIFIED", NAMESPACES, {"metadata": {"name": "ml", "labels": {"team": "vision"}}})
    server.change("DELETED", CSI_NODES, {"metadata": {"name": "n1"}, "spec": {"drivers": []}})

    until(live, lambda: live.facts().workload.attach_limits == (AttachLimit("n2", EBS, 39),))
    until(live, lambda: [each.labels["team"] for each in live.facts().workload.namespaces] == ["vision"])


def test_a_kind_in_doubt_closes_the_gate_wakes_who_waits_and_says_why(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    live = start()
    until(live, live.is_synced)
    server.await_watches(BUDGETS)
    for _ in range(4):
        server.refuse("GET", BUDGETS, 503, "the server is starting")
    server.cut_watches(BUDGETS)

    until(live, lambda: not live.is_synced())
    until(live, live.is_synced)
    assert live.facts().problems == ()


def test_pods_that_vanished_while_the_watch_was_away_vanish(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    server.pods = [pod_object(name="gone"), pod_object(name="stays")]
    live = start()
    until(live, live.is_synced)
    server.await_watches(PODS)
    with server.in_silence():
        server.version += 5
        server.oldest_version = server.version
        server.pods = [pod_object(name="stays")]
        server.cut_watches(PODS)

    until(live, lambda: live.is_synced() and [pod.key.name for pod in live.facts().pods] == ["stays"])


def test_a_forbidden_kind_is_a_problem_where_no_decision_needs_it_and_closes_the_gate_where_one_does(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    with forbidden(server, "/apis/storage.k8s.io/v1/storageclasses"):
        live = start()
        until(live, live.is_synced)
        assert [problem.kind for problem in live.facts().problems] == ["storageclasses"]
    until(live, lambda: live.facts().problems == ())


@contextmanager
def forbidden(server: FakeApiServer, path: str) -> Iterator[None]:
    for _ in range(1000):
        server.refuse("GET", path, 403, "you may not")
    yield
    server.refusals.clear()


def test_pods_that_may_not_be_listed_close_the_gate_and_say_what_to_grant(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    with forbidden(server, PODS):
        live = start()
        until(live, lambda: "403" in " ".join(live.unsynced()))
        with pytest.raises(NotSynced, match=r"pods.*refused the list of pods with 403"):
            live.facts()
    until(live, live.is_synced)


def test_a_hold_that_is_a_duration_ends_without_an_event(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    clock = [NOON]
    server.pods = [pod_object(None, annotations={"karpenter.sh/do-not-disrupt": "1h"})]
    live = start(now=lambda: clock[0])
    until(live, live.is_synced)
    assert live.facts().pods[0].do_not_disrupt

    clock[0] = NOON + timedelta(hours=1)

    assert not live.facts().pods[0].do_not_disrupt


def test_a_karpenter_lives_while_its_lease_is_seen_to_be_renewed_whatever_its_clock_says(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    server.others[LEASES] = [lease(1)]
    live = start(now=lambda: NOON + timedelta(hours=5))
    until(live, live.is_synced)
    assert not live.facts().karpenter.is_live
    revision = live.revision()

    server.change("MODIFIED", LEASES, lease(3))
    until(live, lambda: live.facts().karpenter.is_live)
    server.change("MODIFIED", LEASES, lease(5))
    server.change("ADDED", NODES, node_object())
    until(live, lambda: len(live.facts().nodes) == 1)

    assert live.revision() == revision + 2


def test_a_lease_of_a_moment_ago_is_a_live_karpenter_and_one_given_back_is_none(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    server.others[LEASES] = [lease(1)]
    live = start(now=lambda: NOON + timedelta(seconds=30))
    until(live, live.is_synced)
    assert live.facts().karpenter.is_live

    server.change("MODIFIED", LEASES, lease(2, holder=""))
    until(live, lambda: not live.facts().karpenter.is_live)


def test_who_waits_is_woken_by_a_poke_also_one_that_came_before(server: FakeApiServer, tmp_path: Path) -> None:
    live = LiveCluster(ApiServer(server.kubeconfig(tmp_path)))
    live.poke()
    began_at = time.monotonic()
    assert live.wait_for_change(0, 60) == 0
    assert time.monotonic() - began_at < 30


def test_stopping_ends_every_thread_and_who_waits_and_may_be_done_twice(
    server: FakeApiServer, start: Callable[..., LiveCluster]
) -> None:
    live = start()
    until(live, live.is_synced)
    server.await_watches(PODS)
    live.stop()
    live.stop()

    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("watch-")] == []
    assert live.wait_for_change(10_000, 60) == live.revision()
