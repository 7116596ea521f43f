"""Updating an instance in place, in the AWS plugin's order; some steps stop it and start it again."""

from collections.abc import Callable
from typing import Any

from attrs import frozen

from engine.sandbox.aws.instance_request import (
    capacity_reservation_request,
    metadata_request,
    pascal,
    user_data_bytes,
)
from engine.sandbox.aws.instance_state import (
    STATE_CHANGE_SECONDS,
    await_state,
    find_instance,
    primary_interface,
    state_of,
)
from engine.sandbox.aws.resource import MINUTE_SECONDS
from engine.sandbox.aws.session import AwsError, Region, has_code
from engine.sandbox.aws.tagging import change_ec2_tags
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties


@frozen
class Change:
    """One update: the instance, its state so far, the inputs wanted, and the seconds it may take."""

    aws: Region
    identity: str
    old: Properties
    new: Properties
    timeout: float


Step = Callable[[Change], None]


def update_in_place(change: Change, changed: frozenset[str]) -> None:
    """Every changed input that does not replace the instance. Raises a CallError at the first that fails."""
    for inputs, step in _STEPS:
        if changed & inputs:
            step(change)


def _change_source_check(change: Change) -> None:
    _set_attribute(change, "SourceDestCheck", bool(change.new.get("sourceDestCheck", True)))


def _change_type(change: Change) -> None:
    _while_stopped(change, {"InstanceType": {"Value": change.new["instanceType"]}})


def _change_user_data(change: Change) -> None:
    _while_stopped(change, {"UserData": {"Value": user_data_bytes(change.new) or b""}})


def _change_cpus(change: Change) -> None:
    options = pascal(change.new.get("cpuOptions"))
    if options:
        _stop(change)
        change.aws.ec2("ModifyInstanceCpuOptions", InstanceId=change.identity, **options)
        _start(change)


def _attribute_step(ours: str, theirs: str) -> Step:
    def step(change: Change) -> None:
        if change.new.get(ours) is not None:
            _set_attribute(change, theirs, change.new[ours])

    return step


def _change_maintenance(change: Change) -> None:
    options = pascal(change.new.get("maintenanceOptions")) or {"AutoRecovery": "default"}
    change.aws.ec2("ModifyInstanceMaintenanceOptions", InstanceId=change.identity, **options)


def _change_monitoring(change: Change) -> None:
    action = "MonitorInstances" if change.new.get("monitoring") else "UnmonitorInstances"
    change.aws.ec2(action, InstanceIds=[change.identity])


def _change_credit(change: Change) -> None:
    wanted = change.new.get("creditSpecification")
    if wanted:
        credit = {"InstanceId": change.identity, "CpuCredits": wanted.get("cpuCredits")}
        change.aws.ec2("ModifyInstanceCreditSpecification", InstanceCreditSpecifications=[credit])


def _change_metadata(change: Change) -> None:
    options = metadata_request(change.new.get("metadataOptions")) or {"HttpEndpoint": "enabled"}
    change.aws.ec2("ModifyInstanceMetadataOptions", InstanceId=change.identity, **options)


def _while_stopped(change: Change, attribute: dict[str, Any]) -> None:
    """A stop, a change and a start of its own, so that two such changes are two interruptions."""
    _stop(change)
    change.aws.ec2("ModifyInstanceAttribute", InstanceId=change.identity, **attribute)
    _start(change)


def _stop(change: Change) -> None:
    aws, identity = change.aws, change.identity
    aws.ec2("StopInstances", InstanceIds=[identity])
    pending = ("pending", "running", "shutting-down", "stopping")
    await_state(aws, identity, "stopped", pending, STATE_CHANGE_SECONDS)


def _start(change: Change) -> None:
    aws, identity = change.aws, change.identity
    patiently(
        aws.pace,
        5 * MINUTE_SECONDS,
        lambda error: has_code(error, "InvalidParameterValue") and "LaunchPlan instance type" in str(error),
        lambda: aws.ec2("StartInstances", InstanceIds=[identity]),
    )
    await_state(aws, identity, "running", ("pending", "stopped"), STATE_CHANGE_SECONDS)


def _set_attribute(change: Change, name: str, value: Any) -> None:
    try:
        change.aws.ec2("ModifyInstanceAttribute", InstanceId=change.identity, **{name: {"Value": value}})
    except AwsError as error:
        # Spot instances have no protection to switch; the plugin overlooks that.
        if "not supported for spot instances" not in error.message.lower():
            raise


