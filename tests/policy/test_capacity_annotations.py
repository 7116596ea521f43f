"""What a NodePool's annotations say of headroom, of GPU waste and of labels to come: what is taken and what is not."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import pytest

from engine.model import labels
from engine.model.diagnostic import Diagnostic
from engine.model.money import UsdPerHour
from engine.model.policy import NodePool, Spare
from engine.policy.lint import lint
from tests.builders import catalog
from tests.policy.texts import CLASS, POOL, added, findings_of, policy_of


def pool_with(annotation: str, value: str) -> NodePool:
    return policy_of(annotated(annotation, value), CLASS).node_pools[0]


def annotated(annotation: str, value: str) -> str:
    return added(POOL, "metadata:", f"  annotations: {{{annotation}: '{value}'}}").text


def refused(annotation: str, value: str) -> Diagnostic:
    [found] = [each for each in findings_of(annotated(annotation, value), CLASS) if each.rule == "bad-annotation"]
    assert found.position.line == 4, "it is told where it stands"
    return found


@pytest.mark.parametrize(
    ("written", "share"),
    [("0", "0"), ("0.5", "0.5"), ("50%", "0.5"), (" 12.5% ", "0.125"), ("1", "1"), ("100%", "1")],
)
def test_a_share_of_waste_is_a_number_or_percent(written: str, share: str) -> None:
    assert pool_with(labels.MAX_GPU_WASTE, written).max_gpu_waste == Decimal(share)


def test_a_pool_that_says_nothing_takes_any_waste_and_keeps_no_headroom() -> None:
    pool = policy_of(POOL, CLASS).node_pools[0]
    assert (pool.max_gpu_waste, pool.headroom, pool.expected_labels) == (None, (), {})


@pytest.mark.parametrize("written", ["half", "1.5", "101%", "-1", "50", "1e-1", "", "\u0661", "1\u2003"])
def test_what_is_no_share_is_refused(written: str) -> None:
    assert "share of a new node" in refused(labels.MAX_GPU_WASTE, written).message


@pytest.mark.parametrize(("written", "micros"), [("0.02", 20_000), ("0", 0), (" 100 ", 100_000_000)])
def test_what_a_node_costs_besides_its_price_is_dollars_an_hour(written: str, micros: int) -> None:
    assert pool_with(labels.NODE_COST, written).node_cost == UsdPerHour(micros)
    assert policy_of(POOL, CLASS).node_pools[0].node_cost == UsdPerHour(0)


@pytest.mark.parametrize("written", ["-1", "$0.02", "2 cents", "100.01", "1e1", "NaN", "0.1234567", "0.02\u0663", ""])
def test_what_is_no_cost_of_a_node_is_refused(written: str) -> None:
    assert "costs an hour besides its price" in refused(labels.NODE_COST, written).message


@pytest.mark.parametrize(
    ("written", "spares"),
    [
        ("nvidia.com/gpu=2", (Spare("nvidia.com/gpu", 2),)),
        ("nvidia.com/gpu=2;zone=each", (Spare("nvidia.com/gpu", 2, in_each_zone=True),)),
        ("nvidia.com/gpu=1, amd.com/gpu=3", (Spare("amd.com/gpu", 3), Spare("nvidia.com/gpu", 1))),
        ("nvidia.com/gpu=0", ()),
        ("nvidia.com/gpu=1000", (Spare("nvidia.com/gpu", 1000),)),
    ],
)
def test_headroom_names_devices_for_the_pool_or_for_each_zone(written: str, spares: tuple[Spare, ...]) -> None:
    assert pool_with(labels.HEADROOM, written).headroom == spares


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("2", "how many GPUs"),
        ("nvidia.com/gpu=2;zone=us-east-1a", "how many GPUs"),
        ("nvidia.com/gpus=2", "no accelerator's resource"),
        ("nvidia.com/gpu=1,nvidia.com/gpu=2", "twice"),
        ("nvidia.com/gpu=1001", "1000 is the most"),
        ("nvidia.com/gpu=9999;zone=each", "1000 is the most"),
        ("nvidia.com/gpu=\u0663", "how many GPUs"),
    ],
)
def test_headroom_that_says_nothing_clear_is_refused(written: str, told: str) -> None:
    assert told in refused(labels.HEADROOM, written).message


def test_a_misspelt_accelerator_is_told_its_name() -> None:
    assert "nvidia.com/gpu" in refused(labels.HEADROOM, "nvidia.com/gpus=2").hint


def test_a_static_pool_keeps_no_headroom() -> None:
    static = added(annotated(labels.HEADROOM, "nvidia.com/gpu=2"), "spec:", "  replicas: 2").text
    assert [each.message for each in findings_of(static, CLASS) if labels.HEADROOM in each.message]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("nvidia.com/gpu.product=NVIDIA-L4-SHARED", {"nvidia.com/gpu.product": "NVIDIA-L4-SHARED"}),
        ("example.com/up=, nvidia.com/gpu.memory-", {"example.com/up": "", "nvidia.com/gpu.memory": None}),
    ],
)
def test_labels_to_come_are_named_or_denied(written: str, expected: Mapping[str, str | None]) -> None:
    assert pool_with(labels.EXPECTED_LABELS, written).expected_labels == expected


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("example.com/up", "names labels that nodes get"),
        ("example.com/up=a b", "names labels that nodes get"),
        ("/=x", "names labels that nodes get"),
        ("team=search", "from their start"),
        ("kubernetes.io/hostname=x", "from their start"),
        ("topology.kubernetes.io/zone=us-east-1a", "from their start"),
        ("a=1,a=2", "twice"),
    ],
)
def test_labels_that_cannot_come_later_are_refused(written: str, told: str) -> None:
    assert told in refused(labels.EXPECTED_LABELS, written).message


def test_a_misspelt_annotation_is_told_the_right_one() -> None:
    [found] = [
        each for each in findings_of(annotated("nodewright.dev/headrom", "x"), CLASS) if "headrom" in each.message
    ]
    assert labels.HEADROOM in found.hint


def test_headroom_of_a_device_that_no_type_of_the_pool_carries_is_a_warning_where_it_stands() -> None:
    loaded = policy_of(annotated(labels.HEADROOM, "amd.com/gpu=1"), CLASS)
    [found] = [each for each in lint(loaded, catalog()) if "amd.com/gpu" in each.message]
    assert (found.rule, found.position.line) == ("wrong-vendor", 4)
