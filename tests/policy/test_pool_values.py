"""What a NodePool file means: every field, Karpenter's defaults, and the older spellings of the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.model import labels
from engine.model.canonical import canonical_json, from_json
from engine.model.constraint import Operator, Requirement, Taint, TaintEffect
from engine.model.diagnostic import Severity
from engine.model.policy import Budget, ConsolidationPolicy, Disruption, Policy
from engine.model.quantity import Resources
from engine.model.reason import DisruptionReason
from tests import builders
from tests.policy.texts import CLASS, POOL, added, edited, findings_of, policy_of, pool_of, rules, without_places

TEAM = "example.com/team"
EVERYTHING = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: everything
  labels: {owner: search}
  annotations:
    nodewright.dev/min-nodes: "2"
    nodewright.dev/open-to-all-pods: "true"
    nodewright.dev/launch-deadline: 3m
    nodewright.dev/registration-deadline: 10m30s
    nodewright.dev/initialization-deadline: 1h
    nodewright.dev/accelerator-grace: 0s
    nodewright.dev/paused: the driver is being rolled back
    example.com/note: passed over
spec:
  weight: 10
  template:
    metadata:
      labels: {team: search}
      annotations: {example.com/team: search}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-nodes}
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6], minValues: 2}
        - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["3"]}
        - {key: karpenter.k8s.aws/instance-cpu, operator: Lte, values: ["64"]}
        - {key: topology.kubernetes.io/zone, operator: NotIn, values: [us-east-1e]}
        - {key: karpenter.k8s.aws/instance-gpu-count, operator: Exists}
        - {key: karpenter.k8s.aws/instance-accelerator-count, operator: DoesNotExist}
      taints:
        - {key: nvidia.com/gpu, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}
        - {key: team, value: search, effect: NoExecute}
      startupTaints:
        - {key: driver, value: missing, effect: PreferNoSchedule}
      expireAfter: Never
      terminationGracePeriod: 1h30m
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets:
      - nodes: 10%
      - {nodes: "0", schedule: "0 9 * * mon-fri", duration: 8h, reasons: [Underutilized, Drifted]}
      - {nodes: "3", schedule: "@daily", duration: 1h30m0s}
  limits: {cpu: 1k, memory: 1000Ti, nvidia.com/gpu: "100", nodes: 10}
status:
  conditions: []
"""


def test_every_field_of_a_pool_has_its_meaning() -> None:
    policy = policy_of(EVERYTHING, CLASS)
    assert policy.warnings == ()
    assert without_places(policy.node_pools[0]) == without_places(
        builders.node_pool(
            "everything",
            node_class="gpu-nodes",
            weight=10,
            requirements=(
                Requirement(labels.INSTANCE_FAMILY, Operator.IN, ("g5", "g6"), min_values=2),
                Requirement(labels.INSTANCE_CPU, Operator.GT, ("3",)),
                Requirement(labels.INSTANCE_CPU, Operator.LTE, ("64",)),
                Requirement(labels.ZONE, Operator.NOT_IN, ("us-east-1e",)),
                Requirement(labels.INSTANCE_GPU_COUNT, Operator.EXISTS),
                Requirement(labels.INSTANCE_ACCELERATOR_COUNT, Operator.DOES_NOT_EXIST),
            ),
            labels={"team": "search"},
            annotations={"example.com/team": "search"},
            taints=(
                Taint("nvidia.com/gpu", "", TaintEffect.NO_SCHEDULE),
                Taint("team", "search", TaintEffect.NO_EXECUTE),
            ),
            startup_taints=(Taint("driver", "missing", TaintEffect.PREFER_NO_SCHEDULE),),
            limits={"cpu": "1k", "memory": "1000Ti", "nvidia.com/gpu": "100", "nodes": "10"},
            disruption=Disruption(
                consolidation_policy=ConsolidationPolicy.WHEN_EMPTY,
                consolidate_after=None,
                budgets=(
                    Budget(percent=10),
                    Budget(
                        nodes=0,
                        schedule="0 9 * * mon-fri",
                        duration=timedelta(hours=8),
                        reasons=(DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED),
                    ),
                    Budget(nodes=3, schedule="0 0 * * *", duration=timedelta(minutes=90)),
                ),
            ),
            expire_after=None,
            termination_grace_period=timedelta(minutes=90),
            min_nodes=2,
            open_to_all_pods=True,
            launch_deadline=timedelta(minutes=3),
            registration_deadline=timedelta(minutes=10, seconds=30),
            initialization_deadline=timedelta(hours=1),
            accelerator_grace=timedelta(0),
            paused="the driver is being rolled back",
        )
    )


