"""Every metric: name, type, labels, meaning. Names follow Karpenter's habits, with our prefix.

No label names a pod, a node or a claim, so their number is bounded by pools, reasons and capacity types. Each metric
also carries ``environment``, lest the text files of two environments on one machine collide.
"""

from __future__ import annotations

from enum import Enum

from attrs import frozen

PREFIX = "nodewright"
ENVIRONMENT = "environment"
# From a pod's creation to a cloud call: a second is the promise.
_REACTION = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60, 300)
# From a launch to a pod that serves: minutes.
_BRING_UP = (1, 5, 10, 20, 30, 45, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800)
_DECIDING = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_PASS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)


class MetricType(str, Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@frozen
class Metric:
    """``name`` as it is scraped, ``_total`` of a counter included; ``labels`` without the environment."""

    name: str
    kind: MetricType
    labels: tuple[str, ...]
    meaning: str
    buckets: tuple[float, ...] = ()


def _counter(name: str, labels: tuple[str, ...], meaning: str) -> Metric:
    return Metric(f"{PREFIX}_{name}_total", MetricType.COUNTER, labels, meaning)


def _gauge(name: str, labels: tuple[str, ...], meaning: str) -> Metric:
    return Metric(f"{PREFIX}_{name}", MetricType.GAUGE, labels, meaning)


def _histogram(name: str, labels: tuple[str, ...], meaning: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(f"{PREFIX}_{name}", MetricType.HISTOGRAM, labels, meaning, buckets)


_POOL_CAPACITY_REASON = ("nodepool", "capacity_type", "reason")

CREATED = _counter("nodeclaims_created", _POOL_CAPACITY_REASON, "Machines launched, by the launch's reason.")
TERMINATED = _counter("nodeclaims_terminated", _POOL_CAPACITY_REASON, "Machines deleted, by the removal's reason.")
DECISIONS = _counter(
    "decisions", ("decision", "reason"), "Decisions acted on: launch, drain or release, each counted once a machine."
)
DIFFERENCES = _counter(
    "plan_binding_differences", (), "Pods that kube-scheduler bound to another node than the plan had for them."
)
ERRORS = _counter("errors", ("kind",), "What went wrong, by kind.")
IDLE_GPU_SECONDS = _counter(
    "idle_gpu_seconds", ("nodepool",), "GPU seconds that initialized nodes offered and no pod had asked for."
)

PODS_WAITING = _gauge("pods_waiting", ("reason",), "Pods without a node, by the code of what they wait for.")
NODES = _gauge("nodes", ("nodepool", "phase"), "Machines by how far they have come.")
GPUS = _gauge("gpus", ("nodepool", "state"), "GPUs: used by pods, idle on initialized nodes, or starting.")
COST = _gauge(
    "cost_usd_per_hour", ("nodepool", "capacity_type"), "Dollars an hour of all machines that are desired or still run."
)
PLANNED_COST = _gauge(
    "plan_launch_cost_usd_per_hour",
    ("amount",),
    "Dollars an hour of the nodes that the last plan launches, and the least proven for their pods.",
)
LIMIT = _gauge("nodepools_limit", ("nodepool", "resource_type"), "A pool's limit: cores, bytes, or a count.")
USAGE = _gauge("nodepools_usage", ("nodepool", "resource_type"), "What counts against the limit, in the same unit.")
ALLOWED = _gauge(
    "nodepools_allowed_disruptions",
    ("nodepool", "reason"),
    "Nodes that budgets would let go now for a reason, beside those that go already.",
)
UNAVAILABLE = _gauge("unavailable_offerings", ("capacity_type",), "Offerings that are out after a refused launch.")
UNAVAILABLE_GROUPS = _gauge(
    "unavailable_groups",
    ("group",),
    "1 for a quota, subnets or capacity type of which all is out after a refused launch.",
)
SYNCED = _gauge("cluster_state_synced", (), "1 when the cluster was seen whole at the last look, else 0.")
PAUSED = _gauge("paused", ("nodepool",), "1 where paused; an empty nodepool is the whole environment.")

REACTION = _histogram(
    "reaction_duration_seconds",
    ("phase",),
    "From a pod's creation, which Kubernetes rounds down to a second, until its launch was decided, published, begun "
    "by Pulumi, called.",
    _REACTION,
)
MILESTONE = _histogram(
    "nodes_milestone_duration_seconds",
    ("nodepool", "milestone"),
    "From launch to registered, initialized, image-pulled, first-pod-ready; launched counts from the decision.",
    _BRING_UP,
)
STARTUP = _histogram(
    "pods_startup_duration_seconds", (), "From creation to ready, of pods that were seen waiting.", _BRING_UP
)
SCHEDULING = _histogram("scheduling_duration_seconds", (), "Time to decide one plan.", _DECIDING)
PASS = _histogram("pass_duration_seconds", ("outcome",), "Time of one pass, by how it ended.", _PASS)

METRICS: tuple[Metric, ...] = (
    CREATED,
    TERMINATED,
    DECISIONS,
    DIFFERENCES,
    ERRORS,
    IDLE_GPU_SECONDS,
    PODS_WAITING,
    NODES,
    GPUS,
    COST,
    PLANNED_COST,
    LIMIT,
    USAGE,
    ALLOWED,
    UNAVAILABLE,
    UNAVAILABLE_GROUPS,
    SYNCED,
    PAUSED,
    REACTION,
    MILESTONE,
    STARTUP,
    SCHEDULING,
    PASS,
)
