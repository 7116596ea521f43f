"""A node's price: the instance's and its volumes'."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.catalog.build import build_catalog
from engine.catalog.price import ebs_usd_per_hour, node_usd_per_hour
from engine.model.catalog import Offering
from engine.model.environment import Pricing
from engine.model.money import FREE
from engine.model.policy import AmiFamily, BlockDevice, NodeClass
from engine.observe.catalog_source import read_catalog_data
from tests import builders
from tests.builders import usd

CATALOG = build_catalog("us-east-1", builders.ZONES, read_catalog_data(), Pricing())


def with_volumes(*devices: BlockDevice, family: AmiFamily = AmiFamily.AL2023) -> NodeClass:
    return builders.node_class(ami_family=family, block_devices=devices)


def volume(name: str = "/dev/xvda", gib: int | None = 100, **fields: object) -> BlockDevice:
    return BlockDevice(device_name=name, volume_size_gib=gib, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("node_class", "usd_a_month"),
    [
        # An image brings its own root of 20 GiB, whether the class mentions it or not.
        (with_volumes(), 20 * 0.08),
        (with_volumes(volume()), 100 * 0.08),
        (with_volumes(volume("/dev/sda1")), 120 * 0.08),
        (with_volumes(volume("/dev/sda1", is_root=True)), 100 * 0.08),
        (with_volumes(volume(gib=None)), 20 * 0.08),
        (with_volumes(family=AmiFamily.BOTTLEROCKET), 24 * 0.08),
        (with_volumes(volume("/dev/sda1"), family=AmiFamily.CUSTOM), 100 * 0.08),
        # gp3 includes 3000 IOPS and 125 MiB/s.
        (with_volumes(volume(iops=3000, throughput_mib_per_s=125)), 100 * 0.08),
        (with_volumes(volume(gib=200, iops=5000, throughput_mib_per_s=500)), 200 * 0.08 + 2000 * 0.005 + 375 * 0.04),
        (with_volumes(volume(volume_type="gp2")), 100 * 0.10),
        (with_volumes(volume(volume_type="io2", iops=4000)), 100 * 0.125 + 4000 * 0.065),
        (with_volumes(volume(volume_type="io1", iops=1000)), 100 * 0.125 + 1000 * 0.065),
        # An unknown type is not free: it costs as much as the dearest that is known.
        (with_volumes(volume(volume_type="gp9")), 100 * 0.125),
    ],
)
def test_volumes_cost_their_months_rate_by_the_hour(node_class: NodeClass, usd_a_month: float) -> None:
    assert ebs_usd_per_hour(CATALOG, node_class) == usd(f"{usd_a_month / 730:.12f}")


def test_a_nodes_price_is_the_instances_and_the_volumes() -> None:
    offering = Offering("g5.xlarge", "us-east-1a", "on-demand", usd("1.006"))
    assert node_usd_per_hour(CATALOG, offering, with_volumes(volume())) == usd("1.016959")


def test_an_offering_without_a_price_makes_a_node_without_one() -> None:
    offering = Offering("p5e.48xlarge", "us-east-1a", "on-demand", None)
    assert node_usd_per_hour(CATALOG, offering, with_volumes()) is None


def test_volumes_cost_nothing_in_a_catalog_that_prices_none() -> None:
    unpriced = evolve(CATALOG, ebs_usd_per_gib_month={})
    assert ebs_usd_per_hour(unpriced, with_volumes(volume())) == FREE
