"""The facts that catalogs are built from: instance types, where they are sold, list prices."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

from attrs import field, frozen

from engine.catalog.table import Row, Table, read_table
from engine.model.money import UsdPerHour

TYPES_FILE = "instance_types.csv"
ZONES_FILE = "zones.csv"
EBS_FILE = "ebs_prices.csv"

_TYPE_COLUMNS = (
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
    "hypervisor",
    "on_demand_usd_per_hour",
    "spot_usd_per_hour",
)


@frozen
class TypeFacts:
    """What EC2 says of an instance type, in EC2's words and units.

    ``accelerator_count`` is of whole devices, so 0 for a fractional GPU; ``accelerator_memory_mib`` is one device's.
    ``max_pods`` is the VPC CNI's limit without prefix delegation. ``local_nvme_gb`` is decimal. An empty text is
    not known, an empty ``hypervisor`` bare metal. Prices are list prices of CatalogData.prices_of.
    """

    name: str
    arch: str
    vcpus: int
    memory_mib: int
    max_pods: int
    accelerator_manufacturer: str = ""
    accelerator_name: str = ""
    accelerator_count: int = 0
    accelerator_memory_mib: int = 0
    neuron_cores: int = 0
    local_nvme_gb: int = 0
    network_mbps: int = 0
    efa_interfaces: int = 0
    cpu_manufacturer: str = ""
    cpu_clock_mhz: int = 0
    hypervisor: str = ""
    ebs_mbps: int = 0
    encryption_in_transit: str = ""
    on_demand: UsdPerHour | None = None
    spot: UsdPerHour | None = None

    @property
    def is_accelerated(self) -> bool:
        """Whether it carries a GPU or other accelerator, a fraction of one included."""
        return bool(self.accelerator_name)


@frozen
class EbsPrices:
    """Dollars a month: per GiB by volume type, per provisioned IOPS by volume type, and gp3's for what is extra."""

    storage: Mapping[str, Decimal]
    iops: Mapping[str, Decimal]
    throughput: Mapping[str, Decimal]


@frozen
class CatalogData:
    """``zones`` holds zone ids by region and type; a plain type is sold in every zone of a region that is not in
    ``listed_regions``, whose lists name all that is sold there. ``prices_of`` is the region of the prices.

    ``notes`` are what a person should know of how the data came to be.
    """

    types: tuple[TypeFacts, ...]
    zones: Mapping[str, Mapping[str, frozenset[str]]]
    ebs: EbsPrices
    source: str
    as_of: date
    prices_of: str
    listed_regions: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=())

    def is_sold(self, facts: TypeFacts, region: str, zone_id: str) -> bool:
        """Whether the type is offered in the zone. An accelerated type is only where a list names it."""
        listed = self.zones.get(region, {}).get(facts.name)
        if listed is not None:
            return zone_id in listed
        return not facts.is_accelerated and region not in self.listed_regions


def parse_catalog_data(types_csv: bytes, zones_csv: bytes, ebs_csv: bytes) -> CatalogData:
    """The shipped files' bytes as values; raises InvalidInput with file and line."""
    types = read_table(TYPES_FILE, types_csv, _TYPE_COLUMNS)
    zones = read_table(ZONES_FILE, zones_csv, ("region", "instance_type", "zone_ids"))
    ebs = read_table(EBS_FILE, ebs_csv, ("volume_type", "charge", "usd_per_month"))
    return CatalogData(
        types=tuple(_type_facts(row) for row in types.rows),
        zones=_zones(zones),
        ebs=_ebs_prices(ebs),
        source=types.facts.get("source", TYPES_FILE),
        as_of=date.fromisoformat(types.facts.get("as_of", "1970-01-01")),
        prices_of=types.facts.get("prices_of", "us-east-1"),
    )


def _type_facts(row: Row) -> TypeFacts:
    return TypeFacts(
        name=row.required("instance_type"),
        arch=row.one_of("arch", ("x86_64", "arm64")),
        vcpus=row.whole("vcpus"),
        memory_mib=row.whole("memory_mib"),
        max_pods=row.whole("max_pods"),
        accelerator_manufacturer=row.text("accelerator_manufacturer"),
        accelerator_name=row.text("accelerator_name"),
        accelerator_count=row.whole("accelerator_count"),
        accelerator_memory_mib=row.whole("accelerator_memory_mib"),
        neuron_cores=row.whole("neuron_cores"),
        local_nvme_gb=row.whole("local_nvme_gb"),
        network_mbps=row.whole("network_mbps"),
        efa_interfaces=row.whole("efa_interfaces"),
        cpu_manufacturer=row.text("cpu_manufacturer"),
        cpu_clock_mhz=row.whole("cpu_clock_mhz"),
        hypervisor=row.text("hypervisor"),
        ebs_mbps=row.whole("ebs_mbps"),
        encryption_in_transit=row.text("encryption_in_transit"),
        on_demand=row.optional("on_demand_usd_per_hour", UsdPerHour.parse),
        spot=row.optional("spot_usd_per_hour", UsdPerHour.parse),
    )


def _zones(table: Table) -> Mapping[str, Mapping[str, frozenset[str]]]:
    by_region: dict[str, dict[str, frozenset[str]]] = {}
    for row in table.rows:
        ids = frozenset(part.strip() for part in row.text("zone_ids").split(";") if part.strip())
        by_region.setdefault(row.required("region"), {})[row.required("instance_type")] = ids
    return by_region


def _ebs_prices(table: Table) -> EbsPrices:
    charges: dict[str, dict[str, Decimal]] = {"storage": {}, "iops": {}, "throughput": {}}
    for row in table.rows:
        charge = row.one_of("charge", tuple(charges))
        charges[charge][row.required("volume_type")] = Decimal(row.read("usd_per_month", _dollars))
    return EbsPrices(**charges)


def _dollars(text: str) -> str:
    UsdPerHour.parse(text)  # the same numbers are acceptable, though these are dollars a month
    return text
