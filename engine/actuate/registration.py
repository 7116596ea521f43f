"""Making a node what its claim promised: labels that its kubelet cannot know, its pool's taints, and then its release
to kube-scheduler.

A kubelet of ours registers with the taint ``karpenter.sh/unregistered``, which no pod tolerates. It goes when the pass
that saw the node has told the node's pods where to go (Karpenter, nodeclaim/lifecycle/registration.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

from engine.actuate.api_server import MERGE_PATCH, NOT_FOUND, OK, ApiConnection, refused
from engine.model import labels as keys
from engine.model.constraint import Taint

_ATTEMPTS = 3
_CONFLICT = 409
_UNCORDONED = {"unschedulable": None}


class Registrar(Protocol):
    """Each says whether the node still exists, and may be repeated. Raises a Fault when the cluster does not answer."""

    def register(self, node_name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, hold: bool) -> bool:
        """Add what is lacking of labels and taints, and take the unregistered taint away; ``hold`` cordons."""

    def open(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Add labels, and end the cordon of a node that was held."""

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Add labels to a node that is registered."""

    def annotate(self, node_name: str, annotations: Mapping[str, str | None]) -> bool:
        """Add annotations to a node, and take away those that are None."""


class KubernetesRegistrar:
    """On a real API server. Raises ActuationFailed when it refuses, the connection's own Fault when it is silent."""

    def __init__(self, api_server: ApiConnection) -> None:
        self._api_server = api_server

    def register(self, node_name: str, labels: Mapping[str, str], taints: Sequence[Taint], *, hold: bool) -> bool:
        """One merge patch of labels and taints, with the version that was read: others write the taints too."""
        held = {keys.HELD: "true"} if hold else {}
        cordon = {"unschedulable": True} if hold else {}
        return self._retainted(
            node_name, {**labels, **held}, lambda there: _with(_without(there, keys.UNREGISTERED_TAINT), taints), cordon
        )

    def open(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """One merge patch, in which null takes away.

        With the cordon goes its taint: Kubernetes would take it off a moment later, and pods that are tried in between
        lose their nomination.
        """
        return self._retainted(
            node_name, {**labels, keys.HELD: None}, lambda there: _without(there, keys.UNSCHEDULABLE_TAINT), _UNCORDONED
        )

    def _retainted(
        self,
        node_name: str,
        labels: Mapping[str, str | None],
        retainted: Callable[[Sequence[Any]], list[Any]],
        spec: Mapping[str, Any],
    ) -> bool:
        path = _path(node_name)
        for attempt in range(1, _ATTEMPTS + 1):
            status, body = self._api_server.ask("GET", path)
            if status == OK:
                node = json.loads(body)
                change = {
                    "metadata": {"resourceVersion": node["metadata"]["resourceVersion"], "labels": dict(labels)},
                    "spec": {"taints": retainted(node["spec"].get("taints") or []), **spec},
                }
                status, body = self._api_server.ask("PATCH", path, body=change, content_type=MERGE_PATCH)
            if status in (OK, NOT_FOUND):
                return status == OK
            if status != _CONFLICT or attempt == _ATTEMPTS:
                raise refused(f"the registration of node {node_name}", status, body)
        return False

    def label(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """One merge patch: labels that are not named stay."""
        return self._patched(node_name, "labels", labels)

    def annotate(self, node_name: str, annotations: Mapping[str, str | None]) -> bool:
        """One merge patch, in which null takes away: annotations that are not named stay."""
        return self._patched(node_name, "annotations", annotations)

    def _patched(self, node_name: str, what: str, values: Mapping[str, str | None]) -> bool:
        change = {"metadata": {what: dict(values)}}
        status, body = self._api_server.ask("PATCH", _path(node_name), body=change, content_type=MERGE_PATCH)
        if status not in (OK, NOT_FOUND):
            raise refused(f"the {what} of node {node_name}", status, body)
        return status == OK


def _path(node_name: str) -> str:
    return f"/api/v1/nodes/{quote(node_name, safe='')}"


def _without(there: Sequence[Any], key: str) -> list[Any]:
    """The taints, as in a manifest, of all other keys."""
    return [taint for taint in there if taint.get("key") != key]


def _with(there: Sequence[Any], promised: Sequence[Taint]) -> list[Any]:
    known = {(taint.get("key"), taint.get("effect")) for taint in there}
    lacking = [taint for taint in promised if (taint.key, taint.effect.value) not in known]
    return [*there, *({"key": each.key, "value": each.value, "effect": each.effect.value} for each in lacking)]
