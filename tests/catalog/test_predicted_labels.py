"""What machines will show of themselves once they are up, told by their type."""

from __future__ import annotations

from importlib import resources

import pytest

from engine.catalog.build import build_catalog
from engine.catalog.data import EBS_FILE, TYPES_FILE, ZONES_FILE, parse_catalog_data
from engine.catalog.predicted_labels import (
    GPU_COUNT,
    GPU_FAMILY,
    GPU_MEMORY,
    GPU_PRESENT,
    GPU_PRODUCT,
    MIG_CAPABLE,
    predicted_labels,
)
from engine.model import labels
from engine.model.catalog import InstanceType
from engine.model.environment import Pricing
from engine.model.quantity import NVIDIA_GPU

DATA = resources.files("engine.catalog") / "data"
FACTS = parse_catalog_data(*((DATA / name).read_bytes() for name in (TYPES_FILE, ZONES_FILE, EBS_FILE)))
KINDS = {each.name: each for each in build_catalog("us-east-1", {}, FACTS, Pricing()).instance_types}


@pytest.mark.parametrize(
    ("name", "count", "product", "family"),
    [
        ("g4dn.12xlarge", "4", "Tesla-T4", "turing"),
        ("g5.xlarge", "1", "NVIDIA-A10G", "ampere"),
        ("g6.48xlarge", "8", "NVIDIA-L4", "ada-lovelace"),
        ("g6e.xlarge", "1", "NVIDIA-L40S", "ada-lovelace"),
        ("p3.16xlarge", "8", "Tesla-V100-SXM2-16GB", "volta"),
        ("p3dn.24xlarge", "8", "Tesla-V100-SXM2-32GB", "volta"),
        ("p4d.24xlarge", "8", "NVIDIA-A100-SXM4-40GB", "ampere"),
        ("p4de.24xlarge", "8", "NVIDIA-A100-SXM4-80GB", "ampere"),
        ("p5.48xlarge", "8", "NVIDIA-H100-80GB-HBM3", "hopper"),
        ("p5en.48xlarge", "8", "NVIDIA-H200", "hopper"),
        ("p6-b200.48xlarge", "8", "NVIDIA-B200", "blackwell"),
    ],
)
def test_an_nvidia_type_foretells_its_gpus(name: str, count: str, product: str, family: str) -> None:
    told = predicted_labels(KINDS[name])
    assert (told[GPU_PRESENT], told[GPU_COUNT], told[GPU_PRODUCT], told[GPU_FAMILY]) == ("true", count, product, family)


def test_memory_is_within_a_tenth_of_what_ec2_says() -> None:
    """NVML counts what the driver leaves, so the two differ a little; by more they are not of one GPU."""
    for kind in KINDS.values():
        memory = predicted_labels(kind).get(GPU_MEMORY)
        if memory is not None:
            sold = kind.accelerator_memory_bytes // 2**20
            assert abs(int(memory) - sold) <= sold / 10, kind.name


@pytest.mark.parametrize("name", ["m5.large", "g4ad.xlarge", "inf2.xlarge", "g6f.large"])
def test_nothing_is_foretold_of_types_without_a_whole_nvidia_gpu(name: str) -> None:
    assert predicted_labels(KINDS[name]) == {}


def test_every_whole_nvidia_gpu_on_sale_has_a_family_but_those_that_are_not_known() -> None:
    def gpu(kind: InstanceType) -> str:
        return kind.labels[labels.INSTANCE_GPU_NAME]

    nvidia = [kind for kind in KINDS.values() if kind.accelerators.amount(NVIDIA_GPU)]
    unknown = {gpu(kind) for kind in nvidia if GPU_FAMILY not in predicted_labels(kind)}
    assert unknown == {"rtx-pro-4500"}


def test_mig_is_told_of_a100_and_later_data_centre_gpus_alone() -> None:
    capable = {
        kind.labels[labels.INSTANCE_GPU_NAME]
        for kind in KINDS.values()
        if predicted_labels(kind).get(MIG_CAPABLE) == "true"
    }
    assert capable == {"a100", "h100", "h200", "b200", "b300", "rtx-pro-server-6000"}
