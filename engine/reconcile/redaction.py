"""A snapshot without the names that people gave things: it decides the same, and can be shown to others."""

from __future__ import annotations

import hashlib

from attrs import evolve

from engine.model.pod import Owner, Pod, PodKey
from engine.model.snapshot import Snapshot


def redacted(snapshot: Snapshot) -> Snapshot:
    """Pod, namespace and owner names become digests, labels and uids go; order and equality of names are kept."""
    return evolve(snapshot, pods=tuple(_redacted_pod(pod) for pod in snapshot.pods))


def _redacted_pod(pod: Pod) -> Pod:
    key = PodKey(namespace=_pseudonym(pod.key.namespace), name=_pseudonym(pod.key.name))
    owner = Owner(kind=pod.owner.kind, name=_pseudonym(pod.owner.name)) if pod.owner else None
    return evolve(pod, key=key, owner=owner, labels={}, uid="")


def _pseudonym(name: str) -> str:
    return "x" + hashlib.sha256(name.encode()).hexdigest()[:12]
