"""The label, taint and annotation keys that Kubernetes, Karpenter and Nodewright define, and the tags on instances."""

ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
ZONE_ID = "topology.k8s.aws/zone-id"
CAPACITY_TYPE = "karpenter.sh/capacity-type"
NODE_POOL = "karpenter.sh/nodepool"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
# A node of ours that is cordoned until it is whole.
HELD = "nodewright.dev/held"
DISRUPTED_TAINT = "karpenter.sh/disrupted"
# On a marked node: why it is to leave.
MARKED_FOR = "nodewright.dev/marked-for"
# On a node of ours: somebody wants another in its stead. The value is when that was asked, or REPLACE_NOW.
REPLACE = "nodewright.dev/replace"
REPLACE_NOW = "now"
# Load balancers send no new traffic to a node that has this label, whatever its value.
EXCLUDED_FROM_LOAD_BALANCERS = "node.kubernetes.io/exclude-from-external-load-balancers"
REGISTERED = "karpenter.sh/registered"
INITIALIZED = "karpenter.sh/initialized"
NODE_CLASS = "karpenter.k8s.aws/ec2nodeclass"
CAPACITY_RESERVATION_ID = "karpenter.k8s.aws/capacity-reservation-id"
CAPACITY_RESERVATION_TYPE = "karpenter.k8s.aws/capacity-reservation-type"

ON_DEMAND = "on-demand"
SPOT = "spot"
RESERVED = "reserved"

# Older names of the same facts (Karpenter normalises them in pkg/apis/v1/labels.go).
ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
}

# Facts of an instance type, as the Karpenter AWS provider labels them (pkg/apis/v1/labels.go there).
INSTANCE_CATEGORY = "karpenter.k8s.aws/instance-category"
INSTANCE_FAMILY = "karpenter.k8s.aws/instance-family"
INSTANCE_GENERATION = "karpenter.k8s.aws/instance-generation"
INSTANCE_SIZE = "karpenter.k8s.aws/instance-size"
INSTANCE_CPU = "karpenter.k8s.aws/instance-cpu"
INSTANCE_CPU_MANUFACTURER = "karpenter.k8s.aws/instance-cpu-manufacturer"
INSTANCE_MEMORY = "karpenter.k8s.aws/instance-memory"
INSTANCE_NETWORK_BANDWIDTH = "karpenter.k8s.aws/instance-network-bandwidth"
INSTANCE_LOCAL_NVME = "karpenter.k8s.aws/instance-local-nvme"
INSTANCE_HYPERVISOR = "karpenter.k8s.aws/instance-hypervisor"
INSTANCE_GPU_NAME = "karpenter.k8s.aws/instance-gpu-name"
INSTANCE_GPU_MANUFACTURER = "karpenter.k8s.aws/instance-gpu-manufacturer"
INSTANCE_GPU_COUNT = "karpenter.k8s.aws/instance-gpu-count"
INSTANCE_GPU_MEMORY = "karpenter.k8s.aws/instance-gpu-memory"
INSTANCE_ACCELERATOR_NAME = "karpenter.k8s.aws/instance-accelerator-name"
INSTANCE_ACCELERATOR_MANUFACTURER = "karpenter.k8s.aws/instance-accelerator-manufacturer"
INSTANCE_ACCELERATOR_COUNT = "karpenter.k8s.aws/instance-accelerator-count"
INSTANCE_CPU_CLOCK = "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz"
INSTANCE_EBS_BANDWIDTH = "karpenter.k8s.aws/instance-ebs-bandwidth"
INSTANCE_ENCRYPTION_IN_TRANSIT = "karpenter.k8s.aws/instance-encryption-in-transit-supported"
INSTANCE_CAPABILITY_FLEX = "karpenter.k8s.aws/instance-capability-flex"

