"""aws:ec2/instance:Instance"""

import hashlib

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.instance_request import run_request
from engine.sandbox.aws.instance_state import (
    GONE,
    await_state,
    await_terminated,
    decoded_if_base64,
    described,
    find_instance,
    numbered,
    state_of,
    template_tags,
)
from engine.sandbox.aws.instance_update import Change, update_in_place
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.schema import Difference, Input, Rules, equal_as_sets
from engine.sandbox.aws.session import AwsError, Region, UnreachableError
from engine.sandbox.aws.waiting import patiently
from engine.sandbox.aws.wire import UNKNOWN, Properties, Value
from engine.sandbox.boot_time import launch_seconds

LONGEST_USER_DATA = 16384
PROFILE_PROPAGATION_SECONDS = 2 * MINUTE_SECONDS


def same_user_data(old: Value, new: Value) -> bool:
    """Equal, equal to its SHA-1 (as old states have it), or Base64 of the same bytes."""
    if old == new or old == hashlib.sha1(str(new).encode(), usedforsecurity=False).hexdigest():
        return True
    return bool(old) and bool(new) and decoded_if_base64(str(old)) == decoded_if_base64(str(new))


def same_price(old: Value, new: Value) -> bool:
    """Prices as text: 0.5 and 0.500000 are the same."""
    try:
        return float(old) == float(new)
    except (TypeError, ValueError):
        return bool(old == new)


def same_devices(old: Value, new: Value) -> bool:
    """By device, and by what the program says about it; what AWS adds is no change."""
    before = {one.get("deviceName"): one for one in old or ()}
    after = {one.get("deviceName"): one for one in new or ()}
    return before.keys() == after.keys() and all(
        before[name].get(key) == value for name, one in after.items() for key, value in one.items()
    )


def says_wrong_user_data(value: Value) -> str:
    return (
        "" if len(value) <= LONGEST_USER_DATA else f"expected at most {LONGEST_USER_DATA} characters, got {len(value)}"
    )


def says_wrong_template(template: Value) -> str:
    given = [name for name in ("id", "name") if template.get(name)]
    return "" if len(given) == 1 else "expected exactly one of `id` and `name`"


def says_wrong_reservation(specification: Value) -> str:
    given = [name for name in ("capacityReservationPreference", "capacityReservationTarget") if specification.get(name)]
    return "" if len(given) == 1 else f"expected exactly one of preference and target, got {given or 'neither'}"


_ROOT = (
    Input("deleteOnTermination", default=True),
    Input("volumeSize", computed=True),
    Input("volumeType", computed=True),
    Input("iops", computed=True),
    Input("throughput", computed=True),
    Input("encrypted", computed=True, replaces=True),
    Input("kmsKeyId", computed=True, replaces=True),
    Input("tags", performed=False),
)
_SPOT = (
    Input("instanceInterruptionBehavior", computed=True, replaces=True),
    Input("maxPrice", computed=True, replaces=True, same=same_price),
    Input("spotInstanceType", computed=True, replaces=True),
    Input("validUntil", computed=True, replaces=True),
)
_METADATA = (
    Input("httpEndpoint", default="enabled"),
    Input("httpProtocolIpv6", default="disabled"),
    Input("httpTokens", computed=True),
    Input("httpPutResponseHopLimit", computed=True),
    Input("instanceMetadataTags", computed=True),
)
_CPU = (
    Input("coreCount", computed=True),
    Input("threadsPerCore", computed=True),
    Input("nestedVirtualization", computed=True),
    Input("amdSevSnp", computed=True, replaces=True),
)


