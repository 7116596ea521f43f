"""What the Pulumi program declares for a document: names, parents, tags, options."""

from __future__ import annotations

import base64
import json
from typing import Any

import pulumi_aws as aws
import pytest

from engine.converge import urns
from engine.converge.placing import ClaimWithoutPlace
from engine.converge.program import declare
from engine.converge.subnets import NetworkTooSmall, network_plan
from engine.converge.targeted import declare_changes
from engine.converge.urns import Urns
from engine.model import labels
from engine.model.document import DesiredDocument
from engine.model.environment import NetworkMode
from engine.model.policy import BlockDevice
from engine.model.reservation import OpenReservations, ReservationKind
from tests.converge.documents import ROLE, TEMPLATE, ZONES, claim, document, environment, foundation, template
from tests.converge.programs import Registered, registered_by

NAMES = Urns("test")
EMULATED = environment(endpoint_url="http://127.0.0.1:4566")


def declared(of: DesiredDocument, **more: Any) -> dict[str, Registered]:
    return registered_by(lambda: declare(of, EMULATED, **more))


def named(resources: dict[str, Registered], kind: str) -> dict[str, Registered]:
    return {one.name: one for one in resources.values() if one.type == kind}


def test_an_owned_network_has_a_subnet_in_each_zone_a_way_out_and_is_protected() -> None:
    made = declared(document())
    assert made[NAMES.of_foundation(urns.VPC, "test")].inputs["cidrBlock"] == "10.0.0.0/16"
    subnets = named(made, urns.SUBNET)
    assert {one.inputs["availabilityZone"]: one.inputs["cidrBlock"] for one in subnets.values()} == {
        "us-east-1a": "10.0.0.0/19",
        "us-east-1b": "10.0.32.0/19",
        "us-east-1c": "10.0.64.0/19",
    }
    [route] = named(made, "aws:ec2/route:Route").values()
    assert (route.inputs["destinationCidrBlock"], route.inputs["gatewayId"]) == ("0.0.0.0/0", "id-of-test")
    assert len(named(made, urns.ROUTE_TABLE_ASSOCIATION)) == 3
    [egress] = named(made, "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule").values()
    [among] = named(made, "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule").values()
    assert (egress.inputs["cidrIpv4"], egress.inputs["ipProtocol"]) == ("0.0.0.0/0", "-1")
    assert among.inputs["referencedSecurityGroupId"] == among.inputs["securityGroupId"] == "id-of-test"
    protected = {one.type for one in made.values() if one.protect}
    assert protected == {urns.VPC, urns.SUBNET, urns.SECURITY_GROUP}
    assert not any(one.protect for one in declared(document(), protect=False).values())


def test_what_is_owned_carries_the_tags_that_selectors_and_the_cluster_look_for() -> None:
    made = declared(document())
    group = made[NAMES.of_foundation(urns.SECURITY_GROUP, "test")].inputs["tags"]
    subnet = made[NAMES.of_foundation(urns.SUBNET, "test-us-east-1a")].inputs["tags"]
    for tags in (group, subnet):
        assert tags["karpenter.sh/discovery"] == "test"
        assert tags[labels.TAG_ENVIRONMENT] == "test"
    assert (group["kubernetes.io/cluster/test-cluster"], group["Name"]) == ("owned", "test")
    assert (subnet["kubernetes.io/cluster/test-cluster"], subnet["Name"]) == ("shared", "test-us-east-1a")


def test_a_role_has_its_policies_and_a_profile_of_its_name() -> None:
    made = declared(document(on=foundation(access_entry=True)))
    [role] = named(made, urns.ROLE).values()
    assert role.inputs["name"] == ROLE
    assert json.loads(role.inputs["assumeRolePolicy"])["Statement"][0]["Principal"] == {"Service": "ec2.amazonaws.com"}
    [profile] = named(made, urns.INSTANCE_PROFILE).values()
    assert (profile.inputs["name"], profile.inputs["role"]) == (ROLE, ROLE)
    [attachment] = named(made, urns.ROLE_POLICY_ATTACHMENT).values()
    assert attachment.inputs["policyArn"].endswith("AmazonEKSWorkerNodePolicy")
    [entry] = named(made, urns.ACCESS_ENTRY).values()
    assert (entry.inputs["clusterName"], entry.inputs["type"]) == ("test-cluster", "EC2_LINUX")
    assert named(declared(document()), urns.ACCESS_ENTRY) == {}


