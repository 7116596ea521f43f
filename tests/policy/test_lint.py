"""Lints say what loads and still cannot mean what it says, and say nothing else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engine.catalog.build import build_catalog
from engine.model import labels
from engine.model.catalog import Catalog, InstanceType
from engine.model.diagnostic import Diagnostic, Severity
from engine.model.environment import Pricing
from engine.model.policy import Budget, Disruption, Policy
from engine.model.reason import DisruptionReason
from engine.observe.catalog_source import read_catalog_data
from engine.policy.budget_holes import holes
from engine.policy.lint import lint
from tests.policy.texts import CLASS, POOL, added, policy_of

ZONES = {"us-east-1b": "use1-az1", "us-east-1c": "use1-az2"}
EMPTY, UNDERUTILIZED, DRIFTED = DisruptionReason.EMPTY, DisruptionReason.UNDERUTILIZED, DisruptionReason.DRIFTED
EXPIRED = DisruptionReason.EXPIRED


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return build_catalog("us-east-1", ZONES, read_catalog_data(), Pricing())


def lints(catalog: Catalog, text: str) -> list[Diagnostic]:
    found = lint(policy_of(text, CLASS), catalog)
    assert all(each.severity is Severity.WARNING for each in found)
    return list(found)


def caret(found: Diagnostic) -> str:
    return found.position.source_line[found.position.column - 1 :]


def requiring(*lines: str) -> str:
    return added(POOL, "      requirements:", "\n".join(f"        - {line}" for line in lines)).text


FAMILY = "- key: karpenter.k8s.aws/instance-family\n          operator: In\n          values: [g5, g6]"
NO_FAMILY = POOL.replace(f"        {FAMILY}\n", "")


def test_a_coherent_pool_is_left_in_peace(catalog: Catalog) -> None:
    assert lints(catalog, POOL) == []


def test_a_value_that_the_other_requirements_exclude_is_told_with_what_carries_it(catalog: Catalog) -> None:
    text = NO_FAMILY.replace(
        "      requirements:",
        "      requirements:\n"
        "        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [g]}\n"
        "        - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [l40s, a10g, h100]}",
    )
    (found,) = lints(catalog, text)
    assert found.rule == "value-never-matches"
    assert caret(found).startswith("h100]")
    assert "only instance-category p carries it" in found.message
    assert "instance-category In g" in found.message


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            "{key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [a10g, l4o]}",
            "no instance-gpu-name l4o",
            "l4",
        ),
        (
            "{key: karpenter.k8s.aws/instance-size, operator: In, values: [xlarge, 3xlarge]}",
            "instance-size 3xlarge is sold",
            "xlarge",
        ),
        (
            "{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1b, us-east-1f]}",
            "us-east-1f",
            "us-east-1",
        ),
        (
            "{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge, p3.2xlarge]}",
            "p3.2xlarge is sold",
            "",
        ),
        ("{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}", "instance-family", ""),
    ],
)
def test_a_value_that_nothing_has_is_told(catalog: Catalog, line: str, message: str, hint: str) -> None:
    (found,) = [each for each in lints(catalog, requiring(line)) if each.position.source_line.strip() == f"- {line}"]
    assert found.rule == "value-never-matches"
    assert message in found.message
    assert hint in found.hint


def test_reserved_capacity_without_reservations_never_matches(catalog: Catalog) -> None:
    (found,) = lints(catalog, POOL.replace("[spot, on-demand]", "[spot, reserved]"))
    assert (found.rule, caret(found)) == ("value-never-matches", "reserved]")


def test_a_pool_that_permits_nothing_is_told_once_with_the_requirement_that_does_it(catalog: Catalog) -> None:
    (found,) = lints(catalog, requiring("{key: kubernetes.io/arch, operator: In, values: [arm64]}"))
    assert found.rule == "nothing-matches"
    assert caret(found).startswith("requirements")
    assert "kubernetes.io/arch In arm64" in found.hint
    (found,) = lints(
        catalog,
        requiring(
            "{key: kubernetes.io/arch, operator: In, values: [arm64]}",
            "{key: kubernetes.io/os, operator: In, values: [windows]}",
        ),
    )
    assert found.rule == "nothing-matches"


@pytest.mark.parametrize("operator", ["Gt", "Gte"])
def test_bounds_that_exclude_everything_are_told(catalog: Catalog, operator: str) -> None:
    line = f"{{key: karpenter.k8s.aws/instance-cpu, operator: {operator}, values: ['1000']}}"
    assert [each.rule for each in lints(catalog, requiring(line))] == ["nothing-matches"]


def test_a_label_that_promises_another_gpu_is_told_with_the_cheapest_that_is_bought(catalog: Catalog) -> None:
    (found,) = lints(catalog, POOL.replace("team: search", "accelerator: nvidia-l4"))
    assert found.rule == "label-promises-another-gpu"
    assert caret(found) == "nvidia-l4"
    assert "promises an l4" in found.message
    assert "a10g too" in found.message
    assert "g5.xlarge" in found.message
    (found,) = lints(catalog, POOL.replace("team: search", "accelerator: nvidia-h100"))
    assert "a10g, l4 only" in found.message


@pytest.mark.parametrize("label", ["accelerator: nvidia-l40s", "gpu: L40S", "accelerator: nvidia", "x: al40s-b"])
def test_a_label_that_tells_the_truth_or_nothing_about_gpus_is_left_in_peace(catalog: Catalog, label: str) -> None:
    assert lints(catalog, POOL.replace("team: search", label).replace("[g5, g6]", "[g6e]")) == []


UNTAINTED = POOL.replace("      taints:\n        - key: nvidia.com/gpu\n          effect: NoSchedule\n", "")


def test_a_gpu_pool_without_a_taint_is_told(catalog: Catalog) -> None:
    (found,) = lints(catalog, UNTAINTED)
    assert found.rule == "gpu-pool-open"
    soft = POOL.replace("effect: NoSchedule", "effect: PreferNoSchedule")
    assert [each.rule for each in lints(catalog, soft)] == ["gpu-pool-open"]


def test_a_gpu_pool_that_is_open_on_purpose_and_a_cpu_pool_are_left_in_peace(catalog: Catalog) -> None:
    opened = added(UNTAINTED, "metadata:", '  annotations: {nodewright.dev/open-to-all-pods: "true"}').text
    assert lints(catalog, opened) == []
    assert lints(catalog, UNTAINTED.replace("[g5, g6]", "[c7i, m5]").replace("nvidia.com/gpu:", "cpu:")) == []


def test_a_pool_that_speaks_of_another_vendors_devices_is_told(catalog: Catalog) -> None:
    found = lints(catalog, POOL.replace('nvidia.com/gpu: "8"', 'amd.com/gpu: "8"'))
    assert [(each.rule, caret(each)) for each in found] == [("wrong-vendor", '"8"')]
    assert "nvidia.com/gpu" in found[0].message
    found = lints(catalog, POOL.replace("[g5, g6]", "[inf2]").replace('nvidia.com/gpu: "8"', "cpu: 1k"))
    assert [(each.rule, caret(each)) for each in found] == [("wrong-vendor", "taints:")]


@pytest.mark.parametrize(
    ("limit", "rule"),
    [
        ('nvidia.com/gpu: "8"', None),
        ('cpu: "4"', None),
        ('cpu: "3"', "limit-too-small"),
        ("memory: 15Gi", "limit-too-small"),
        ('nodes: "1"', None),
        ('cpu: "0"', None),  # a pool that is switched off on purpose
    ],
)
def test_a_limit_below_the_smallest_type_is_told(catalog: Catalog, limit: str, rule: str | None) -> None:
    found = lints(catalog, POOL.replace('nvidia.com/gpu: "8"', limit))
    assert [each.rule for each in found] == ([rule] if rule else [])
    assert all("g5.xlarge" in each.message or "g6.xlarge" in each.message for each in found)


@pytest.mark.parametrize(
    ("limit", "rule"),
    [('nvidia.com/gpu: "2"', "base-above-limit"), ('nodes: "2"', "base-above-limit"), ("cpu: 1k", None)],
)
def test_base_capacity_above_a_limit_is_told(catalog: Catalog, limit: str, rule: str | None) -> None:
    text = added(POOL, "metadata:", '  annotations: {nodewright.dev/min-nodes: "3"}').text
    found = lints(catalog, text.replace('nvidia.com/gpu: "8"', limit))
    assert [each.rule for each in found] == ([rule] if rule else [])


def test_a_pool_without_any_price_is_told(catalog: Catalog) -> None:
    text = POOL.replace("[g5, g6]", "[p5e]").replace("[spot, on-demand]", "[on-demand]")
    unpriced = build_catalog(
        "us-west-2", {"us-west-2a": "usw2-az1", "us-west-2c": "usw2-az3"}, read_catalog_data(), Pricing()
    )
    assert [each.rule for each in lints(unpriced, text)] == ["no-price"]


def test_lints_name_the_pool_they_are_of_and_come_in_file_order(catalog: Catalog) -> None:
    bad = UNTAINTED.replace("name: gpu\n", "name: open\n")
    found = lint(policy_of(UNTAINTED, CLASS, bad), catalog)
    assert [(each.rule, each.position.file) for each in found] == [
        ("gpu-pool-open", "f0.yaml"),
        ("gpu-pool-open", "f2.yaml"),
    ]


def test_a_policy_that_was_not_read_from_files_can_be_linted(catalog: Catalog) -> None:
    pool = policy_of(UNTAINTED, CLASS).node_pools[0]
    assert pool.position_of("nothing") == pool.position
    assert lint(Policy((), ()), catalog) == ()


# --- budgets

ALL = (EMPTY, UNDERUTILIZED, DRIFTED, EXPIRED)
HOURS = timedelta(hours=1)


@pytest.mark.parametrize(
    ("budgets", "unlimited"),
    [
        ([], ALL),
        ([Budget(percent=10)], ()),
        ([Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOURS)], ALL),
        ([Budget(percent=100), Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOURS)], ()),
        ([Budget(nodes=1, reasons=(EMPTY,))], (UNDERUTILIZED, DRIFTED, EXPIRED)),
        ([Budget(nodes=1, reasons=(EMPTY,)), Budget(nodes=1, reasons=(UNDERUTILIZED, DRIFTED))], (EXPIRED,)),
        ([Budget(nodes=1, reasons=(EMPTY,)), Budget(nodes=1, reasons=(UNDERUTILIZED, DRIFTED, EXPIRED))], ()),
        ([Budget(nodes=1, schedule="0 0 * * *", duration=24 * HOURS)], ()),
        ([Budget(nodes=1, schedule="0 0 * * *", duration=23 * HOURS)], ALL),
        ([Budget(nodes=1, schedule="0 0 * * 1-5", duration=24 * HOURS)], ALL),
        ([Budget(nodes=1, schedule="0 0 1 1 *", duration=24 * HOURS)], ALL),
    ],
)
def test_times_without_any_budget_are_found(budgets: list[Budget], unlimited: tuple[DisruptionReason, ...]) -> None:
    assert tuple(reason for hole in holes(budgets) for reason in hole.reasons) == unlimited


MORNINGS = Budget(nodes=0, schedule="0 9 * * 1-5", duration=8 * HOURS)
WEEKDAYS = Budget(nodes=1, schedule="0 6 * * 1", duration=114 * HOURS)
WEEKEND = Budget(nodes=1, schedule="0 0 * * 6", duration=54 * HOURS)


@pytest.mark.parametrize(
    ("budgets", "when"),
    [
        ([WEEKDAYS], ["Sat 00:00 to Mon 06:00 UTC"]),
        ([WEEKDAYS, WEEKEND], []),
        (
            [MORNINGS],
            ["Mon 17:00 to Tue 09:00, Tue 17:00 to Wed 09:00, Wed 17:00 to Thu 09:00 UTC and 2 times more a week"],
        ),
        ([Budget(nodes=1, schedule="30 9 * * *", duration=8 * HOURS)], ["daily 17:30 to 09:30 UTC"]),
        ([Budget(nodes=1, schedule="0 0 * * *", duration=8 * HOURS)], ["daily 08:00 to 00:00 UTC"]),
        ([Budget(nodes=1, schedule="0 0 1 * *", duration=8 * HOURS)], ["outside the budgets' schedules"]),
        ([], ["at any time"]),
        ([Budget(nodes=1, reasons=(EMPTY,))], ["at any time"]),
    ],
)
def test_a_hole_is_shown_on_the_calendar(budgets: list[Budget], when: list[str]) -> None:
    assert [hole.when for hole in holes(budgets)] == when


def test_reasons_with_different_holes_are_told_apart() -> None:
    found = holes([WEEKDAYS, Budget(nodes=1, reasons=(DRIFTED,), schedule="0 0 * * 6", duration=54 * HOURS)])
    assert [(hole.reasons, hole.when) for hole in found] == [
        ((EMPTY, UNDERUTILIZED, EXPIRED), "Sat 00:00 to Mon 06:00 UTC")
    ]


def test_a_pool_with_scheduled_budgets_only_is_told(catalog: Catalog) -> None:
    text = POOL.replace("consolidateAfter: 5m", "budgets: [{nodes: '0', schedule: '0 9 * * 1-5', duration: 8h}]")
    (found,) = lints(catalog, text)
    assert (found.rule, caret(found)[:7]) == ("budget-hole", "budgets")
    assert "limits Empty, Underutilized, Drifted, Expired Mon 17:00 to Tue 09:00" in found.message


def test_case_45_a_list_of_budgets_that_are_all_shut_limits_nothing(catalog: Catalog) -> None:
    """core#1866: what is limited on Monday morning alone is unlimited on Saturday; an always-on budget mends it."""
    monday = "{nodes: '0', schedule: '0 9 * * 1-5', duration: 8h, reasons: [Underutilized]}"
    others = "{nodes: '10%', reasons: [Empty, Drifted]}"
    alone = POOL.replace("consolidateAfter: 5m", f"budgets: [{monday}, {others}]")
    found = lints(catalog, alone)
    assert {each.rule for each in found} == {"budget-hole"}
    expired, underutilized = sorted(each.message for each in found)
    assert "limits Expired at any time" in expired
    assert "limits Underutilized Mon 17:00 to Tue 09:00" in underutilized
    assert lints(catalog, alone.replace("budgets: [", "budgets: [{nodes: '100%'}, ")) == []


