"""The shape of an EC2NodeClass file (karpenter.k8s.aws/v1, and v1beta1 once its spellings are made modern).

Bounds and defaults are those of Karpenter's own resource definition.
"""

from __future__ import annotations

import ipaddress
import re
from enum import Enum
from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo

from engine.model.policy import AmiFamily
from engine.model.quantity import QuantityError, parse_quantity
from engine.model.reservation import MatchCriteria
from engine.policy.fields import (
    Amount,
    Count,
    Flag,
    NotImplementedField,
    PassedOver,
    Text,
    matching,
    one_of,
    one_text_of,
    read_amount,
    read_text,
    refuse,
    whole,
)
from engine.policy.findings import did_you_mean
from engine.policy.located import Scalar, describe
from engine.policy.node_pool_schema import ObjectMetaPart
from engine.policy.schema import Part
from engine.policy.shapes import shaped, text_like

_WINDOWS = ("Windows2019", "Windows2022", "Windows2025")
FAMILY_BY_ALIAS = {"al2": AmiFamily.AL2, "al2023": AmiFamily.AL2023}
_ALIASES_NOT_IMPLEMENTED = ("bottlerocket", "windows2019", "windows2022", "windows2025")
_PERCENT = re.compile(r"(100|[0-9]{1,2})(\.[0-9]+)?%")
_GIB = 2**30
# Karpenter's bounds. Of Ti its pattern leaves out 18 and 19, 28 and 29, and so on.
_LARGEST_VOLUME = {"Gi": 59_000, "G": 64_000, "Ti": 58, "T": 64}
_TEBIBYTES = {*range(1, 10), *(tens + ones for tens in range(10, 60, 10) for ones in range(8)), 58}
_RESERVED = ("cpu", "memory", "ephemeral-storage", "pid")
_SIGNALS = (
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
    "imagefs.available",
    "imagefs.inodesFree",
    "pid.available",
)


class _Switch(str, Enum):
    ENABLED = "enabled"
    DISABLED = "disabled"


@shaped({"enum": [AmiFamily.AL2023.value, AmiFamily.AL2.value, AmiFamily.CUSTOM.value]})
def _read_family(value: object, info: ValidationInfo) -> AmiFamily:
    text = read_text(value, info)
    if text in (AmiFamily.BOTTLEROCKET.value, *_WINDOWS):
        refuse("not-implemented", f"AMI family {text} is not implemented yet", "use AL2023, AL2 or Custom")
    known = [AmiFamily.AL2023.value, AmiFamily.AL2.value, AmiFamily.CUSTOM.value]
    if text not in known:
        refuse("unknown-value", f"{text[:60]!r} is no AMI family", did_you_mean(text, known))
    return AmiFamily(text)


