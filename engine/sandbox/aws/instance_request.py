"""A RunInstances request from an instance's inputs."""

import base64
import uuid
from typing import Any

from engine.sandbox.aws.deleting import found
from engine.sandbox.aws.instance_state import decoded_if_base64
from engine.sandbox.aws.launch_template import find_version
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import tag_list
from engine.sandbox.aws.wire import Properties, Value

# Sent even when unset, so that they override what a launch template says.
_SENT_AS_FALSE = (
    ("disableApiTermination", "DisableApiTermination"),
    ("ebsOptimized", "EbsOptimized"),
)

_PLACEMENT = (
    ("availabilityZone", "AvailabilityZone"),
    ("tenancy", "Tenancy"),
    ("placementGroup", "GroupName"),
    ("placementGroupId", "GroupId"),
    ("placementPartitionNumber", "PartitionNumber"),
    ("hostId", "HostId"),
)

_OWN_INTERFACE = ("associatePublicIpAddress", "privateIp")


def run_request(aws: Region, inputs: Properties) -> dict[str, Any]:
    """The whole request, made once per create: its client token makes the retries of that create one launch."""
    return {
        "ClientToken": str(uuid.uuid4()),
        "MinCount": 1,
        "MaxCount": 1,
        "ImageId": inputs.get("ami"),
        "InstanceType": inputs.get("instanceType"),
        "KeyName": inputs.get("keyName"),
        "LaunchTemplate": launch_template_request(inputs.get("launchTemplate")),
        "Placement": _placement(inputs),
        **_network(inputs),
        "IamInstanceProfile": {"Name": inputs["iamInstanceProfile"]} if inputs.get("iamInstanceProfile") else None,
        "UserData": user_data_bytes(inputs),
        "InstanceMarketOptions": pascal(inputs.get("instanceMarketOptions")),
        "CapacityReservationSpecification": capacity_reservation_request(
            inputs.get("capacityReservationSpecification")
        ),
        "MetadataOptions": metadata_request(inputs.get("metadataOptions")),
        "BlockDeviceMappings": _block_devices(aws, inputs) or None,
        "CpuOptions": pascal(inputs.get("cpuOptions")),
        "CreditSpecification": pascal(inputs.get("creditSpecification")),
        "EnclaveOptions": pascal(inputs.get("enclaveOptions")),
        "MaintenanceOptions": pascal(inputs.get("maintenanceOptions")),
        "PrivateDnsNameOptions": pascal(inputs.get("privateDnsNameOptions")),
        "DisableApiStop": inputs.get("disableApiStop"),
        "InstanceInitiatedShutdownBehavior": inputs.get("instanceInitiatedShutdownBehavior"),
        "HibernationOptions": {"Configured": bool(inputs.get("hibernation"))},
        "Monitoring": {"Enabled": bool(inputs.get("monitoring"))},
        **{theirs: bool(inputs.get(ours)) for ours, theirs in _SENT_AS_FALSE},
        "TagSpecifications": _tags(aws, inputs) or None,
    }


def user_data_bytes(inputs: Properties) -> bytes | None:
    """What the instance is to read: `userData` is text, or Base64 of it; boto3 encodes what it sends."""
    encoded, text = inputs.get("userDataBase64"), inputs.get("userData")
    if encoded:
        return base64.b64decode(encoded)
    if not text:
        return None
    return decoded_if_base64(text)


def launch_template_request(template: Value) -> dict[str, Any] | None:
    if not template:
        return None
    # EC2 takes either; Terraform prefers the id.
    which = {"LaunchTemplateId": template["id"]} if template.get("id") else {"LaunchTemplateName": template.get("name")}
    return {**which, "Version": str(template.get("version", "$Default"))}


def metadata_request(options: Value) -> dict[str, Any] | None:
    """Only the switch itself when the endpoint is off: EC2 refuses the rest then."""
    if not options:
        return None
    if options.get("httpEndpoint") == "disabled":
        return {"HttpEndpoint": "disabled"}
    return pascal(options)


