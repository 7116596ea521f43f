"""What Karpenter's API and what ours say about an object."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import yaml
from attrs import frozen

from engine.model.diagnostic import Diagnostic, InvalidInput, Severity
from engine.policy.load import load_policy
from engine.sandbox.control_plane import Plane
from tests.builders import environment
from tests.cluster.karpenter_bases import Object, beside
from tests.cluster.karpenter_crds import CLASS, POOL

_RESOURCES = {
    POOL: "/apis/karpenter.sh/v1/nodepools",
    CLASS: "/apis/karpenter.k8s.aws/v1/ec2nodeclasses",
}
_QUERY = "?dryRun=All&fieldValidation=Strict"
_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ENVIRONMENT = environment(default_node_class="gpu-nodes")


@frozen
class Theirs:
    """The API server's verdict. ``causes`` are its reasons one by one, ``field: message``; empty when it accepts."""

    status: int
    causes: tuple[str, ...]

    @property
    def accepts(self) -> bool:
        return self.status < 300


@frozen
class Ours:
    """Our verdict, with all findings."""

    findings: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(found for found in self.findings if found.severity is Severity.ERROR)

    @property
    def accepts(self) -> bool:
        return not self.errors


class KarpentersApi:
    """One kept connection, which asks without changing anything."""

    def __init__(self, plane: Plane) -> None:
        address = urlsplit(plane.endpoint)
        context = ssl.create_default_context(cafile=str(plane.authority_file))
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port or 443, timeout=30.0, context=context
        )
        self._headers = {"Authorization": f"Bearer {plane.token}", "Content-Type": "application/json"}

    def __call__(self, kind: str, item: Object) -> Theirs:
        self._connection.request("POST", _RESOURCES[kind] + _QUERY, json.dumps(item).encode(), self._headers)
        answer = self._connection.getresponse()
        told = json.loads(answer.read())
        return Theirs(answer.status, _causes(told) if answer.status >= 300 else ())


def _causes(status: Mapping[str, Any]) -> tuple[str, ...]:
    causes = (status.get("details") or {}).get("causes") or ()
    return tuple(f"{cause.get('field', '')}: {cause['message']}" for cause in causes) or (str(status["message"]),)


def ours(item: Object) -> Ours:
    """As ``nodewright check`` reads a folder with the object and what it refers to, in an environment."""
    text = yaml.dump_all([item, beside(item)], Dumper=_DUMPER, sort_keys=False)
    try:
        return Ours(load_policy([("policies/generated.yaml", text.encode())], _ENVIRONMENT).warnings)
    except InvalidInput as invalid:
        return Ours(invalid.diagnostics)