@shaped({**text_like(f"({'|'.join(FAMILY_BY_ALIAS)})@.+"), "maxLength": 30})
def _read_alias(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    family, at, version = text.partition("@")
    if family in _ALIASES_NOT_IMPLEMENTED:
        refuse("not-implemented", f"images of {family} are not implemented yet", "use al2023@latest or al2@latest")
    if family not in FAMILY_BY_ALIAS:
        refuse("unknown-value", f"{text[:60]!r} is no alias of an image", did_you_mean(family, FAMILY_BY_ALIAS))
    if not at or not version or len(text) > 30:
        refuse("bad-value", f"{text[:60]!r} names no version", f"write {family}@latest, or {family}@VERSION")
    return text


@shaped(text_like("[1-9][0-9]*(Gi|G|Ti|T)"))
def _read_volume_size_gib(value: object, info: ValidationInfo) -> int:
    """GiB, rounded up: EBS sells no less."""
    text = read_amount(value, info)
    written = re.fullmatch(r"(0|[1-9][0-9]{0,5})(Gi|G|Ti|T)", text)
    if written is None:
        refuse("bad-quantity", f"{text!r} is no volume size", "write whole Gi or Ti, such as 100Gi")
    number, unit = int(written[1]), written[2]
    if not 1 <= number <= _LARGEST_VOLUME[unit] or (unit == "Ti" and number not in _TEBIBYTES):
        hint = ", ".join(f"{most}{unit}" for unit, most in _LARGEST_VOLUME.items())
        refuse("out-of-range", f"{text} is no size that Karpenter takes", f"the largest are {hint}")
    size = parse_quantity(text) / Fraction(_GIB)
    return -(-size.numerator // size.denominator)


@shaped({"type": ["string", "integer"]})
def _read_eviction_threshold(value: object) -> str:
    text = _read_text_or_number(value)
    if not _PERCENT.fullmatch(text):
        try:
            parse_quantity(text)
        except QuantityError:
            refuse("bad-quantity", f"{text[:40]!r} is no threshold", 'write a quantity such as 100Mi, or "5%"')
    return text


@shaped({"type": "string"})
def _read_address(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        refuse("bad-value", f"{text[:60]!r} is no IP address", "write one such as 10.100.0.10")


def _read_text_or_number(value: object) -> str:
    """A value that Kubernetes takes both as a string and as a number."""
    if not isinstance(value, Scalar) or value.value is None or isinstance(value.value, bool):
        refuse("wrong-type", f"expected a quantity, found {describe(value)}")
    return value.text


class TagTermPart(Part):
    tags: dict[Text, Text] = Field(default_factory=dict)


class SubnetTermPart(TagTermPart):
    id: (
        Annotated[str, PlainValidator(matching(r"subnet-[0-9a-z]+", "subnet id", "subnet-0123456789abcdef0"))] | None
    ) = None


class SecurityGroupTermPart(TagTermPart):
    id: (
        Annotated[str, PlainValidator(matching(r"sg-[0-9a-z]+", "security group id", "sg-0123456789abcdef0"))] | None
    ) = None
    name: Text | None = None


class AmiTermPart(TagTermPart):
    id: Annotated[str, PlainValidator(matching(r"ami-[0-9a-z]+", "image id", "ami-0123456789abcdef0"))] | None = None
    name: Text | None = None
    alias: Annotated[str, PlainValidator(_read_alias)] | None = None
    owner: Text | None = None
    ssm_parameter: Text | None = None


class ReservationTermPart(TagTermPart):
    id: (
        Annotated[str, PlainValidator(matching(r"cr-[0-9a-z]+", "capacity reservation id", "cr-0123456789abcdef0"))]
        | None
    ) = None
    instance_match_criteria: (
        Annotated[MatchCriteria, PlainValidator(one_of(MatchCriteria, "match criterion", "unknown-value"))] | None
    ) = None
    owner_id: Annotated[str, PlainValidator(matching(r"[0-9]{12}", "AWS account id", '"123456789012"'))] | None = Field(
        default=None, alias="ownerID"
    )


_VOLUME_TYPES = ("gp3", "gp2", "io1", "io2", "st1", "sc1", "standard")


class EbsPart(Part):
    delete_on_termination: Flag = True
    encrypted: Flag | None = None
    iops: Count | None = None
    kms_key_id: Text | None = Field(default=None, alias="kmsKeyID")
    snapshot_id: Text | None = Field(default=None, alias="snapshotID")
    throughput: Count | None = None
    volume_initialization_rate: NotImplementedField = None
    volume_size: Annotated[int, PlainValidator(_read_volume_size_gib)] | None = None
    volume_type: Annotated[str, PlainValidator(one_text_of(_VOLUME_TYPES, "EBS volume type", "unknown-value"))] = "gp3"


class BlockDevicePart(Part):
    device_name: Annotated[str, PlainValidator(matching(r"[A-Za-z0-9/_-]{1,64}", "device name", "/dev/xvda"))]
    ebs: EbsPart
    root_volume: Flag = False


_SWITCH = Annotated[_Switch, PlainValidator(one_of(_Switch, "setting", "unknown-value"))]


class MetadataOptionsPart(Part):
    http_endpoint: _SWITCH = _Switch.ENABLED
    http_protocol_ipv6: _SWITCH = Field(default=_Switch.DISABLED, alias="httpProtocolIPv6")
    http_put_response_hop_limit: Annotated[int, PlainValidator(whole(1, 64))] = 1
    http_tokens: Annotated[str, PlainValidator(one_text_of(("required", "optional"), "setting", "unknown-value"))] = (
        "required"
    )


class KubeletPart(Part):
    cluster_dns: list[Annotated[str, PlainValidator(_read_address)]] = Field(default_factory=list, alias="clusterDNS")
    max_pods: Count | None = None
    pods_per_core: Count | None = None
    system_reserved: dict[
        Annotated[str, PlainValidator(one_text_of(_RESERVED, "resource that can be reserved", "unknown-value"))], Amount
    ] = Field(default_factory=dict)
    kube_reserved: dict[
        Annotated[str, PlainValidator(one_text_of(_RESERVED, "resource that can be reserved", "unknown-value"))], Amount
    ] = Field(default_factory=dict)
    eviction_hard: dict[
        Annotated[str, PlainValidator(one_text_of(_SIGNALS, "eviction signal", "unknown-value"))],
        Annotated[str, PlainValidator(_read_eviction_threshold)],
    ] = Field(default_factory=dict)
    eviction_soft: NotImplementedField = None
    eviction_soft_grace_period: NotImplementedField = None
    eviction_max_pod_grace_period: NotImplementedField = None
    image_gc_high_threshold_percent: NotImplementedField = Field(default=None, alias="imageGCHighThresholdPercent")
    image_gc_low_threshold_percent: NotImplementedField = Field(default=None, alias="imageGCLowThresholdPercent")
    cpu_cfs_quota: NotImplementedField = Field(default=None, alias="cpuCFSQuota")


class NodeClassSpecPart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {
        "instanceTypes": "instance types stand in the NodePool's requirements",
        "limits": "limits stand in the NodePool, as spec.limits",
    }
    ami_family: Annotated[AmiFamily, PlainValidator(_read_family)] | None = None
    ami_selector_terms: list[AmiTermPart] | None = None
    subnet_selector_terms: list[SubnetTermPart]
    security_group_selector_terms: list[SecurityGroupTermPart]
    role: Annotated[str, PlainValidator(matching(r"[\w+=,.@-]{1,64}", "IAM role name", "gpu-node"))] | None = None
    instance_profile: (
        Annotated[str, PlainValidator(matching(r"[\w+=,.@-]{1,128}", "instance profile name", "gpu-node"))] | None
    ) = None
    user_data: Text = ""
    tags: dict[Text, Text] = Field(default_factory=dict)
    block_device_mappings: list[BlockDevicePart] = Field(default_factory=list)
    metadata_options: MetadataOptionsPart = MetadataOptionsPart()
    kubelet: KubeletPart = KubeletPart()
    instance_store_policy: (
        Annotated[str, PlainValidator(one_text_of(("RAID0",), "instance store policy", "unknown-value"))] | None
    ) = None
    associate_public_ip_address: Flag | None = Field(default=None, alias="associatePublicIPAddress")
    detailed_monitoring: Flag = False
    capacity_reservation_selector_terms: list[ReservationTermPart] | None = None
    connection_tracking: NotImplementedField = None
    context: NotImplementedField = None
    cpu_options: NotImplementedField = None
    ip_prefix_count: NotImplementedField = None
    network_interfaces: NotImplementedField = None
    placement_group_selector: NotImplementedField = None
    license_specifications: NotImplementedField = None


class NodeClassPart(Part):
    api_version: Text
    kind: Text
    metadata: ObjectMetaPart
    spec: NodeClassSpecPart
    status: PassedOver = None