def test_a_pool_that_says_little_gets_karpenters_defaults() -> None:
    text = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: bare}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-nodes}
      requirements: []
"""
    pool = pool_of(text)
    assert pool.expire_after == timedelta(hours=720)
    assert pool.disruption == Disruption(
        ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED, timedelta(0), (Budget(percent=10),)
    )
    assert (pool.weight, pool.replicas, pool.min_nodes, pool.open_to_all_pods) == (0, None, 0, False)
    assert pool.limits == Resources()
    assert pool.termination_grace_period is None


def test_an_empty_list_of_budgets_is_no_budget_at_all() -> None:
    assert pool_of(POOL.replace("consolidateAfter: 5m", "budgets: []")).disruption.budgets == ()


def test_a_static_pool_keeps_its_replicas() -> None:
    pool = pool_of(POOL.replace('limits:\n    nvidia.com/gpu: "8"', "replicas: 3\n  limits: {nodes: 4}"))
    assert (pool.replicas, pool.base_nodes, pool.is_static) == (3, 3, True)


def test_null_says_nothing_about_a_field() -> None:
    text = added(POOL, "spec:", "  weight: null\n  replicas:").text
    assert without_places(pool_of(text)) == without_places(pool_of(POOL))


def test_a_label_that_the_cloud_decides_is_a_requirement() -> None:
    pool = pool_of(POOL.replace("team: search", "karpenter.sh/capacity-type: spot"))
    assert pool.labels == {}
    assert Requirement(labels.CAPACITY_TYPE, Operator.IN, ("spot",)) in pool.requirements


def test_a_requirement_of_one_value_on_a_label_of_ones_own_is_a_label() -> None:
    pool = pool_of(added(POOL, "      requirements:", "        - {key: tier, operator: In, values: [gold]}").text)
    assert pool.labels == {"team": "search", "tier": "gold"}
    assert "tier" not in {requirement.key for requirement in pool.requirements}


def test_a_requirement_that_the_pools_own_label_meets_adds_nothing() -> None:
    line = "        - {key: team, operator: In, values: [search, ads]}"
    assert without_places(pool_of(added(POOL, "      requirements:", line).text)) == without_places(pool_of(POOL))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{key: example.com/team, operator: In, values: [b, a]}", Requirement(TEAM, Operator.IN, ("b", "a"))),
        ("{key: example.com/team, operator: Exists}", Requirement(TEAM, Operator.EXISTS)),
        ("{key: example.com/team, operator: Gt, values: ['3']}", Requirement(TEAM, Operator.GT, ("3",))),
        ("{key: example.com/team, operator: NotIn, values: [a]}", Requirement(TEAM, Operator.NOT_IN, ("a",))),
    ],
)
def test_a_requirement_that_leaves_a_label_of_ones_own_open_stays_one(written: str, meant: Requirement) -> None:
    text = added(POOL, "      requirements:", f"        - {written}").text
    pool = pool_of(text)
    assert meant in pool.requirements
    assert TEAM not in pool.labels
    assert findings_of(text, CLASS) == findings_of(POOL, CLASS)


@pytest.mark.parametrize("lists", [("[a, b]", "[b]"), ("[b]", "[a, b]")])
def test_one_value_settles_a_label_that_another_requirement_leaves_open(lists: tuple[str, str]) -> None:
    lines = "\n".join(f"        - {{key: {TEAM}, operator: In, values: {values}}}" for values in lists)
    pool = pool_of(added(POOL, "      requirements:", lines).text)
    assert pool.labels[TEAM] == "b"
    assert TEAM not in {requirement.key for requirement in pool.requirements}


@pytest.mark.parametrize("lists", [("[a, b]", "[c]"), ("[c]", "[a, b]")])
def test_one_value_that_another_requirement_does_not_permit_is_an_error(lists: tuple[str, str]) -> None:
    lines = "\n".join(f"        - {{key: {TEAM}, operator: In, values: {values}}}" for values in lists)
    found = findings_of(added(POOL, "      requirements:", lines).text, CLASS)
    assert [each.rule for each in found if each.severity is Severity.ERROR] == ["contradiction"]


def test_requirements_on_one_label_that_have_no_value_in_common_are_told() -> None:
    lines = "\n".join(f"        - {{key: {TEAM}, operator: In, values: {values}}}" for values in ("[a, b]", "[c, d]"))
    change = added(POOL, "      requirements:", lines)
    [found] = [each for each in findings_of(change.text, CLASS) if each.rule == "nothing-matches"]
    assert (found.severity, found.position.line) == (Severity.WARNING, change.line)
    assert TEAM in found.message


def test_a_pool_knows_where_its_parts_stand() -> None:
    pool = pool_of(POOL)
    place = pool.position_of("requirements[karpenter.k8s.aws/instance-family In][g6]")
    assert place.source_line[place.column - 1 :] == "g6]"
    assert pool.position_of("limits[nvidia.com/gpu]").source_line.strip() == 'nvidia.com/gpu: "8"'
    assert pool.position_of("labels[team]").source_line.strip() == "team: search"
    assert pool.position_of("no such part") == pool.position
    assert pool.position.source_line == "  name: gpu"


# --- spellings: (old, new) are edits of POOL that mean the same as the other edit


SAME = [
    # An alias of capacity type, and Kubernetes' beta labels.
    ("karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-capacity-type", "old-spelling", POOL),
    ('nvidia.com/gpu: "8"', "nvidia.com/gpu: 8", None, POOL),
    ("values: [g5, g6]", 'values:\n          - "g5"\n          - g6', None, POOL),
    (
        "consolidateAfter: 5m",
        "consolidateAfter: 5m\n    expireAfter: 100h",
        "old-spelling",
        added(POOL, "    spec:", "      expireAfter: 100h").text,
    ),
    (
        "consolidateAfter: 5m",
        "consolidateAfter: 5m\n    consolidationPolicy: WhenUnderutilized",
        "old-spelling",
        POOL,
    ),
    ("group: karpenter.k8s.aws", "apiVersion: karpenter.k8s.aws/v1", "old-spelling", POOL),
    ("group: karpenter.k8s.aws", "apiVersion: karpenter.k8s.aws/v1beta1", "old-spelling", POOL),
]


@pytest.mark.parametrize(("old", "new", "rule", "modern"), SAME)
def test_an_older_spelling_means_the_modern_one_and_says_so(old: str, new: str, rule: str | None, modern: str) -> None:
    change = edited(POOL, old, new)
    policy = policy_of(change.text, CLASS)
    assert without_places(policy.node_pools[0]) == without_places(pool_of(modern))
    assert rules(policy.warnings) == ([rule] if rule else [])
    assert policy.digest == policy_of(modern, CLASS).digest


@pytest.mark.parametrize(("beta", "modern"), sorted(labels.ALIASES.items()))
def test_betas_of_kubernetes_labels_are_read_as_todays(beta: str, modern: str) -> None:
    policy = policy_of(POOL.replace("karpenter.k8s.aws/instance-family", beta), CLASS)
    assert policy.node_pools[0].requirements[0].key == modern
    (warning,) = policy.warnings
    assert beta in warning.message
    assert modern in warning.message


def test_the_warning_of_an_old_spelling_names_both_and_stands_where_the_old_one_is() -> None:
    change = edited(POOL, "karpenter.sh/capacity-type", "karpenter.k8s.aws/instance-capacity-type")
    (warning,) = policy_of(change.text, CLASS).warnings
    assert warning.position.line == change.line
    assert "karpenter.k8s.aws/instance-capacity-type" in warning.message
    assert "karpenter.sh/capacity-type" in warning.hint


def test_an_alias_in_the_pools_labels_is_read_too() -> None:
    policy = policy_of(POOL.replace("team: search", "karpenter.k8s.aws/instance-capacity-type: spot"), CLASS)
    assert Requirement(labels.CAPACITY_TYPE, Operator.IN, ("spot",)) in policy.node_pools[0].requirements
    assert rules(policy.warnings) == ["old-spelling"]


def test_an_expiry_in_both_places_is_an_error() -> None:
    text = added(POOL, "    spec:", "      expireAfter: 100h").text
    assert rules(findings_of(text.replace("5m", "5m\n    expireAfter: 200h"), CLASS)) == [
        "contradiction",
        "old-spelling",
    ]


@pytest.mark.parametrize("policy", ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"])
def test_karpenters_consolidation_policies_are_read_without_a_word(policy: str) -> None:
    read = policy_of(added(POOL, "    consolidateAfter: 5m", f"    consolidationPolicy: {policy}").text, CLASS)
    assert read.node_pools[0].disruption.consolidation_policy is ConsolidationPolicy(policy)
    assert read.warnings == ()


def test_never_is_our_own_policy_and_says_so() -> None:
    read = policy_of(added(POOL, "    consolidateAfter: 5m", "    consolidationPolicy: Never").text, CLASS)
    assert read.node_pools[0].disruption.consolidation_policy is ConsolidationPolicy.NEVER
    assert rules(read.warnings) == ["not-karpenters"]


def test_unquoted_values_keep_how_they_are_written_with_a_warning() -> None:
    text = edited(POOL, "values: [g5, g6]", "values: [1, 010, 1.10, yes]").text
    policy = policy_of(text, CLASS)
    assert policy.node_pools[0].requirements[0].values == ("1", "010", "1.10", "yes")
    assert rules(policy.warnings) == ["unquoted"] * 4


# --- v1beta1

BETA = POOL.replace("karpenter.sh/v1", "karpenter.sh/v1beta1").replace("        group: karpenter.k8s.aws\n", "")


def test_v1beta1_is_read_with_a_warning() -> None:
    policy = policy_of(BETA, CLASS)
    assert without_places(policy.node_pools[0]) == without_places(pool_of(POOL))
    assert rules(policy.warnings) == ["old-api-version"]


def test_v1beta1_keeps_its_expiry_under_disruption_and_needs_no_warning_for_it() -> None:
    policy = policy_of(BETA.replace("consolidateAfter: 5m", "expireAfter: 100h"), CLASS)
    assert policy.node_pools[0].expire_after == timedelta(hours=100)
    assert rules(policy.warnings) == ["old-api-version"]


@pytest.mark.parametrize(
    "lines", ["consolidationPolicy: WhenEmpty", "consolidationPolicy: WhenUnderutilized\n    consolidateAfter: 5m"]
)
def test_what_v1beta1_refused_is_read_as_v1_does_with_a_warning(lines: str) -> None:
    policy = policy_of(BETA.replace("consolidateAfter: 5m", lines), CLASS)
    assert "old-spelling" in rules(policy.warnings)


def test_the_kubelet_of_a_v1beta1_pool_becomes_its_classes() -> None:
    policy = policy_of(added(BETA, "    spec:", "      kubelet: {maxPods: 42}").text, CLASS)
    assert policy.node_classes[0].kubelet.max_pods == 42
    assert rules(policy.warnings) == ["old-api-version", "old-spelling"]


def test_pools_with_other_kubelets_cannot_share_a_class() -> None:
    first = added(BETA, "    spec:", "      kubelet: {maxPods: 42}").text
    second = first.replace("name: gpu\n", "name: other\n").replace("42", "43")
    assert "contradiction" in rules(findings_of(first, second, CLASS))
    assert "contradiction" in rules(findings_of(first, POOL.replace("name: gpu\n", "name: other\n"), CLASS))
    assert "contradiction" in rules(findings_of(first, CLASS + "  kubelet: {maxPods: 42}\n"))
    same = first.replace("name: gpu\n", "name: other\n")
    assert "contradiction" not in rules(findings_of(first, same, CLASS))


def test_a_mistake_in_a_v1beta1_kubelet_is_told_at_its_place() -> None:
    change = added(BETA, "    spec:", "      kubelet: {maxPod: 42}")
    (found,) = [each for each in findings_of(change.text, CLASS) if each.severity is Severity.ERROR]
    assert (found.rule, found.position.line) == ("unknown-field", change.line)


# --- node class references

NO_REF = edited(
    POOL,
    "      nodeClassRef:\n        group: karpenter.k8s.aws\n        kind: EC2NodeClass\n        name: gpu-nodes\n",
    "",
).text


def test_a_pool_without_a_class_uses_the_environments_with_a_warning() -> None:
    policy = policy_of(NO_REF, CLASS, environment=builders.environment(default_node_class="gpu-nodes"))
    assert policy.node_pools[0].node_class == "gpu-nodes"
    warning = next(each for each in policy.warnings if each.rule == "missing-node-class")
    assert "gpu-nodes" in warning.message


def test_a_pool_without_a_class_and_without_a_default_is_an_error_that_says_so() -> None:
    for environment in (None, builders.environment()):
        found = next(
            each for each in findings_of(NO_REF, CLASS, environment=environment) if each.rule == "missing-node-class"
        )
        assert found.severity is Severity.ERROR
        assert "nodewright:defaultNodeClass" in found.hint


def test_a_default_class_that_no_file_defines_is_an_error() -> None:
    found = findings_of(NO_REF, CLASS, environment=builders.environment(default_node_class="gpu-node"))
    assert "unknown-node-class" in rules(found)


# --- the whole bundle


def test_values_of_policy_come_back_from_their_json() -> None:
    policy = policy_of(EVERYTHING, CLASS)
    assert from_json(Policy, canonical_json(policy)) == policy


def test_comments_order_of_files_and_file_names_change_no_digest() -> None:
    other = POOL.replace("name: gpu\n", "name: other\n")
    digest = policy_of(POOL, other, CLASS).digest
    assert policy_of(CLASS, other, "# a comment\n" + POOL).digest == digest
    assert policy_of(f"{POOL}---\n{CLASS}---\n{other}").digest == digest
    assert policy_of(POOL, other.replace("5m", "6m"), CLASS).digest != digest
    assert policy_of(POOL, CLASS).digest != digest


def test_what_kubectl_prints_loads() -> None:
    item = """\
  - apiVersion: karpenter.sh/v1
    kind: NodePool
    metadata:
      annotations:
        karpenter.sh/nodepool-hash: "1"
        kubectl.kubernetes.io/last-applied-configuration: |
          {}
      creationTimestamp: "2026-01-01T00:00:00Z"
      finalizers: [x]
      generation: 1
      managedFields: [{manager: kubectl, fieldsV1: {f:spec: {}}}]
      name: gpu
      ownerReferences: []
      resourceVersion: "1"
      selfLink: x
      uid: 0-1
    spec:
"""
    spec = "".join(f"    {line}\n" for line in POOL.split("spec:\n", 1)[1].splitlines())
    for kind in ("List", "NodePoolList"):
        head = f"apiVersion: v1\nkind: {kind}\nmetadata: {{resourceVersion: ''}}\nitems:\n"
        listed = f"{head}{item}{spec}    status: {{nodes: 3}}\n"
        policy = policy_of(listed, CLASS)
        assert policy.warnings == ()
        assert policy.digest == policy_of(POOL, CLASS).digest


def test_other_kinds_are_passed_over_with_a_warning() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n"
    policy = policy_of(POOL, CLASS, pod)
    assert [(each.rule, each.position.file) for each in policy.warnings] == [("not-a-policy", "f2.yaml")]


def test_limits_of_a_pool_that_is_not_there_are_a_warning() -> None:
    environment = builders.environment(limits={"gpuu": Resources({"cpu": 1})})
    found = next(each for each in findings_of(POOL, CLASS, environment=environment) if each.rule == "unknown-node-pool")
    assert "gpu?" in found.hint
