"""What EC2 says today of its instance types and where they are sold, laid over the shipped facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve, frozen
from botocore.exceptions import BotoCoreError, ClientError

from engine.catalog.data import CatalogData, TypeFacts
from engine.model import labels
from engine.observe.failure import ObservationFailed

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

T = TypeVar("T")

_ARCHITECTURES = ("x86_64", "arm64")
_ACCELERATED_FAMILY = re.compile(r"(dl|gr?|inf|p|trn)\d")
_TYPES_A_CALL = 100


class LiveCatalogFailed(ObservationFailed):
    """EC2 did not answer for its instance types; the shipped facts still stand."""


def live_or_shipped(
    shipped: CatalogData,
    ec2: EC2Client,
    region: str,
    zone_ids: Mapping[str, str],
    also: Collection[str] = (),
) -> CatalogData:
    """The live facts, or the shipped ones with a note that says why they are not live."""
    try:
        return with_live_facts(shipped, ec2, region, zone_ids, also)
    except LiveCatalogFailed as failure:
        note = f"instance types and zones are from the shipped file of {shipped.as_of}, not from EC2: {failure}"
        return evolve(shipped, notes=(*shipped.notes, note))


def with_live_facts(
    shipped: CatalogData,
    ec2: EC2Client,
    region: str,
    zone_ids: Mapping[str, str],
    also: Collection[str] = (),
) -> CatalogData:
    """The shipped facts with EC2's answers over them: zones and shapes are EC2's, prices stay those of the file.

    Types are those that the file knows, those named in ``also`` (an environment's own prices may name more) and every
    type of the accelerated families; the rest has no price and could not be bought. Only what is sold in the region
    is asked about. ``zone_ids`` is the environment's mapping, and a difference from the account's is noted. Reads
    DescribeAvailabilityZones, DescribeInstanceTypeOfferings and DescribeInstanceTypes. Raises LiveCatalogFailed.
    """
    reader = _Ec2Answers(ec2)
    account_zones = reader.zone_ids()
    sold_in = reader.zones_by_type(account_zones)
    known = {facts.name: facts for facts in shipped.types}
    merged = dict(known)
    notes = list(shipped.notes)
    wanted = (name for name in sold_in if name in known or name in also or _ACCELERATED_FAMILY.match(name))
    for info in reader.instance_types(sorted(wanted)):
        facts = _facts(info)
        before = known.get(facts.name)
        if before is not None and before.is_accelerated and not facts.is_accelerated:
            notes.append(f"EC2 names no accelerator of {facts.name}; the shipped facts are used for it")
            facts = _with_accelerator_of(before, facts)
        merged[facts.name] = _with_prices_of(before, facts, info)
    notes += _zone_differences(zone_ids, account_zones)
    return evolve(
        shipped,
        types=tuple(merged[name] for name in sorted(merged)),
        zones={**shipped.zones, region: sold_in},
        listed_regions=shipped.listed_regions | {region},
        source=f"EC2's answers in {region}; prices: {shipped.source}",
        notes=tuple(notes),
    )


@frozen
class _Ec2Answers:
    """Three questions to EC2, each asked page by page, each failure said in one way."""

    ec2: EC2Client

    def zone_ids(self) -> dict[str, str]:
        answer = self._asked("DescribeAvailabilityZones", self.ec2.describe_availability_zones)
        return {zone["ZoneName"]: zone["ZoneId"] for zone in answer["AvailabilityZones"]}

    def zones_by_type(self, zone_ids: Mapping[str, str]) -> dict[str, frozenset[str]]:
        pages = self.ec2.get_paginator("describe_instance_type_offerings").paginate(LocationType="availability-zone")
        sold: dict[str, set[str]] = {}
        for page in self._pages("DescribeInstanceTypeOfferings", pages):
            for offering in page["InstanceTypeOfferings"]:
                zone_id = zone_ids.get(offering["Location"])
                if zone_id is not None:
                    sold.setdefault(offering["InstanceType"], set()).add(zone_id)
        return {name: frozenset(zones) for name, zones in sold.items()}

    def instance_types(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The named types that a Kubernetes node can be made of. All must exist, or EC2 answers nothing."""
        paginator = self.ec2.get_paginator("describe_instance_types")
        for start in range(0, len(names), _TYPES_A_CALL):
            pages = paginator.paginate(InstanceTypes=list(names[start : start + _TYPES_A_CALL]))  # type: ignore[arg-type]
            for page in self._pages("DescribeInstanceTypes", pages):
                yield from (info for info in page["InstanceTypes"] if _is_usable(info))

    def _pages(self, action: str, pages: Iterable[T]) -> list[T]:
        return self._asked(action, lambda: list(pages))

    def _asked(self, action: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except (ClientError, BotoCoreError) as error:
            raise LiveCatalogFailed(
                f"EC2 at {self.ec2.meta.endpoint_url} did not answer {action}: {error}",
                f"check the endpoint and the credentials; they need ec2:{action}",
            ) from error


def _is_usable(info: Mapping[str, Any]) -> bool:
    """Whether a Kubernetes node can be made of it: 32-bit and macOS machines are not."""
    return _architecture(info) is not None and "NetworkInfo" in info


def _architecture(info: Mapping[str, Any]) -> str | None:
    supported = info.get("ProcessorInfo", {}).get("SupportedArchitectures", ())
    return next((name for name in _ARCHITECTURES if name in supported), None)


def _facts(info: Mapping[str, Any]) -> TypeFacts:
    """One of DescribeInstanceTypes' answers as facts, without prices."""
    processor, network = info["ProcessorInfo"], info["NetworkInfo"]
    cards = network.get("NetworkCards", ())
    return TypeFacts(
        name=info["InstanceType"],
        arch=_architecture(info) or "",
        vcpus=info["VCpuInfo"]["DefaultVCpus"],
        memory_mib=info["MemoryInfo"]["SizeInMiB"],
        max_pods=_max_pods(network),
        local_nvme_gb=_local_nvme_gb(info),
        network_mbps=round(sum(card.get("BaselineBandwidthInGbps", 0) for card in cards) * 1000),
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        cpu_manufacturer=processor.get("Manufacturer", ""),
        cpu_clock_mhz=round(processor.get("SustainedClockSpeedInGhz", 0) * 1000),
        hypervisor=info.get("Hypervisor") or "",
        ebs_mbps=info.get("EbsInfo", {}).get("EbsOptimizedInfo", {}).get("MaximumBandwidthInMbps", 0),
        encryption_in_transit=str(network.get("EncryptionInTransitSupported", False)).lower(),
        **_accelerator(info),
    )


def _max_pods(network: Mapping[str, Any]) -> int:
    """The VPC CNI's limit: the default card's interfaces, one address of each their own, and two host pods."""
    cards = network.get("NetworkCards", ())
    default = network.get("DefaultNetworkCardIndex", 0)
    interfaces = next(
        (card["MaximumNetworkInterfaces"] for card in cards if card["NetworkCardIndex"] == default),
        network["MaximumNetworkInterfaces"],
    )
    return int(interfaces * (network["Ipv4AddressesPerInterface"] - 1) + 2)


def _local_nvme_gb(info: Mapping[str, Any]) -> int:
    storage = info.get("InstanceStorageInfo") or {}
    return 0 if storage.get("NvmeSupport") == "unsupported" else int(storage.get("TotalSizeInGB", 0))


def _accelerator(info: Mapping[str, Any]) -> dict[str, Any]:
    """The accelerator's facts as TypeFacts names them. Neuron devices first: EC2 lists some of them twice."""
    neuron = info.get("NeuronInfo", {}).get("NeuronDevices", ())
    gpus = info.get("GpuInfo", {}).get("Gpus", ())
    inference = info.get("InferenceAcceleratorInfo", {}).get("Accelerators", ())
    devices = neuron or gpus or inference
    if not devices:
        return {}
    return {
        "accelerator_manufacturer": "AWS" if neuron else devices[0]["Manufacturer"],
        "accelerator_name": devices[0]["Name"],
        "accelerator_count": sum(device.get("Count", 0) for device in devices),
        "accelerator_memory_mib": devices[0].get("MemoryInfo", {}).get("SizeInMiB", 0),
        "neuron_cores": sum(device["Count"] * device["CoreInfo"]["Count"] for device in neuron),
    }


def _with_accelerator_of(before: TypeFacts, facts: TypeFacts) -> TypeFacts:
    return evolve(
        facts,
        accelerator_manufacturer=before.accelerator_manufacturer,
        accelerator_name=before.accelerator_name,
        accelerator_count=before.accelerator_count,
        accelerator_memory_mib=before.accelerator_memory_mib,
        neuron_cores=before.neuron_cores,
    )


def _with_prices_of(before: TypeFacts | None, facts: TypeFacts, info: Mapping[str, Any]) -> TypeFacts:
    """The file's prices, where EC2 sells the type that way; and the file's bandwidth, which EC2 tells in part."""
    if before is None:
        return facts
    sold_as = info.get("SupportedUsageClasses", (labels.ON_DEMAND, labels.SPOT))
    return evolve(
        facts,
        on_demand=before.on_demand if labels.ON_DEMAND in sold_as else None,
        spot=before.spot if labels.SPOT in sold_as else None,
        network_mbps=before.network_mbps or facts.network_mbps,
    )


def _zone_differences(declared: Mapping[str, str], account: Mapping[str, str]) -> list[str]:
    """What the environment says of its zones and the account denies."""
    notes = []
    for zone, zone_id in sorted(declared.items()):
        actual = account.get(zone)
        if actual is None:
            notes.append(f"network.zones names {zone}, which this account does not have")
        elif actual != zone_id:
            notes.append(f"network.zones says {zone} is {zone_id}; in this account it is {actual}")
    return notes
