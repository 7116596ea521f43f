"""Finding parts of an environment's foundation that a killed run may have made without anybody noting their ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine.model import labels
from engine.observe.aws_client import aws_client, told_as_observation

Inputs = Mapping[str, Any]

_ABSENT = frozenset({"NoSuchEntity", "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"})


class Ec2FoundationFinder:
    """Looks each part up by what the environment would have made it from: its tags, its name, its place."""

    def __init__(self, endpoint_url: str | None, region: str) -> None:
        self._endpoint_url = endpoint_url
        self._region = region

    def find(self, kind: str, inputs: Inputs) -> str | None:
        """The id that the part's provider reads it by, or None when there is none (or none of this kind is looked for).

        `kind` is the part's type and `inputs` are its inputs, both as the AWS plugin names them. Raises
        ObservationFailed.
        """
        look_up = _LOOK_UPS.get(kind.rsplit(":", 1)[-1])
        if look_up is None:
            return None
        service, ask = look_up
        with told_as_observation(service, self._endpoint_url, self._region, f"an earlier run's {kind}"):
            client = aws_client(service, self._endpoint_url, self._region)
            return _unless_absent(lambda: ask(client, inputs))


def _unless_absent(ask: Callable[[], str | None]) -> str | None:
    from botocore.exceptions import ClientError

    try:
        return ask()
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if "NotFound" in code or code in _ABSENT:
            return None
        raise


def _tagged(inputs: Inputs) -> list[dict[str, Any]]:
    """Filters for the tags that make a part this environment's: its name and the environment."""
    tags = inputs.get("tags") or {}
    own = (labels.TAG_NAME, labels.TAG_ENVIRONMENT)
    return [{"Name": f"tag:{key}", "Values": [tags[key]]} for key in own if key in tags]


def _filters(**values: str) -> list[dict[str, Any]]:
    return [{"Name": name.replace("_", "-"), "Values": [value]} for name, value in values.items()]


def _only(found: list[dict[str, Any]], key: str) -> str | None:
    return str(found[0][key]) if found else None


def _vpc(ec2: Any, inputs: Inputs) -> str | None:
    return _only(ec2.describe_vpcs(Filters=_tagged(inputs))["Vpcs"], "VpcId")


def _subnet(ec2: Any, inputs: Inputs) -> str | None:
    place = _filters(vpc_id=inputs["vpcId"], cidr_block=inputs["cidrBlock"])
    return _only(ec2.describe_subnets(Filters=place)["Subnets"], "SubnetId")


def _internet_gateway(ec2: Any, inputs: Inputs) -> str | None:
    found = ec2.describe_internet_gateways(Filters=_tagged(inputs))["InternetGateways"]
    return _only(found, "InternetGatewayId")


def _route_table(ec2: Any, inputs: Inputs) -> str | None:
    found = ec2.describe_route_tables(Filters=_filters(vpc_id=inputs["vpcId"]) + _tagged(inputs))["RouteTables"]
    return _only(found, "RouteTableId")


def _route(ec2: Any, inputs: Inputs) -> str | None:
    table, destination = inputs["routeTableId"], inputs["destinationCidrBlock"]
    [found] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    has_it = any(route.get("DestinationCidrBlock") == destination for route in found["Routes"])
    return f"{table}_{destination}" if has_it else None


def _route_table_association(ec2: Any, inputs: Inputs) -> str | None:
    table, subnet = inputs["routeTableId"], inputs["subnetId"]
    [found] = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    return _only([one for one in found["Associations"] if one.get("SubnetId") == subnet], "RouteTableAssociationId")


def _security_group(ec2: Any, inputs: Inputs) -> str | None:
    place = _filters(vpc_id=inputs["vpcId"], group_name=inputs["name"])
    return _only(ec2.describe_security_groups(Filters=place)["SecurityGroups"], "GroupId")


def _rule(is_egress: bool) -> Callable[[Any, Inputs], str | None]:
    def ask(ec2: Any, inputs: Inputs) -> str | None:
        rules = ec2.describe_security_group_rules(Filters=_filters(group_id=inputs["securityGroupId"]))
        same = [
            rule
            for rule in rules["SecurityGroupRules"]
            if rule["IsEgress"] is is_egress
            and str(rule["IpProtocol"]) == inputs["ipProtocol"]
            and rule.get("CidrIpv4") == inputs.get("cidrIpv4")
            and (rule.get("ReferencedGroupInfo") or {}).get("GroupId") == inputs.get("referencedSecurityGroupId")
        ]
        return _only(same, "SecurityGroupRuleId")

    return ask


