"""On what terms nodes are made for a pod, beyond what it asks of them."""

from __future__ import annotations

from functools import cached_property

from attrs import frozen

from engine.model.pod import PodKey

# Pods that are none of the cluster's: they stand for what is to be kept spare. No real pod is without a namespace.
_NOBODYS_NAMESPACE = ""


@frozen(cache_hash=True)
class Terms:
    """``fills_only`` names the PriorityClass whose pods start no node; empty: it may. ``wasteful`` are pools and their
    instance types of which a node for the pod would leave more GPUs unused than the pool accepts."""

    fills_only: str = ""
    wasteful: frozenset[tuple[str, str]] = frozenset()

    @cached_property
    def order(self) -> tuple[str, tuple[tuple[str, str], ...]]:
        """Tells different terms apart the same way in every pass."""
        return self.fills_only, tuple(sorted(self.wasteful))


ANY_TERMS = Terms()


def spare_key(*parts: str) -> PodKey:
    """The key of a device that is to be kept spare, as if it were a pod's."""
    return PodKey(_NOBODYS_NAMESPACE, "/".join(parts))


def is_spare(pod: PodKey) -> bool:
    return pod.namespace == _NOBODYS_NAMESPACE
