"""Values at the bounds of a NodePool's parts, and odd spellings of them."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from tests.cluster.karpenter_bases import STATIC, Object
from tests.cluster.karpenter_crds import POOL, Absent

_DURATIONS = ("0s", "300s", "1h30m", "1h1h", "720h", "007m")
_NO_DURATIONS = ("", "5", "1.5h", "-1h", "1d", "1h 30m", " 1h", "1H", "never", "1h\n", 720)
_TEMPLATE = "spec.template.spec"
_EXPIRING = {"consolidateAfter": "0s", "expireAfter": "720h"}


@frozen
class Edge:
    """A part, and values for it: some that Karpenter's API should take, and some that it should refuse or nearly so."""

    kind: str
    path: str
    taken: tuple[Any, ...]
    refused: tuple[Any, ...]


def _requirement(key: str, operator: str, *values: str, **more: Any) -> list[Object]:
    return [{"key": key, "operator": operator, "values": list(values), **more}]


_COUNT = "karpenter.k8s.aws/instance-gpu-count"
POOL_EDGES = (
    Edge(POOL, "metadata.name", ("a", "gpu-1", "a.b", "x" * 63), ("x" * 64, "GPU", "-a", "a_b", "", "a..b", 5)),
    Edge(
        POOL,
        "metadata.labels",
        ({}, {"a/b": ""}, {"a": "x" * 63}),
        ({"a": "x" * 64}, {"a b": "x"}, {"A/b": "x"}, {"a/": "x"}, {"a": "-x"}, {"a": 1}, ["a"]),
    ),
    Edge(
        POOL,
        "metadata.annotations",
        ({}, {"a.b/C": "any text\n"}, {"a": ""}, {"nodewright.dev/min-nodes": "1"}),
        (
            {"a b": "x"},
            {"": "x"},
            {"a/b/c": "x"},
            {"a": True},
            {"x" * 64: "x"},
            {"nodewright.dev/min-node": "1"},
            {"nodewright.dev/min-nodes": "many"},
        ),
    ),
    Edge(POOL, "metadata.nonsense", (), ("x",)),
    Edge(POOL, "metadata.namespace", (), (7,)),
    Edge(POOL, "nonsense", (), ("x",)),
    Edge(POOL, "spec", (), (None, {}, Absent, {**STATIC["spec"], "disruption": _EXPIRING})),
    Edge(POOL, "spec.template.metadata", (Absent, {}), ("x",)),
    Edge(
        POOL,
        "spec.template.metadata.labels",
        (
            Absent,
            {},
            {"a": ""},
            {"a": "x" * 63},
            {"karpenter.sh/capacity-type": "spot"},
            {"topology.kubernetes.io/zone": "us-east-1a"},
            {"node.kubernetes.io/mine": "x"},
            {f"key-{number}": "x" for number in range(100)},
        ),
        (
            {"a": "x" * 64},
            {"a": "-x"},
            {"a": "x y"},
            {"a b": "x"},
            {"a/b/c": "x"},
            {"x" * 64: "x"},
            {"node-role.kubernetes.io/gpu": "x"},
            {"topology.k8s.io/x": "y"},
            {"nodewright.dev/x": "y"},
            {f"key-{number}": "x" for number in range(101)},
            {"karpenter.k8s.aws/instance-tenancy": "default"},
            {"karpenter.k8s.aws/ec2nodeclass": "x"},
            {"beta.kubernetes.io/arch": "amd64"},
            {"failure-domain.beta.kubernetes.io/zone": "us-east-1a"},
        ),
    ),
    Edge(
        POOL,
        "spec.template.metadata.annotations",
        (Absent, {}, {"a": ""}),
        ({"a": 1}, {"a": True}, {"a": ["x"]}, {"a b": "x"}),
    ),
    Edge(POOL, f"{_TEMPLATE}.expireAfter", (Absent, "Never", *_DURATIONS), (*_NO_DURATIONS, "99999999999h")),
    Edge(POOL, f"{_TEMPLATE}.terminationGracePeriod", (Absent, *_DURATIONS), ("Never", *_NO_DURATIONS)),
    Edge(
        POOL,
        f"{_TEMPLATE}.nodeClassRef",
        (),
        (
            Absent,
            {},
            {"name": "gpu-nodes"},
            {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "name": "gpu-nodes"},
            {"group": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "name": "gpu-nodes"},
            {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "gpu-nodes"},
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "other"},
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "Not A Name"},
        ),
    ),
    Edge(
        POOL,
        f"{_TEMPLATE}.requirements",
        (
            [],
            _requirement(_COUNT, "Gt", "0"),
            _requirement(_COUNT, "Gte", "8"),
            _requirement(_COUNT, "Lt", "008"),
            _requirement(_COUNT, "Lte", "9223372036854775807"),
            _requirement(_COUNT, "Exists"),
            _requirement(_COUNT, "DoesNotExist", "x"),
            _requirement(_COUNT, "NotIn"),
            [{"key": _COUNT, "operator": "Exists"}],
            _requirement(_COUNT, "In", "1", "2", minValues=2),
            _requirement(_COUNT, "Exists", minValues=3),
            _requirement(_COUNT, "In", "1") * 100,
            _requirement("team", "In", "search"),
            _requirement("example.com/team", "NotIn", "search"),
            _requirement("kubernetes.io/os", "In", "linux"),
            _requirement("topology.kubernetes.io/zone", "In", "us-east-1a"),
        ),
        (
            None,
            _requirement(_COUNT, "In", ""),
            _requirement(_COUNT, "In", "a b"),
            _requirement(_COUNT, "In", "x" * 64),
            _requirement(_COUNT, "Gt", "+5"),
            _requirement(_COUNT, "Gt", " 5"),
            _requirement(_COUNT, "Gt", "9223372036854775808"),
            _requirement("team", "In", "search", "ads"),
            _requirement("team", "In", "ads"),
            _requirement("example.com/tier", "Exists"),
            _requirement("a b", "Exists"),
            _requirement("", "Exists"),
            _requirement("A/b", "NotIn", "x"),
            _requirement("x" * 64, "NotIn", "x"),
            _requirement("a/" + "x" * 63, "NotIn", "x"),
            _requirement("a/" + "x" * 400, "NotIn", "x"),
            _requirement("karpenter.k8s.aws/instance-tenancy", "In", "default"),
            _requirement("karpenter.k8s.aws/instance-capacity-type", "In", "spot"),
            _requirement("beta.kubernetes.io/instance-type", "In", "g5.xlarge"),
            _requirement("node.kubernetes.io/windows-build", "In", "10.0"),
            _requirement("node-role.kubernetes.io/gpu", "In", "x"),
            _requirement("karpenter.sh/capacity-type", "In", "cheap"),
            [{"key": _COUNT, "operator": "NotIn", "values": [1]}],
            [{"key": _COUNT, "operator": "NotIn", "values": [None]}],
            [{"key": _COUNT, "operator": "Gt"}],
        ),
    ),
    *(
        Edge(
            POOL,
            f"{_TEMPLATE}.{field}",
            (
                Absent,
                [],
                [{"key": "a", "effect": "NoExecute"}],
                [{"key": "example.com/a", "value": "x", "effect": "PreferNoSchedule"}],
                [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}],
            ),
            (
                [{"key": "a", "value": "", "effect": "NoExecute"}],
                [{"key": "a", "value": "b/c", "effect": "NoExecute"}],
                [{"key": "a", "value": "x" * 64, "effect": "NoExecute"}],
                [{"key": "a", "effect": "NoExecute"}] * 2,
                [{"key": "x" * 64, "effect": "NoExecute"}],
                [{"key": "a b", "effect": "NoExecute"}],
                [{"key": "a", "effect": ""}],
                [{"key": "a", "effect": "NoExecute", "timeAdded": "2026-01-02"}],
                [None],
            ),
        )
        for field in ("taints", "startupTaints")
    ),
    Edge(
        POOL,
        "spec.disruption",
        (Absent, {"consolidateAfter": "Never"}, {"consolidateAfter": "0s", "budgets": []}),
        ({}, {"budgets": []}, {"consolidationPolicy": "WhenEmpty"}, _EXPIRING),
    ),
    Edge(
        POOL,
        "spec.disruption.consolidationPolicy",
        (Absent, "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
        ("WhenUnderutilized", "Never", "", True),
    ),
    Edge(POOL, "spec.disruption.consolidateAfter", ("Never", *_DURATIONS), _NO_DURATIONS),
    Edge(
        POOL,
        "spec.disruption.budgets.[].nodes",
        (Absent, "0", "7", "0%", "00%", "100%", "999999999", "1000000000000"),
        ("101%", "-1", "", "%", "1.5", "5 %", 5, "5\n"),
    ),
    Edge(
        POOL,
        "spec.disruption.budgets.[].reasons",
        (Absent, [], ["Underutilized"]),
        (["Empty", "Empty"], ["Expired"], [""]),
    ),
    Edge(
        POOL,
        "spec.disruption.budgets.[].schedule",
        (
            "@daily",
            "@yearly",
            "@annually",
            "@midnight",
            "@hourly",
            "@weekly",
            "@monthly",
            "*/5 0-3,9 1 JAN-MAR mon",
            "0 9 ? * *",
        ),
        (
            "@every 1h",
            "0 9 * *",
            "",
            "99 9 * * *",
            "a b c d e",
            "0 9 * * 8",
            "TZ=UTC 0 9 * * *",
            "0 9 L * *",
            "@dailyish",
            "0 9 31 2 *",
        ),
    ),
    Edge(
        POOL,
        "spec.disruption.budgets.[].duration",
        ("8h", "30m", "1h30m", "1h30m0s", "8h0s", "0h", "90m"),
        ("0s", "30s", "8h30s", "1m1h", "1h1h", "", "1.5h", "Never", 8),
    ),
    Edge(
        POOL,
        "spec.limits",
        (
            Absent,
            {},
            {"cpu": "1000"},
            {"cpu": 0},
            {"memory": "1000Gi"},
            {"memory": "1e12"},
            {"memory": "1."},
            {"memory": ".5Gi"},
            {"memory": "+5Mi"},
            {"cpu": "100m"},
            {"nvidia.com/gpu": 8},
            {"example.com/thing": "3"},
            {"nodes": "10"},
        ),
        (
            {"cpu": "-1"},
            {"cpu": -1},
            {"cpu": 1.5},
            {"cpu": "ten"},
            {"cpu": ""},
            {"cpu": "1K"},
            {"cpu": "1 Gi"},
            {"cpu": " 1"},
            {"cpu": True},
            {"cpu": None},
            {"cpu": "1e1.5"},
            {"cpu": "1e500"},
            {"cpu": ["1"]},
            {"a b": "1"},
            {"": "1"},
            {"cpu": "9" * 40},
        ),
    ),
    Edge(POOL, "spec.weight", (Absent, 1, 100), (0, 101, -1, 1.5, 5.0, "10", True)),
    Edge(POOL, "spec.replicas", (0, 3, 2**31 - 1), (2**31, -1, 1.5, "3")),
    Edge(POOL, "apiVersion", (), ("karpenter.sh/v1beta1", "karpenter.sh/v2")),
)
