"""The stand-ins under the real engine: a network with nodes goes up, changes, is refreshed and comes down."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.sandbox.faults import Error, NoCapacity
from engine.sandbox.toolbox import attached_aws_plugin
from tests.engine.conftest import PulumiRoom, Sandbox

pytestmark = pytest.mark.engine

INSTANCE = "aws:ec2/instance:Instance"

PROVIDER = """
import json, os
import pulumi
import pulumi_aws as aws

url = os.environ["EC2_URL"]
provider = aws.Provider(
    "aws",
    region="us-east-1",
    access_key="test",
    secret_key="test",
    max_retries=2,
    skip_credentials_validation=True,
    skip_requesting_account_id=True,
    skip_metadata_api_check=True,
    endpoints=[aws.ProviderEndpointArgs(ec2=url, iam=url, sts=url)],
    default_tags=aws.ProviderDefaultTagsArgs(tags={"room": os.environ["ROOM"]}),
)
at = pulumi.ResourceOptions(provider=provider)
"""

NETWORK = (
    PROVIDER
    + """
vpc = aws.ec2.Vpc("net", cidr_block="10.0.0.0/16", enable_dns_hostnames=True, opts=at)
zones = [
    aws.ec2.Subnet(f"zone-{letter}", vpc_id=vpc.id, cidr_block=f"10.0.{16 * index}.0/20",
                   availability_zone=f"us-east-1{letter}", map_public_ip_on_launch=True, opts=at)
    for index, letter in enumerate("abc")
]
gateway = aws.ec2.InternetGateway("gateway", vpc_id=vpc.id, opts=at)
table = aws.ec2.RouteTable("table", vpc_id=vpc.id, opts=at)
aws.ec2.Route("out", route_table_id=table.id, destination_cidr_block="0.0.0.0/0", gateway_id=gateway.id, opts=at)
for index, zone in enumerate(zones):
    aws.ec2.RouteTableAssociation(f"table-{index}", route_table_id=table.id, subnet_id=zone.id, opts=at)
group = aws.ec2.SecurityGroup("nodes", vpc_id=vpc.id, opts=at)
aws.vpc.SecurityGroupIngressRule("among", security_group_id=group.id, ip_protocol="-1",
                                 referenced_security_group_id=group.id, opts=at)
