"""What EC2 says about instances, networks and images, asked of moto."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models import ec2_backends

from engine.model import labels as keys
from engine.model.environment import Network, NetworkMode
from engine.model.ledger import Ledger
from engine.model.node import InstanceState
from engine.model.policy import AmiFamily, Policy, SelectorTerm
from engine.model.snapshot import CloudFacts
from engine.observe.ec2 import NOT_FOUND_GRACE, Ec2Reader
from engine.observe.ec2_clock import Ec2Clock
from engine.observe.ec2_images import alias_parameters
from engine.observe.failure import ObservationFailed
from tests import builders

LATER = builders.NOON + timedelta(minutes=10)
NODE_CLASS = builders.node_class(ami_selector_terms=(SelectorTerm(id="ami-11111111111111111"),))
POLICY = Policy(node_pools=(), node_classes=(NODE_CLASS,))


@pytest.fixture(autouse=True)
def _fake_account(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    # The tests' clock stands still; what EC2's own says is test_ec2_clock's matter.
    monkeypatch.setattr(Ec2Clock, "learn", lambda clock, answer, asked_at: None)
    with mock_aws():
        yield


@pytest.fixture
def ec2() -> Any:
    return boto3.client("ec2", region_name="us-east-1")


def reader() -> Ec2Reader:
    return Ec2Reader(None, "us-east-1", now=lambda: LATER)


def launch(ec2: Any, claim: str, environment: str = "test", **more: Any) -> str:
    tags = [{"Key": keys.TAG_CLAIM, "Value": claim}, {"Key": keys.TAG_ENVIRONMENT, "Value": environment}]
    answer = ec2.run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        InstanceType="g5.xlarge",
        Placement={"AvailabilityZone": "us-east-1b"},
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        **more,
    )
    instance_id: str = answer["Instances"][0]["InstanceId"]
    return instance_id


def test_an_instance_with_the_environments_tag_is_seen_with_its_claim_and_offering(ec2: Any) -> None:
    mine = launch(ec2, "gpu-00001")
    launch(ec2, "gpu-00009", environment="another")

    (instance,) = reader().read(builders.environment(), POLICY, None, Ledger()).instances

    assert (instance.id, instance.claim, instance.state) == (mine, "gpu-00001", InstanceState.RUNNING)
    assert (instance.instance_type, instance.zone) == ("g5.xlarge", "us-east-1b")
    assert instance.capacity_type == keys.ON_DEMAND
    assert instance.private_dns_name.endswith(".internal")


def test_a_spot_instance_is_seen_as_spot(ec2: Any) -> None:
    launch(ec2, "gpu-00001", InstanceMarketOptions={"MarketType": "spot"})

    (instance,) = reader().read(builders.environment(), POLICY, None, Ledger()).instances

    assert instance.capacity_type == keys.SPOT


def absent(ledger: Ledger, *claims: Any, when: Any = LATER) -> tuple[str, ...]:
    seen = Ec2Reader(None, "us-east-1", now=lambda: when)
    return seen.read(builders.environment(), POLICY, builders.document(*claims), ledger).absent_claims


def test_a_claim_is_absent_when_its_instance_is_terminated(ec2: Any) -> None:
    gone = launch(ec2, "gpu-00001")
    launch(ec2, "gpu-00002")
    ec2.terminate_instances(InstanceIds=[gone])

    ledger = Ledger(instance_ids={"gpu-00001": gone})

    assert absent(ledger, builders.claim("gpu-00001"), builders.claim("gpu-00002")) == ("gpu-00001",)


def test_a_terminated_instance_is_certain_without_any_record_of_its_id(ec2: Any) -> None:
    ec2.terminate_instances(InstanceIds=[launch(ec2, "gpu-00001")])

    assert absent(Ledger(), builders.claim("gpu-00001")) == ("gpu-00001",)


def test_a_claim_that_was_launched_again_is_not_absent(ec2: Any) -> None:
    first = launch(ec2, "gpu-00001")
    launch(ec2, "gpu-00001")
    ec2.terminate_instances(InstanceIds=[first])

    assert absent(Ledger(instance_ids={"gpu-00001": first}), builders.claim("gpu-00001")) == ()


def own_network(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": keys.TAG_ENVIRONMENT, "Value": "test"}])


def test_ids_that_ec2_does_not_know_are_absent_once_the_grace_is_over_and_no_sooner(ec2: Any) -> None:
    own_network(ec2)
    claims = [builders.claim(f"gpu-0000{number}") for number in (1, 2)]
    ledger = Ledger(instance_ids={"gpu-00001": "i-0aaaaaaaaaaaaaaaa", "gpu-00002": "i-0bbbbbbbbbbbbbbbb"})

    assert absent(ledger, *claims, when=builders.NOON + NOT_FOUND_GRACE) == ("gpu-00001", "gpu-00002")
    assert absent(ledger, *claims, when=builders.NOON + NOT_FOUND_GRACE - timedelta(seconds=1)) == ()


def test_no_grace_is_needed_where_the_environments_own_network_is_gone(ec2: Any) -> None:
    ledger = Ledger(instance_ids={"gpu-00001": "i-0aaaaaaaaaaaaaaaa"})
    document = builders.document(builders.claim("gpu-00001"))

    def facts() -> CloudFacts:
        at_once = Ec2Reader(None, "us-east-1", now=lambda: builders.NOON)
        return at_once.read(builders.environment(), POLICY, document, ledger)

    lost = facts()
    own_network(ec2)
    standing = facts()

    assert (lost.network_stands, lost.absent_claims) == (False, ("gpu-00001",))
    assert (standing.network_stands, standing.absent_claims) == (True, ())


def test_an_instance_that_lost_its_tags_but_runs_is_not_absent(ec2: Any) -> None:
    running = launch(ec2, "gpu-00001")
    ec2.delete_tags(Resources=[running], Tags=[{"Key": keys.TAG_ENVIRONMENT}])
    ledger = Ledger(instance_ids={"gpu-00001": running, "gpu-00002": "i-0bbbbbbbbbbbbbbbb"})

    assert absent(ledger, builders.claim("gpu-00001"), builders.claim("gpu-00002")) == ("gpu-00002",)


def test_a_claim_that_was_never_launched_is_not_absent() -> None:
    assert absent(Ledger(), builders.claim("gpu-00001")) == ()


EXISTING = builders.environment(network=Network(mode=NetworkMode.EXISTING, zones=builders.ZONES))


def test_selectors_of_an_existing_network_find_subnets_and_groups_by_tag(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1c")["Subnet"]["SubnetId"]
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    ec2.create_tags(Resources=[subnet, group], Tags=[{"Key": "karpenter.sh/discovery", "Value": "gpu-cluster"}])
    by_tag = (SelectorTerm(tags={"karpenter.sh/discovery": "gpu-cluster"}),)
    node_class = builders.node_class(subnet_selector_terms=by_tag, security_group_selector_terms=by_tag)

    facts = reader().read(EXISTING, Policy((), (node_class,)), None, Ledger())

    ((found,), groups) = facts.subnets["default"], facts.security_group_ids["default"]
    assert (found.id, found.zone, groups) == (subnet, "us-east-1c", (group,))
    assert found.available_ip_count > 200
    assert found.tags == {"karpenter.sh/discovery": "gpu-cluster"}


@pytest.mark.parametrize(
    ("term", "is_found"),
    [
        (SelectorTerm(tags={"team": "*"}), True),
        (SelectorTerm(tags={"team": "ml", "tier": "gpu"}), True),
        (SelectorTerm(tags={"team": "ml", "tier": "cpu"}), False),
        (SelectorTerm(tags={"teams": "*"}), False),
        (SelectorTerm(id="subnet-00000000000000000"), False),
    ],
)
def test_a_term_matches_when_all_of_its_parts_hold(ec2: Any, term: SelectorTerm, is_found: bool) -> None:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24")["Subnet"]["SubnetId"]
    ec2.create_tags(Resources=[subnet], Tags=[{"Key": "team", "Value": "ml"}, {"Key": "tier", "Value": "gpu"}])
    node_class = builders.node_class(subnet_selector_terms=(term,))

    facts = reader().read(EXISTING, Policy((), (node_class,)), None, Ledger())

    assert [each.id for each in facts.subnets["default"]] == ([subnet] if is_found else [])


def test_a_selector_that_matches_nothing_is_answered_with_nothing_and_not_left_out() -> None:
    nothing = (SelectorTerm(tags={"karpenter.sh/discovery": "no-such-cluster"}),)
    node_class = builders.node_class(subnet_selector_terms=nothing, security_group_selector_terms=nothing)

    facts = reader().read(EXISTING, Policy((), (node_class,)), None, Ledger())

    assert facts.subnets == {"default": ()}
    assert facts.security_group_ids == {"default": ()}


def test_an_owned_network_is_not_looked_up() -> None:
    assert reader().read(builders.environment(), POLICY, None, Ledger()).subnets == {}


def register(ec2: Any, name: str, architecture: str = "x86_64") -> str:
    image: str = ec2.register_image(Name=name)["ImageId"]
    # moto forgets what architecture was registered.
    ec2_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].amis[image].architecture = architecture
    return image


def images(*terms: SelectorTerm, **more: Any) -> dict[str, str]:
    node_class = builders.node_class(ami_selector_terms=terms, **more)
    facts = reader().read(builders.environment(), Policy((), (node_class,)), None, Ledger())
    return dict(facts.images["default"])


def test_an_image_by_id_serves_every_variant_of_its_architecture(ec2: Any) -> None:
    golden = register(ec2, "golden", "arm64")

    assert images(SelectorTerm(id=golden)) == {
        "neuron-arm64": golden,
        "nvidia-arm64": golden,
        "standard-arm64": golden,
    }


def test_an_image_that_does_not_exist_gives_no_variant() -> None:
    assert images(SelectorTerm(id="ami-0eeeeeeeeeeeeeeee")) == {}


def test_an_image_by_name_or_tags_is_found(ec2: Any) -> None:
    golden = register(ec2, "gpu-golden-v7")
    ec2.create_tags(Resources=[golden], Tags=[{"Key": "team", "Value": "ml"}])

    assert images(SelectorTerm(name="gpu-golden-*"))["nvidia-amd64"] == golden
    assert images(SelectorTerm(tags={"team": "ml"}))["standard-amd64"] == golden


def test_an_alias_asks_the_parameters_that_aws_publishes() -> None:
    latest = alias_parameters("al2023@latest", "1.33")
    pinned = alias_parameters("al2@v20240807", "1.30")

    assert (
        latest["nvidia-amd64"]
        == "/aws/service/eks/optimized-ami/1.33/amazon-linux-2023/x86_64/nvidia/recommended/image_id"
    )
    assert (
        pinned["nvidia-amd64"]
        == "/aws/service/eks/optimized-ami/1.30/amazon-linux-2-gpu/amazon-eks-gpu-node-1.30-v20240807/image_id"
    )
    assert alias_parameters("windows2022@latest", "1.33") == {}


class Parameters:
    """SSM with one published image."""

    asked: tuple[str, ...] = ()

    def get_parameters(self, Names: list[str]) -> Any:  # noqa: N803
        self.asked += tuple(Names)
        return {"Parameters": [{"Name": name, "Value": "ami-9"} for name in Names if "/nvidia/" in name]}


@pytest.mark.parametrize("terms", [(SelectorTerm(alias="al2023@latest"),), ()])
def test_an_alias_or_the_family_alone_resolves_to_those_variants_that_are_published(
    terms: tuple[SelectorTerm, ...],
) -> None:
    seen = reader()
    seen._clients["ssm"] = Parameters()
    node_class = builders.node_class(ami_family=AmiFamily.AL2023, ami_selector_terms=terms)

    facts = seen.read(builders.environment(), Policy((), (node_class,)), None, Ledger())

    assert facts.images == {"default": {"nvidia-amd64": "ami-9", "nvidia-arm64": "ami-9"}}


def test_node_classes_of_one_alias_ask_for_it_once() -> None:
    seen = reader()
    parameters = seen._clients["ssm"] = Parameters()
    classes = (builders.node_class("one"), builders.node_class("two"))

    seen.read(builders.environment(), Policy((), classes), None, Ledger())

    assert len(parameters.asked) == len(set(parameters.asked)) == 5


def test_a_refused_endpoint_is_named_with_what_to_do(unused_port: int) -> None:
    endpoint = f"http://127.0.0.1:{unused_port}"

    with pytest.raises(ObservationFailed) as caught:
        Ec2Reader(endpoint, "us-east-1").read(builders.environment(), POLICY, None, Ledger())

    assert endpoint in str(caught.value)
    assert "the instances of this environment" in str(caught.value)
    assert "start the emulator" in caught.value.hints[0]


class Refusing:
    """EC2 as it answers who may not ask."""

    def __init__(self, code: str) -> None:
        self._code = code

    def get_paginator(self, operation: str) -> Any:
        raise ClientError({"Error": {"Code": self._code, "Message": "no."}}, operation)


@pytest.mark.parametrize(
    ("code", "advice"),
    [("UnauthorizedOperation", "permission"), ("ExpiredToken", "sign in again"), ("Unavailable", "run it again")],
)
def test_a_refusal_by_aws_is_a_failed_read_with_advice(code: str, advice: str) -> None:
    refused = reader()
    refused._clients["ec2"] = Refusing(code)

    with pytest.raises(ObservationFailed, match=code) as caught:
        refused.read(builders.environment(), POLICY, None, Ledger())

    assert advice in caught.value.hints[0]