def capacity_reservation_request(specification: Value) -> dict[str, Any] | None:
    if not specification:
        return None
    target = pascal(specification.get("capacityReservationTarget"))
    if target:
        return {"CapacityReservationTarget": target}
    return {"CapacityReservationPreference": specification.get("capacityReservationPreference")}


def pascal(options: Value) -> dict[str, Any] | None:
    """An object's keys with capitals, as EC2 spells them; None for nothing."""
    if not options:
        return None
    return {
        name[0].upper() + name[1:]: pascal(value) if isinstance(value, dict) else value
        for name, value in options.items()
        if value is not None and value != ""
    }


def root_device_name(aws: Region, inputs: Properties) -> str:
    """The image's root device: EC2 resizes it only when it is called by its name."""
    image = inputs.get("ami") or _template_image(aws, inputs.get("launchTemplate"))
    gone = ("InvalidAMIID.NotFound",)
    described = found(aws, "DescribeImages", "Images", gone, ImageIds=[image]) if image else None
    return str((described or {}).get("RootDeviceName") or "/dev/xvda")


def _template_image(aws: Region, template: Value) -> str | None:
    if not template or not template.get("id"):
        return None
    version = find_version(aws, template["id"], str(template.get("version", "$Default"))) or {}
    image = version.get("LaunchTemplateData", {}).get("ImageId")
    return str(image) if image else None


def _placement(inputs: Properties) -> dict[str, Any] | None:
    placement = {theirs: inputs[ours] for ours, theirs in _PLACEMENT if inputs.get(ours)}
    return placement or None


def _network(inputs: Properties) -> dict[str, Any]:
    """Subnet, groups and addresses: inside one network interface as soon as an address is asked for."""
    subnet, groups = inputs.get("subnetId"), inputs.get("vpcSecurityGroupIds") or None
    if not subnet or all(inputs.get(name) is None for name in _OWN_INTERFACE):
        return {"SubnetId": subnet, "SecurityGroupIds": groups, "PrivateIpAddress": inputs.get("privateIp")}
    interface = {
        "DeviceIndex": 0,
        "SubnetId": subnet,
        "Groups": groups,
        "AssociatePublicIpAddress": inputs.get("associatePublicIpAddress"),
        "PrivateIpAddress": inputs.get("privateIp"),
    }
    return {"NetworkInterfaces": [{key: value for key, value in interface.items() if value is not None}]}


def _block_devices(aws: Region, inputs: Properties) -> list[dict[str, Any]]:
    devices = [_device(one["deviceName"], one) for one in inputs.get("ebsBlockDevices") or []]
    root = inputs.get("rootBlockDevice")
    return [_device(root_device_name(aws, inputs), root), *devices] if root else devices


def _device(name: str, options: Properties) -> dict[str, Any]:
    ebs = {
        "DeleteOnTermination": bool(options.get("deleteOnTermination", True)),
        "Encrypted": options.get("encrypted") or None,
        "Iops": options.get("iops"),
        "KmsKeyId": options.get("kmsKeyId"),
        "SnapshotId": options.get("snapshotId"),
        "Throughput": options.get("throughput"),
        "VolumeSize": options.get("volumeSize"),
        "VolumeType": options.get("volumeType"),
    }
    return {"DeviceName": name, "Ebs": {key: value for key, value in ebs.items() if value not in (None, "")}}


def _tags(aws: Region, inputs: Properties) -> list[dict[str, Any]]:
    """Instance and volumes are tagged as they come to be; the provider's default tags reach both."""
    volume_tags = {**aws.session.config.default_tags, **(inputs.get("volumeTags") or {})}
    kinds = (("instance", inputs.get("tagsAll")), ("volume", volume_tags))
    return [{"ResourceType": kind, "Tags": tag_list(tags)} for kind, tags in kinds if tags]
