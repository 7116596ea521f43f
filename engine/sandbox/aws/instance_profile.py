"""aws:iam/instanceProfile:InstanceProfile"""

from collections.abc import Mapping

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.iam import NO_SUCH_ENTITY, find
from engine.sandbox.aws.resource import MINUTE_SECONDS, Named, Resource, unique_name
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import AwsError, Region
from engine.sandbox.aws.tagging import changed_tags, remote_tags, tag_list
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties

LONGEST_NAME = 128
PATIENCE_SECONDS = 2 * MINUTE_SECONDS


class InstanceProfile(Resource):
    token = "aws:iam/instanceProfile:InstanceProfile"
    noun = "IAM Instance Profile"
    named = Named(LONGEST_NAME)
    regional = False
    inputs = (
        Input("name", computed=True, replaces=True),
        Input("namePrefix", computed=True, replaces=True),
        Input("path", replaces=True, default="/"),
        Input("role"),
    )
    outputs = ("arn", "createDate", "uniqueId", "tagsAll")
    rules = Rules(exclusive=(("name", "namePrefix"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        name = inputs.get("name") or unique_name(inputs["namePrefix"])
        tags = tag_list(inputs.get("tagsAll")) or None
        aws.iam("CreateInstanceProfile", InstanceProfileName=name, Path=inputs["path"], Tags=tags)
        return str(name)

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        Wait(PATIENCE_SECONDS).until_found(aws.pace, lambda: _found(aws, identity))
        if inputs.get("role"):
            _add_role(aws, identity, inputs["role"])
        Wait(timeout, delay_seconds=5, misses=5).until_found(aws.pace, lambda: _found(aws, identity), times=3)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        profile = find(aws, "GetInstanceProfile", "InstanceProfile", InstanceProfileName=identity)
        if profile is None:
            return None
        roles = [role["RoleName"] for role in profile.get("Roles") or []]
        if roles and find(aws, "GetRole", "Role", RoleName=roles[0]) is None:
            # As the plugin does: a profile that holds a deleted role cannot be given another.
            _remove_role(aws, identity, roles.pop(0))
        return {
            "arn": profile["Arn"],
            "name": profile["InstanceProfileName"],
            "path": profile["Path"],
            "uniqueId": profile["InstanceProfileId"],
            "createDate": profile["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ"),
            "role": roles[0] if roles else "",
            "tagsAll": remote_tags(aws.session.config, profile.get("Tags")),
        }

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        gone, put = changed_tags(known.get("tagsAll"), new)
        if gone:
            aws.iam("UntagInstanceProfile", InstanceProfileName=identity, TagKeys=gone)
        if put:
            aws.iam("TagInstanceProfile", InstanceProfileName=identity, Tags=tag_list(put))

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "role" in changed:
            if old.get("role"):
                _remove_role(aws, identity, old["role"])
            if new.get("role"):
                _add_role(aws, identity, new["role"])
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        if known.get("role"):
            _remove_role(aws, identity, known["role"])
        delete(aws, "DeleteInstanceProfile", NO_SUCH_ENTITY, timeout, service="iam", InstanceProfileName=identity)


def _add_role(aws: Region, profile: str, role: str) -> None:
    patiently(
        aws.pace,
        PATIENCE_SECONDS,
        _is_propagating,
        lambda: aws.iam("AddRoleToInstanceProfile", InstanceProfileName=profile, RoleName=role),
    )


def _remove_role(aws: Region, profile: str, role: str) -> None:
    delete(
        aws,
        "RemoveRoleFromInstanceProfile",
        NO_SUCH_ENTITY,
        PATIENCE_SECONDS,
        service="iam",
        InstanceProfileName=profile,
        RoleName=role,
    )


def _is_propagating(error: Exception) -> bool:
    if not isinstance(error, AwsError):
        return False
    unknown_profile = error.code == "InvalidParameterValue" and "Invalid IAM Instance Profile name" in error.message
    return unknown_profile or (error.code == "NoSuchEntity" and "The role with name" in error.message)


def _found(aws: Region, identity: str) -> str | None:
    profile = find(aws, "GetInstanceProfile", "InstanceProfile", InstanceProfileName=identity)
    return "found" if profile and profile["Arn"].startswith("arn:") else None
