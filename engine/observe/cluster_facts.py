"""What a cluster holds, put together from the shelves of its kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import frozen

from engine.model.node import Node
from engine.model.pod import DaemonSet, Pod
from engine.model.snapshot import KarpenterFacts, ObjectProblem
from engine.model.workload import Autoscaler, Workload, WorkloadOwner
from engine.observe import kinds
from engine.observe.karpenter_objects import LeaderLease, karpenter_facts
from engine.observe.kinds import Kind
from engine.observe.kubernetes import decode_daemon_sets, decode_nodes, decode_pods
from engine.observe.shelf import Shelf


@frozen
class ClusterFacts:
    """What a cluster holds. ``problems`` are objects that could not be read whole; the rest stands without them."""

    pods: tuple[Pod, ...]
    nodes: tuple[Node, ...]
    daemon_sets: tuple[DaemonSet, ...]
    problems: tuple[ObjectProblem, ...] = ()
    workload: Workload = Workload()
    karpenter: KarpenterFacts = KarpenterFacts()


def decode_cluster(
    pods: Iterable[Any], nodes: Iterable[Any], daemon_sets: Iterable[Any], now: datetime | None = None
) -> ClusterFacts:
    """The facts in three lists of Kubernetes JSON objects."""
    read_pods, pod_problems = decode_pods(pods, now)
    read_nodes, node_problems = decode_nodes(nodes)
    read_daemon_sets, daemon_problems = decode_daemon_sets(daemon_sets)
    return ClusterFacts(read_pods, read_nodes, read_daemon_sets, (*pod_problems, *node_problems, *daemon_problems))


class Shelves:
    """One for each kind. Not for several threads at once."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self.by_kind: Mapping[str, Shelf] = {kind.name: Shelf(kind, now) for kind in kinds.KINDS}
        self._parts: tuple[Any, ...] = ()
        self._workload = Workload()

    def facts(self, gaps: Iterable[ObjectProblem], seconds_since_change: Mapping[LeaderLease, float]) -> ClusterFacts:
        """All of it. ``gaps`` are kinds that cannot be read; parts that did not change are the very same values."""
        return ClusterFacts(
            pods=self._all(kinds.PODS),
            nodes=self._all(kinds.NODES),
            daemon_sets=self._all(kinds.DAEMON_SETS),
            problems=(*(each for shelf in self.by_kind.values() for each in shelf.problems()), *gaps),
            workload=self._workload_now(),
            karpenter=karpenter_facts(
                self._all(kinds.KARPENTER_POOLS),
                self._all(kinds.KARPENTER_CLAIMS),
                self._all(kinds.KARPENTER_LEASES),
                self._now(),
                seconds_since_change,
            ),
        )

    def _all(self, kind: Kind) -> tuple[Any, ...]:
        return self.by_kind[kind.name].in_order()

    def _workload_now(self) -> Workload:
        budgets, volumes, claims, classes, priorities, namespaces, csi_nodes, attachments = (
            self._all(kind)
            for kind in (
                kinds.BUDGETS,
                kinds.VOLUMES,
                kinds.VOLUME_CLAIMS,
                kinds.STORAGE_CLASSES,
                kinds.PRIORITY_CLASSES,
                kinds.NAMESPACES,
                kinds.CSI_NODES,
                kinds.ATTACHMENTS,
            )
        )
        owners = tuple(self._all(kind) for kind in kinds.OWNERS)
        autoscalers = tuple(self._all(kind) for kind in kinds.AUTOSCALERS)
        cluster_wide = (volumes, classes, priorities, namespaces, csi_nodes, attachments)
        parts = (budgets, claims, *cluster_wide, *owners, *autoscalers)
        if len(parts) != len(self._parts) or any(new is not old for new, old in zip(parts, self._parts, strict=True)):
            self._parts = parts
            self._workload = Workload(
                disruption_budgets=budgets,
                volumes=volumes,
                volume_claims=claims,
                storage_classes=classes,
                priority_classes=priorities,
                owners=_by_name(owners),
                autoscalers=_by_name(autoscalers),
                namespaces=namespaces,
                attach_limits=tuple([limit for limits in csi_nodes for limit in limits]),
                attachments=attachments,
            )
        return self._workload


def _by_name(parts: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
    return tuple(sorted((each for part in parts for each in part), key=_name))


def _name(each: WorkloadOwner | Autoscaler) -> tuple[str, str, str]:
    return each.key.namespace, each.key.name, each.kind
