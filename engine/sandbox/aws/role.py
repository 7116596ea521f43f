"""aws:iam/role:Role"""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.iam import NO_SUCH_ENTITY, find, pages, principal_is_not_there_yet
from engine.sandbox.aws.resource import MINUTE_SECONDS, Named, Resource, unique_name
from engine.sandbox.aws.schema import Input, Rules, equal_as_sets
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import changed_tags, remote_tags, tag_list
from engine.sandbox.aws.waiting import patiently
from engine.sandbox.aws.wire import Properties, Value

LONGEST_NAME = 64
PROPAGATION_SECONDS = 2 * MINUTE_SECONDS


def same_json(old: Value, new: Value) -> bool:
    """Whether two texts are the same JSON."""
    try:
        return bool(json.loads(old) == json.loads(new))
    except (TypeError, ValueError):
        return bool(old == new)


def says_wrong_json(value: Value) -> str:
    try:
        json.loads(value)
    except (TypeError, ValueError) as error:
        return f"contains an invalid JSON policy: {error}"
    return ""


class Role(Resource):
    token = "aws:iam/role:Role"
    noun = "IAM Role"
    named = Named(LONGEST_NAME)
    regional = False
    inputs = (
        Input("assumeRolePolicy", required=True, same=same_json, says_wrong=says_wrong_json),
        Input("name", computed=True, replaces=True),
        Input("namePrefix", computed=True, replaces=True),
        Input("path", replaces=True, default="/"),
        Input("description"),
        Input("maxSessionDuration", default=3600),
        Input("permissionsBoundary"),
        Input("forceDetachPolicies", default=False),
        Input("managedPolicyArns", computed=True, same=equal_as_sets),
        Input("inlinePolicies", computed=True, performed=False),
    )
    outputs = ("arn", "createDate", "uniqueId", "tagsAll")
    rules = Rules(exclusive=(("name", "namePrefix"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        name = inputs.get("name") or unique_name(inputs["namePrefix"])
        patiently(
            aws.pace,
            PROPAGATION_SECONDS,
            principal_is_not_there_yet,
            lambda: aws.iam(
                "CreateRole",
                RoleName=name,
                AssumeRolePolicyDocument=inputs["assumeRolePolicy"],
                Path=inputs["path"],
                Description=inputs.get("description"),
                MaxSessionDuration=inputs["maxSessionDuration"],
                PermissionsBoundary=inputs.get("permissionsBoundary"),
                Tags=tag_list(inputs.get("tagsAll")) or None,
            ),
        )
        return str(name)

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        for policy in inputs.get("managedPolicyArns") or []:
            aws.iam("AttachRolePolicy", RoleName=identity, PolicyArn=policy)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        role = find(aws, "GetRole", "Role", RoleName=identity)
        if role is None:
            return None
        document = _policy_text(role["AssumeRolePolicyDocument"])
        before = known.get("assumeRolePolicy")
        attached = _attached(aws, identity)
        return {
            "arn": role["Arn"],
            "name": role["RoleName"],
            "path": role["Path"],
            "uniqueId": role["RoleId"],
            "createDate": role["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ"),
            "description": role.get("Description") or None,
            "maxSessionDuration": int(role.get("MaxSessionDuration", 3600)),
            "permissionsBoundary": (role.get("PermissionsBoundary") or {}).get("PermissionsBoundaryArn"),
            "assumeRolePolicy": before if same_json(before, document) else document,
            "managedPolicyArns": attached,
            "tagsAll": remote_tags(aws.session.config, role.get("Tags")),
        }

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        gone, put = changed_tags(known.get("tagsAll"), new)
        if gone:
            aws.iam("UntagRole", RoleName=identity, TagKeys=gone)
        if put:
            aws.iam("TagRole", RoleName=identity, Tags=tag_list(put))

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "assumeRolePolicy" in changed:
            policy = new["assumeRolePolicy"]
            patiently(
                aws.pace,
                PROPAGATION_SECONDS,
                principal_is_not_there_yet,
                lambda: aws.iam("UpdateAssumeRolePolicy", RoleName=identity, PolicyDocument=policy),
            )
        if "description" in changed:
            aws.iam("UpdateRoleDescription", RoleName=identity, Description=new.get("description") or "")
        if "maxSessionDuration" in changed:
            aws.iam("UpdateRole", RoleName=identity, MaxSessionDuration=new["maxSessionDuration"])
        if "permissionsBoundary" in changed:
            _bound(aws, identity, new.get("permissionsBoundary"))
        if "managedPolicyArns" in changed:
            before, after = set(old.get("managedPolicyArns") or ()), set(new.get("managedPolicyArns") or ())
            for policy in sorted(before - after):
                _detach(aws, identity, policy, timeout)
            for policy in sorted(after - before):
                aws.iam("AttachRolePolicy", RoleName=identity, PolicyArn=policy)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        profiles = pages(aws, "ListInstanceProfilesForRole", "InstanceProfiles", RoleName=identity)
        for profile in profiles:
            delete(
                aws,
                "RemoveRoleFromInstanceProfile",
                NO_SUCH_ENTITY,
                timeout,
                service="iam",
                InstanceProfileName=profile["InstanceProfileName"],
                RoleName=identity,
            )
        if known.get("forceDetachPolicies") or known.get("managedPolicyArns"):
            for policy in _attached(aws, identity):
                _detach(aws, identity, policy, timeout)
        delete(
            aws,
            "DeleteRole",
            NO_SUCH_ENTITY,
            PROPAGATION_SECONDS,
            while_in_use=("DeleteConflict",),
            service="iam",
            RoleName=identity,
        )


def _attached(aws: Region, role: str) -> list[str]:
    attached = pages(aws, "ListAttachedRolePolicies", "AttachedPolicies", RoleName=role)
    return sorted(policy["PolicyArn"] for policy in attached)


def _detach(aws: Region, role: str, policy: str, timeout: float) -> None:
    delete(aws, "DetachRolePolicy", NO_SUCH_ENTITY, timeout, service="iam", RoleName=role, PolicyArn=policy)


def _bound(aws: Region, role: str, boundary: Value) -> None:
    if boundary:
        aws.iam("PutRolePermissionsBoundary", RoleName=role, PermissionsBoundary=boundary)
    else:
        aws.iam("DeleteRolePermissionsBoundary", RoleName=role)


def _policy_text(document: Any) -> str:
    """boto3 gives the document parsed; AWS gives it URL-encoded."""
    return unquote(document) if isinstance(document, str) else json.dumps(document, separators=(",", ":"))