def _change_profile(change: Change) -> None:
    aws, identity, profile = change.aws, change.identity, change.new.get("iamInstanceProfile")
    of_instance = [{"Name": "instance-id", "Values": [identity]}]
    listed = aws.ec2("DescribeIamInstanceProfileAssociations", Filters=of_instance)
    current = [
        one["AssociationId"]
        for one in listed["IamInstanceProfileAssociations"]
        if one.get("State") in ("associating", "associated")
    ]
    wanted = {"Name": profile}
    if not profile:
        for association in current:
            aws.ec2("DisassociateIamInstanceProfile", AssociationId=association)
    elif not current:
        aws.ec2("AssociateIamInstanceProfile", InstanceId=identity, IamInstanceProfile=wanted)
    elif state_of(find_instance(aws, identity)) == "stopped":
        aws.ec2("DisassociateIamInstanceProfile", AssociationId=current[0])
        aws.ec2("AssociateIamInstanceProfile", InstanceId=identity, IamInstanceProfile=wanted)
    else:
        aws.ec2("ReplaceIamInstanceProfileAssociation", AssociationId=current[0], IamInstanceProfile=wanted)


def _change_groups(change: Change) -> None:
    groups = change.new.get("vpcSecurityGroupIds") or []
    if not groups:
        raise AwsError(
            "ec2",
            "ModifyNetworkInterfaceAttribute",
            "MissingParameter",
            "`vpcSecurityGroupIds` must contain at least one security group id",
            400,
            "",
        )
    instance = find_instance(change.aws, change.identity) or {}
    interface = primary_interface(instance).get("NetworkInterfaceId")
    change.aws.ec2("ModifyNetworkInterfaceAttribute", NetworkInterfaceId=interface, Groups=groups)


def _change_reservation(change: Change) -> None:
    wanted = capacity_reservation_request(change.new.get("capacityReservationSpecification"))
    if wanted is None:
        return
    _stop(change)
    change.aws.ec2(
        "ModifyInstanceCapacityReservationAttributes",
        InstanceId=change.identity,
        CapacityReservationSpecification=wanted,
    )
    _start(change)


def _change_root_volume(change: Change) -> None:
    aws = change.aws
    before, after = change.old.get("rootBlockDevice") or {}, change.new.get("rootBlockDevice") or {}
    volume = before.get("volumeId")
    names = (("volumeSize", "Size"), ("volumeType", "VolumeType"), ("iops", "Iops"), ("throughput", "Throughput"))
    wanted = {theirs: after[ours] for ours, theirs in names if after.get(ours) not in (None, before.get(ours))}
    if wanted and volume:
        aws.ec2("ModifyVolume", VolumeId=volume, **wanted)
        Wait(change.timeout, delay_seconds=30, least_poll_seconds=30).until(
            aws.pace, "modified", lambda: _modification(aws, volume), pending=("modifying",)
        )
    deletes = after.get("deleteOnTermination")
    if deletes is not None and deletes != before.get("deleteOnTermination"):
        mapping = {"DeviceName": before.get("deviceName"), "Ebs": {"DeleteOnTermination": deletes}}
        aws.ec2("ModifyInstanceAttribute", InstanceId=change.identity, BlockDeviceMappings=[mapping])


def _modification(aws: Region, volume: str) -> str | None:
    listed = aws.ec2("DescribeVolumesModifications", VolumeIds=[volume])["VolumesModifications"]
    state = listed[-1]["ModificationState"] if listed else "completed"
    return "modified" if state in ("completed", "optimizing") else str(state)


def _retag_volumes(change: Change) -> None:
    instance = find_instance(change.aws, change.identity) or {}
    defaults = change.aws.session.config.default_tags
    for mapping in instance.get("BlockDeviceMappings") or []:
        change_ec2_tags(
            change.aws,
            mapping["Ebs"]["VolumeId"],
            {**defaults, **(change.old.get("volumeTags") or {})},
            {**defaults, **(change.new.get("volumeTags") or {})},
        )


# In the plugin's order: inputs that call for a step, and the step.
_STEPS: tuple[tuple[frozenset[str], Step], ...] = (
    (frozenset({"volumeTags"}), _retag_volumes),
    (frozenset({"iamInstanceProfile"}), _change_profile),
    (frozenset({"sourceDestCheck"}), _change_source_check),
    (frozenset({"vpcSecurityGroupIds"}), _change_groups),
    (frozenset({"instanceType"}), _change_type),
    (frozenset({"userData", "userDataBase64"}), _change_user_data),
    (frozenset({"disableApiStop"}), _attribute_step("disableApiStop", "DisableApiStop")),
    (frozenset({"disableApiTermination"}), _attribute_step("disableApiTermination", "DisableApiTermination")),
    (
        frozenset({"instanceInitiatedShutdownBehavior"}),
        _attribute_step("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior"),
    ),
    (frozenset({"maintenanceOptions"}), _change_maintenance),
    (frozenset({"monitoring"}), _change_monitoring),
    (frozenset({"creditSpecification"}), _change_credit),
    (frozenset({"metadataOptions"}), _change_metadata),
    (frozenset({"rootBlockDevice"}), _change_root_volume),
    (frozenset({"capacityReservationSpecification"}), _change_reservation),
    (frozenset({"cpuOptions"}), _change_cpus),
)
