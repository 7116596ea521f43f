"""Check and Diff of the stand-in provider: what is refused, filled in, replaced and updated in place."""

import base64

import pytest

from engine.sandbox.aws.wire import UNKNOWN
from tests.sandbox.provider import (
    INGRESS_RULE,
    INSTANCE,
    LAUNCH_TEMPLATE,
    ROLE,
    ROUTE,
    SECURITY_GROUP,
    SUBNET,
    VPC,
    a_region,
    checked,
    complaints,
    difference,
    the,
)

AN_INSTANCE = {"ami": "ami-1", "instanceType": "g5.xlarge", "subnetId": "subnet-1"}
A_RULE = {"securityGroupId": "sg-1", "ipProtocol": "tcp", "fromPort": 443, "toPort": 443, "cidrIpv4": "10.0.0.0/8"}


# Check


def test_everything_that_is_wrong_is_said_at_once() -> None:
    said = complaints(INSTANCE, {"userData": "x", "userDataBase64": "eA==", "colour": "red"})
    assert "one of `ami,launchTemplate` must be specified" in said["ami"]
    assert "one of `instanceType,launchTemplate`" in said["instanceType"]
    assert "conflicts with userDataBase64" in said["userData"]
    assert "unexpected property" in said["colour"]


def test_a_missing_required_input_is_named() -> None:
    assert complaints(SUBNET, {"cidrBlock": "10.0.0.0/24"}) == {"vpcId": "Missing required property 'vpcId'"}


def test_what_the_stand_in_does_not_perform_is_refused_by_name_and_its_default_is_not() -> None:
    assert "stand-in" in complaints(VPC, {"ipv6IpamPoolId": "pool"})["ipv6IpamPoolId"]
    assert complaints(VPC, {"assignGeneratedIpv6CidrBlock": False}) == {}
    assert complaints(SUBNET, {"vpcId": "vpc-1", "ipv6Native": False}) == {}


def test_a_cidr_with_host_bits_is_refused_before_aws_is_asked() -> None:
    assert "host bits" in complaints(SUBNET, {"vpcId": "v", "cidrBlock": "10.0.0.1/24"})["cidrBlock"]


def test_an_unknown_value_is_not_judged() -> None:
    assert complaints(SUBNET, {"vpcId": UNKNOWN, "cidrBlock": UNKNOWN}) == {}


@pytest.mark.parametrize(
    ("given", "property_", "complaint"),
    [
        ({"routeTableId": "r", "destinationCidrBlock": "0.0.0.0/0"}, "gatewayId", "must be specified"),
        (
            {"routeTableId": "r", "destinationCidrBlock": "0.0.0.0/0", "gatewayId": "i", "natGatewayId": "n"},
            "gatewayId",
            "only one of",
        ),
    ],
)
def test_a_route_has_exactly_one_target(given: dict[str, str], property_: str, complaint: str) -> None:
    assert complaint in complaints(ROUTE, given)[property_]


def test_a_launch_template_is_named_by_id_or_by_name_not_both() -> None:
    both = {"launchTemplate": {"id": "lt-1", "name": "n"}}
    assert "exactly one" in complaints(INSTANCE, {**AN_INSTANCE, **both})["launchTemplate"]


def test_defaults_are_filled_in_inside_objects_too() -> None:
    inputs = checked(INSTANCE, {**AN_INSTANCE, "launchTemplate": {"id": "lt-1"}, "rootBlockDevice": {"volumeSize": 9}})
    assert inputs["launchTemplate"] == {"id": "lt-1", "version": "$Default"}
    assert inputs["rootBlockDevice"] == {"volumeSize": 9, "deleteOnTermination": True}
    assert inputs["sourceDestCheck"] is True
    assert checked(SECURITY_GROUP, {})["description"] == "Managed by Pulumi"


def test_a_name_is_made_from_the_logical_one_and_kept_from_then_on() -> None:
    first = checked(ROLE, {"assumeRolePolicy": "{}"})
    assert first["name"].startswith("thing-")
    assert len(first["name"]) == len("thing-") + 7
    again = checked(ROLE, {"assumeRolePolicy": "{}"}, old={"name": "thing-0123abc"})
    assert again["name"] == "thing-0123abc"
    assert "name" not in checked(ROLE, {"assumeRolePolicy": "{}", "namePrefix": "p-"})
    assert checked(ROLE, {"assumeRolePolicy": "{}", "name": "mine"}, old={"name": "thing-0123abc"})["name"] == "mine"


