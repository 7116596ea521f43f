"""An instance as EC2 describes it, and the waits for its states."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.deleting import found
from engine.sandbox.aws.launch_template import find_template
from engine.sandbox.aws.resource import MINUTE_SECONDS
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags
from engine.sandbox.aws.waiting import Wait, WaitError
from engine.sandbox.aws.wire import Properties, Value

GONE = ("InvalidInstanceID.NotFound",)

STATE_CHANGE_SECONDS = 10 * MINUTE_SECONDS

TEMPLATE_ID_TAG = "aws:ec2launchtemplate:id"
TEMPLATE_VERSION_TAG = "aws:ec2launchtemplate:version"

# Inputs that only DescribeInstanceAttribute tells, with AWS's names of attribute and answer.
_ATTRIBUTES = (
    ("disableApiTermination", "disableApiTermination", "DisableApiTermination"),
    ("disableApiStop", "disableApiStop", "DisableApiStop"),
    ("instanceInitiatedShutdownBehavior", "instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior"),
)


def find_instance(aws: Region, identity: str) -> Any:
    reservation = found(aws, "DescribeInstances", "Reservations", GONE, InstanceIds=[identity])
    instances = (reservation or {}).get("Instances") or []
    return instances[0] if instances else None


def primary_interface(instance: Mapping[str, Any]) -> Mapping[str, Any]:
    interfaces: list[Mapping[str, Any]] = instance.get("NetworkInterfaces") or []
    return interfaces[0] if interfaces else {}


def state_of(instance: Mapping[str, Any] | None) -> str | None:
    return None if instance is None else str(instance["State"]["Name"])


def await_state(aws: Region, identity: str, target: str, pending: tuple[str, ...], timeout: float) -> None:
    """Wait as the plugin waits for instances; one that dies on the way fails with EC2's own reason."""
    last: list[Mapping[str, Any]] = [{}]

    def look() -> str | None:
        instance = find_instance(aws, identity)
        last[0] = instance or {}
        return state_of(instance)

    wait = Wait(timeout, delay_seconds=10, least_poll_seconds=3)
    try:
        wait.until(aws.pace, target, look, pending)
    except WaitError as error:
        reason = (last[0].get("StateReason") or {}).get("Message")
        raise WaitError(f"{error}{f', last error: {reason}' if reason else ''}") from error


def await_terminated(aws: Region, identity: str, timeout: float) -> None:
    Wait(timeout, delay_seconds=10, least_poll_seconds=3).until_gone(
        aws.pace, lambda: state_of(find_instance(aws, identity)), "terminated"
    )


def described(aws: Region, identity: str, instance: Mapping[str, Any], known: Properties) -> Properties:
    """The instance's properties.

    What costs a call of its own is asked where the program set it, and everything for an instance of which
    nothing is `known`: an import must find the program's inputs.
    """
    interface = primary_interface(instance)
    placement = instance.get("Placement") or {}
    profile = (instance.get("IamInstanceProfile") or {}).get("Arn", "")
    return {
        "arn": aws.arn("ec2", f"instance/{identity}", interface.get("OwnerId")),
        "ami": instance.get("ImageId"),
        "instanceType": instance.get("InstanceType"),
        "instanceState": state_of(instance),
        "instanceLifecycle": instance.get("InstanceLifecycle", ""),
        "spotInstanceRequestId": instance.get("SpotInstanceRequestId", ""),
        "availabilityZone": placement.get("AvailabilityZone"),
        "tenancy": placement.get("Tenancy") or "default",
        "placementGroup": placement.get("GroupName", ""),
        "hostId": placement.get("HostId", ""),
        "subnetId": instance.get("SubnetId", ""),
        "vpcSecurityGroupIds": [group["GroupId"] for group in instance.get("SecurityGroups") or []],
        "securityGroups": [],
        "privateIp": instance.get("PrivateIpAddress", ""),
        "privateDns": instance.get("PrivateDnsName", ""),
        "publicIp": instance.get("PublicIpAddress", ""),
        "publicDns": instance.get("PublicDnsName", ""),
        "associatePublicIpAddress": bool(interface.get("Association")),
        "primaryNetworkInterfaceId": interface.get("NetworkInterfaceId", ""),
        "sourceDestCheck": bool(instance.get("SourceDestCheck", True)),
        "keyName": instance.get("KeyName", ""),
        "iamInstanceProfile": profile.rsplit("/", 1)[-1],
        "ebsOptimized": bool(instance.get("EbsOptimized", False)),
        "monitoring": (instance.get("Monitoring") or {}).get("State") in ("enabled", "pending"),
        "outpostArn": instance.get("OutpostArn", ""),
        "passwordData": "",
        "launchTemplate": _template(aws, instance, known.get("launchTemplate")),
        "instanceMarketOptions": known.get("instanceMarketOptions") or _market(aws, instance),
        "capacityReservationSpecification": known.get("capacityReservationSpecification") or _reservation(instance),
        "tagsAll": remote_tags(aws.session.config, instance.get("Tags")),
        **_metadata(instance, known),
        **_attributes(aws, identity, known),
        **_user_data(aws, identity, instance, known),
        **_volumes(aws, instance, known),
    }


