"""The shape of our keys in a Pulumi stack file: ``config: nodewright:KEY``."""

from __future__ import annotations

import ipaddress
import re
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field, PlainValidator, ValidationInfo
from pydantic.alias_generators import to_camel

from engine.model.environment import (
    CatalogSource,
    ClusterKind,
    InCluster,
    Lanes,
    NetworkMode,
    RunnerKind,
    Running,
)
from engine.model.labels import ON_DEMAND, RESERVED, SPOT
from engine.model.money import UsdPerHour
from engine.model.rule import Enforcement, ParameterValue
from engine.policy.cel.engines import DEFAULT, ENGINES
from engine.policy.fields import (
    Amount,
    Flag,
    ObjectName,
    Text,
    matching,
    one_of,
    one_text_of,
    read_duration,
    read_text,
    refuse,
    whole,
)
from engine.policy.located import Scalar, describe
from engine.policy.schema import Part
from engine.policy.shapes import shaped

NAMESPACE = "nodewright"
_ZONE = r"[a-z]{2}(-[a-z]+)+-\d[a-z]"
_ZONE_ID = r"[a-z0-9]+-az\d+"
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_CAPACITY_TYPES = (ON_DEMAND, SPOT, RESERVED)
_PRICED = re.compile(r"[a-z0-9.-]+(/(on-demand|spot|reserved))?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_MANY = 1_000_000
# Each lane is a stack of its own, and an update of each may run at once on this machine.
_MOST_LANES = 32
# The cluster's DNS has the tenth address.
_FEWEST_SERVICES = 16


def _read_cidr(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    try:
        network = ipaddress.ip_network(text)
    except ValueError as error:
        refuse("bad-value", f"{text[:60]!r} is no address range: {error}", "write one such as 10.0.0.0/16")
    return str(network)


def _read_service_cidr(value: object, info: ValidationInfo) -> str:
    text = _read_cidr(value, info)
    if ipaddress.ip_network(text).num_addresses < _FEWEST_SERVICES:
        refuse("out-of-range", f"{text} has no room for a cluster's services", "EKS has /12 to /24, or /108 of IPv6")
    return text


def _read_vpc_cidr(value: object, info: ValidationInfo) -> str:
    text = _read_cidr(value, info)
    network = ipaddress.ip_network(text)
    if network.version != 4 or not 16 <= network.prefixlen <= 24:
        hint = "a VPC of ours is of /16 to /24, such as 10.0.0.0/16"
        refuse("out-of-range", f"{text} leaves no room for subnets, or is more than EC2 allows", hint)
    return text


def _read_certificate(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    if not _BASE64.fullmatch(text) or len(text) % 4:
        hint = "copy certificate-authority-data of the cluster's kubeconfig"
        refuse("bad-value", "this is no base64 text", hint)
    return text


def _read_price(value: object) -> UsdPerHour:
    text = _text_of_number(value, "dollars an hour")
    try:
        return UsdPerHour.parse(text)
    except ValueError as error:
        refuse("bad-price", str(error))


def _read_discount(value: object) -> Decimal:
    text = _text_of_number(value, "a fraction such as 0.2")
    try:
        fraction = Decimal(text)
    except InvalidOperation:
        fraction = Decimal("NaN")
    if not (fraction.is_finite() and 0 <= fraction < 1):
        refuse("bad-price", f"{text[:40]} is no discount", "write the fraction off, 0.2 for 20 %")
    return fraction


def _text_of_number(value: object, what: str) -> str:
    if not isinstance(value, Scalar) or value.value is None or isinstance(value.value, bool):
        refuse("wrong-type", f"expected {what}, found {describe(value)}")
    return value.text


def _read_priced(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    if not _PRICED.fullmatch(text):
        refuse("bad-value", f"{text[:60]!r} names nothing with a price", "write g5.xlarge/spot, or g5.xlarge")
    return text


@shaped({"type": "string", "not": {"pattern": f"^(?:{_SCHEME.pattern})"}})
def _read_folder(value: object, info: ValidationInfo) -> str:
    """A folder's path. Taken for one, a URL would be a folder of that name in the project, which nobody shares."""
    text = read_text(value, info)
    scheme = _SCHEME.match(text)
    if scheme is not None and scheme[1].lower() == "file":
        refuse("bad-value", f"{text[:80]!r} is a URL, and a folder is meant", f"write {text[scheme.end() :][:80]}")
    if scheme is not None:
        refuse(
            "not-implemented",
            f"{text[:80]!r} is no folder; documents in {scheme[1]}:// are not implemented yet",
            "write a folder that all runners share, such as /var/lib/nodewright; see docs/live.md, One store",
        )
    return text


Zone = Annotated[str, PlainValidator(matching(_ZONE, "availability zone", "us-east-1b"))]
ZoneId = Annotated[str, PlainValidator(matching(_ZONE_ID, "zone id", "use1-az1"))]
Url = Annotated[
    str, PlainValidator(matching(r"https?://[A-Za-z0-9.:/_\[\]-]+", "address", "https://ABC.eks.amazonaws.com"))
]
Arn = Annotated[
    str,
    PlainValidator(
        matching(
            r"arn:[a-z-]+:iam::(aws|\d{12}):policy/\S+",
            "policy ARN",
            "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
        )
    ),
]
Queue = Annotated[
    str,
    PlainValidator(
        matching(
            r"https?://[A-Za-z0-9.:/_-]+|[A-Za-z0-9_-]{1,80}", "SQS queue, by name or URL", "prod-gpu-interruptions"
        )
    ),
]
# The word of `interruptionQueue` for a queue that the environment makes; one of that very name is given by its URL.
MANAGED = "managed"
Duration = Annotated[timedelta, PlainValidator(read_duration)]
Number = Annotated[int, PlainValidator(whole(0, _MANY, or_text=True))]
CapacityType = Annotated[str, PlainValidator(one_text_of(_CAPACITY_TYPES, "capacity type", "unknown-value"))]


class ClusterPart(Part):
    name: Annotated[str, PlainValidator(matching(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", "cluster name", "prod-gpu"))]
    endpoint: Url
    certificate_authority: Annotated[str, PlainValidator(_read_certificate)]
    service_cidr: Annotated[str, PlainValidator(_read_service_cidr)]
    kubeconfig: Text | None = None
    context: Text | None = None
    owns_access_entry: Flag = False


class NetworkPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {"type": "did you mean mode, owned or existing?"}
    mode: Annotated[NetworkMode, PlainValidator(one_of(NetworkMode, "network mode", "unknown-value"))]
    zones: dict[Zone, ZoneId]
    cidr: Annotated[str, PlainValidator(_read_vpc_cidr)] = "10.0.0.0/16"
    discovery_tags: dict[Text, Text] | None = None


class CapsPart(Part):
    launches: Number = 100
    removals: Number = 10
    added_usd_per_hour: Annotated[UsdPerHour, PlainValidator(_read_price)] = UsdPerHour(500_000_000)


class PricingPart(Part):
    overrides: dict[
        Annotated[str, PlainValidator(_read_priced)], Annotated[UsdPerHour, PlainValidator(_read_price)]
    ] = Field(default_factory=dict)
    discounts: dict[CapacityType, Annotated[Decimal, PlainValidator(_read_discount)]] = Field(default_factory=dict)
    file: Text | None = None


class SandboxPart(Part):
    pods: Number
    seed: Number = 1
    manifests: list[Text] = Field(default_factory=list)
    cluster: Annotated[ClusterKind, PlainValidator(one_of(ClusterKind, "kind of cluster", "unknown-value"))] = (
        ClusterKind.SIMULATED
    )


class RunPart(Part):
    batch_idle: Duration = Running().batch_idle
    batch_max: Duration = Running().batch_max
    every: Duration = Running().every
    cloud_every: Duration = Running().cloud_every
    hold_new_nodes: Flag | None = None


class LanesPart(Part):
    most: Annotated[int, PlainValidator(whole(0, _MOST_LANES, or_text=True))] = Lanes().most
    claims: Number = Lanes().claims


class InClusterPart(Part):
    namespace: Annotated[str, PlainValidator(matching(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", "namespace", "gpu"))] = (
        InCluster().namespace
    )
    runner: Annotated[RunnerKind, PlainValidator(one_of(RunnerKind, "runner", "unknown-value"))] = InCluster().runner
    image: Text = ""
    schedule: Text = InCluster().schedule
    pre_pull: Flag = False


def _read_parameter(value: object) -> ParameterValue:
    """Any plain value; the rule that declares the parameter knows which it must be."""
    if not isinstance(value, Scalar) or value.value is None:
        refuse("wrong-type", f"expected a parameter's value, found {describe(value)}", "write a number, text or bool")
    return value.value


class StackPart(Part):
    """Our keys, as they stand under ``config``."""

    model_config = ConfigDict(alias_generator=lambda name: f"{NAMESPACE}:{to_camel(name)}")

    region: Annotated[str, PlainValidator(matching(r"[a-z]{2}(-[a-z]+)+-\d", "region", "us-east-1"))]
    cluster: ClusterPart
    network: NetworkPart
    policies: list[Text] = Field(default_factory=lambda: ["policies"])
    default_node_class: ObjectName | None = None
    limits: dict[ObjectName, dict[Text, Amount]] = Field(default_factory=dict)
    caps: CapsPart = CapsPart()
    catalog: Annotated[CatalogSource, PlainValidator(one_of(CatalogSource, "catalog", "unknown-value"))] = (
        CatalogSource.SHIPPED
    )
    pricing: PricingPart = PricingPart()
    tags: dict[Text, Text] = Field(default_factory=dict)
    node_role_policies: list[Arn] | None = None
    endpoint: Url | None = None
    sandbox: SandboxPart | None = None
    store: Annotated[str, PlainValidator(_read_folder)] = ".nodewright"
    backend: Text | None = None
    run: RunPart = RunPart()
    lanes: LanesPart = LanesPart()
    in_cluster: InClusterPart | None = None
    paused: Text = ""
    params: dict[ObjectName, dict[Text, Annotated[ParameterValue, PlainValidator(_read_parameter)]]] = Field(
        default_factory=dict
    )
    enforcement: dict[
        ObjectName, Annotated[Enforcement, PlainValidator(one_of(Enforcement, "enforcement", "unknown-value"))]
    ] = Field(default_factory=dict)
    cel_engine: Annotated[str, PlainValidator(one_text_of(ENGINES, "CEL engine", "unknown-value"))] = DEFAULT
    interruption_queue: Queue | None = None
