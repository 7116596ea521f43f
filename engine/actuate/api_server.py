"""The way to an API server as this room needs it, and what its refusals mean."""

from __future__ import annotations

import json
from typing import Protocol

from engine.actuate.failure import ActuationFailed

OK, NOT_FOUND = 200, 404
MERGE_PATCH = "application/merge-patch+json"


class ApiConnection(Protocol):
    """A way to an API server: the status and body of an answer, whatever it is; raises a Fault when there is none."""

    def ask(
        self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
    ) -> tuple[int, bytes]: ...


def refused(what: str, status: int, body: bytes) -> ActuationFailed:
    """The fault that a refusal is, with what to do about it."""
    hint = (
        "give the user of the kubeconfig the right to patch nodes, to create pods/eviction and to delete pods"
        if status in (401, 403)
        else "run it again: a pass goes on from what it finds"
    )
    return ActuationFailed(f"the API server refused {what} with {status}: {message_of(body)}", hint)


def message_of(body: bytes) -> str:
    """What the API server says, with the causes, which name the budget."""
    try:
        told = json.loads(body)
        causes = (told.get("details") or {}).get("causes") or []
        return "; ".join([told["message"], *(cause["message"] for cause in causes)])
    except (ValueError, TypeError, KeyError, AttributeError):
        return body[:200].decode(errors="replace").strip()
