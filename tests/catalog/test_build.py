"""The catalog: true facts of known types, prices that bear being missing, and a digest of the meaning."""

from __future__ import annotations

import random
from collections.abc import Mapping
from decimal import Decimal

import pytest
from attrs import evolve

from engine.catalog.build import build_catalog
from engine.catalog.data import CatalogData, parse_catalog_data
from engine.model import labels
from engine.model.catalog import Catalog, InstanceType
from engine.model.diagnostic import InvalidInput
from engine.model.environment import Pricing
from engine.model.money import UsdPerHour
from engine.model.quantity import Resources
from engine.observe.catalog_source import read_catalog_data
from tests.builders import ZONES, usd

SHIPPED = read_catalog_data()
ALL_ZONES = ZONES | {"us-east-1d": "use1-az5", "us-east-1e": "use1-az3", "us-east-1f": "use1-az6"}


def catalog(
    region: str = "us-east-1",
    zones: Mapping[str, str] = ZONES,
    *,
    data: CatalogData = SHIPPED,
    overrides: Mapping[str, str] | None = None,
    discounts: Mapping[str, str] | None = None,
    price_file: str | None = None,
) -> Catalog:
    pricing = Pricing(
        overrides={key: usd(price) for key, price in (overrides or {}).items()},
        discounts={key: Decimal(share) for key, share in (discounts or {}).items()},
        file="prices.csv" if price_file is not None else None,
    )
    return build_catalog(region, zones, data, pricing, price_file.encode() if price_file is not None else None)


def shipped_type(name: str) -> InstanceType:
    found = catalog().instance_type(name)
    assert found is not None
    return found


def price(of: Catalog, instance_type: str, zone: str, capacity_type: str) -> UsdPerHour | None:
    """None also when there is an offering without a price; KeyError when there is no offering."""
    return {each.key: each.usd_per_hour for each in of.offerings}[f"{instance_type}/{zone}/{capacity_type}"]


def sold_in(of: Catalog, instance_type: str) -> set[tuple[str, str]]:
    return {(each.zone, each.capacity_type) for each in of.offerings if each.instance_type == instance_type}


def test_a_gpu_type_has_the_labels_that_karpenter_gives_it() -> None:
    assert shipped_type("g5.xlarge").labels == {
        labels.INSTANCE_TYPE: "g5.xlarge",
        labels.ARCH: "amd64",
        labels.OS: "linux",
        labels.INSTANCE_CATEGORY: "g",
        labels.INSTANCE_FAMILY: "g5",
        labels.INSTANCE_GENERATION: "5",
        labels.INSTANCE_SIZE: "xlarge",
        labels.INSTANCE_CPU: "4",
        labels.INSTANCE_CPU_MANUFACTURER: "amd",
        labels.INSTANCE_CPU_CLOCK: "3300",
        labels.INSTANCE_MEMORY: "16384",
        labels.INSTANCE_NETWORK_BANDWIDTH: "2500",
        labels.INSTANCE_EBS_BANDWIDTH: "3500",
        labels.INSTANCE_LOCAL_NVME: "250",
        labels.INSTANCE_HYPERVISOR: "nitro",
        labels.INSTANCE_ENCRYPTION_IN_TRANSIT: "true",
        labels.INSTANCE_CAPABILITY_FLEX: "false",
        labels.INSTANCE_GPU_NAME: "a10g",
        labels.INSTANCE_GPU_MANUFACTURER: "nvidia",
        labels.INSTANCE_GPU_COUNT: "1",
        labels.INSTANCE_GPU_MEMORY: "22888",
    }


@pytest.mark.parametrize(
    ("name", "accelerators"),
    [
        ("g5.xlarge", {"nvidia.com/gpu": 1}),
        ("p5.48xlarge", {"nvidia.com/gpu": 8}),
        ("p5.4xlarge", {"nvidia.com/gpu": 1}),
        ("g4ad.xlarge", {"amd.com/gpu": 1}),
        ("inf2.24xlarge", {"aws.amazon.com/neuron": 6, "aws.amazon.com/neuroncore": 12}),
        ("trn2.48xlarge", {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 128}),
        ("dl1.24xlarge", {"habana.ai/gaudi": 8}),
        ("dl2q.24xlarge", {"qualcomm.com/qaic": 8}),
        ("g6f.large", {}),
        ("m5.large", {}),
    ],
)
def test_each_maker_has_its_own_resource(name: str, accelerators: dict[str, int]) -> None:
    assert shipped_type(name).accelerators == Resources(accelerators)


