"""Bounds of Karpenter's own API, found by asking it with generated objects, that we keep as it does."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Severity
from tests.policy.texts import CLASS, POOL, edited, findings_of

AFTER = "consolidateAfter: 5m"
TEAM = "team: search"
NEVER_BOUND = "operator: In\n          values: [g5, g6]"
SUBNETS = "subnetSelectorTerms:\n    - tags: {karpenter.sh/discovery: prod}"


def told(*texts: str) -> list[tuple[str, Severity]]:
    return [(found.rule, found.severity) for found in findings_of(*texts)]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', schedule: '@daily', duration: 0s}}]", "bad-duration"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', reasons: [Empty, Empty]}}]", "bad-budget"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', schedule: 0 9 * * 7, duration: 1h}}]", "bad-schedule"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', schedule: '0 9 * * 1,5-7', duration: 1h}}]", "bad-schedule"),
        (TEAM, "\n        ".join(f"key-{number}: x" for number in range(101)), "too-many"),
        (TEAM, "mykarpenter.sh/x: y", "restricted-label"),
        (TEAM, "karpenter.sh: y", "restricted-label"),
        (TEAM, "mykarpenter.k8s.aws/x: y", "unknown-label"),
        (NEVER_BOUND, "operator: Gt\n          values: ['9223372036854775808']", "bad-bound"),
        ("effect: NoSchedule", "effect: NoSchedule\n          timeAdded: yesterday", "bad-value"),
        ("effect: NoSchedule", "effect: NoSchedule\n          timeAdded: '2026-01-02'", "bad-value"),
        ('nvidia.com/gpu: "8"', 'nvidia.com/gpu: " 8"', "bad-quantity"),
        ("name: gpu\n", "name: gpu\n  annotations: {a b: x}\n", "bad-annotation"),
    ],
)
def test_what_karpenters_api_refuses_of_a_pool_is_refused(old: str, new: str, rule: str) -> None:
    assert told(edited(POOL, old, new).text, CLASS) == [(rule, Severity.ERROR)]


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (f"  {AFTER}", "  budgets: [{nodes: '1'}]", "not-karpenters"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1'}}, {{nodes: '2', reasons: [Expired]}}]", "not-karpenters"),
        ("effect: NoSchedule", "value: ''\n          effect: NoSchedule", "not-karpenters"),
        ('nvidia.com/gpu: "8"', "cpu: 1.5", "unquoted"),
    ],
)
def test_what_karpenters_api_refuses_and_can_mean_one_thing_only_is_read_with_a_warning(
    old: str, new: str, rule: str
) -> None:
    assert told(edited(POOL, old, new).text, CLASS) == [(rule, Severity.WARNING)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1000000000000'}}]"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', schedule: '@daily', duration: 1h30m0s}}]"),
        (AFTER, f"{AFTER}\n    budgets: [{{nodes: '1', schedule: 0 9 * * */7, duration: 1h}}]"),
        ("  limits:", "  weight: 5.0\n  limits:"),
        ("name: gpu\n", "name: gpu\n  annotations: {Example.com/Owner: x}\n"),
        ("effect: NoSchedule", "effect: NoSchedule\n          timeAdded: '2026-01-02T03:04:05Z'"),
        (NEVER_BOUND, "operator: Lte\n          values: ['9223372036854775807']"),
    ],
)
def test_what_karpenters_api_accepts_of_a_pool_is_read_without_a_word(old: str, new: str) -> None:
    assert told(edited(POOL, old, new).text, CLASS) == []


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        (SUBNETS, f"subnetSelectorTerms:\n    - tags: {{{', '.join(f'k{n}: x' for n in range(21))}}}", "too-many"),
        (SUBNETS, "subnetSelectorTerms:\n    - {id: subnet-0123, tags: {}}", "bad-selector"),
    ],
)
def test_what_karpenters_api_refuses_of_a_node_class_is_refused(old: str, new: str, rule: str) -> None:
    assert told(POOL, edited(CLASS, old, new).text) == [(rule, Severity.ERROR)]


def test_a_field_of_a_term_is_named_as_it_is_written() -> None:
    text = edited(CLASS, "- alias: al2023@latest", "- {ssmParameter: /a, tags: {a: b}}\n  amiFamily: AL2").text
    assert [found.message for found in findings_of(POOL, text)] == [
        "ssmParameter names one thing alone; it cannot be together with tags"
    ]


@pytest.mark.parametrize("size", ["59001Gi", "64001G", "65T", "59Ti", "18Ti", "0G"])
def test_a_volume_size_that_karpenters_pattern_leaves_out_is_out_of_range(size: str) -> None:
    devices = f"  blockDeviceMappings: [{{deviceName: /dev/xvda, ebs: {{volumeSize: {size}}}}}]\n"
    assert told(POOL, CLASS + devices) == [("out-of-range", Severity.ERROR)]


@pytest.mark.parametrize("size", ["1Gi", "59000Gi", "64000G", "64T", "17Ti", "58Ti"])
def test_every_volume_size_of_karpenters_pattern_is_read(size: str) -> None:
    devices = f"  blockDeviceMappings: [{{deviceName: /dev/xvda, ebs: {{volumeSize: {size}}}}}]\n"
    assert told(POOL, CLASS + devices) == []