INSTANCE_LABELS = frozenset(
    {
        INSTANCE_CATEGORY,
        INSTANCE_FAMILY,
        INSTANCE_GENERATION,
        INSTANCE_SIZE,
        INSTANCE_CPU,
        INSTANCE_CPU_MANUFACTURER,
        INSTANCE_MEMORY,
        INSTANCE_NETWORK_BANDWIDTH,
        INSTANCE_LOCAL_NVME,
        INSTANCE_HYPERVISOR,
        INSTANCE_GPU_NAME,
        INSTANCE_GPU_MANUFACTURER,
        INSTANCE_GPU_COUNT,
        INSTANCE_GPU_MEMORY,
        INSTANCE_ACCELERATOR_NAME,
        INSTANCE_ACCELERATOR_MANUFACTURER,
        INSTANCE_ACCELERATOR_COUNT,
        INSTANCE_CPU_CLOCK,
        INSTANCE_EBS_BANDWIDTH,
        INSTANCE_ENCRYPTION_IN_TRANSIT,
        INSTANCE_CAPABILITY_FLEX,
    }
)
# Told by a reservation, and by no catalog.
OF_RESERVATIONS = frozenset({CAPACITY_RESERVATION_ID, CAPACITY_RESERVATION_TYPE})
# Karpenter's well-known keys: a requirement may name them although no pool defines them.
WELL_KNOWN = INSTANCE_LABELS | {
    ARCH,
    OS,
    INSTANCE_TYPE,
    REGION,
    ZONE,
    ZONE_ID,
    CAPACITY_TYPE,
    NODE_POOL,
    *OF_RESERVATIONS,
}

UNREGISTERED_TAINT = "karpenter.sh/unregistered"
# What Kubernetes puts on each node that is cordoned, and takes off a moment after the cordon's end.
UNSCHEDULABLE_TAINT = "node.kubernetes.io/unschedulable"

# Ours, on NodePools. Karpenter ignores annotations that it does not know, so the files stay its own.
MIN_NODES = "nodewright.dev/min-nodes"
OPEN_TO_ALL_PODS = "nodewright.dev/open-to-all-pods"
MIN_VALUES_POLICY = "nodewright.dev/min-values-policy"
LAUNCH_DEADLINE = "nodewright.dev/launch-deadline"
REGISTRATION_DEADLINE = "nodewright.dev/registration-deadline"
INITIALIZATION_DEADLINE = "nodewright.dev/initialization-deadline"
ACCELERATOR_GRACE = "nodewright.dev/accelerator-grace"
PRE_PULL = "nodewright.dev/pre-pull"
OPEN_RESERVATIONS = "nodewright.dev/open-reservations"
EXPECTED_LABELS = "nodewright.dev/expected-labels"
MAX_GPU_WASTE = "nodewright.dev/max-gpu-waste"
HEADROOM = "nodewright.dev/headroom"
NODE_COST = "nodewright.dev/node-cost"
ON_REBALANCE = "nodewright.dev/on-rebalance"
UNHEALTHY_LIMIT = "nodewright.dev/unhealthy-limit"
SURGE = "nodewright.dev/surge"
ROLLOUT_CANARY = "nodewright.dev/rollout-canary"
ROLLOUT_SOAK = "nodewright.dev/rollout-soak"
MIN_SAVING = "nodewright.dev/min-saving"
MIN_SPOT_SAVING = "nodewright.dev/min-spot-saving"
REPAID_WITHIN = "nodewright.dev/repaid-within"
MIN_NODE_LIFE = "nodewright.dev/min-node-life"
# On pods too, where it goes before what their node's pool says.
WARM_UP = "nodewright.dev/warm-up"
RETURN_TO_PREFERRED = "nodewright.dev/return-to-preferred"
QUIET_DESTINATIONS = "nodewright.dev/quiet-destinations"
# On a NodePool, or on an environment's Lease in the cluster: the value says why.
PAUSED = "nodewright.dev/paused"
# On a PriorityClass: "false" keeps its pods from starting nodes.
MAY_START_NODES = "nodewright.dev/may-start-nodes"

# Tags on instances, present from the RunInstances call on.
TAG_CLAIM = "nodewright.dev/claim"
TAG_NODE_POOL = "karpenter.sh/nodepool"
TAG_ENVIRONMENT = "nodewright.dev/environment"
TAG_DOCUMENT_VERSION = "nodewright.dev/document-version"
TAG_NAME = "Name"
TAG_CLUSTER_PREFIX = "kubernetes.io/cluster/"