def template_tags(instance: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Id and version number of the template that the instance was launched from, as EC2's own tags say."""
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags") or []}
    return tags.get(TEMPLATE_ID_TAG), tags.get(TEMPLATE_VERSION_TAG)


def numbered(aws: Region, template: str, version: str) -> str:
    """A version's number, for `$Latest` and `$Default` the one they stand for now."""
    key = {"$Latest": "LatestVersionNumber", "$Default": "DefaultVersionNumber"}.get(version)
    if key is None:
        return version
    described_template = find_template(aws, template)
    return version if described_template is None else str(described_template[key])


def _template(aws: Region, instance: Mapping[str, Any], known: Value) -> Properties | None:
    """The template that the instance is on; a moving version stays in words only while it is that version."""
    identity, number = template_tags(instance)
    if identity is None or number is None:
        return known or None
    named = (known or {}).get("version")
    in_words = named in ("$Latest", "$Default") and numbered(aws, identity, str(named)) == number
    name = (known or {}).get("name") or (find_template(aws, identity) or {}).get("LaunchTemplateName")
    return {"id": identity, "version": named if in_words else number, **({"name": name} if name else {})}


def _market(aws: Region, instance: Mapping[str, Any]) -> Properties | None:
    """A spot instance's options, from its request where there is one (an emulator may keep none)."""
    if instance.get("InstanceLifecycle") != "spot":
        return None
    request_id = instance.get("SpotInstanceRequestId")
    gone = ("InvalidSpotInstanceRequestID.NotFound",)
    ids = [request_id]
    key = "SpotInstanceRequests"
    request = found(aws, "DescribeSpotInstanceRequests", key, gone, SpotInstanceRequestIds=ids) if request_id else None
    told = request or {}
    options = {
        "instanceInterruptionBehavior": told.get("InstanceInterruptionBehavior", "terminate"),
        "spotInstanceType": told.get("Type", "one-time"),
        **({"maxPrice": told["SpotPrice"]} if told.get("SpotPrice") else {}),
    }
    return {"marketType": "spot", "spotOptions": options}


def _reservation(instance: Mapping[str, Any]) -> Properties:
    told = instance.get("CapacityReservationSpecification") or {}
    target = told.get("CapacityReservationTarget") or {}
    if target:
        return {"capacityReservationTarget": {name[0].lower() + name[1:]: value for name, value in target.items()}}
    # EC2 always tells it and moto never does: what aims at none leaves open reservations alone, as pools do by default.
    return {"capacityReservationPreference": told.get("CapacityReservationPreference") or "none"}


def _metadata(instance: Mapping[str, Any], everything_known: Properties) -> Properties:
    seen, known = instance.get("MetadataOptions") or {}, everything_known.get("metadataOptions") or {}
    if not seen or (everything_known and not known):
        return {}
    names = ("httpEndpoint", "httpProtocolIpv6", "httpTokens", "httpPutResponseHopLimit", "instanceMetadataTags")
    return {
        "metadataOptions": {
            name: seen.get(name[0].upper() + name[1:], known.get(name))
            for name in names
            if seen.get(name[0].upper() + name[1:], known.get(name)) is not None
        }
    }


def _attributes(aws: Region, identity: str, known: Properties) -> Properties:
    return {
        ours: _attribute(aws, identity, attribute, answer, known.get(ours))
        for ours, attribute, answer in _ATTRIBUTES
        if not known or known.get(ours) is not None
    }


def _attribute(aws: Region, identity: str, attribute: str, answer: str, before: Value) -> Value:
    told = aws.ec2("DescribeInstanceAttribute", InstanceId=identity, Attribute=attribute).get(answer) or {}
    return told.get("Value", before)


def _user_data(aws: Region, identity: str, instance: Mapping[str, Any], known: Properties) -> Properties:
    # What a template gave the instance is the template's, and no input of the instance.
    imported = "userData" if not known and template_tags(instance)[0] is None else None
    name = next((name for name in ("userData", "userDataBase64") if known.get(name)), imported)
    if name is None:
        return {}
    answer = aws.ec2("DescribeInstanceAttribute", InstanceId=identity, Attribute="userData")
    encoded, before = (answer.get("UserData") or {}).get("Value") or "", known.get(name)
    if not encoded:
        return {name: before}
    plain = base64.b64decode(encoded)
    if before and plain == (base64.b64decode(before) if name == "userDataBase64" else decoded_if_base64(before)):
        return {name: before}
    return {name: encoded if name == "userDataBase64" else plain.decode(errors="replace")}


def decoded_if_base64(text: str) -> bytes:
    """User data as the instance reads it: the plugin takes text, or Base64 of it."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return text.encode()


def _volumes(aws: Region, instance: Mapping[str, Any], known: Properties) -> Properties:
    """The root volume, in the program's words where there are any."""
    before = known.get("rootBlockDevice") or {}
    mapped = {one["DeviceName"]: one["Ebs"] for one in instance.get("BlockDeviceMappings") or []}
    root = instance.get("RootDeviceName")
    if (known and not before) or root not in mapped:
        return {}
    volume_id = mapped[root]["VolumeId"]
    volume = found(aws, "DescribeVolumes", "Volumes", ("InvalidVolume.NotFound",), VolumeIds=[volume_id]) or {}
    return {
        "rootBlockDevice": {
            **before,
            "deviceName": root,
            "volumeId": volume_id,
            "volumeSize": volume.get("Size", before.get("volumeSize")),
            "volumeType": volume.get("VolumeType", before.get("volumeType")),
            "encrypted": bool(volume.get("Encrypted", False)),
            "deleteOnTermination": bool(mapped[root].get("DeleteOnTermination", True)),
            **{key: volume[name] for key, name in (("iops", "Iops"), ("throughput", "Throughput")) if volume.get(name)},
        }
    }
