"""Launch template data, between the program's spelling and EC2's.

Most of it is the same word with another first letter. The exceptions are listed here, and so are the values that
Terraform keeps as text although EC2 has them as booleans.
"""

from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.tagging import tag_list
from engine.sandbox.aws.wire import Properties, Value

# Inputs whose change makes a new version of the template.
DATA_INPUTS = (
    "blockDeviceMappings",
    "capacityReservationSpecification",
    "cpuOptions",
    "creditSpecification",
    "disableApiStop",
    "disableApiTermination",
    "ebsOptimized",
    "enclaveOptions",
    "hibernationOptions",
    "iamInstanceProfile",
    "imageId",
    "instanceInitiatedShutdownBehavior",
    "instanceMarketOptions",
    "instanceRequirements",
    "instanceType",
    "kernelId",
    "keyName",
    "licenseSpecifications",
    "maintenanceOptions",
    "metadataOptions",
    "monitoring",
    "networkInterfaces",
    "networkPerformanceOptions",
    "placement",
    "privateDnsNameOptions",
    "ramDiskId",
    "securityGroupNames",
    "tagSpecifications",
    "userData",
    "vpcSecurityGroupIds",
)

_RENAMED = {
    "vpcSecurityGroupIds": "SecurityGroupIds",
    "securityGroupNames": "SecurityGroups",
    "tagSpecifications.tags": "Tags",
    "networkInterfaces.securityGroups": "Groups",
    "networkInterfaces.ipv4Addresses": "PrivateIpAddresses",
    "networkInterfaces.ipv4AddressCount": "SecondaryPrivateIpAddressCount",
}
_RENAMED_BACK = {(path.rpartition(".")[0], theirs): path.rpartition(".")[2] for path, theirs in _RENAMED.items()}

# Text on Pulumi's wire ("true", "false" or nothing), booleans in EC2.
_TEXT_BOOLEANS = frozenset(
    {
        "ebsOptimized",
        "blockDeviceMappings.ebs.deleteOnTermination",
        "blockDeviceMappings.ebs.encrypted",
        "networkInterfaces.associatePublicIpAddress",
        "networkInterfaces.associateCarrierIpAddress",
        "networkInterfaces.deleteOnTermination",
        "networkInterfaces.primaryIpv6",
    }
)

_TAGS = "tagSpecifications.tags"
_ADDRESSES = "networkInterfaces.ipv4Addresses"


def request_data(inputs: Mapping[str, Value]) -> dict[str, Any]:
    """EC2's LaunchTemplateData for a program's inputs."""
    data = {}
    for name in DATA_INPUTS:
        value = inputs.get(name)
        # The plugin sends user data even when it is empty, and leaves out everything else that is.
        if value is not None and (value not in ("", [], {}) or name == "userData"):
            data[_their_name(name)] = _request_value(name, value)
    data.setdefault("UserData", "")
    return data


def known_data(data: Mapping[str, Any], known: Mapping[str, Value]) -> Properties:
    """The program's spelling of what EC2 has: its own value where both say the same, EC2's where they differ."""
    wanted = request_data(known)
    data = _without_own_tags(data)
    seen: Properties = {}
    for name in DATA_INPUTS:
        theirs = _their_name(name)
        if theirs not in data:
            gone = known.get(name) not in (None, "", [], {}) and not _is_untold(theirs, wanted)
            seen[name] = _nothing_like(known[name]) if gone else known.get(name)
        elif _plain(data[theirs]) == _plain(wanted.get(theirs)):
            seen[name] = known.get(name)
        else:
            seen[name] = _program_value(name, data[theirs])
    return {name: value for name, value in seen.items() if value is not None}


def _request_value(path: str, value: Value) -> Any:
    if path == _TAGS:
        return tag_list(value)
    if path == _ADDRESSES:
        return [{"Primary": index == 0, "PrivateIpAddress": one} for index, one in enumerate(value)]
    if path in _TEXT_BOOLEANS:
        return str(value).lower() == "true"
    if isinstance(value, Mapping):
        return {
            _their_name(f"{path}.{key}"): _request_value(f"{path}.{key}", inner)
            for key, inner in value.items()
            if inner is not None and inner != ""
        }
    if isinstance(value, list):
        return [_request_value(path, inner) if isinstance(inner, Mapping) else inner for inner in value]
    return value


def _program_value(path: str, value: Any) -> Value:
    if path == _TAGS:
        return {tag["Key"]: tag["Value"] for tag in value}
    if path == _ADDRESSES:
        return [one["PrivateIpAddress"] for one in value]
    if path in _TEXT_BOOLEANS:
        return str(value).lower()
    if isinstance(value, Mapping):
        return {
            ours: _program_value(f"{path}.{ours}", inner)
            for ours, inner in ((_our_name(path, key), inner) for key, inner in value.items())
        }
    if isinstance(value, list):
        return [_program_value(path, inner) if isinstance(inner, Mapping) else inner for inner in value]
    return value


def _their_name(path: str) -> str:
    name = path.rpartition(".")[2]
    return _RENAMED.get(path) or name[0].upper() + name[1:]


def _our_name(parent: str, theirs: str) -> str:
    return _RENAMED_BACK.get((parent, theirs)) or theirs[0].lower() + theirs[1:]


def _plain(value: Any) -> Any:
    """A value to compare by: an emulator may answer numbers and booleans as text, and lists in another order."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return sorted((_plain(inner) for inner in value), key=repr)
    return str(value).lower() if isinstance(value, bool | int | float) else value


def _without_own_tags(data: Mapping[str, Any]) -> dict[str, Any]:
    """The template's own tags are no part of its data; moto, unlike EC2, lists them there."""
    kept = [one for one in data.get("TagSpecifications") or [] if one["ResourceType"] != "launch-template"]
    rest = {key: value for key, value in data.items() if key != "TagSpecifications"}
    return {**rest, "TagSpecifications": kept} if kept else rest


def _is_untold(theirs: str, wanted: Mapping[str, Any]) -> bool:
    """Empty user data is sent, and not answered."""
    return wanted.get(theirs) in ("", None)


def _nothing_like(value: Value) -> Value:
    return type(value)()
