"""Reading a Kubernetes cluster once: whole lists, page by page. A read that is cut short is a failed read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from engine.model.snapshot import ObjectProblem
from engine.observe.api_server import ApiServer
from engine.observe.cluster_facts import ClusterFacts, Shelves, decode_cluster
from engine.observe.failure import Refused
from engine.observe.kinds import KINDS, Kind
from engine.observe.listing import PAGE, answered_object, whole_list

__all__ = ["PAGE", "ClusterFacts", "ClusterReader", "KubernetesCluster", "decode_cluster", "gap"]

_NOT_SERVED = 404


class ClusterReader(Protocol):
    """A cluster that can be read; raises ObservationFailed."""

    def read(self) -> ClusterFacts: ...


class KubernetesCluster:
    """A real API server, reached as kubectl would: ``kubeconfig`` and ``context`` None mean kubectl's own defaults."""

    def __init__(
        self,
        kubeconfig: str | None = None,
        context: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.api_server = ApiServer(kubeconfig, context)
        self._now = now

    def read(self) -> ClusterFacts:
        """All that is to be known of it. Raises ObservationFailed when any page cannot be had.

        A kind that is not needed and that the server refuses is a problem and no failure; one that it does not know
        is empty.
        """
        shelves = Shelves(self._now)
        gaps = []
        for kind in KINDS:
            shelf = shelves.by_kind[kind.name]
            try:
                all_seen, _ = whole_list(self.api_server, kind.name, kind.path, kind.selector, shelf.see)
                shelf.replace(all_seen)
            except Refused as refusal:
                if kind.is_needed:
                    raise
                if refusal.status != _NOT_SERVED:
                    gaps.append(gap(kind, str(refusal)))
        return shelves.facts(gaps, {})

    def kubernetes_version(self) -> str:
        """The release that the API server runs, such as ``1.33``. Raises ObservationFailed."""
        version = answered_object(self.api_server, "version", "/version", {})
        # EKS writes the minor number as "33+".
        return f"{version.get('major', '')}.{str(version.get('minor', '')).rstrip('+')}"


def gap(kind: Kind, why: str) -> ObjectProblem:
    """That a kind cannot be read, as a problem of the snapshot."""
    return ObjectProblem(kind=kind.name, namespace="", name="all of them", what=why)
