"""The environment's Lease in its cluster: of several runners one changes things, and the others wait.

Clocks are never compared between machines. What another holder last wrote counts as alive for a lease's length from
when it was first seen here, by this machine's monotonic clock. The Lease only spares two runners from doing the same
work; what keeps them from doing harm is that a document is published over the version that it was decided on.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from engine.actuate.api_server import NOT_FOUND, OK, ApiConnection, message_of
from engine.actuate.failure import ActuationFailed
from engine.model import labels as keys
from engine.model.fault import Fault

LEASE_SECONDS = 15.0
# A holder that could not renew for this part of the lease's length lets go before anybody else may take it.
_TRUSTED_PART = 2 / 3
_CREATED, _ACCEPTED, _CONFLICT = 201, 202, 409
_ATTEMPTS = 3
_RIGHTS = (
    "give our user the rights to get, create and update leases in that namespace, and to delete them for a destroy"
)
_HINTS = {401: _RIGHTS, 403: _RIGHTS, NOT_FOUND: "check that the kubeconfig's server is a whole Kubernetes API server"}


class KubernetesLease:
    """A ``coordination.k8s.io/v1`` Lease. ``holder`` is who we are, never used by another process.

    ``keeps`` starts a thread that renews while it is held; tests renew by hand. Raises ActuationFailed when the API
    server refuses, the connection's own Fault when it is silent.
    """

    def __init__(
        self,
        api_server: ApiConnection,
        namespace: str,
        name: str,
        holder: str,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        keeps: bool = True,
    ) -> None:
        self._api_server = api_server
        self._namespace, self._name, self._holder = namespace, name, holder
        self._monotonic, self._now, self._keeps = monotonic, now, keeps
        self._guard = threading.RLock()
        self._lease: Mapping[str, Any] | None = None
        self._seen: tuple[object, ...] = ()
        self._seen_at = monotonic()
        self._renewed_at: float | None = None
        self._let_go = threading.Event()

    def take(self) -> str:
        """Try once. Empty when it is ours now; else who holds it."""
        with self._guard:
            if self.is_held():
                return ""
            self._renewed_at = None
            if self._lease is None or self._other_holder():
                self._read()
            for _ in range(_ATTEMPTS):
                other = self._other_holder()
                if other:
                    return f"{other} (Lease {self._namespace}/{self._name})"
                if self._written(self._holder):
                    self._keep()
                    return ""
                self._read()
            return f"several runners at once (Lease {self._namespace}/{self._name})"

    def is_held(self) -> bool:
        """Whether nobody else can have taken it by now."""
        renewed_at = self._renewed_at
        return renewed_at is not None and self._monotonic() - renewed_at < LEASE_SECONDS * _TRUSTED_PART

    def renew(self) -> bool:
        """Hold it for another length; false once somebody else has it. Raises Fault, and is still held for a while."""
        with self._guard:
            if self._renewed_at is None:
                return False
            for _ in range(_ATTEMPTS):
                if self._written(self._holder):
                    return True
                # Somebody may only have annotated it.
                self._read()
                if self._holder_now() != self._holder:
                    self._renewed_at = None
                    return False
            return False

    def release(self) -> None:
        """Let the next one in at once. Never raises: a Lease that nobody renews frees itself."""
        self._let_go.set()
        with self._guard:
            was_ours, self._renewed_at = self._renewed_at is not None, None
            if not was_ours:
                return
            try:
                for _ in range(_ATTEMPTS):
                    if self._holder_now() != self._holder or self._written(""):
                        break
                    self._read()
            except Fault:
                self._lease = None
            self._renewed_at = None

    def remove(self) -> None:
        """Delete it, annotations and all, unless somebody else holds it. Raises ActuationFailed when refused."""
        self.release()
        with self._guard:
            self._read()
            if self._lease is None or self._other_holder():
                return
            # Whoever writes it in between keeps it.
            as_seen = {"resourceVersion": self._lease["metadata"]["resourceVersion"]}
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": as_seen}
            status, answer = self._api_server.ask("DELETE", self._path, body=body)
            if status not in (OK, _ACCEPTED, NOT_FOUND, _CONFLICT):
                raise self._refused("deleting", status, answer)
            self._lease = None

    def look(self) -> None:
        """See how it stands. A Lease that we may not read tells nothing."""
        with self._guard:
            self._read(may_be_refused=True)

    def paused(self) -> str:
        """The value of the annotation ``nodewright.dev/paused`` as last seen; empty is not paused."""
        annotations = ((self._lease or {}).get("metadata") or {}).get("annotations") or {}
        if keys.PAUSED not in annotations:
            return ""
        return str(annotations[keys.PAUSED]) or f"by the annotation {keys.PAUSED} on Lease {self._name}"

    def _keep(self) -> None:
        self._let_go = threading.Event()
        if self._keeps:
            threading.Thread(target=self._renewing, args=(self._let_go,), name="lease", daemon=True).start()

    def _renewing(self, let_go: threading.Event) -> None:
        while not let_go.wait(LEASE_SECONDS / 3):
            try:
                if not self.renew():
                    return
            except Fault:
                # No answer: tried again until the time for which it can be trusted is over.
                if not self.is_held():
                    return

    def _holder_now(self) -> str:
        return str(_spec(self._lease).get("holderIdentity") or "")

    def _other_holder(self) -> str:
        """Who else holds it as far as was seen; empty when it is free, ours, or its holder has been silent too long."""
        holder = self._holder_now()
        if holder in ("", self._holder):
            return ""
        told = _spec(self._lease).get("leaseDurationSeconds")
        length = max(float(told), LEASE_SECONDS) if isinstance(told, int | float) else LEASE_SECONDS
        return holder if self._monotonic() - self._seen_at < length else ""

    def _read(self, *, may_be_refused: bool = False) -> None:
        status, body = self._api_server.ask("GET", self._path)
        if status == NOT_FOUND:
            self._lease = None
        elif status == OK:
            self._saw(body)
        elif not may_be_refused:
            raise self._refused("reading", status, body)

    def _saw(self, body: bytes) -> None:
        try:
            lease = json.loads(body)
            seen = (
                _spec(lease).get("holderIdentity"),
                _spec(lease).get("renewTime"),
                lease["metadata"]["resourceVersion"],
            )
        except (ValueError, TypeError, KeyError, AttributeError):
            raise ActuationFailed(
                f"the API server's answer about Lease {self._namespace}/{self._name} is no Lease: {message_of(body)}",
                "check that the kubeconfig's server is a Kubernetes API server and not a proxy's page",
            ) from None
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._monotonic()
        self._lease = lease

    def _written(self, holder: str) -> bool:
        """Write ourselves, or nobody, over what was seen last; false when that is no longer how it stands."""
        began, moment = self._monotonic(), self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata = {"name": self._name, "namespace": self._namespace, **((self._lease or {}).get("metadata") or {})}
        metadata.pop("managedFields", None)
        before = _spec(self._lease)
        changes = before.get("leaseTransitions") or 0
        is_new = before.get("holderIdentity") != holder and bool(holder)
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {
                **before,
                "holderIdentity": holder,
                "leaseDurationSeconds": int(LEASE_SECONDS),
                "renewTime": moment,
                "acquireTime": moment if is_new else before.get("acquireTime"),
                "leaseTransitions": changes + is_new,
            },
        }
        method, path = ("PUT", self._path) if self._lease is not None else ("POST", self._path.rpartition("/")[0])
        status, answer = self._api_server.ask(method, path, body=body)
        if status in (OK, _CREATED):
            self._saw(answer)
            self._renewed_at = began if holder else None
            return True
        # A Lease that was deleted meanwhile is made anew; where none can be made, there is no such namespace.
        if status == _CONFLICT or (status == NOT_FOUND and method == "PUT"):
            return False
        raise self._refused("writing", status, answer)

    @property
    def _path(self) -> str:
        space, name = quote(self._namespace, safe=""), quote(self._name, safe="")
        return f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{name}"

    def _refused(self, what: str, status: int, body: bytes) -> ActuationFailed:
        return ActuationFailed(
            f"the API server refused {what} the Lease {self._namespace}/{self._name} with {status}: {message_of(body)}",
            _HINTS.get(status, "a later pass tries again"),
        )


def _spec(lease: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return (lease or {}).get("spec") or {}