def test_a_template_boots_what_it_says_and_only_after_its_role_is_ready() -> None:
    devices = (
        BlockDevice("/dev/xvda", 200, iops=5000, throughput_mib_per_s=500, encrypted=True, delete_on_termination=False),
    )
    made = declared(document(on=foundation([template(block_devices=devices)])))
    one = made[NAMES.template(template())]
    assert one.parent == NAMES.node_set("gpu")
    assert base64.b64decode(one.inputs["userData"]) == b"#!/bin/sh\n"
    assert one.inputs["iamInstanceProfile"] == {"name": ROLE}
    assert one.inputs["metadataOptions"]["httpTokens"] == "required"
    ebs = one.inputs["blockDeviceMappings"][0]["ebs"]
    assert (ebs["volumeSize"], ebs["iops"], ebs["throughput"], ebs["volumeType"]) == (200, 5000, 500, "gp3")
    assert (ebs["deleteOnTermination"], ebs["encrypted"]) == ("false", "true")
    assert one.inputs["tagSpecifications"] == [{"resourceType": "volume", "tags": {"team": "inference"}}]
    assert NAMES.of_foundation(urns.INSTANCE_PROFILE, ROLE) in one.dependencies


def test_a_claim_is_declared_as_it_is_recorded_with_nothing_that_outlives_or_outruns_it() -> None:
    of = document(claim("gpu-1", zone="us-east-1b"), claim("gpu-2", capacity_type=labels.SPOT))
    made = declared(of)
    one = made[NAMES.claim(claim("gpu-1"))]
    assert one.parent == NAMES.node_set("gpu")
    assert one.inputs == {
        "launchTemplate": {"name": TEMPLATE, "version": "1"},
        "instanceType": "g5.xlarge",
        "subnetId": "id-of-test-us-east-1b",
        "vpcSecurityGroupIds": ["id-of-test"],
        "tags": {labels.TAG_CLAIM: "gpu-1", labels.TAG_NODE_POOL: "gpu", labels.TAG_ENVIRONMENT: "test"},
    }
    assert NAMES.template(template()) in one.dependencies
    assert NAMES.of_foundation(urns.ROUTE_TABLE_ASSOCIATION, "test-us-east-1b") in one.dependencies
    assert not any((one.protect, one.retain_on_delete, one.delete_before_replace, one.ignore_changes))
    spot = made[NAMES.claim(claim("gpu-2"))].inputs["instanceMarketOptions"]
    assert spot["marketType"] == "spot"
    assert spot["spotOptions"] == {"instanceInterruptionBehavior": "terminate", "spotInstanceType": "one-time"}


def test_a_claim_on_a_network_that_exists_takes_its_own_ids_and_options() -> None:
    one = claim(
        "gpu-1",
        subnet_id="subnet-1",
        security_group_ids=("sg-1", "sg-2"),
        associate_public_ip_address=False,
        capacity_reservation_id="cr-1",
    )
    on = foundation([template(detailed_monitoring=True)], network_mode=NetworkMode.EXISTING, roles=())
    made = declared(document(one, on=on))
    assert named(made, urns.VPC) == {}
    inputs = made[NAMES.claim(one)].inputs
    assert (inputs["subnetId"], inputs["vpcSecurityGroupIds"]) == ("subnet-1", ["sg-1", "sg-2"])
    assert (inputs["associatePublicIpAddress"], inputs["monitoring"]) == (False, True)
    target = inputs["capacityReservationSpecification"]["capacityReservationTarget"]
    assert target == {"capacityReservationId": "cr-1"}


