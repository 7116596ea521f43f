"""The records that rules read: every field, its type, unit and meaning.

Every field is always there, so that none can read as nothing in silence. What is open-ended is a map, and reading a key
that a map lacks is an error. Flat on purpose, for the same reason.
"""

from __future__ import annotations

from engine.policy.cel.types import ListOf, MapOf, Record, RecordField, Scalar

_BOOL, _INT, _DOUBLE, _STRING = Scalar.BOOL, Scalar.INT, Scalar.DOUBLE, Scalar.STRING
_DURATION = Scalar.DURATION

# What a loop over each list is reckoned to cost at most, in elements. Longer lists are never shortened.
MOST_TOLERATIONS = 32
MOST_ZONES = 16
MOST_PODS_OF_A_NODE = 256
MOST_LAUNCHES = 1000
MOST_REMOVALS = 1000
MOST_POOLS = 100

TOLERATION = Record(
    "toleration",
    (
        RecordField("key", _STRING, "The taint's key; empty, with `Exists`, tolerates every taint."),
        RecordField("operator", _STRING, "`Equal` or `Exists`."),
        RecordField("value", _STRING, "The taint's value; empty for `Exists`."),
        RecordField("effect", _STRING, "`NoSchedule`, `PreferNoSchedule` or `NoExecute`; empty is every effect."),
    ),
    "One toleration of a pod.",
)

POD = Record(
    "pod",
    (
        RecordField("name", _STRING, "The pod's name."),
        RecordField("namespace", _STRING, "Its namespace."),
        RecordField("labels", MapOf(_STRING), "Its labels."),
        RecordField("ownerKind", _STRING, "Its controller's kind, such as `ReplicaSet`; empty without one."),
        RecordField("ownerName", _STRING, "Its controller's name; empty without one."),
        RecordField("priority", _INT, "Its priority, 0 where it has none."),
        RecordField(
            "gpus",
            _INT,
            "Whole accelerators of any maker that it requests. Neuron cores count, one each, where it asks for no"
            " whole Neuron device.",
        ),
        RecordField("cpuMillis", _INT, "The CPU that it requests, in thousandths of a core."),
        RecordField("memoryBytes", _INT, "The memory that it requests, in bytes."),
        RecordField(
            "requests",
            MapOf(_INT),
            "All that it requests, by resource: `cpu` in thousandths of a core, memory and storage in bytes, others"
            " as a count. Init containers, sidecars and overhead are reckoned in.",
        ),
        RecordField("nodeSelector", MapOf(_STRING), "Its nodeSelector."),
        RecordField("tolerations", ListOf(TOLERATION, MOST_TOLERATIONS), "Its tolerations."),
        RecordField("waiting", _DURATION, "How long it has been waiting for a node; `0s` once it is bound."),
        RecordField("bound", _BOOL, "Whether it is bound to a node."),
        RecordField("doNotDisrupt", _BOOL, "Whether it carries `karpenter.sh/do-not-disrupt`."),
    ),
    "A pod.",
)

INSTANCE_TYPE = Record(
    "instanceType",
    (
        RecordField("name", _STRING, "Such as `g6e.12xlarge`."),
        RecordField("family", _STRING, "Such as `g6e`."),
        RecordField("size", _STRING, "Such as `12xlarge`."),
        RecordField(
            "gpuName",
            _STRING,
            "The accelerator, as Karpenter's labels spell it: `l40s`, `h100`, `trainium`; empty for a type without.",
        ),
        RecordField("gpuCount", _INT, "Whole accelerators of any maker; 0 for a fraction of one (g6f)."),
        RecordField(
            "gpuMemoryGiB",
            _INT,
            "The memory of one accelerator in GiB, rounded down: 22 for an A10G or L4, 44 for an L40S, 80 for an"
            " H100. A fractional GPU's is the fraction's; 0 for a type without.",
        ),
        RecordField("vcpus", _INT, "Its vCPUs."),
        RecordField("memoryBytes", _INT, "Its nominal memory, in bytes."),
        RecordField("nvlink", _BOOL, "Whether it has several GPUs and NVLink joins them all."),
        RecordField("efa", _BOOL, "Whether it has an Elastic Fabric Adapter."),
        RecordField("arch", _STRING, "`amd64` or `arm64`."),
        RecordField(
            "zones", ListOf(_STRING, MOST_ZONES), "The zones where it is sold at this capacity type, in order."
        ),
        RecordField("capacityType", _STRING, "`on-demand`, `spot` or `reserved`."),
        RecordField(
            "price", _DOUBLE, "Dollars an hour of the instance, without volumes, in the cheapest of the zones."
        ),
        RecordField("labels", MapOf(_STRING), "The well-known labels of the type, as Karpenter gives them."),
    ),
    "An instance type at one capacity type.",
)

NODE_POOL = Record(
    "nodePool",
    (
        RecordField("name", _STRING, "The pool's name."),
        RecordField("labels", MapOf(_STRING), "The labels of the pool's nodes, `spec.template.metadata.labels`."),
        RecordField("weight", _INT, "Its weight, 0 where it has none."),
        RecordField(
            "nodes",
            _INT,
            "The nodes that it has, those still launching too; in a DisruptionBudget those that have come up.",
        ),
        RecordField("gpus", _INT, "Whole accelerators of those nodes."),
        RecordField("static", _BOOL, "Whether it keeps a fixed number of nodes, `spec.replicas`."),
    ),
    "A NodePool.",
)