@pytest.mark.parametrize(
    ("name", "gpu_name"),
    [
        ("g4dn.xlarge", "t4"),
        ("g5g.xlarge", "t4g"),
        ("g6.xlarge", "l4"),
        ("g6e.xlarge", "l40s"),
        ("g7e.2xlarge", "rtx-pro-server-6000"),
        ("g4ad.xlarge", "radeon-pro-v520"),
        ("p2.xlarge", "k80"),
        ("p3.2xlarge", "v100"),
        ("p4d.24xlarge", "a100"),
        ("p5.48xlarge", "h100"),
        ("p6-b200.48xlarge", "b200"),
        ("g3.4xlarge", "m60"),
    ],
)
def test_gpu_names_are_spelt_as_in_karpenter_files(name: str, gpu_name: str) -> None:
    assert shipped_type(name).labels[labels.INSTANCE_GPU_NAME] == gpu_name


@pytest.mark.parametrize(
    ("name", "accelerator", "maker", "count"),
    [
        ("inf2.24xlarge", "inferentia2", "aws", "6"),
        ("trn2.48xlarge", "trainium2", "aws", "16"),
        ("dl1.24xlarge", "gaudi-hl-205", "habana", "8"),
        ("dl2q.24xlarge", "qualcomm-ai100", "qualcomm", "8"),
    ],
)
def test_an_accelerator_that_is_no_gpu_has_no_gpu_label(name: str, accelerator: str, maker: str, count: str) -> None:
    found = shipped_type(name).labels
    assert found[labels.INSTANCE_ACCELERATOR_NAME] == accelerator
    assert found[labels.INSTANCE_ACCELERATOR_MANUFACTURER] == maker
    assert found[labels.INSTANCE_ACCELERATOR_COUNT] == count
    assert not [key for key in found if "instance-gpu" in key]


def test_a_fraction_of_a_gpu_is_accelerated_and_counts_no_gpu() -> None:
    """aws#8368: a CPU pod must not land on g6f for being cheap, nor a GPU pod for its label."""
    kind = shipped_type("g6f.large")
    assert kind.is_accelerated
    assert not kind.accelerators
    assert kind.labels[labels.INSTANCE_GPU_COUNT] == "0"
    assert kind.accelerator_memory_bytes == 2861 * 2**20


def test_a_plain_type_is_not_accelerated() -> None:
    kind = shipped_type("m5.large")
    assert not kind.is_accelerated
    assert kind.labels[labels.INSTANCE_CATEGORY] == "m"
    assert kind.labels[labels.INSTANCE_CPU_MANUFACTURER] == "intel"
    assert not [key for key in kind.labels if "gpu" in key or "accelerator" in key]
    assert kind.max_pods == 29


def test_graviton_and_bare_metal_say_so() -> None:
    kind = shipped_type("g5g.metal")
    assert kind.arch == kind.labels[labels.ARCH] == "arm64"
    assert kind.labels[labels.INSTANCE_HYPERVISOR] == ""
    assert kind.labels[labels.INSTANCE_CPU_MANUFACTURER] == "aws"
    assert kind.labels[labels.INSTANCE_SIZE] == "metal"


def test_a_generation_is_found_in_a_name_with_a_dash() -> None:
    found = shipped_type("p6-b200.48xlarge").labels
    assert (found[labels.INSTANCE_CATEGORY], found[labels.INSTANCE_GENERATION]) == ("p", "6")
    assert found[labels.INSTANCE_FAMILY] == "p6-b200"


def test_the_largest_machine_keeps_its_figures() -> None:
    kind = shipped_type("p5.48xlarge")
    assert (kind.vcpus, kind.memory_bytes, kind.max_pods) == (192, 2048 * 2**30, 100)
    assert (kind.local_nvme_bytes, kind.efa_interfaces, kind.network_gbps) == (30_400 * 10**9, 32, 3200.0)
    assert kind.accelerator_memory_bytes == 80 * 2**30


