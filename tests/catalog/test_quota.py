"""Which quota of vCPUs a machine counts against."""

from __future__ import annotations

import csv
from importlib import resources

import pytest

from engine.catalog.quota import quota_class
from engine.catalog.refusal_codes import is_quota


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("g5.xlarge", "Running On-Demand G and VT instances", "All G and VT Spot Instance Requests"),
        ("gr6.4xlarge", "Running On-Demand G and VT instances", "All G and VT Spot Instance Requests"),
        ("vt1.3xlarge", "Running On-Demand G and VT instances", "All G and VT Spot Instance Requests"),
        ("p4d.24xlarge", "Running On-Demand P instances", "All P4, P3 and P2 Spot Instance Requests"),
        ("p5en.48xlarge", "Running On-Demand P instances", "All P5 Spot Instance Requests"),
        ("p6-b200.48xlarge", "Running On-Demand P instances", ""),
        ("inf2.xlarge", "Running On-Demand Inf instances", "All Inf Spot Instance Requests"),
        ("trn1n.32xlarge", "Running On-Demand Trn instances", "All Trn Spot Instance Requests"),
        ("dl1.24xlarge", "Running On-Demand DL instances", "All DL Spot Instance Requests"),
        ("f2.6xlarge", "Running On-Demand F instances", "All F Spot Instance Requests"),
        ("x2iezn.2xlarge", "Running On-Demand X instances", "All X Spot Instance Requests"),
        ("u-6tb1.metal", "Running On-Demand High Memory instances", ""),
        ("u7i-12tb.224xlarge", "Running On-Demand High Memory instances", ""),
        ("hpc7g.4xlarge", "Running On-Demand HPC instances", ""),
        ("mac2.metal", "", ""),
    ],
)
def test_each_family_counts_against_the_quota_that_aws_documents(instance_type: str, on_demand: str, spot: str) -> None:
    assert quota_class(instance_type, "on-demand") == on_demand
    assert quota_class(instance_type, "spot") == spot


@pytest.mark.parametrize("family", ["a1", "c7i", "d3en", "h1", "i4i", "im4gn", "is4gen", "m5", "r8g", "t3", "z1d"])
def test_general_families_are_standard(family: str) -> None:
    name = "Standard (A, C, D, H, I, M, R, T, Z)"
    assert quota_class(f"{family}.large", "on-demand") == f"Running On-Demand {name} instances"
    assert quota_class(f"{family}.large", "spot") == f"All {name} Spot Instance Requests"


def test_reserved_capacity_was_counted_when_it_was_reserved() -> None:
    assert quota_class("p5.48xlarge", "reserved") == ""


def test_every_type_of_the_catalog_but_macs_counts_against_a_quota_on_demand() -> None:
    with resources.files("engine.catalog").joinpath("data/instance_types.csv").open() as lines:
        types = {row["instance_type"] for row in csv.DictReader(each for each in lines if not each.startswith("#"))}
    assert len(types) > 100
    assert {name for name in types if not quota_class(name, "on-demand") and not name.startswith("mac")} == set()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("VcpuLimitExceeded", True),
        ("MaxSpotInstanceCountExceeded", True),
        ("InstanceLimitExceeded", True),
        ("InsufficientInstanceCapacity", False),
        ("InsufficientFreeAddressesInSubnet", False),
    ],
)
def test_quotas_are_told_from_lack_of_capacity(code: str, expected: bool) -> None:
    assert is_quota(code) is expected