aws.vpc.SecurityGroupEgressRule("out", security_group_id=group.id, ip_protocol="-1", cidr_ipv4="0.0.0.0/0", opts=at)
role = aws.iam.Role("node", opts=at, assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}))
aws.iam.RolePolicyAttachment("worker", role=role.name, opts=at,
                             policy_arn="arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
profile = aws.iam.InstanceProfile("node", role=role.name, opts=at)
template = aws.ec2.LaunchTemplate(
    "template",
    image_id="ami-0123456789abcdef0",
    iam_instance_profile={"name": profile.name},
    vpc_security_group_ids=[group.id],
    metadata_options={"http_tokens": "required", "http_put_response_hop_limit": 2},
    block_device_mappings=[{"device_name": "/dev/xvda", "ebs": {"volume_size": 100, "volume_type": "gp3",
                                                                "delete_on_termination": "true"}}],
    user_data="IyEvYmluL3NoCg==",
    opts=at,
)
for number in range(int(os.environ.get("NODES", "6"))):
    market = {"instance_market_options": {"market_type": "spot"}} if number % 2 else {}
    aws.ec2.Instance(
        f"node-{number}",
        instance_type=os.environ.get("TYPE", "g5.xlarge"),
        subnet_id=zones[number % 3].id,
        launch_template={"id": template.id, "version": template.latest_version.apply(str)},
        tags={"claim": f"node-{number}", "owner": os.environ.get("OWNER", "a")},
        opts=at,
        **market,
    )
"""
)

# A subnet that exists, and nodes in it.
NODES = (
    PROVIDER
    + """
for name in os.environ["NAMES"].split():
    aws.ec2.Instance(name, ami="ami-0123456789abcdef0", instance_type="g5.xlarge", subnet_id=os.environ["SUBNET"],
                     tags={"claim": name}, opts=at)
"""
)


def a_subnet(sandbox: Sandbox, zone: str = "us-east-1a") -> str:
    ec2 = sandbox.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/20", AvailabilityZone=zone)
    return str(made["Subnet"]["SubnetId"])


def test_an_environment_goes_up_rests_changes_drifts_and_comes_down(pulumi_room: PulumiRoom, sandbox: Sandbox) -> None:
    roles_before = role_names(sandbox)
    pulumi_room.program(NETWORK)
    ec2 = sandbox.client("ec2")
    room = {"ROOM": "whole"}

    up = pulumi_room.run("up", "--yes", "--stack", "test", **room)
    assert up.code == 0, up.output
    nodes = {one["InstanceId"]: one for one in sandbox.instances(room="whole")}
    assert set(nodes) == set(pulumi_room.ids(INSTANCE).values())
    assert len(nodes) == 6
    assert sum(one.get("InstanceLifecycle") == "spot" for one in nodes.values()) == 3
    assert {one["Placement"]["AvailabilityZone"] for one in nodes.values()} == {
        "us-east-1a",
        "us-east-1b",
        "us-east-1c",
    }
    assert len(sandbox.instances(room="whole", owner="a")) == 6

    # Nothing to do, before and after a refresh.
    assert pulumi_room.run("preview", "--expect-no-changes", "--stack", "test", **room).code == 0
    refreshed = pulumi_room.run("refresh", "--yes", "--skip-preview", "--expect-no-changes", "--stack", "test", **room)
    assert refreshed.code == 0, refreshed.output

    # In place: tags, and an instance type of the same architecture. A node is dropped by the way.
    before = pulumi_room.ids(INSTANCE)
    changed = pulumi_room.up(OWNER="b", TYPE="g5.2xlarge", NODES="5", **room)
    assert changed.code == 0, changed.output
    after = {one["InstanceId"]: one for one in sandbox.instances(room="whole")}
    assert set(after) == set(before.values()) - {before["node-5"]}
    assert {one["InstanceType"] for one in after.values()} == {"g5.2xlarge"}
    assert {"Key": "owner", "Value": "b"} in next(iter(after.values()))["Tags"]

    # Drift: one node is terminated by somebody, another is tagged by hand.
    lost, tagged = before["node-0"], before["node-1"]
    ec2.terminate_instances(InstanceIds=[lost])
    ec2.create_tags(Resources=[tagged], Tags=[{"Key": "by", "Value": "hand"}])
    assert pulumi_room.run("refresh", "--yes", "--skip-preview", "--stack", "test", OWNER="b", **room).code == 0
    assert "node-0" not in pulumi_room.ids(INSTANCE)
    repaired = pulumi_room.up(OWNER="b", TYPE="g5.2xlarge", NODES="5", **room)
    assert repaired.code == 0, repaired.output
    assert len(sandbox.instances(room="whole")) == 5
    assert sandbox.instances(by="hand") == []

    # Another architecture replaces, and the new node is there before the old one goes.
    replaced = pulumi_room.up(OWNER="b", TYPE="g5g.xlarge", NODES="5", **room)
    assert replaced.code == 0, replaced.output
    assert not set(pulumi_room.ids(INSTANCE).values()) & set(before.values())
    assert {one["InstanceType"] for one in sandbox.instances(room="whole")} == {"g5g.xlarge"}

    destroyed = pulumi_room.run("destroy", "--yes", "--skip-preview", "--stack", "test", **room)
    assert destroyed.code == 0, destroyed.output
    of_room = [{"Name": "tag:room", "Values": ["whole"]}]
    assert sandbox.instances(room="whole") == []
    assert ec2.describe_vpcs(Filters=of_room)["Vpcs"] == []
    assert ec2.describe_security_groups(Filters=of_room)["SecurityGroups"] == []
    assert ec2.describe_launch_templates(Filters=of_room)["LaunchTemplates"] == []
    assert role_names(sandbox) == roles_before


def test_a_launch_without_capacity_fails_with_awss_code_and_leaves_the_others_alone(
    pulumi_room: PulumiRoom, sandbox: Sandbox
) -> None:
    pulumi_room.program(NODES)
    scarce = a_subnet(sandbox, "us-east-1b")
    sandbox.faults(NoCapacity("g5.xlarge", "us-east-1b", times=3))
    asked_before = len(sandbox.requests("RunInstances"))
    up = pulumi_room.up("--continue-on-error", NAMES="one", SUBNET=scarce, ROOM="ice")
    assert up.code != 0
    assert "creating EC2 Instance: operation error EC2: RunInstances" in up.output
    assert "api error InsufficientInstanceCapacity: We currently do not have sufficient g5.xlarge" in up.output
    # max_retries is 2: one attempt, two more.
    assert [one["error"] for one in sandbox.requests("RunInstances")[asked_before:]] == [
        "InsufficientInstanceCapacity"
    ] * 3
    assert pulumi_room.ids(INSTANCE) == {}
    later = pulumi_room.up(NAMES="one", SUBNET=scarce, ROOM="ice")
    assert later.code == 0, later.output
    assert len(sandbox.instances(room="ice")) == 1


def test_an_instance_whose_launch_was_answered_is_kept_in_the_state_whatever_follows(
    pulumi_room: PulumiRoom, sandbox: Sandbox
) -> None:
    pulumi_room.program(NODES)
    subnet = a_subnet(sandbox)
    sandbox.faults(Error("DescribeInstances", "UnauthorizedOperation", status=403))
    failed = pulumi_room.up(NAMES="one", SUBNET=subnet, ROOM="half")
    assert failed.code != 0
    assert "UnauthorizedOperation" in failed.output
    sandbox.faults()
    launched = [one["InstanceId"] for one in sandbox.instances(room="half")]
    assert list(pulumi_room.ids(INSTANCE).values()) == launched
    assert len(launched) == 1
    # As with the official plugin, the next update goes on with it instead of launching another.
    assert pulumi_room.up(NAMES="one", SUBNET=subnet, ROOM="half").code == 0
    assert [one["InstanceId"] for one in sandbox.instances(room="half")] == launched


ADOPTED = (
    PROVIDER
    + """
aws.ec2.Instance(
    "one",
    instance_type="g5.xlarge",
    subnet_id=os.environ["SUBNET"],
    launch_template={"id": os.environ["TEMPLATE"], "version": "1"},
    instance_market_options={"market_type": "spot", "spot_options": {
        "spot_instance_type": "one-time", "instance_interruption_behavior": "terminate"}},
    tags={"claim": "one"},
    opts=pulumi.ResourceOptions(provider=provider, import_=os.environ.get("ADOPT")),
)
"""
)


def test_an_instance_that_nobody_has_in_a_state_is_adopted_as_the_program_declares_it(
    pulumi_room: PulumiRoom, sandbox: Sandbox
) -> None:
    ec2 = sandbox.client("ec2")
    subnet = a_subnet(sandbox)
    made = ec2.create_launch_template(
        LaunchTemplateName="orphans", LaunchTemplateData={"ImageId": "ami-0123456789abcdef0", "UserData": "QUJD"}
    )
    template = made["LaunchTemplate"]["LaunchTemplateId"]
    tags = [{"Key": "claim", "Value": "one"}, {"Key": "room", "Value": "orphan"}]
    launched = ec2.run_instances(
        InstanceType="g5.xlarge",
        SubnetId=subnet,
        LaunchTemplate={"LaunchTemplateId": template, "Version": "1"},
        InstanceMarketOptions={"MarketType": "spot"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        MinCount=1,
        MaxCount=1,
    )
    orphan = launched["Instances"][0]["InstanceId"]
    pulumi_room.program(ADOPTED)
    room = {"SUBNET": subnet, "TEMPLATE": template, "ROOM": "orphan"}
    adopted = pulumi_room.up(ADOPT=orphan, **room)
    assert adopted.code == 0, adopted.output
    assert pulumi_room.ids(INSTANCE) == {"one": orphan}
    rests = pulumi_room.run("preview", "--expect-no-changes", "--stack", "test", **room)
    assert rests.code == 0, rests.output
    assert [one["InstanceId"] for one in sandbox.instances(room="orphan")] == [orphan]


def test_one_attached_plugin_serves_two_engines_at_once_each_by_its_own_configuration(
    pulumi_room: PulumiRoom, sandbox: Sandbox
) -> None:
    pulumi_room.program(NODES)
    assert pulumi_room.run("stack", "init", "lane").code == 0
    subnet = a_subnet(sandbox)
    with attached_aws_plugin() as attached, ThreadPoolExecutor() as together:
        environment = {"PULUMI_DEBUG_PROVIDERS": attached, "SUBNET": subnet}
        main = together.submit(pulumi_room.up, NAMES="a b", ROOM="main", **environment)
        lane = together.submit(
            pulumi_room.run, "up", "--yes", "--skip-preview", "--stack", "lane", NAMES="c", ROOM="lane", **environment
        )
        assert (main.result().code, lane.result().code) == (0, 0), main.result().output + lane.result().output
    assert len(sandbox.instances(room="main")) == 2
    assert len(sandbox.instances(room="lane")) == 1


def test_what_the_stand_in_cannot_do_is_refused_with_the_way_out(pulumi_room: PulumiRoom) -> None:
    pulumi_room.program(PROVIDER + 'aws.s3.Bucket("b", opts=at)\n')
    bucket = pulumi_room.up(ROOM="x")
    assert bucket.code != 0
    assert "stand-in for the AWS plugin performs only" in bucket.output
    pulumi_room.program(PROVIDER + 'aws.ec2.Vpc("v", cidr_block="10.0.0.0/16", opts=at)\n')
    abroad = pulumi_room.up(ROOM="x", EC2_URL="https://ec2.us-east-1.amazonaws.com")
    assert abroad.code != 0
    assert "pulumi plugin install resource aws" in abroad.output


def test_a_program_that_fails_says_so_without_a_hosts_traceback(pulumi_room: PulumiRoom) -> None:
    pulumi_room.program('import pulumi\nraise pulumi.RunError("the desired document is torn")\n')
    failed = pulumi_room.up()
    assert failed.code != 0
    assert "the desired document is torn" in failed.output
    assert "Traceback" not in failed.output
    (pulumi_room.folder / "__main__.py").unlink()
    assert "there is no such program" in pulumi_room.up().output


def role_names(sandbox: Sandbox) -> set[str]:
    return {role["RoleName"] for role in sandbox.client("iam").list_roles()["Roles"]}
