"""aws:ec2/securityGroup:SecurityGroup"""

from typing import Any

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.permissions import Atom, atoms_of_permissions, atoms_of_rules, permission, rules_of
from engine.sandbox.aws.resource import MINUTE_SECONDS, Named, Resource, unique_name
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import AwsError, Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait
from engine.sandbox.aws.wire import Properties, Value

_GONE = ("InvalidGroup.NotFound",)
_RULE_GONE = ("InvalidPermission.NotFound",)
_IN_USE = ("DependencyViolation", "InvalidGroup.InUse")

LONGEST_NAME = 255

_ANYWHERE = (
    {"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
    {"IpProtocol": "-1", "Ipv6Ranges": [{"CidrIpv6": "::/0"}]},
)


def same_rules(old: Value, new: Value) -> bool:
    """Whether two lists of rules allow the same, however they are grouped and ordered."""
    return atoms_of_rules(old, "sg-self") == atoms_of_rules(new, "sg-self")


def says_wrong_rules(rules: Value) -> str:
    missing = [name for rule in rules for name in ("protocol", "fromPort", "toPort") if rule.get(name) is None]
    return f"every rule needs {', '.join(sorted(set(missing)))}" if missing else ""


def says_wrong_name(name: Value) -> str:
    return "a security group's name must not start with sg-" if str(name).startswith("sg-") else ""


class SecurityGroup(Resource):
    token = "aws:ec2/securityGroup:SecurityGroup"
    noun = "Security Group"
    named = Named(LONGEST_NAME)
    create_seconds = 10 * MINUTE_SECONDS
    delete_seconds = 15 * MINUTE_SECONDS
    inputs = (
        Input("name", computed=True, replaces=True, says_wrong=says_wrong_name),
        Input("namePrefix", computed=True, replaces=True),
        Input("description", replaces=True, default="Managed by Pulumi"),
        Input("vpcId", computed=True, replaces=True),
        Input("ingress", computed=True, same=same_rules, says_wrong=says_wrong_rules),
        Input("egress", computed=True, same=same_rules, says_wrong=says_wrong_rules),
        Input("revokeRulesOnDelete", default=False),
    )
    outputs = ("arn", "ownerId", "tagsAll")
    rules = Rules(exclusive=(("name", "namePrefix"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = aws.ec2(
            "CreateSecurityGroup",
            GroupName=inputs.get("name") or unique_name(inputs["namePrefix"]),
            Description=inputs["description"],
            VpcId=inputs.get("vpcId"),
            TagSpecifications=tag_specifications("security-group", inputs.get("tagsAll")),
        )
        return str(answer["GroupId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        Wait(timeout, misses=1000).until_found(aws.pace, lambda: _found(aws, identity), times=3)
        # AWS lets everything out of a new group. As in Terraform, nothing leaves that no rule allows.
        for allowed in _ANYWHERE:
            _revoke(aws, identity, "Egress", allowed)
        for direction in ("Ingress", "Egress"):
            wanted = atoms_of_rules(inputs.get(direction.lower()), identity)
            _authorize(aws, identity, direction, wanted)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        group = find_group(aws, identity)
        if group is None:
            return None
        owner = group.get("OwnerId", "")
        return {
            "arn": aws.arn("ec2", f"security-group/{identity}", owner),
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group.get("VpcId"),
            "ownerId": owner,
            "ingress": _grouped_as_before(known.get("ingress"), group.get("IpPermissions"), identity),
            "egress": _grouped_as_before(known.get("egress"), group.get("IpPermissionsEgress"), identity),
            "tagsAll": remote_tags(aws.session.config, group.get("Tags")),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        for direction in ("Ingress", "Egress"):
            name = direction.lower()
            if name in changed:
                before, after = atoms_of_rules(old.get(name), identity), atoms_of_rules(new.get(name), identity)
                for atom in sorted(before - after):
                    _revoke(aws, identity, direction, permission(atom))
                _authorize(aws, identity, direction, after - before)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        if known.get("revokeRulesOnDelete"):
            group = find_group(aws, identity) or {}
            for key, direction in (("IpPermissions", "Ingress"), ("IpPermissionsEgress", "Egress")):
                for atom in sorted(atoms_of_permissions(group.get(key))):
                    _revoke(aws, identity, direction, permission(atom))
        delete(aws, "DeleteSecurityGroup", _GONE, timeout, while_in_use=_IN_USE, GroupId=identity)
        Wait(5 * MINUTE_SECONDS).until_gone(aws.pace, lambda: _found(aws, identity))


def find_group(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeSecurityGroups", "SecurityGroups", _GONE, GroupIds=[identity])


def _found(aws: Region, identity: str) -> str | None:
    return None if find_group(aws, identity) is None else "found"


def _grouped_as_before(before: Value, permissions: Any, identity: str) -> Value:
    """The program's own rules while they allow what AWS says; AWS's, one rule a port range, otherwise."""
    remote = atoms_of_permissions(permissions)
    if before is not None and atoms_of_rules(before, identity) == remote:
        return before
    return rules_of(remote, identity)


def _authorize(aws: Region, identity: str, direction: str, atoms: frozenset[Atom]) -> None:
    if atoms:
        permissions = [permission(atom) for atom in sorted(atoms)]
        aws.ec2(f"AuthorizeSecurityGroup{direction}", GroupId=identity, IpPermissions=permissions)


def _revoke(aws: Region, identity: str, direction: str, allowed: dict[str, Any]) -> None:
    try:
        aws.ec2(f"RevokeSecurityGroup{direction}", GroupId=identity, IpPermissions=[allowed])
    except AwsError as error:
        if error.code not in _RULE_GONE:
            raise
