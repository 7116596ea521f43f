"""Everything that can be wrong with a NodePool: its rule, its line and column, and a hint that helps."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Severity
from tests.policy.texts import CLASS, POOL, added, edited, findings_of, rules

FAMILY = "karpenter.k8s.aws/instance-family"
IN = "operator: In\n          values: [g5, g6]"
LIMIT = 'nvidia.com/gpu: "8"'
AFTER = "consolidateAfter: 5m"
VERSION = "apiVersion: karpenter.sh/v1\n"


@pytest.mark.parametrize(
    ("old", "new", "rule", "caret", "hint"),
    [
        # fields and types
        ("consolidateAfter: 5m", "consolidateAftr: 5m", "unknown-field", "consolidateAftr", "consolidateAfter"),
        ("      requirements:", "      requirments:", "unknown-field", "requirments", "requirements"),
        ("name: gpu-nodes", "nme: gpu-nodes", "unknown-field", "nme", "name"),
        ("values: [g5, g6]", "values: g5", "wrong-type", "g5", ""),
        ("consolidateAfter: 5m", "consolidateAfter: {s: 5}", "wrong-type", "{s", ""),
        # requirements
        (IN, IN.replace("In\n", "in\n"), "unknown-operator", "in", "In"),
        (IN, IN.replace("In\n", "Equals\n"), "unknown-operator", "Equals", "In"),
        ("values: [g5, g6]", "values: []", "missing-values", "[]", "Exists"),
        ("instance-family", "instance-famly", "unknown-label", "karpenter.k8s.aws", "instance-family"),
        (FAMILY, "karpenter.sh/nodepool", "restricted-label", "karpenter.sh", ""),
        (FAMILY, "kubernetes.io/hostname", "restricted-label", "kubernetes.io", ""),
        (FAMILY, "karpenter.sh/capacity-typ", "restricted-label", "karpenter.sh", "capacity-type"),
        (FAMILY, "karpenter.k8s.aws/instance-tenancy", "not-implemented", "karpenter.k8s.aws", ""),
        (FAMILY, "bad key!", "bad-label", "bad key!", ""),
        ("values: [g5, g6]", "values: [g5, 'g 6']", "bad-label", "'g 6'", ""),
        ("[spot, on-demand]", "[ondemand]", "unknown-value", "ondemand", "on-demand"),
        ("values: [g5, g6]", "values: [g5, g6]\n          minValues: 3", "bad-min-values", "3", "minValues"),
        ("values: [g5, g6]", "values: [g5, g6]\n          minValues: 51", "out-of-range", "51", ""),
        # taints, labels, limits
        ("effect: NoSchedule", "effect: NoSchedul", "unknown-effect", "NoSchedul", "NoSchedule"),
        ("          effect: NoSchedule\n", "", "missing-field", "key: nvidia.com/gpu", ""),
        ("team: search", "karpenter.sh/nodepool: x", "restricted-label", "x", ""),
        ("team: search", "node-role.kubernetes.io/gpu: x", "restricted-label", "x", "outside"),
        ("team: search", "team: -x", "bad-label", "-x", ""),
        (LIMIT, 'nvidia.com/gpu: "8x"', "bad-quantity", '"8x"', ""),
        (LIMIT, "nvidia.com/gpu: -8", "bad-quantity", "-8", ""),
        (LIMIT, "cpu: 10GB", "bad-quantity", "10GB", ""),
        # disruption
        (AFTER, "consolidateAfter: 5 minutes", "bad-duration", "5 minutes", "720h"),
        (AFTER, "consolidateAfter: 300", "bad-duration", "300", "1h30m"),
        (AFTER, "consolidateAfter: 1.5h", "bad-duration", "1.5h", ""),
        (AFTER, "consolidateAfter: 99999999999h", "bad-duration", "99999999999h", ""),
        (AFTER, "consolidationPolicy: WhenEmty", "unknown-value", "WhenEmty", "WhenEmpty"),
        (AFTER, 'budgets: [{nodes: "101%"}]', "bad-budget", '"101%"', "10%"),
        (AFTER, 'budgets: [{nodes: "-1"}]', "bad-budget", '"-1"', ""),
        (AFTER, 'budgets: [{schedule: "0 9 * * *"}]', "bad-budget", '"0 9', "duration"),
        (AFTER, "budgets: [{duration: 8h}]", "bad-budget", "8h", "schedule"),
        (AFTER, 'budgets: [{schedule: "0 25 * * *", duration: 8h}]', "bad-schedule", '"0 25', "@daily"),
        (AFTER, 'budgets: [{schedule: "9 * * *", duration: 8h}]', "bad-schedule", '"9 *', ""),
        (AFTER, 'budgets: [{schedule: "* 0 9 * * *", duration: 8h}]', "bad-schedule", '"* 0', ""),
        (AFTER, 'budgets: [{schedule: "0 0 30 2 *", duration: 8h}]', "bad-schedule", '"0 0', ""),
        (AFTER, 'budgets: [{schedule: "0 0 L * *", duration: 8h}]', "bad-schedule", '"0 0', ""),
        (AFTER, 'budgets: [{schedule: "@daily", duration: 30s}]', "bad-duration", "30s", ""),
        (AFTER, "budgets: [{reasons: [Drift]}]", "unknown-value", "Drift", "Drifted"),
        # references and the object itself
        ("kind: EC2NodeClass", "kind: NodeClass", "not-implemented", "NodeClass", "EC2NodeClass"),
        ("name: gpu-nodes", "name: gpu-node", "unknown-node-class", "group: karpenter.k8s.aws", "gpu-nodes"),
        ("  name: gpu\n", "  name: GPU pool\n", "bad-name", "GPU pool", ""),
        ("kind: NodePool", "kind: NodePol", "unknown-kind", "NodePol", "NodePool"),
        ("kind: NodePool", "kind: NodeClaim", "not-implemented", "NodeClaim", ""),
        ("kind: NodePool", "kind: NodeOverlay", "not-implemented", "NodeOverlay", "pricing.discounts"),
        (VERSION, "apiVersion: karpenter.sh/v2\n", "wrong-api-version", "karpenter.sh/v2", ""),
        (VERSION, "apiVersion: karpenter.k8s.aws/v1\n", "wrong-api-version", "karpenter.k8s", "karpenter.sh/v1"),
        (VERSION, "", "missing-field", "kind: NodePool", "karpenter.sh/v1"),
    ],
)
def test_a_wrong_part_is_an_error_with_the_caret_on_it(old: str, new: str, rule: str, caret: str, hint: str) -> None:
    change = edited(POOL, old, new)
    told = findings_of(change.text, CLASS)
    (found,) = [each for each in told if each.severity is Severity.ERROR]
    assert found.rule == rule
    assert found.position.source_line[found.position.column - 1 :].startswith(caret)
    assert abs(found.position.line - change.line) <= 2
    assert hint in found.hint


@pytest.mark.parametrize(
    ("below", "line", "rule"),
    [
        ("spec:", "  weight: 0", "out-of-range"),
        ("spec:", "  weight: 101", "out-of-range"),
        ("spec:", '  weight: "10"', "wrong-type"),
        ("spec:", "  weight: yes", "wrong-type"),
        ("spec:", "  replicas: -1", "out-of-range"),
        ("spec:", "  replicas: 1", "contradiction"),  # the limits name more than nodes
        ("spec:", "  tmplate: {}", "unknown-field"),
        ("metadata:", "  annotations: {nodewright.dev/min-nodes: two}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/open-to-all-pods: maybe}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/launch-deadline: soon}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/launch-deadline: 0s}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/on-rebalance: sometimes}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/unhealthy-limit: 120%}", "bad-annotation"),
        ("metadata:", '  annotations: {nodewright.dev/unhealthy-limit: "-1"}', "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/initialization-deadline: 25h}", "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/registration-deadline: 45m}", "contradiction"),
        ("metadata:", '  annotations: {nodewright.dev/paused: ""}', "bad-annotation"),
        ("metadata:", "  annotations: {nodewright.dev/min-node: '1'}", "unknown-annotation"),
        ("      taints:", "        - {key: nvidia.com/gpu, value: 'yes', effect: NoSchedule}", "duplicate-taint"),
        ("    spec:", "      startupTaints: [{key: nvidia.com/gpu, effect: NoSchedule}]", "duplicate-taint"),
        ("    spec:", "      terminationGracePeriod: Never", "bad-duration"),
        ("    spec:", "      expireAfter: never", "bad-duration"),
        ("    spec:", "      kubelet: {maxPods: 10}", "unknown-field"),
        ("    spec:", "      resources: {requests: {cpu: 1}}", "not-implemented"),
        ("      requirements:", "        - {key: team, operator: In, values: [ads]}", "contradiction"),
        (
            "      requirements:",
            "        - {key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['4', '5']}",
            "bad-bound",
        ),
        (
            "      requirements:",
            "        - {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ['-4']}",
            "bad-label",
        ),
        (
            "      requirements:",
            "        - {key: karpenter.k8s.aws/instance-cpu, operator: Gte, values: [four]}",
            "bad-bound",
        ),
    ],
)
def test_a_part_that_karpenter_refuses_is_an_error_in_its_line(below: str, line: str, rule: str) -> None:
    change = added(POOL, below, line)
    found = [each for each in findings_of(change.text, CLASS) if each.rule == rule]
    assert len(found) == 1, rules(findings_of(change.text, CLASS))
    assert found[0].severity is Severity.ERROR
    if rule not in ("duplicate-taint", "contradiction"):
        assert change.line <= found[0].position.line <= change.line + line.count("\n")


def test_all_mistakes_of_all_files_are_told_at_once_in_file_order() -> None:
    broken_pool = (
        POOL.replace("operator: In\n          values: [g5, g6]", "operator: in\n          values: []")
        .replace("effect: NoSchedule", "effect: No")
        .replace("consolidateAfter: 5m", "consolidateAfter: soon\n    budget: 3")
        .replace('"8"', '"8 GPUs"')
    )
    broken_class = CLASS.replace("role: gpu-node", "roll: gpu-node").replace("al2023@latest", "al2024")
    found = findings_of(broken_pool, broken_class)
    assert rules(found) == [
        "unknown-operator",
        "unknown-effect",
        "bad-duration",
        "unknown-field",
        "bad-quantity",
        "unknown-field",
        "unknown-value",
    ]
    assert [each.position.file for each in found] == ["f0.yaml"] * 5 + ["f1.yaml"] * 2


def test_a_misspelt_field_is_told_once_not_also_as_missing() -> None:
    assert rules(findings_of(POOL.replace("      requirements:", "      requirments:"), CLASS)) == ["unknown-field"]


def test_a_wrong_value_brings_no_errors_in_its_train() -> None:
    assert rules(findings_of(POOL, CLASS.replace("- alias: al2023@latest", "- alias: al2024@latest"))) == [
        "unknown-value"
    ]
    assert rules(findings_of(POOL.replace("values: [g5, g6]", "values: [[g5]]"), CLASS)) == ["wrong-type"]


def test_the_caret_line_is_in_the_finding() -> None:
    (found,) = findings_of(POOL.replace("consolidateAfter: 5m", "consolidateAfter: soon"), CLASS)
    assert found.position.source_line[found.position.column - 1 :] == "soon"


def test_two_pools_of_one_name_are_an_error_that_names_the_first() -> None:
    found = findings_of(POOL, CLASS, POOL)
    assert rules(found) == ["duplicate-name"]
    assert found[0].position.file == "f2.yaml"
    assert "f0.yaml line 4" in found[0].message


def test_two_classes_of_one_name_are_an_error() -> None:
    assert rules(findings_of(POOL, CLASS, CLASS)) == ["duplicate-name"]


def test_a_document_that_is_no_object_is_an_error() -> None:
    assert rules(findings_of(POOL, CLASS, "- a\n- b\n")) == ["wrong-type"]
    assert rules(findings_of(POOL, CLASS, "just text\n")) == ["wrong-type"]
    assert rules(findings_of(POOL, CLASS, "a: 1\n")) == ["missing-field"]


def test_kinds_before_v1beta1_are_named_as_not_implemented_and_our_own_are_known() -> None:
    old = "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: x}\n"
    ours = "apiVersion: nodewright.dev/v1alpha1\nkind: LimitsRule\nmetadata: {name: x}\n"
    found = findings_of(POOL, CLASS, old, ours)
    assert rules(found) == ["not-implemented", "unknown-kind"]
    assert found[0].hint == "rewrite it as NodePool"
    assert found[1].hint == "did you mean LimitRule?"


def test_a_limit_that_limits_nothing_is_a_warning() -> None:
    found = findings_of(POOL.replace("nvidia.com/gpu: ", "nvidia.com/gpus: "), CLASS)
    assert rules(found) == ["unknown-resource"]
    assert found[0].severity is Severity.WARNING
    assert "nvidia.com/gpu?" in found[0].hint


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("        - {key: karpenter.k8s.aws/instance-cpu, operator: Exists, values: ['4']}", "no-effect"),
        ("        - {key: karpenter.k8s.aws/instance-cpu, operator: NotIn}", "no-effect"),
    ],
)
def test_a_requirement_that_demands_nothing_is_a_warning(line: str, rule: str) -> None:
    found = findings_of(added(POOL, "      requirements:", line).text, CLASS)
    assert [(each.rule, each.severity) for each in found] == [(rule, Severity.WARNING)]


def test_one_unknown_capacity_type_among_known_ones_is_a_warning() -> None:
    found = findings_of(POOL.replace("[spot, on-demand]", "[spot, ondemand]"), CLASS)
    assert [(each.rule, each.severity) for each in found] == [("unknown-value", Severity.WARNING)]


def test_no_pool_at_all_is_a_warning() -> None:
    assert rules(findings_of(CLASS)) == ["no-node-pools"]
    assert rules(findings_of()) == ["no-node-pools"]


def test_more_than_fifty_budgets_are_refused() -> None:
    def with_budgets(count: int) -> str:
        return POOL.replace(AFTER, f"{AFTER}\n    budgets: [{', '.join(['{nodes: 1%}'] * count)}]")

    assert rules(findings_of(with_budgets(51), CLASS)) == ["too-many"]
    assert rules(findings_of(with_budgets(50), CLASS)) == []


@pytest.mark.parametrize(
    ("line", "word"),
    [("weight: 2", "weight"), ("limits: {nodes: 5, cpu: 4}", "cpu"), ("limits: {nodes: 5}", "")],
)
def test_a_static_pool_takes_no_weight_and_no_limit_but_nodes(line: str, word: str) -> None:
    pool = POOL.replace("limits:\n    " + LIMIT, f"replicas: 2\n  {line}")
    found = findings_of(pool, CLASS)
    assert rules(found) == (["contradiction"] if word else [])
    assert all(word in each.message for each in found)


def test_a_static_pool_takes_no_minimum() -> None:
    pool = POOL.replace("limits:\n    " + LIMIT, "replicas: 2")
    annotated = added(pool, "metadata:", "  annotations: {nodewright.dev/min-nodes: '1'}").text
    assert rules(findings_of(annotated, CLASS)) == ["contradiction"]