def test_an_accelerated_type_is_sold_only_where_a_zone_list_names_it() -> None:
    assert {zone for zone, _ in sold_in(catalog(zones=ALL_ZONES), "p4de.24xlarge")} == {"us-east-1c", "us-east-1f"}
    assert sold_in(catalog(zones=ALL_ZONES), "g4ad.xlarge") == set()


def test_a_plain_type_is_sold_in_every_zone() -> None:
    assert {zone for zone, _ in sold_in(catalog(zones=ALL_ZONES), "m5.large")} == set(ALL_ZONES)


def test_zones_are_matched_by_id_and_not_by_name() -> None:
    mirrored = {"us-east-1a": "use1-az6", "us-east-1b": "use1-az3"}
    assert {zone for zone, _ in sold_in(catalog(zones=mirrored), "p4de.24xlarge")} == {"us-east-1a"}


def test_list_prices_are_those_of_the_source() -> None:
    found = catalog()
    assert price(found, "g5.xlarge", "us-east-1a", "on-demand") == usd("1.006")
    assert price(found, "g5.xlarge", "us-east-1a", "spot") == usd("0.5089")
    assert price(found, "p5.48xlarge", "us-east-1a", "on-demand") == usd("55.04")


def test_a_type_without_an_on_demand_price_is_offered_without_one() -> None:
    found = catalog("us-west-2", {"us-west-2a": "usw2-az3"})
    assert sold_in(found, "p5e.48xlarge") == {("us-west-2a", "on-demand")}
    assert price(found, "p5e.48xlarge", "us-west-2a", "on-demand") is None


def test_an_override_gives_a_price_where_there_is_none() -> None:
    found = catalog("us-west-2", {"us-west-2a": "usw2-az3"}, overrides={"p5e.48xlarge": "60", "p5e.48xlarge/spot": "9"})
    assert price(found, "p5e.48xlarge", "us-west-2a", "on-demand") == usd("60")
    assert price(found, "p5e.48xlarge", "us-west-2a", "spot") == usd("9")


def test_an_override_of_a_type_alone_leaves_its_spot_price() -> None:
    found = catalog(overrides={"g5.xlarge": "0.7"})
    assert price(found, "g5.xlarge", "us-east-1b", "on-demand") == usd("0.7")
    assert price(found, "g5.xlarge", "us-east-1b", "spot") == usd("0.5089")


def test_a_discount_is_off_the_list_price_and_not_off_an_override() -> None:
    found = catalog(discounts={"on-demand": "0.2"}, overrides={"g5.2xlarge": "1"})
    assert price(found, "g5.xlarge", "us-east-1a", "on-demand") == usd("0.8048")
    assert price(found, "g5.xlarge", "us-east-1a", "spot") == usd("0.5089")
    assert price(found, "g5.2xlarge", "us-east-1a", "on-demand") == usd("1")


def test_a_price_file_wins_over_the_list_zone_by_zone_and_is_discounted() -> None:
    file = (
        "region,instance_type,capacity_type,zone,usd_per_hour\n"
        "us-east-1,g5.xlarge,spot,us-east-1a,0.30\n"
        "us-east-1,g5.xlarge,spot,use1-az2,0.40\n"
        "us-east-1,g5.xlarge,spot,,0.50\n"
        "eu-west-1,g5.xlarge,spot,,9\n"
    )
    found = catalog(price_file=file, discounts={"spot": "0.1"})
    prices = [price(found, "g5.xlarge", zone, "spot") for zone in ZONES]
    assert prices == [usd("0.27"), usd("0.36"), usd("0.45")]
    assert price(found, "g5.xlarge", "us-east-1a", "on-demand") == usd("1.006")


def test_a_price_file_needs_no_zone_column() -> None:
    found = catalog(price_file="region,instance_type,capacity_type,usd_per_hour\nus-east-1,m5.large,on-demand,0.08\n")
    assert price(found, "m5.large", "us-east-1c", "on-demand") == usd("0.08")