def _launch_template(ec2: Any, inputs: Inputs) -> str | None:
    found = ec2.describe_launch_templates(LaunchTemplateNames=[inputs["name"]])["LaunchTemplates"]
    return _only([one for one in found if _is_own(one, inputs)], "LaunchTemplateId")


def _is_own(found: Mapping[str, Any], inputs: Inputs) -> bool:
    """Whether what has the right name has the environment's tags as well, so that it is not somebody else's."""
    has = {tag["Key"]: tag["Value"] for tag in found.get("Tags") or ()}
    wanted = inputs.get("tags") or {}
    return all(has.get(key) == wanted[key] for key in (labels.TAG_NAME, labels.TAG_ENVIRONMENT) if key in wanted)


def _role(iam: Any, inputs: Inputs) -> str | None:
    found = iam.get_role(RoleName=inputs["name"])["Role"]
    return str(found["RoleName"]) if _is_own(found, inputs) else None


def _role_policy_attachment(iam: Any, inputs: Inputs) -> str | None:
    role, policy = inputs["role"], inputs["policyArn"]
    pages = iam.get_paginator("list_attached_role_policies").paginate(RoleName=role)
    has_it = any(one["PolicyArn"] == policy for page in pages for one in page["AttachedPolicies"])
    return f"{role}/{policy}" if has_it else None


def _instance_profile(iam: Any, inputs: Inputs) -> str | None:
    found = iam.get_instance_profile(InstanceProfileName=inputs["name"])["InstanceProfile"]
    return str(found["InstanceProfileName"]) if _is_own(found, inputs) else None


def _access_entry(eks: Any, inputs: Inputs) -> str | None:
    """`principalArn` may be no more than the ARN's end, after a lost state."""
    cluster, principal = inputs["clusterName"], inputs["principalArn"]
    pages = eks.get_paginator("list_access_entries").paginate(clusterName=cluster)
    entries = [entry for page in pages for entry in page["accessEntries"]]
    same = next((entry for entry in entries if entry == principal or entry.endswith(f":{principal}")), None)
    return f"{cluster}:{same}" if same else None


def _queue(sqs: Any, inputs: Inputs) -> str | None:
    """A queue's id is its URL."""
    url = str(sqs.get_queue_url(QueueName=inputs["name"])["QueueUrl"])
    tags = sqs.list_queue_tags(QueueUrl=url).get("Tags") or {}
    listed = [{"Key": key, "Value": value} for key, value in tags.items()]
    return url if _is_own({"Tags": listed}, inputs) else None


def _queue_policy(sqs: Any, inputs: Inputs) -> str | None:
    """A policy's id is its queue's; what it says, a refresh reads."""
    answer = sqs.get_queue_attributes(QueueUrl=inputs["queueUrl"], AttributeNames=["Policy"])
    return str(inputs["queueUrl"]) if (answer.get("Attributes") or {}).get("Policy") else None


def _event_rule(events: Any, inputs: Inputs) -> str | None:
    found = events.describe_rule(Name=inputs["name"])
    tags = events.list_tags_for_resource(ResourceARN=found["Arn"])
    return str(found["Name"]) if _is_own(tags, inputs) else None


def _event_target(events: Any, inputs: Inputs) -> str | None:
    rule, target = inputs["rule"], inputs["targetId"]
    targets = events.list_targets_by_rule(Rule=rule)["Targets"]
    return f"{rule}-{target}" if any(one["Id"] == target for one in targets) else None


_LOOK_UPS: Mapping[str, tuple[str, Callable[[Any, Inputs], str | None]]] = {
    "Vpc": ("ec2", _vpc),
    "Subnet": ("ec2", _subnet),
    "InternetGateway": ("ec2", _internet_gateway),
    "RouteTable": ("ec2", _route_table),
    "Route": ("ec2", _route),
    "RouteTableAssociation": ("ec2", _route_table_association),
    "SecurityGroup": ("ec2", _security_group),
    "SecurityGroupEgressRule": ("ec2", _rule(is_egress=True)),
    "SecurityGroupIngressRule": ("ec2", _rule(is_egress=False)),
    "LaunchTemplate": ("ec2", _launch_template),
    "Role": ("iam", _role),
    "RolePolicyAttachment": ("iam", _role_policy_attachment),
    "InstanceProfile": ("iam", _instance_profile),
    "AccessEntry": ("eks", _access_entry),
    "Queue": ("sqs", _queue),
    "QueuePolicy": ("sqs", _queue_policy),
    "EventRule": ("events", _event_rule),
    "EventTarget": ("events", _event_target),
}
