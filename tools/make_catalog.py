"""Makes engine/catalog/data/ from a folder of source tables and from the EC2 answer that moto bundles.

    python tools/make_catalog.py SOURCE_DIR

SOURCE_DIR holds ec2_gpu_catalog.csv (instance types with us-east-1 prices) and ec2_gpu_zones.csv (region, type, zone
ids). Processor, hypervisor, Neuron cores and EBS bandwidth are read from moto's copy of DescribeInstanceTypes.
Run it again when a source changes, and read the difference before committing it.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "engine" / "catalog" / "data"

# Types that AWS no longer answers for, so that moto has no processor facts: AWS's instance pages, by family.
RETIRED = {
    "dl1": ("Intel", "nitro"),
    "g3": ("Intel", "xen"),
    "g3s": ("Intel", "xen"),
    "g4ad": ("AMD", "nitro"),
    "p2": ("Intel", "xen"),
    "p3": ("Intel", "xen"),
}

TYPE_COLUMNS = (
    "instance_type",
    "arch",
    "vcpus",
    "memory_mib",
    "accelerator_manufacturer",
    "accelerator_name",
    "accelerator_count",
    "accelerator_memory_mib",
    "neuron_cores",
    "local_nvme_gb",
    "max_pods",
    "network_mbps",
    "efa_interfaces",
    "cpu_manufacturer",
    "cpu_clock_mhz",
    "hypervisor",
    "ebs_mbps",
    "encryption_in_transit",
    "on_demand_usd_per_hour",
    "spot_usd_per_hour",
)

TYPE_HEADER = """\
# source: moto 5.2.5 and 5.0.18 (EC2 facts), karpenter-provider-aws 1d927085 (bandwidth, on-demand prices), \
spotinfo 69bcec6 (spot prices)
# as_of: 2026-07-20
# prices_of: us-east-1
# Made by tools/make_catalog.py; see README.md beside this file. Prices are Linux, shared tenancy, before discounts.
"""

ZONE_HEADER = """\
# source: moto 5.2.5 (DescribeInstanceTypeOfferings)
# as_of: 2026-10-27
# Made by tools/make_catalog.py; see README.md beside this file. Accelerated types only.
"""


def moto_answer() -> dict[str, dict[str, Any]]:
    """DescribeInstanceTypes by type, as moto bundles it."""
    packed = resources.files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()
    answer: dict[str, dict[str, Any]] = json.loads(gzip.decompress(packed))
    return answer


def neuron_cores(described: dict[str, Any]) -> str:
    devices = (described.get("NeuronInfo") or {}).get("NeuronDevices") or ()
    return str(sum(device["Count"] * device["CoreInfo"]["Count"] for device in devices)) if devices else ""


def type_row(source: dict[str, str], described: dict[str, Any]) -> dict[str, str]:
    """One row of instance_types.csv from the source table's and moto's answer, empty where it has none."""
    family = source["instance_type"].split(".")[0]
    processor = described.get("ProcessorInfo") or {}
    retired_cpu, retired_hypervisor = RETIRED.get(family, ("", ""))
    clock_ghz = processor.get("SustainedClockSpeedInGhz")
    ebs = (described.get("EbsInfo") or {}).get("EbsOptimizedInfo") or {}
    return {
        "instance_type": source["instance_type"],
        "arch": source["arch"],
        "vcpus": source["vcpus"],
        "memory_mib": source["memory_mib"],
        "accelerator_manufacturer": source["gpu_manufacturer"],
        "accelerator_name": source["gpu_name"],
        "accelerator_count": source["gpu_count"],
        "accelerator_memory_mib": source["gpu_memory_mib"],
        "neuron_cores": neuron_cores(described),
        "local_nvme_gb": source["local_nvme_gb"],
        "max_pods": source["max_pods"],
        "network_mbps": str(round(Decimal(source["network_gbps"]) * 1000)),
        "efa_interfaces": source["efa"],
        "cpu_manufacturer": processor.get("Manufacturer", retired_cpu),
        "cpu_clock_mhz": str(round(clock_ghz * 1000)) if clock_ghz else "",
        "hypervisor": (described.get("Hypervisor") or "") if described else retired_hypervisor,
        "ebs_mbps": str(ebs.get("MaximumBandwidthInMbps", "")),
        "encryption_in_transit": str(
            (described.get("NetworkInfo") or {}).get("EncryptionInTransitSupported", "")
        ).lower(),
        "on_demand_usd_per_hour": source["on_demand_usd_hour_us_east_1"],
        "spot_usd_per_hour": source["spot_usd_hour_us_east_1"],
    }


def write_table(name: str, header: str, columns: tuple[str, ...], rows: list[dict[str, str]]) -> None:
    with (DATA / name).open("w", encoding="utf-8", newline="") as file:
        file.write(header)
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main(source_dir: Path) -> None:
    described = moto_answer()
    with (source_dir / "ec2_gpu_catalog.csv").open(encoding="utf-8", newline="") as file:
        types = [type_row(row, described.get(row["instance_type"], {})) for row in csv.DictReader(file)]
    with (source_dir / "ec2_gpu_zones.csv").open(encoding="utf-8", newline="") as file:
        zones = list(csv.DictReader(file))
    DATA.mkdir(exist_ok=True)
    write_table("instance_types.csv", TYPE_HEADER, TYPE_COLUMNS, types)
    write_table("zones.csv", ZONE_HEADER, ("region", "instance_type", "zone_ids"), zones)
    print(f"{len(types)} instance types and {len(zones)} region rows written to {DATA}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/make_catalog.py SOURCE_DIR")
    main(Path(sys.argv[1]))
