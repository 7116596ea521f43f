"""A node is emptied against the real eviction API, budgets and daemonset controller; kubelets are played."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from attrs import frozen

from engine.actuate.drain import KubernetesDrainer
from engine.decide.draining import Drained, drained
from engine.decide.fleet import Fleet, Sighting
from engine.model import labels as keys
from engine.model.document import RemovalRecord
from engine.model.drain import Mark
from engine.model.drain_stay import DetachesVolumes
from engine.model.eviction import Eviction, EvictionStatus
from engine.model.plan import Removal, RemovalPhase
from engine.model.pod import PodKey
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot
from engine.observe.api_server import ApiServer
from engine.observe.cluster import KubernetesCluster
from engine.sandbox.control_plane import Plane
from tests.builders import claim, node_pool
from tests.cluster.api import Cluster, eventually, pod

pytestmark = pytest.mark.cluster

_READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-30T12:00:00Z"}
_CPU = {"cpu": "1"}


@frozen
class Draining:
    """One node of the test's own, with passes over it."""

    cluster: Cluster
    plane: Plane
    node: str
    marked_at: datetime

    def begin(self, name: str, **spec: Any) -> None:
        """A pod that runs on the node and ends at once when it is asked to."""
        self.cluster.create(pod(name, _CPU, nodeName=self.node, terminationGracePeriodSeconds=0, **spec))
        self.runs(name)

    def runs(self, name: str) -> None:
        self.cluster.patch("Pod", name, {"status": {"phase": "Running", "conditions": [_READY]}}, "status")

    def names(self) -> list[str]:
        return sorted(each["metadata"]["name"] for each in self.cluster.list("Pod"))

    def seen(self) -> tuple[Snapshot, Drained]:
        """What a pass sees, and what comes of the removal in it."""
        facts = KubernetesCluster(str(self.plane.kubeconfig)).read()
        [there] = [each for each in facts.nodes if each.name == self.node]
        here = tuple(each for each in facts.pods if each.node_name == self.node)
        snapshot = Snapshot("test", self.marked_at, pods=here, nodes=(there,), workload=facts.workload)
        ordinary = tuple(sorted(each.key for each in here if not each.is_daemon))
        one = claim()
        record = RemovalRecord(
            one.name, one.node_pool, DisruptionReason.DRIFTED, "drifted", self.marked_at, one.usd_per_hour, self.node
        )
        is_empty = there.is_marked and not ordinary
        removal = Removal(record, RemovalPhase.RELEASE if is_empty else RemovalPhase.MARK, ordinary)
        fleet = Fleet((Sighting(one, node=there, pods=here),), (), (), {})
        return snapshot, drained([removal], {}, fleet, {one.name: node_pool()}, snapshot)

    def turn(self) -> tuple[Eviction, ...]:
        """One pass, done; what was answered."""
        _, found = self.seen()
        [removal] = found.removals
        assert removal.phase is RemovalPhase.MARK
        drainer = KubernetesDrainer(ApiServer(str(self.plane.kubeconfig)))
        assert drainer.mark(self.node, Mark(self.marked_at, removal.record.reason))
        return drainer.evict(removal.pods)


@pytest.fixture
def draining(cluster: Cluster, plane: Plane) -> Iterator[Draining]:
    name = f"drain-{uuid.uuid4().hex[:6]}"
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"drains": name}}})
    room = {"cpu": "8", "memory": "16Gi", "pods": "20"}
    cluster.patch("Node", name, {"status": {"capacity": room, "allocatable": room}}, "status")
    yield Draining(cluster, plane, name, datetime.now(UTC).replace(microsecond=0))
    cluster.delete("Node", name)


def test_tiers_leave_in_order_a_budget_holds_its_own_and_the_volume_holds_the_machine(draining: Draining) -> None:
    cluster, node = draining.cluster, draining.node
    draining.begin("web")
    draining.begin("dns", priorityClassName="system-cluster-critical")
    labels = {"app": "logs"}
    template = {
        "metadata": {"labels": labels},
        "spec": {**pod("logs", _CPU)["spec"], "nodeSelector": {"drains": node}, "terminationGracePeriodSeconds": 0},
    }
    cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "logs"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        }
    )
    [logs] = eventually(
        lambda: [one["metadata"]["name"] for one in cluster.list("Pod", "app=logs") if one["spec"].get("nodeName")],
        "the daemon is bound",
    )
    draining.runs(logs)
    cluster.budget("web", {"app": "web"}, minAvailable=1)
    held = PodKey(cluster.namespace, "web")

    for _ in range(2):
        snapshot, _ = draining.seen()
        assert [str(key) for key in snapshot.blocked_evictions] == [str(held)]
        assert [(each.pod, each.status) for each in draining.turn()] == [(held, EvictionStatus.REFUSED_BY_BUDGET)]
    marked = cluster.get("Node", node) or {}
    assert keys.EXCLUDED_FROM_LOAD_BALANCERS in marked["metadata"]["labels"]
    seen, _ = draining.seen()
    assert (seen.nodes[0].marked_at, seen.nodes[0].marked_for) == (draining.marked_at, DisruptionReason.DRIFTED)

    cluster.patch("PodDisruptionBudget", "web", {"spec": {"minAvailable": 0}})
    eventually(lambda: not draining.seen()[0].blocked_evictions, "the budget lets it go")
    asked = []
    while draining.names():
        answers = draining.turn()
        assert {each.status for each in answers} == {EvictionStatus.EVICTED}
        asked += [each.pod.name for each in answers]
        assert len(asked) <= 3, f"somebody came back: {asked}"
    assert asked == ["web", logs, "dns"]

    cluster.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": f"csi-{node}"},
            "spec": {"attacher": "test", "nodeName": node, "source": {"persistentVolumeName": f"pv-{node}"}},
        }
    )
    _, waits = draining.seen()
    assert [*waits.stays.values()] == [DetachesVolumes((f"pv-{node}",), None)]
    cluster.delete("VolumeAttachment", f"csi-{node}")
    _, goes = draining.seen()
    assert [each.phase for each in goes.removals] == [RemovalPhase.RELEASE]


def test_a_pod_of_two_budgets_is_foretold_and_refused_and_can_still_be_deleted(draining: Draining) -> None:
    cluster = draining.cluster
    draining.begin("web")
    cluster.budget("one", {"app": "web"}, minAvailable=0)
    cluster.budget("other", {"app": "web"}, minAvailable=0)
    key = PodKey(cluster.namespace, "web")

    snapshot, _ = draining.seen()
    assert snapshot.blocked_evictions[key].status is EvictionStatus.SEVERAL_BUDGETS
    assert [(each.pod, each.status) for each in draining.turn()] == [(key, EvictionStatus.SEVERAL_BUDGETS)]

    drainer = KubernetesDrainer(ApiServer(str(draining.plane.kubeconfig)))
    assert [each.status for each in drainer.delete([(key, 1)])] == [EvictionStatus.EVICTED]
    eventually(
        lambda: (cluster.get("Pod", "web") or {"metadata": {"deletionTimestamp": "gone"}})["metadata"].get(
            "deletionTimestamp"
        ),
        "it is ending, or gone",
    )
