"""aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule and its egress twin"""

from typing import Any, ClassVar

from engine.sandbox.aws.deleting import delete, found
from engine.sandbox.aws.permissions import protocol_name
from engine.sandbox.aws.resource import Resource
from engine.sandbox.aws.schema import Difference, Input, Rules
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.wire import Properties, Value

_GONE = ("InvalidSecurityGroupRuleId.NotFound", "InvalidGroup.NotFound")

# Our name of a rule's source; AWS's name in ModifySecurityGroupRules and in answers; AWS's list in a permission.
_SOURCES = (
    ("cidrIpv4", "CidrIpv4", "IpRanges", "CidrIp"),
    ("cidrIpv6", "CidrIpv6", "Ipv6Ranges", "CidrIpv6"),
    ("prefixListId", "PrefixListId", "PrefixListIds", "PrefixListId"),
    ("referencedSecurityGroupId", "ReferencedGroupId", "UserIdGroupPairs", "GroupId"),
)
_SOURCE_NAMES = tuple(ours for ours, *_ in _SOURCES)

ALL_PORTS = -1
LAST_PORT = 65535


def same_protocol(old: Value, new: Value) -> bool:
    return protocol_name(old) == protocol_name(new)


def says_wrong_port(value: Value) -> str:
    return "" if ALL_PORTS <= value <= LAST_PORT else f"expected a port from -1 to {LAST_PORT}, got {value}"


class SecurityGroupRule(Resource):
    """One permission of a group, as a thing of its own."""

    direction: ClassVar[str]
    inputs = (
        Input("securityGroupId", required=True, replaces=True),
        Input("ipProtocol", required=True, same=same_protocol),
        Input("fromPort", says_wrong=says_wrong_port),
        Input("toPort", says_wrong=says_wrong_port),
        Input("description"),
        *(Input(name) for name in _SOURCE_NAMES),
    )
    outputs = ("arn", "securityGroupRuleId", "tagsAll")
    rules = Rules(exactly_one=(_SOURCE_NAMES,))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = aws.ec2(
            f"AuthorizeSecurityGroup{self.direction}",
            GroupId=inputs["securityGroupId"],
            IpPermissions=[_permission(inputs)],
            TagSpecifications=tag_specifications("security-group-rule", inputs.get("tagsAll")),
        )
        return str(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        rule = _find(aws, identity)
        if rule is None:
            return None
        protocol = str(rule["IpProtocol"])
        before = known.get("ipProtocol")
        seen = {
            "arn": rule.get("SecurityGroupRuleArn")
            or aws.arn("ec2", f"security-group-rule/{identity}", rule.get("GroupOwnerId")),
            "securityGroupRuleId": identity,
            "securityGroupId": rule["GroupId"],
            "ipProtocol": before if before and same_protocol(before, protocol) else protocol,
            "fromPort": _port(rule.get("FromPort"), known.get("fromPort")),
            "toPort": _port(rule.get("ToPort"), known.get("toPort")),
            "description": rule.get("Description", known.get("description")),
            "tagsAll": remote_tags(aws.session.config, rule.get("Tags")),
        }
        for ours, theirs, _, _ in _SOURCES:
            seen[ours] = rule.get(theirs)
        group = rule.get("ReferencedGroupInfo")
        seen["referencedSecurityGroupId"] = group.get("GroupId") if group else None
        return seen

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if changed - {"tags", "tagsAll"}:
            request = {"SecurityGroupRuleId": identity, "SecurityGroupRule": _whole_rule(new)}
            aws.ec2("ModifySecurityGroupRules", GroupId=new["securityGroupId"], SecurityGroupRules=[request])
        return identity

    def also_replaces(
        self, aws: Region, identity: str, difference: Difference, state: Properties, new: Properties
    ) -> set[str]:
        """AWS can change a source, but not its kind."""
        before = {name for name in _SOURCE_NAMES if state.get(name)}
        after = {name for name in _SOURCE_NAMES if new.get(name)}
        return before ^ after

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(
            aws,
            f"RevokeSecurityGroup{self.direction}",
            _GONE,
            timeout,
            GroupId=known["securityGroupId"],
            SecurityGroupRuleIds=[identity],
        )


class SecurityGroupIngressRule(SecurityGroupRule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    noun = "VPC Security Group Ingress Rule"
    direction = "Ingress"


class SecurityGroupEgressRule(SecurityGroupRule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    noun = "VPC Security Group Egress Rule"
    direction = "Egress"


def _permission(inputs: Properties) -> dict[str, Any]:
    ours, _, listed, name = next(source for source in _SOURCES if inputs.get(source[0]))
    source = {name: inputs[ours]}
    if listed == "UserIdGroupPairs" and "/" in inputs[ours]:
        account, group = inputs[ours].split("/", 1)
        source = {"UserId": account, "GroupId": group}
    if inputs.get("description"):
        source["Description"] = inputs["description"]
    return {"IpProtocol": inputs["ipProtocol"], **_ports(inputs), listed: [source]}


def _whole_rule(inputs: Properties) -> dict[str, Any]:
    ours, theirs, _, _ = next(source for source in _SOURCES if inputs.get(source[0]))
    described = {"Description": inputs["description"]} if inputs.get("description") else {}
    ports = _ports(inputs) or {"FromPort": ALL_PORTS, "ToPort": ALL_PORTS}
    return {"IpProtocol": inputs["ipProtocol"], **ports, theirs: _source(ours, inputs[ours]), **described}


def _ports(inputs: Properties) -> dict[str, int]:
    ports = {"FromPort": inputs.get("fromPort"), "ToPort": inputs.get("toPort")}
    return {name: int(port) for name, port in ports.items() if port is not None}


def _port(seen: Any, before: Value) -> Value:
    """AWS answers -1 where no port was given."""
    return before if seen in (None, ALL_PORTS) else int(seen)


def _find(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeSecurityGroupRules", "SecurityGroupRules", _GONE, SecurityGroupRuleIds=[identity])


def _source(kind: str, value: str) -> str:
    """A group of another account is named ACCOUNT/GROUP; CIDR blocks keep their slash."""
    return value.rsplit("/", 1)[-1] if kind == "referencedSecurityGroupId" else value