NODE = Record(
    "node",
    (
        RecordField("name", _STRING, "The node's name; its claim's while it has none."),
        RecordField("nodePool", _STRING, "The name of its pool."),
        RecordField("instanceType", _STRING, "Such as `g6e.12xlarge`."),
        RecordField("capacityType", _STRING, "`on-demand`, `spot` or `reserved`."),
        RecordField("zone", _STRING, "Such as `us-east-1a`."),
        RecordField("age", _DURATION, "How long it has been a node of the cluster; since its launch while it is none."),
        RecordField("labels", MapOf(_STRING), "Its labels."),
        RecordField("gpus", _INT, "Whole accelerators that it was launched with."),
        RecordField("gpusUsed", _INT, "Accelerators that the pods bound to it request."),
        RecordField(
            "pods",
            ListOf(POD, MOST_PODS_OF_A_NODE),
            "The pods bound to it that have not finished, in order of namespace and name. Those of DaemonSets and"
            " the node's own static pods are not among them.",
        ),
        RecordField("empty", _BOOL, "Whether `pods` is empty."),
        RecordField(
            "doNotDisrupt", _BOOL, "Whether the node, or any pod on it, carries `karpenter.sh/do-not-disrupt`."
        ),
        RecordField("usdPerHour", _DOUBLE, "Dollars an hour, as they were at its launch, its volumes included."),
    ),
    "A node of ours.",
)

LAUNCH = Record(
    "launch",
    (
        RecordField("nodePool", _STRING, "The pool that it is for."),
        RecordField("instanceType", _STRING, "Such as `g6e.12xlarge`."),
        RecordField("zone", _STRING, "Such as `us-east-1a`."),
        RecordField("capacityType", _STRING, "`on-demand`, `spot` or `reserved`."),
        RecordField("usdPerHour", _DOUBLE, "Dollars an hour, its volumes included."),
        RecordField("gpus", _INT, "Whole accelerators."),
        RecordField("pods", _INT, "How many pods it is planned for."),
    ),
    "A machine that the plan launches.",
)

REMOVAL = Record(
    "removal",
    (
        RecordField("nodePool", _STRING, "The pool that it leaves."),
        RecordField("node", _STRING, "The node's name; its claim's where it never had one."),
        RecordField("reason", _STRING, "Such as `Empty`, `Drifted`, `Expired` or `Lost`."),
        RecordField("usdPerHour", _DOUBLE, "Dollars an hour that it costs."),
        RecordField("gpus", _INT, "Whole accelerators."),
    ),
    "A machine that the plan lets go: cordoned and drained now, or released.",
)

POOL_CHANGE = Record(
    "poolChange",
    (
        RecordField("name", _STRING, "The pool's name."),
        RecordField("before", _INT, "Nodes before the plan, those still launching too."),
        RecordField("after", _INT, "Nodes once all launches and removals are done."),
        RecordField("gpusBefore", _INT, "Whole accelerators before the plan."),
        RecordField("gpusAfter", _INT, "Whole accelerators once all launches and removals are done."),
    ),
    "What the plan does to one pool.",
)

PLAN = Record(
    "plan",
    (
        RecordField("launches", ListOf(LAUNCH, MOST_LAUNCHES), "Every machine that it launches, in claim order."),
        RecordField("removals", ListOf(REMOVAL, MOST_REMOVALS), "Every machine that it lets go, in claim order."),
        RecordField("pools", ListOf(POOL_CHANGE, MOST_POOLS), "Every pool, in name order, changed or not."),
        RecordField("launchCount", _INT, "How many machines it launches."),
        RecordField("removalCount", _INT, "How many machines it lets go."),
        RecordField("unplaced", _INT, "Pending pods that get nothing in this plan."),
    ),
    "The finished plan.",
)

COST = Record(
    "cost",
    (
        RecordField("hourlyBefore", _DOUBLE, "Dollars an hour of all machines before the plan."),
        RecordField("hourlyAfter", _DOUBLE, "Dollars an hour after it. What is only being drained is still paid for."),
        RecordField("hourlyAdded", _DOUBLE, "Dollars an hour of the plan's launches alone."),
    ),
    "What the plan costs.",
)

CLUSTER = Record(
    "cluster",
    (
        RecordField("environment", _STRING, "The environment's name, as in `stacks/Pulumi.NAME.yaml`."),
        RecordField("region", _STRING, "Such as `us-east-1`."),
        RecordField("nodes", _INT, "All nodes of the cluster, others' too."),
        RecordField("gpus", _INT, "Whole accelerators that those nodes advertise."),
        RecordField("pendingPods", _INT, "Pods that wait for a node which could be ours."),
        RecordField("pendingGpus", _INT, "Accelerators that those pods request."),
    ),
    "The cluster and its environment.",
)

RECORDS = (POD, TOLERATION, INSTANCE_TYPE, NODE_POOL, NODE, PLAN, LAUNCH, REMOVAL, POOL_CHANGE, COST, CLUSTER)
