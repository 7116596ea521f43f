"""Kubernetes events on pods and nodes: a closed list of reasons, Karpenter's names where they mean the same."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class EventReason(str, Enum):
    # On pods.
    NOMINATED = "Nominated"
    BOUND_ELSEWHERE = "BoundElsewhere"
    NO_COMPATIBLE_INSTANCE_TYPES = "NoCompatibleInstanceTypes"
    KEPT_OUT_BY_PODS = "KeptOutByPods"
    RULE_FORBIDS = "RuleForbids"
    LIMIT_REACHED = "LimitReached"
    CEILING_REACHED = "CeilingReached"
    GUARDRAIL_BLOCKS = "GuardrailBlocks"
    VOLUME_NOT_READY = "VolumeNotReady"
    WAITS_FOR_SPARE_CAPACITY = "WaitsForSpareCapacity"
    LAUNCH_CAP_REACHED = "LaunchCapReached"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"
    NODE_CLASS_NOT_READY = "NodeClassNotReady"
    POOL_PAUSED = "PoolPaused"
    ENVIRONMENT_PAUSED = "EnvironmentPaused"
    OWNED_BY_KARPENTER = "OwnedByKarpenter"
    BRING_UPS_FAILED = "BringUpsFailed"
    FOUNDATION_BUSY = "FoundationBusy"
    EVICTED = "Evicted"
    # On pods and nodes.
    FAILED_DRAINING = "FailedDraining"
    # On nodes.
    DISRUPTION_TERMINATING = "DisruptionTerminating"
    DISRUPTION_BLOCKED = "DisruptionBlocked"
    NODE_NOT_INITIALIZED = "NodeNotInitialized"
    NODE_DEGRADED = "NodeDegraded"


class EventType(str, Enum):
    NORMAL = "Normal"
    WARNING = "Warning"


@frozen(order=True)
class EventObject:
    """What an event is about. ``namespace`` is empty for a node.

    ``uid`` may be empty; then ``kubectl describe`` does not show the event, and ``kubectl events --for`` does.
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = "v1"


@frozen
class ObjectEvent:
    """``message`` holds no time that runs, so that the same state gives the same event in each pass."""

    about: EventObject
    reason: EventReason
    type: EventType
    message: str
