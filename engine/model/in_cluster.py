"""What an environment installs in its own cluster, as a value: decide/ makes it, converge/ declares it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import field, frozen

from engine.model.constraint import Toleration

# Where a runner that stays serves its metrics.
METRICS_PORT = 8080


@frozen
class AccessRule:
    """One rule of a Kubernetes Role. ``api_groups`` name the core group by ``""``; no ``resource_names`` is all."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()


@frozen
class Volume:
    """A folder that the runner keeps from one pod to the next: ``path`` in the container, ``sub_path`` on the claim."""

    path: str
    sub_path: str


@frozen
class Runner:
    """``nodewright run`` in the cluster. ``schedule`` None runs without end, as a Deployment; else a CronJob's.

    ``arguments`` follow ``nodewright``; ``scratch`` are folders that may be lost with the pod.
    """

    image: str
    arguments: tuple[str, ...]
    schedule: str | None
    volumes: tuple[Volume, ...]
    scratch: tuple[str, ...]


@frozen
class PrePull:
    """The DaemonSet that keeps ``images``, in name order, on the nodes of one pool.

    ``read_from_pods`` are those of them that only pods name, and no policy does.
    """

    node_pool: str
    name: str
    images: tuple[str, ...]
    tolerations: tuple[Toleration, ...]
    read_from_pods: tuple[str, ...] = ()


@frozen
class AddOns:
    """All of it. ``cluster_wide_name`` is what objects outside of ``namespace`` are called.

    ``owns_namespace`` false: the namespace was there before, and is neither made nor deleted. ``cluster_rules`` hold in
    every namespace, ``lease_rules`` in ``lease_namespace`` alone.
    """

    environment: str
    namespace: str
    owns_namespace: bool
    service_account: str
    cluster_wide_name: str
    cluster_rules: tuple[AccessRule, ...]
    lease_namespace: str
    lease_rules: tuple[AccessRule, ...]
    runner: Runner | None
    pre_pulls: tuple[PrePull, ...]


class ChangeKind(str, Enum):
    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


@frozen
class ObjectChange:
    """What is to be done, or was done, to one object of the cluster."""

    change: ChangeKind
    kind: str
    name: str


@frozen
class InstallOutcome:
    """What an update of the add-ons came to. ``failures`` are sentences, each ``KIND NAME: MESSAGE``."""

    changes: tuple[ObjectChange, ...] = ()
    failures: tuple[str, ...] = ()
    was_interrupted: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether everything is as it was declared."""
        return not self.failures and not self.was_interrupted


@frozen
class StandingAddOns:
    """What the add-ons' stack holds: ``digest`` of what it was declared from last, empty when that is not known.

    ``images`` are those that pods named, by pool; ``owns_namespace``: the stack made the namespace.
    """

    digest: str = ""
    images: Mapping[str, tuple[str, ...]] = field(factory=dict)
    owns_namespace: bool = False
    is_empty: bool = True
