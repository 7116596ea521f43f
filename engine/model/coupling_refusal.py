"""Why a pod that is tied to other pods got nothing of a pool: spread, affinity, anti-affinity, host ports."""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from engine.model.constraint import LabelSelector


@frozen
class SpreadUnsatisfiable:
    """Wherever the pool could make a node, one pod more would break a required topology spread constraint.

    ``counts`` are the selected pods in each domain of ``key`` that counts, those of this plan included, in name order;
    ``reachable`` are the domains where the pool could make a node for the pod, none where none has the key.
    ``min_domains`` is 0 where the constraint has none; with fewer domains than that, the emptiest counts as 0 pods.
    """

    code: ClassVar[str] = "topology-spread"
    key: str
    max_skew: int
    counts: tuple[tuple[str, int], ...] = ()
    reachable: tuple[str, ...] = ()
    min_domains: int = 0


@frozen
class AffinityUnsatisfiable:
    """No node that the pool could make is in a domain of ``key`` with a pod that a required affinity term selects.

    ``pods`` is how many it selects that have a node, this plan's included; ``domains`` are theirs, in name order.
    """

    code: ClassVar[str] = "pod-affinity"
    key: str
    selector: LabelSelector
    pods: int = 0
    domains: tuple[str, ...] = ()


@frozen
class AntiAffinityInTheWay:
    """Each of the ``domains`` of ``key`` where the pool could make a node has a pod that excludes this one.

    ``domain`` is the first in name order and ``pod`` the one in the way there. ``is_its_own``: the term is that pod's,
    against this one; else it is this pod's.
    """

    code: ClassVar[str] = "pod-anti-affinity"
    key: str
    domain: str
    pod: str
    domains: int = 1
    is_its_own: bool = False


@frozen
class HostPortTaken:
    """Each node that the pool could make has the port taken already, by the daemon ``taken_by``."""

    code: ClassVar[str] = "host-port"
    port: int
    protocol: str
    taken_by: str = ""


CouplingRefusal = SpreadUnsatisfiable | AffinityUnsatisfiable | AntiAffinityInTheWay | HostPortTaken