def test_default_tags_go_under_a_resources_own_into_tags_all() -> None:
    inputs = checked(VPC, {"tags": {"a": "own"}}, default_tags={"a": "default", "b": "default"})
    assert inputs["tags"] == {"a": "own"}
    assert inputs["tagsAll"] == {"a": "own", "b": "default"}
    assert checked(VPC, {"tags": {"a": UNKNOWN}})["tagsAll"] is UNKNOWN
    assert "tagsAll" not in checked(ROUTE, {"routeTableId": "r", "destinationCidrBlock": "::", "gatewayId": "i"})


# Diff


def test_the_same_program_is_no_difference() -> None:
    full = {
        **AN_INSTANCE,
        "launchTemplate": {"id": "lt-1", "version": "3"},
        "instanceMarketOptions": {"marketType": "spot", "spotOptions": {"maxPrice": "0.50"}},
        "tags": {"a": "b"},
    }
    assert difference(INSTANCE, full, full).changed == frozenset()


@pytest.mark.parametrize(
    "change",
    [
        {"ami": "ami-2"},
        {"subnetId": "subnet-2"},
        {"keyName": "k"},
        {"launchTemplate": {"id": "lt-2"}},
        {"instanceMarketOptions": {"marketType": "spot"}},
        {"tenancy": "dedicated"},
        {"ebsBlockDevices": [{"deviceName": "/dev/sdb", "volumeSize": 1}]},
        {"region": "eu-west-1"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_these_changes_replace_an_instance(change: dict[str, object]) -> None:
    found = difference(INSTANCE, AN_INSTANCE, {**AN_INSTANCE, **change})
    assert found.replacing == found.changed == set(change)


@pytest.mark.parametrize(
    "change",
    [
        {"instanceType": "g5.2xlarge"},
        {"userData": "echo"},
        {"vpcSecurityGroupIds": ["sg-1"]},
        {"iamInstanceProfile": "p"},
        {"metadataOptions": {"httpTokens": "required"}},
        {"rootBlockDevice": {"volumeSize": 200}},
        {"monitoring": True},
        {"disableApiTermination": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_these_changes_update_an_instance_in_place(change: dict[str, object]) -> None:
    found = difference(INSTANCE, AN_INSTANCE, {**AN_INSTANCE, **change})
    assert found.changed == set(change)
    assert found.replacing == frozenset()


def test_encryption_replaces_where_a_larger_root_volume_does_not() -> None:
    before = {**AN_INSTANCE, "rootBlockDevice": {"volumeSize": 100}}
    larger = {**AN_INSTANCE, "rootBlockDevice": {"volumeSize": 200}}
    encrypted = {**AN_INSTANCE, "rootBlockDevice": {"volumeSize": 100, "encrypted": True}}
    assert difference(INSTANCE, before, larger).replacing == frozenset()
    assert difference(INSTANCE, before, encrypted).replacing == {"rootBlockDevice"}


def test_user_data_replaces_only_when_the_program_says_so() -> None:
    said = {**AN_INSTANCE, "userDataReplaceOnChange": True}
    assert difference(INSTANCE, said, {**said, "userData": "x"}).replacing == {"userData"}


def test_the_same_user_data_in_base64_is_no_difference() -> None:
    plain = {**AN_INSTANCE, "userData": "#!/bin/sh\n"}
    encoded = {**AN_INSTANCE, "userData": base64.b64encode(b"#!/bin/sh\n").decode()}
    assert difference(INSTANCE, plain, encoded).changed == frozenset()


def test_a_computed_input_that_the_program_drops_keeps_the_clouds_value() -> None:
    pinned = {**AN_INSTANCE, "availabilityZone": "us-east-1a"}
    assert difference(INSTANCE, pinned, AN_INSTANCE).changed == frozenset()


def test_a_computed_input_that_the_program_now_names_as_the_cloud_has_it_is_no_difference() -> None:
    pinned = {**AN_INSTANCE, "availabilityZone": "us-east-1a"}
    assert difference(INSTANCE, AN_INSTANCE, pinned, {"availabilityZone": "us-east-1a"}).changed == frozenset()
    assert difference(INSTANCE, AN_INSTANCE, pinned, {"availabilityZone": "us-east-1b"}).replacing


def test_the_providers_own_region_spelled_out_is_no_difference() -> None:
    assert difference(VPC, {}, {"region": "us-east-1"}).changed == frozenset()


def test_the_order_of_security_groups_is_no_difference() -> None:
    one = {**AN_INSTANCE, "vpcSecurityGroupIds": ["sg-1", "sg-2"]}
    other = {**AN_INSTANCE, "vpcSecurityGroupIds": ["sg-2", "sg-1"]}
    assert difference(INSTANCE, one, other).changed == frozenset()


def test_an_unknown_value_of_a_replacing_input_replaces_in_preview() -> None:
    unknown = {**AN_INSTANCE, "subnetId": UNKNOWN}
    assert difference(INSTANCE, AN_INSTANCE, unknown).replacing == {"subnetId"}


def test_an_unknown_instance_type_updates_in_preview_without_asking_aws() -> None:
    found = difference(INSTANCE, AN_INSTANCE, {**AN_INSTANCE, "instanceType": UNKNOWN})
    assert (found.changed, found.replacing) == ({"instanceType"}, frozenset())


def test_new_default_tags_alone_update_what_carries_tags() -> None:
    vpc = the(VPC)
    old = checked(VPC, {"tags": {"a": "b"}})
    new = checked(VPC, {"tags": {"a": "b"}}, default_tags={"team": "x"})
    assert vpc.diff(a_region(), "vpc-1", old, old, new).changed == {"tagsAll"}


def test_a_vpcs_tenancy_can_only_be_loosened_in_place() -> None:
    loose, tight = {"instanceTenancy": "default"}, {"instanceTenancy": "dedicated"}
    assert difference(VPC, tight, loose).replacing == frozenset()
    assert difference(VPC, loose, tight).replacing == {"instanceTenancy"}


def test_a_rule_changes_its_source_in_place_but_not_the_kind_of_its_source() -> None:
    wider = {**A_RULE, "cidrIpv4": "0.0.0.0/0"}
    of_group = {key: value for key, value in A_RULE.items() if key != "cidrIpv4"} | {
        "referencedSecurityGroupId": "sg-2"
    }
    assert difference(INGRESS_RULE, A_RULE, wider).replacing == frozenset()
    assert difference(INGRESS_RULE, A_RULE, of_group).replacing == {"cidrIpv4", "referencedSecurityGroupId"}


def test_protocols_are_the_same_by_name_and_number() -> None:
    assert difference(INGRESS_RULE, A_RULE, {**A_RULE, "ipProtocol": "6"}).changed == frozenset()


def test_a_groups_rules_are_compared_by_what_they_allow() -> None:
    together = {"ingress": [_ssh(["10.0.0.0/8", "172.16.0.0/12"])]}
    apart = {"ingress": [_ssh(["172.16.0.0/12"]), _ssh(["10.0.0.0/8"])]}
    assert difference(SECURITY_GROUP, together, apart).changed == frozenset()
    assert difference(SECURITY_GROUP, together, {"ingress": [_ssh(["10.0.0.0/8"])]}).changed == {"ingress"}
    assert difference(SECURITY_GROUP, together, {}).changed == frozenset()


def test_equivalent_policies_are_no_difference() -> None:
    one, other = '{"Version": "1", "Statement": []}', '{ "Statement":[], "Version":"1" }'
    assert difference(ROLE, {"assumeRolePolicy": one}, {"assumeRolePolicy": other}).changed == frozenset()


def test_a_launch_template_takes_every_change_but_its_name_as_a_new_version() -> None:
    before = {"name": "lt-a", "imageId": "ami-1", "userData": "QQ=="}
    after = {**before, "imageId": "ami-2", "userData": "Qg=="}
    found = difference(LAUNCH_TEMPLATE, before, after)
    assert (found.changed, found.replacing) == ({"imageId", "userData"}, frozenset())
    assert the(LAUNCH_TEMPLATE).unknown_after(found.changed, {}) == {"latestVersion"}
    assert the(LAUNCH_TEMPLATE).unknown_after(frozenset({"description"}), {}) == set()
    assert difference(LAUNCH_TEMPLATE, before, {**before, "name": "lt-b"}).replacing == {"name"}


def test_the_outputs_of_a_planned_create_are_unknown_until_it_is_made() -> None:
    planned = the(INSTANCE).planned(a_region(), checked(INSTANCE, AN_INSTANCE))
    assert planned["arn"] is UNKNOWN
    assert planned["privateIp"] is UNKNOWN
    assert planned["subnetId"] == "subnet-1"
    assert planned["region"] == "us-east-1"


def _ssh(blocks: list[str]) -> dict[str, object]:
    return {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": blocks}