def test_a_claim_in_a_capacity_block_is_of_its_market_and_aims_at_it() -> None:
    one = claim("gpu-1", capacity_reservation_id="cr-1", capacity_reservation_kind=ReservationKind.CAPACITY_BLOCK)
    inputs = declared(document(one))[NAMES.claim(one)].inputs
    assert inputs["instanceMarketOptions"] == {"marketType": "capacity-block"}
    assert inputs["capacityReservationSpecification"] == {
        "capacityReservationTarget": {"capacityReservationId": "cr-1"}
    }


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (OpenReservations.LEAVE, {"capacityReservationPreference": "none"}),
        (OpenReservations.USE, {"capacityReservationPreference": "open"}),
        (None, None),
    ],
)
def test_a_claim_tells_ec2_what_to_do_with_open_reservations_if_it_says_so(
    said: OpenReservations | None, told: object
) -> None:
    one = claim("gpu-1", open_reservations=said)
    assert declared(document(one))[NAMES.claim(one)].inputs.get("capacityReservationSpecification") == told


def test_launches_have_a_provider_of_their_own_that_hardly_retries() -> None:
    made = declared(document(claim("gpu-1")))
    providers = named(made, urns.PROVIDER)
    assert providers[urns.LAUNCHES].inputs["maxRetries"] == "3"
    assert "maxRetries" not in providers[urns.EVERYTHING_ELSE].inputs
    for provider in providers.values():
        [endpoints] = json.loads(provider.inputs["endpoints"])
        assert endpoints == dict.fromkeys(("ec2", "iam", "eks", "ssm", "sts", "sqs", "events"), "http://127.0.0.1:4566")
        assert provider.inputs["skipCredentialsValidation"] == "true"
    assert made[NAMES.claim(claim("gpu-1"))].provider.startswith(NAMES.provider(urns.LAUNCHES))
    assert made[NAMES.of_foundation(urns.VPC, "test")].provider.startswith(NAMES.provider(urns.EVERYTHING_ELSE))
    real = registered_by(lambda: declare(document(), environment()))
    assert named(real, urns.PROVIDER)[urns.LAUNCHES].inputs.keys() == {"region", "skipRegionValidation", "maxRetries"}


def test_a_running_machine_is_imported_into_its_claim() -> None:
    made = declared(document(claim("gpu-1"), claim("gpu-2")), adopt={"gpu-2": "i-2"})
    assert [made[NAMES.claim(claim(name))].import_id for name in ("gpu-1", "gpu-2")] == ["", "i-2"]


def test_claims_of_another_lane_are_left_to_its_stack() -> None:
    made = declared(document(claim("gpu-1"), claim("gpu-2", stack="test.2")))
    assert set(named(made, urns.INSTANCE)) == {"gpu-1"}


def test_a_claim_in_a_zone_without_a_subnet_is_refused_by_name() -> None:
    with pytest.raises(ClaimWithoutPlace, match="gpu-1 is in zone us-east-1f"):
        declared(document(claim("gpu-1", zone="us-east-1f")))


def test_a_targeted_program_declares_a_claim_as_the_whole_one_does() -> None:
    old, new = template(), template("test-gpu-aaaaaaaaaa")
    of = document(
        claim("gpu-1"),
        claim("gpu-2", zone="us-east-1b"),
        claim("gpu-3", launch_template=new.name),
        on=foundation([old, new]),
    )
    whole = declared(of)
    ids = {urn: f"id-of-{one.name}" for urn, one in whole.items()}
    launched = [one for one in of.claims if one.name != "gpu-1"]
    part = registered_by(lambda: declare_changes(of, EMULATED, ids, claims=launched, templates=[new], adopt={}))
    assert set(named(part, urns.INSTANCE)) == {"gpu-2", "gpu-3"}
    for urn in (*(NAMES.claim(one) for one in launched), NAMES.template(new)):
        assert part[urn].inputs == whole[urn].inputs
        assert part[urn].parent == whole[urn].parent
        assert part[urn].dependencies == whole[urn].dependencies
    # What stands is registered without inputs: an update that does not target it takes it from its state.
    assert part[NAMES.template(old)].inputs == {}
    assert {one.inputs == {} for one in named(part, urns.SUBNET).values()} == {True}
    assert part.keys() <= whole.keys()
    for name, provider in named(part, urns.PROVIDER).items():
        assert provider.inputs == named(whole, urns.PROVIDER)[name].inputs


def test_a_targeted_program_that_only_removes_registers_nothing() -> None:
    part = registered_by(lambda: declare_changes(document(), EMULATED, {}, claims=[], templates=[], adopt={}))
    assert [one for one in part.values() if one.type != "pulumi:pulumi:Stack"] == []