@pytest.mark.parametrize(
    ("row", "column", "words"),
    [
        ("us-east-1,g5.xlarge,on-demand,,cheap", 32, "'cheap' is not a price"),
        ("us-east-1,g5.xlarge,ondemand,,1", 21, "one of on-demand, spot was expected"),
        ("us-east-1,,spot,,1", 11, "instance_type is empty"),
    ],
)
def test_a_broken_price_row_is_named_with_its_place(row: str, column: int, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        catalog(price_file=f"# ours\nregion,instance_type,capacity_type,zone,usd_per_hour\n{row}\n")
    (finding,) = caught.value.diagnostics
    assert (finding.position.file, finding.position.line, finding.position.column) == ("prices.csv", 3, column)
    assert words in finding.message
    assert finding.position.source_line == row


@pytest.mark.parametrize("content", [b"", b"region,zone\n", b"\xff\xfe"])
def test_a_file_that_is_no_price_table_says_what_is_expected(content: bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        build_catalog("us-east-1", ZONES, SHIPPED, Pricing(file="prices.csv"), content)
    assert caught.value.diagnostics[0].position.file == "prices.csv"


def test_another_region_says_whose_prices_it_has() -> None:
    assert "us-east-1, not of eu-central-1" in catalog("eu-central-1", {"eu-central-1a": "euc1-az2"}).source
    assert "not of" not in catalog().source


def test_an_override_of_an_unknown_type_is_noted() -> None:
    assert catalog(overrides={"g5.xlagre/spot": "1"}).notes == (
        "pricing.overrides names g5.xlagre/spot, but the catalog has no instance type g5.xlagre",
    )
    assert catalog(overrides={"g5.xlarge/spot": "1"}).notes == ()


def test_the_order_of_the_data_changes_nothing() -> None:
    shuffled = list(SHIPPED.types)
    random.Random(7).shuffle(shuffled)
    backwards = dict(reversed(ZONES.items()))
    assert catalog(zones=backwards, data=evolve(SHIPPED, types=tuple(shuffled))) == catalog()


def test_the_digest_is_of_what_is_sold_and_not_of_where_we_learnt_it() -> None:
    same = catalog(data=evolve(SHIPPED, source="elsewhere", notes=("a note",)))
    assert same.digest == catalog().digest
    assert len(same.digest) == 64
    assert catalog(overrides={"g5.xlarge": "1.005"}).digest != same.digest
    assert catalog(zones={"us-east-1a": "use1-az1"}).digest != same.digest
    cheaper_disk = evolve(SHIPPED.ebs, storage={**SHIPPED.ebs.storage, "gp3": Decimal("0.07")})
    assert catalog(data=evolve(SHIPPED, ebs=cheaper_disk)).digest != same.digest
    fewer_pods = tuple(evolve(facts, max_pods=facts.max_pods - 1) for facts in SHIPPED.types)
    assert catalog(data=evolve(SHIPPED, types=fewer_pods)).digest != same.digest


def test_shipped_data_names_its_source_and_date() -> None:
    assert "karpenter-provider-aws" in SHIPPED.source
    assert SHIPPED.as_of.isoformat() == "2026-07-20"
    assert SHIPPED.prices_of == "us-east-1"


def test_a_broken_data_file_is_named_with_its_line() -> None:
    header = (
        "instance_type,arch,vcpus,memory_mib,accelerator_manufacturer,accelerator_name,accelerator_count,"
        "accelerator_memory_mib,neuron_cores,local_nvme_gb,max_pods,network_mbps,efa_interfaces,cpu_manufacturer,"
        "hypervisor,on_demand_usd_per_hour,spot_usd_per_hour"
    )
    row = "m5.large,x86_64,two,8192,,,,,,0,29,750,0,Intel,nitro,0.096,"
    zones, ebs = b"region,instance_type,zone_ids\n", b"volume_type,charge,usd_per_month\n"
    with pytest.raises(InvalidInput) as caught:
        parse_catalog_data(f"{header}\n{row}\n".encode(), zones, ebs)
    (finding,) = caught.value.diagnostics
    assert (finding.position.file, finding.position.line, finding.position.column) == ("instance_types.csv", 2, 17)
    assert "vcpus is 'two'" in finding.message
