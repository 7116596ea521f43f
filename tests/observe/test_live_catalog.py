"""EC2's live answers over the shipped facts: asked of moto, and of a stand-in where moto never errs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from attrs import evolve
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from engine.catalog.build import build_catalog
from engine.catalog.data import CatalogData
from engine.model.environment import Pricing
from engine.model.money import UsdPerHour
from engine.observe.catalog_source import read_catalog_data
from engine.observe.live_catalog import LiveCatalogFailed, live_or_shipped, with_live_facts

SHIPPED = read_catalog_data()
ZONES = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az1"}


@pytest.fixture(scope="module")
def moto_data() -> Iterator[CatalogData]:
    with mock_aws():
        ec2 = boto3.client("ec2", "us-east-1", aws_access_key_id="testing", aws_secret_access_key="testing")
        yield with_live_facts(SHIPPED, ec2, "us-east-1", ZONES, also=("m7i.metal-48xl",))


def test_the_shapes_that_ec2_tells_are_those_that_we_ship(moto_data: CatalogData) -> None:
    shipped = {facts.name: facts for facts in SHIPPED.types}
    assert {facts.name: facts for facts in moto_data.types if facts.name in shipped} == shipped
    assert moto_data.notes == ()


def test_zones_are_ec2s_and_a_type_that_it_does_not_list_is_not_sold(moto_data: CatalogData) -> None:
    catalog = build_catalog("us-east-1", ZONES, moto_data, Pricing())
    sold = {each.instance_type for each in catalog.offerings}
    assert {"g5.xlarge", "m5.large"} <= sold
    assert "g4ad.xlarge" not in sold
    thinned = {name: zones for name, zones in moto_data.zones["us-east-1"].items() if name != "m5.large"}
    without = evolve(moto_data, zones={**moto_data.zones, "us-east-1": thinned})
    assert "m5.large" not in {
        each.instance_type for each in build_catalog("us-east-1", ZONES, without, Pricing()).offerings
    }


def test_a_type_that_the_environment_prices_is_asked_for(moto_data: CatalogData) -> None:
    (metal,) = (facts for facts in moto_data.types if facts.name == "m7i.metal-48xl")
    assert (metal.vcpus, metal.hypervisor, metal.on_demand) == (192, "", None)


class FakeEc2:
    """Answers with what it is given, or raises it; counts nothing, knows no filters."""

    class meta:  # noqa: N801 - boto3's name
        endpoint_url = "http://127.0.0.1:1"

    def __init__(self, *types: dict[str, Any], failure: Exception | None = None) -> None:
        self._types = types
        self._failure = failure

    def describe_availability_zones(self) -> dict[str, Any]:
        if self._failure is not None:
            raise self._failure
        return {"AvailabilityZones": [{"ZoneName": name, "ZoneId": zone_id} for name, zone_id in ZONES.items()]}

    def get_paginator(self, operation: str) -> FakePages:
        offers = [{"InstanceType": each["InstanceType"], "Location": "us-east-1a"} for each in self._types]
        pages = {
            "describe_instance_type_offerings": [{"InstanceTypeOfferings": offers}],
            # A page for each, so that only a reader of all pages sees them all.
            "describe_instance_types": [{"InstanceTypes": [each]} for each in self._types],
        }
        return FakePages(pages[operation])


class FakePages:
    def __init__(self, pages: list[dict[str, Any]]) -> None:
        self._pages = pages

    def paginate(self, **_: object) -> list[dict[str, Any]]:
        return self._pages


def described(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "InstanceType": name,
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "AMD"},
        "VCpuInfo": {"DefaultVCpus": 16},
        "MemoryInfo": {"SizeInMiB": 262144},
        "NetworkInfo": {
            "MaximumNetworkInterfaces": 4,
            "Ipv4AddressesPerInterface": 15,
            "NetworkCards": [{"NetworkCardIndex": 0, "MaximumNetworkInterfaces": 4, "BaselineBandwidthInGbps": 10.0}],
        },
        "SupportedUsageClasses": ["on-demand", "spot"],
        **fields,
    }


def live(*types: dict[str, Any], zones: dict[str, str] = ZONES) -> CatalogData:
    return with_live_facts(SHIPPED, FakeEc2(*types), "us-east-1", zones)  # type: ignore[arg-type]


def facts_of(data: CatalogData, name: str) -> Any:
    return next(facts for facts in data.types if facts.name == name)


def test_a_gpu_type_that_ec2_describes_without_its_gpu_keeps_it_and_says_so() -> None:
    """aws#8368: p5.4xlarge came without GPU data."""
    data = live(described("p5.4xlarge"))
    assert facts_of(data, "p5.4xlarge").accelerator_count == 1
    assert data.notes == ("EC2 names no accelerator of p5.4xlarge; the shipped facts are used for it",)


def test_a_new_gpu_family_is_known_and_has_no_price() -> None:
    gpu = {"Count": 2, "Manufacturer": "NVIDIA", "Name": "X9", "MemoryInfo": {"SizeInMiB": 1000}}
    data = live(described("p9.large", GpuInfo={"Gpus": [gpu]}))
    found = facts_of(data, "p9.large")
    assert (found.accelerator_count, found.accelerator_name, found.on_demand, found.max_pods) == (2, "X9", None, 58)


def test_a_type_that_ec2_does_not_sell_on_spot_has_no_spot_price() -> None:
    data = live(described("m5.large", SupportedUsageClasses=["on-demand"]))
    assert facts_of(data, "m5.large").spot is None
    assert facts_of(data, "m5.large").on_demand == UsdPerHour.parse("0.096")


def test_every_page_is_read() -> None:
    data = live(described("m5.large"), described("m5.xlarge"))
    assert [facts_of(data, name).cpu_manufacturer for name in ("m5.large", "m5.xlarge")] == ["AMD", "AMD"]


def test_zones_that_the_account_maps_otherwise_are_noted() -> None:
    data = live(described("m5.large"), zones={"us-east-1a": "use1-az1", "us-east-1z": "use1-az9"})
    assert data.notes == (
        "network.zones says us-east-1a is use1-az1; in this account it is use1-az6",
        "network.zones names us-east-1z, which this account does not have",
    )


@pytest.mark.parametrize(
    "failure",
    [
        ClientError({"Error": {"Code": "UnauthorizedOperation", "Message": "no"}}, "DescribeAvailabilityZones"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
    ],
)
def test_an_endpoint_that_refuses_is_a_failure_and_the_shipped_facts_stand_with_a_note(failure: Exception) -> None:
    ec2: Any = FakeEc2(failure=failure)
    with pytest.raises(LiveCatalogFailed, match="DescribeAvailabilityZones") as caught:
        with_live_facts(SHIPPED, ec2, "us-east-1", ZONES)
    assert caught.value.hints
    fallen_back = live_or_shipped(SHIPPED, ec2, "us-east-1", ZONES)
    assert evolve(fallen_back, notes=()) == SHIPPED
    assert fallen_back.notes[0].startswith("instance types and zones are from the shipped file of 2026-07-20, not from")