def test_the_names_written_by_hand_are_those_of_the_official_package() -> None:
    of = document(
        claim("gpu-1", capacity_type=labels.SPOT, capacity_reservation_id="cr-1", associate_public_ip_address=True),
        on=foundation([template(detailed_monitoring=True)]),
    )
    made = declared(of)
    assert aws.ec2.Instance.pulumi_type == urns.INSTANCE
    claimed = made[NAMES.claim(claim("gpu-1"))].inputs
    typed = registered_by(
        lambda: aws.ec2.Instance(  # type: ignore[arg-type, return-value]
            "typed",
            launch_template=aws.ec2.InstanceLaunchTemplateArgs(name=TEMPLATE, version="1"),
            instance_type="g5.xlarge",
            subnet_id="id-of-test-us-east-1a",
            vpc_security_group_ids=["id-of-test"],
            associate_public_ip_address=True,
            monitoring=True,
            instance_market_options=aws.ec2.InstanceInstanceMarketOptionsArgs(
                market_type="spot",
                spot_options=aws.ec2.InstanceInstanceMarketOptionsSpotOptionsArgs(
                    instance_interruption_behavior="terminate", spot_instance_type="one-time"
                ),
            ),
            capacity_reservation_specification=aws.ec2.InstanceCapacityReservationSpecificationArgs(
                capacity_reservation_target=aws.ec2.InstanceCapacityReservationSpecificationCapacityReservationTargetArgs(
                    capacity_reservation_id="cr-1"
                )
            ),
            tags=dict(claim("gpu-1").inputs.tags),
        )
    )
    [instance] = named(typed, urns.INSTANCE).values()
    assert claimed == instance.inputs
    url = "http://127.0.0.1:4566"
    providers = registered_by(
        lambda: aws.Provider(  # type: ignore[arg-type, return-value]
            urns.LAUNCHES,
            region="us-east-1",
            max_retries=3,
            endpoints=[aws.ProviderEndpointArgs(ec2=url, iam=url, eks=url, ssm=url, sts=url, sqs=url, events=url)],
            skip_credentials_validation=True,
            skip_metadata_api_check=True,
            skip_requesting_account_id=True,
        )
    )
    assert _decoded(named(providers, urns.PROVIDER)[urns.LAUNCHES]) == _decoded(
        named(made, urns.PROVIDER)[urns.LAUNCHES]
    )


def _decoded(provider: Registered) -> dict[str, Any]:
    texts = {name: value for name, value in provider.inputs.items() if name != "region"}
    return {"region": provider.inputs["region"], **{name: json.loads(value) for name, value in texts.items()}}


@pytest.mark.parametrize(
    ("cidr", "zones", "expected"),
    [
        ("10.0.0.0/16", ["us-east-1b"], {"us-east-1b": "10.0.32.0/19"}),
        ("10.0.0.0/26", ["us-east-1a", "us-east-1b"], {"us-east-1a": "10.0.0.0/28", "us-east-1b": "10.0.0.16/28"}),
        (
            "10.0.0.0/16",
            ["us-west-2a", "us-west-2-lax-1a"],
            {"us-west-2-lax-1a": "10.0.0.0/19", "us-west-2a": "10.0.32.0/19"},
        ),
    ],
)
def test_a_network_is_divided_by_zone_letter_else_in_order(
    cidr: str, zones: list[str], expected: dict[str, str]
) -> None:
    assert network_plan(foundation(cidr=cidr, zones=dict.fromkeys(zones, ""))) == expected


def test_a_zone_that_is_added_moves_no_subnet() -> None:
    before = network_plan(foundation(zones={"us-east-1b": "", "us-east-1d": ""}))
    after = network_plan(foundation(zones={"us-east-1a": "", "us-east-1b": "", "us-east-1c": "", "us-east-1d": ""}))
    assert before.items() <= after.items()
    assert len(set(after.values())) == 4


def test_a_network_without_room_for_its_zones_is_refused() -> None:
    with pytest.raises(NetworkTooSmall, match=r"10\.0\.0\.0/27 has no room .* 3 zones"):
        network_plan(foundation(cidr="10.0.0.0/27", zones=ZONES))
