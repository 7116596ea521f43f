"""Kubernetes nodes, and the EC2 instances beneath them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cached_property

from attrs import field, frozen

from engine.model import labels
from engine.model.constraint import Taint
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason

# The kubelet's own, and those of EKS's node monitoring agent.
READY = "Ready"
HEALTH_CONDITIONS = (
    READY,
    "AcceleratedHardwareReady",
    "StorageReady",
    "NetworkingReady",
    "KernelReady",
    "ContainerRuntimeReady",
)


@frozen
class NodeCondition:
    """One of a node's conditions that tell of its health: ``status`` True, False or Unknown, ``since`` when it last
    changed, as the cluster has it; None is not told."""

    type: str
    status: str
    since: datetime | None = None


@frozen
class Node:
    """A node as the API server shows it. ``provider_id`` is ``aws:///ZONE/INSTANCE-ID`` on EC2.

    ``conditions`` are those of HEALTH_CONDITIONS that it has, in that order.
    ``marked_at`` is when it was tainted for removal, as the taint itself tells, and ``marked_for`` why, as an
    annotation tells; None where they tell nothing. ``replace_asked``: an annotation asks for another in its stead,
    since ``replace_asked_at``; None where it does not say.
    """

    name: str
    allocatable: Resources
    created_at: datetime
    provider_id: str = ""
    labels: Mapping[str, str] = field(factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    do_not_disrupt: bool = False
    deleting: bool = False
    marked_at: datetime | None = None
    marked_for: DisruptionReason | None = None
    conditions: tuple[NodeCondition, ...] = ()
    replace_asked: bool = False
    replace_asked_at: datetime | None = None

    @cached_property
    def instance_id(self) -> str:
        return self.provider_id.rsplit("/", 1)[-1]

    @property
    def is_marked(self) -> bool:
        """Whether a pass has cordoned this node and tainted it for removal."""
        return self.unschedulable and any(taint.key == labels.DISRUPTED_TAINT for taint in self.taints)


class InstanceState(str, Enum):
    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    SHUTTING_DOWN = "shutting-down"
    TERMINATED = "terminated"


@frozen
class Instance:
    """An EC2 instance that carries this environment's tag. ``claim`` is its claim tag, empty when it has none."""

    id: str
    claim: str
    state: InstanceState
    instance_type: str
    zone: str
    capacity_type: str
    launched_at: datetime
    private_dns_name: str = ""

    @property
    def is_alive(self) -> bool:
        return self.state not in (InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED)