@pytest.mark.parametrize(
    ("after", "annotations", "why", "hint"),
    [
        ("20m", {}, "expireAfter 20m of gpu is shorter than the 35m that a node may take to come up", "24h"),
        ("34m59s", {}, "shorter than the 35m", "24h"),
        ("0s", {}, "shorter than the 35m", "24h"),
        ("35m", {}, None, None),
        ("720h", {}, None, None),
        ("Never", {"min-node-life": "720h"}, None, None),
        (
            "3m",
            {"launch-deadline": "1m", "registration-deadline": "2m", "initialization-deadline": "2m"},
            "life",
            "24h",
        ),
        ("10m", {"launch-deadline": "1m", "registration-deadline": "2m", "initialization-deadline": "2m"}, None, None),
        ("25h", {"initialization-deadline": "24h", "launch-deadline": "2h"}, "shorter than the 1d2h", "52h"),
        ("48h", {"min-node-life": "72h"}, "shorter than its nodewright.dev/min-node-life 3d", "144h"),
        ("72h", {"min-node-life": "72h"}, None, None),
    ],
)
def test_nodes_that_are_too_old_before_they_are_of_use_are_told(
    catalog: Catalog, after: str, annotations: dict[str, str], why: str | None, hint: str | None
) -> None:
    noted = ", ".join(f"nodewright.dev/{key}: {value}" for key, value in annotations.items())
    text = added(POOL, "  name: gpu", f"  annotations: {{{noted}}}").text
    found = lints(catalog, added(text, "    spec:", f"      expireAfter: {after}").text)
    if why is None:
        assert found == []
        return
    (each,) = found
    assert (each.rule, caret(each)) == ("expires-too-soon", after)
    assert why in each.message
    assert each.message.endswith("its nodes are replaced for ever")
    assert each.hint == f"write expireAfter: {hint} or more, or Never"


def test_an_expiry_that_nobody_wrote_is_never_too_soon(catalog: Catalog) -> None:
    assert lints(catalog, added(POOL, "  name: gpu", "  annotations: {nodewright.dev/min-node-life: 720h}").text) == []


def test_an_expiry_in_v1beta1s_place_is_told_there(catalog: Catalog) -> None:
    text = POOL.replace("    consolidateAfter: 5m", "    consolidateAfter: 5m\n    expireAfter: 5m")
    (each,) = lints(catalog, text)
    assert (each.rule, caret(each)) == ("expires-too-soon", "5m")


def test_karpenters_default_budget_has_no_hole() -> None:
    assert holes(Disruption().budgets) == ()


def test_labels_of_types_are_what_requirements_are_held_against(catalog: Catalog) -> None:
    kinds: dict[str, InstanceType] = {kind.name: kind for kind in catalog.instance_types}
    assert kinds["g5.xlarge"].labels[labels.INSTANCE_GPU_NAME] == "a10g"