class Instance(Resource):
    token = "aws:ec2/instance:Instance"
    noun = "EC2 Instance"
    create_seconds = 10 * MINUTE_SECONDS
    update_seconds = 10 * MINUTE_SECONDS
    delete_seconds = 20 * MINUTE_SECONDS
    inputs = (
        Input("ami", computed=True, replaces=True),
        Input("instanceType", computed=True),
        Input(
            "launchTemplate",
            says_wrong=says_wrong_template,
            replaces=True,
            parts=(
                Input("id", computed=True, replaces=True),
                Input("name", computed=True, replaces=True),
                Input("version", default="$Default", replaces=True),
            ),
        ),
        Input("availabilityZone", computed=True, replaces=True),
        Input("subnetId", computed=True, replaces=True),
        Input("vpcSecurityGroupIds", computed=True, same=equal_as_sets),
        Input("associatePublicIpAddress", computed=True, replaces=True),
        Input("privateIp", computed=True, replaces=True),
        Input("keyName", computed=True, replaces=True),
        Input("iamInstanceProfile", computed=True),
        Input("userData", same=same_user_data, says_wrong=says_wrong_user_data),
        Input("userDataBase64", computed=True, same=same_user_data),
        Input("userDataReplaceOnChange", default=False),
        Input(
            "instanceMarketOptions",
            computed=True,
            replaces=True,
            parts=(
                Input("marketType", computed=True, replaces=True),
                Input("spotOptions", computed=True, replaces=True, parts=_SPOT),
            ),
        ),
        Input("capacityReservationSpecification", computed=True, says_wrong=says_wrong_reservation),
        Input("metadataOptions", computed=True, parts=_METADATA),
        Input("rootBlockDevice", computed=True, parts=_ROOT),
        Input("ebsBlockDevices", computed=True, replaces=True, same=same_devices),
        Input("volumeTags"),
        Input("cpuOptions", computed=True, parts=_CPU),
        Input("creditSpecification"),
        Input("disableApiStop", computed=True),
        Input("disableApiTermination", computed=True),
        Input("ebsOptimized", computed=True, replaces=True),
        Input("enclaveOptions", computed=True, replaces=True),
        Input("monitoring", computed=True),
        Input("hibernation", replaces=True),
        Input("instanceInitiatedShutdownBehavior", computed=True),
        Input("maintenanceOptions", computed=True),
        Input("tenancy", computed=True, replaces=True),
        Input("placementGroup", computed=True, replaces=True),
        Input("placementGroupId", computed=True, replaces=True),
        Input("placementPartitionNumber", computed=True, replaces=True),
        Input("hostId", computed=True, replaces=True),
        Input("privateDnsNameOptions", computed=True, replaces=True),
        Input("sourceDestCheck", default=True),
        Input("forceDestroy", default=False),
        Input("getPasswordData", default=False, performed=False),
        Input("securityGroups", computed=True, replaces=True, performed=False),
        Input("secondaryPrivateIps", computed=True, performed=False),
        Input("ipv6AddressCount", computed=True, performed=False),
        Input("ipv6Addresses", computed=True, replaces=True, performed=False),
        Input("enablePrimaryIpv6", computed=True, performed=False),
        Input("ephemeralBlockDevices", computed=True, replaces=True, performed=False),
        Input("networkInterfaces", computed=True, performed=False),
        Input("primaryNetworkInterface", computed=True, performed=False),
        Input("secondaryNetworkInterfaces", computed=True, performed=False),
        Input("hostResourceGroupArn", computed=True, performed=False),
    )
    outputs = (
        "arn",
        "instanceLifecycle",
        "instanceState",
        "outpostArn",
        "passwordData",
        "primaryNetworkInterfaceId",
        "privateDns",
        "publicDns",
        "publicIp",
        "spotInstanceRequestId",
        "tagsAll",
    )
    rules = Rules(
        exclusive=(("userData", "userDataBase64"), ("placementGroup", "placementGroupId")),
        at_least_one=(("ami", "launchTemplate"), ("instanceType", "launchTemplate")),
    )

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        request = run_request(aws, inputs)
        answer = patiently(
            aws.pace,
            PROFILE_PROPAGATION_SECONDS,
            _profile_is_not_there_yet,
            lambda: aws.ec2("RunInstances", **request),
        )
        return str(answer["Instances"][0]["InstanceId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        # Boot times are real seconds, whatever the pace of the waiting; a pace of nothing at all has no time to lose.
        boots_for = launch_seconds() / aws.pace.scale if aws.pace.scale else 0.0
        await_state(aws, identity, "running", ("pending",), timeout + boots_for)
        if inputs.get("sourceDestCheck") is False:
            aws.ec2("ModifyInstanceAttribute", InstanceId=identity, SourceDestCheck={"Value": False})

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        instance = find_instance(aws, identity)
        if state_of(instance) in (None, "terminated"):
            return None
        return described(aws, identity, instance, known)

    def diff(self, aws: Region, identity: str, old: Properties, state: Properties, new: Properties) -> Difference:
        found = super().diff(aws, identity, old, state, new)
        moved = {path for path in found.paths if path.startswith("launchTemplate")}
        if moved != {"launchTemplate.version"} or _version_differs(aws, identity, state, new):
            return found
        return Difference(
            found.changed - {"launchTemplate"},
            found.replacing - {"launchTemplate"},
            tuple(path for path in found.paths if path not in moved),
        )

    def also_replaces(
        self, aws: Region, identity: str, difference: Difference, state: Properties, new: Properties
    ) -> set[str]:
        replacing: set[str] = set()
        if new.get("userDataReplaceOnChange"):
            replacing |= {"userData", "userDataBase64"}
        if "instanceType" in difference.changed and new.get("instanceType") is not UNKNOWN:
            before, after = state.get("instanceType"), new.get("instanceType")
            replacing |= set() if _share_an_architecture(aws, before, after) else {"instanceType"}
        return replacing

    def unknown_after(self, changed: frozenset[str], state: Properties) -> set[str]:
        restarts = changed & {"instanceType", "userData", "userDataBase64"}
        return {"publicIp", "publicDns"} if restarts and state.get("publicIp") else set()

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        update_in_place(Change(aws, identity, old, new, timeout), changed)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        if known.get("forceDestroy"):
            _unprotect(aws, identity)
        # The plugin goes by the state, and fails when the request is not there any more.
        if known.get("instanceLifecycle") == "spot" and known.get("spotInstanceRequestId"):
            aws.ec2("CancelSpotInstanceRequests", SpotInstanceRequestIds=[known["spotInstanceRequestId"]])
        delete(aws, "TerminateInstances", GONE, timeout, InstanceIds=[identity])
        await_terminated(aws, identity, timeout)


def _profile_is_not_there_yet(error: Exception) -> bool:
    if not isinstance(error, AwsError) or error.code != "InvalidParameterValue":
        return False
    return "Invalid IAM Instance Profile" in error.message or " has no associated IAM Roles" in error.message


def _version_differs(aws: Region, identity: str, state: Properties, new: Properties) -> bool:
    """A moving version against the number that the instance was launched from, as EC2's tag says it."""
    template = new.get("launchTemplate") or {}
    version = template.get("version", "$Default")
    if version is UNKNOWN:
        return True
    template_id, number = template_tags(find_instance(aws, identity) or {})
    if template_id is None or number is None:
        return True
    return numbered(aws, template_id, str(version)) != number


def _share_an_architecture(aws: Region, before: Value, after: Value) -> bool:
    """Whether an instance can be turned from one type into the other; assumed when EC2 does not tell."""
    try:
        listed = aws.ec2("DescribeInstanceTypes", InstanceTypes=[before, after])["InstanceTypes"]
    except (AwsError, UnreachableError):
        return True
    supported = [set(one.get("ProcessorInfo", {}).get("SupportedArchitectures", ())) for one in listed]
    return len(supported) < 2 or bool(supported[0] & supported[1])


def _unprotect(aws: Region, identity: str) -> None:
    for attribute in ("DisableApiTermination", "DisableApiStop"):
        try:
            aws.ec2("ModifyInstanceAttribute", InstanceId=identity, **{attribute: {"Value": False}})
        except AwsError:
            continue
