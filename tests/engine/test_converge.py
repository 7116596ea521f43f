"""Converging through the real engine: what is declared stands, what is recorded goes, and nothing else is touched."""

from __future__ import annotations

import copy
import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from engine.converge.events import StepStarted, Summary
from engine.converge.faults import ConvergeRefused, StackMissing
from engine.converge.program import declare
from engine.converge.pulumi_process import Finished
from engine.model import labels
from engine.model.outcome import OutcomeStatus
from engine.sandbox.faults import Delay, NoCapacity
from tests.converge.documents import later, removal
from tests.engine.converge_fixtures import World, attached_plugin, statuses, world  # noqa: F401 (fixtures)

pytestmark = pytest.mark.engine

CREATED, DELETED, ADOPTED = OutcomeStatus.CREATED, OutcomeStatus.DELETED, OutcomeStatus.ADOPTED


def declared_whole(within: World, document: object) -> Finished:
    """What a plain `pulumi preview` of the whole document would do."""
    return within.converger.stack.operate(
        "preview",
        program=lambda: declare(document, within.environment),  # type: ignore[arg-type]
        on_event=lambda event: None,
    )


def test_an_environment_goes_up_grows_shrinks_and_comes_down(world: World) -> None:  # noqa: F811
    first = world.document(
        *(world.claim(f"gpu-{number}", zone=f"us-east-1{'ab'[number % 2]}") for number in range(4)),
        world.claim("gpu-spot", capacity_type=labels.SPOT),
    )
    outcome, events = world.converge(first)
    assert outcome.foundation_failures == ()
    assert set(statuses(outcome).values()) == {CREATED}
    assert outcome.is_settled
    assert world.running() == sorted(claim.name for claim in first.claims)
    ids = {instance.claim: instance.id for instance in world.instances()}
    assert {one.claim: one.instance_id for one in outcome.claims} == ids
    assert [instance.claim for instance in world.instances() if instance.capacity_type == labels.SPOT] == ["gpu-spot"]
    assert any(isinstance(event, StepStarted) and event.op == "create" for event in events)

    # Nothing to do: no update runs.
    outcome, events = world.converge(first)
    assert (outcome.is_settled, outcome.claims, events) == (True, (), [])

    # One more, by a targeted update: what stands is not touched, and a whole program sees no difference afterwards.
    grown = later(first, *first.claims, world.claim("gpu-more"))
    outcome, events = world.converge(grown)
    assert statuses(outcome) == {"gpu-more": CREATED}
    assert outcome.is_settled
    assert {event.urn.rsplit("::")[-1] for event in events if isinstance(event, StepStarted)} == {"gpu-more"}
    preview = declared_whole(world, grown)
    assert [set(event.changes) for event in preview.told.events if isinstance(event, Summary)] == [{"same"}]

    # One less, by its record: only it goes.
    staying = [claim for claim in grown.claims if claim.name != "gpu-1"]
    shrunk = later(grown, *staying, removals=[removal("gpu-1")])
    outcome, _ = world.converge(shrunk)
    assert statuses(outcome) == {"gpu-1": DELETED}
    assert world.running() == sorted(claim.name for claim in staying)

    events = []
    gone = world.converger.destroy(shrunk, world.instances(), events.append)
    assert gone.foundation_failures == ()
    assert gone.is_settled
    assert (world.running(), world.vpcs()) == ([], [])
    assert world.converger.stack.state().is_empty
    assert world.converger.destroy(shrunk, world.instances(), events.append).is_settled


def test_a_claim_that_vanished_without_a_record_is_refused_and_nothing_goes(world: World) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"), world.claim("gpu-2"))
    world.converge(document)
    forgotten = later(document, world.claim("gpu-1"))
    with pytest.raises(ConvergeRefused, match="gpu-2") as refused:
        world.converge(forgotten)
    assert [urn.rsplit("::")[-1] for urn in refused.value.urns] == ["gpu-2"]
    with pytest.raises(ConvergeRefused):
        world.converge(evolve(forgotten, foundation=world.foundation(role_policies=())))
    assert world.running() == ["gpu-1", "gpu-2"]


def test_a_network_that_would_be_replaced_is_refused_and_stands(world: World) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"))
    world.converge(document)
    vpcs = world.vpcs()
    moved = evolve(document, version=2, foundation=world.foundation(cidr="10.77.0.0/16"))
    with pytest.raises(ConvergeRefused, match="vpc"):
        world.converge(moved)
    assert (world.vpcs(), world.running()) == (vpcs, ["gpu-1"])


def test_a_changed_foundation_is_updated_with_every_machine_left_alone(world: World) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"), world.claim("gpu-2"))
    world.converge(document)
    before = world.instances()
    policies = ("arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy")
    changed = evolve(document, version=2, foundation=world.foundation(role_policies=policies))
    outcome, events = world.converge(changed)
    assert outcome.is_settled
    assert world.instances() == before
    assert {event.op for event in events if isinstance(event, StepStarted)} <= {"create"}


def test_one_offering_without_capacity_fails_alone_with_its_code(world: World) -> None:  # noqa: F811
    world.converge(world.document())
    world.sandbox.faults(NoCapacity(instance_type="p5.48xlarge"))
    document = world.document(
        world.claim("gpu-1"),
        world.claim("gpu-2", instance_type="p5.48xlarge"),
        world.claim("gpu-3", zone="us-east-1b"),
        version=2,
    )
    outcome, _ = world.converge(document)
    failed = next(one for one in outcome.claims if one.claim == "gpu-2")
    assert (failed.status, failed.code) == (OutcomeStatus.FAILED_CAPACITY, "InsufficientInstanceCapacity")
    assert failed.offering == "p5.48xlarge/us-east-1a/on-demand"
    assert {name: status for name, status in statuses(outcome).items() if name != "gpu-2"} == {
        "gpu-1": CREATED,
        "gpu-3": CREATED,
    }
    assert not outcome.is_settled
    # The refused claim leaves by its record, and the environment is settled again.
    answered = later(document, world.claim("gpu-1"), world.claim("gpu-3"), removals=[removal("gpu-2")])
    outcome, _ = world.converge(answered)
    assert outcome.is_settled
    assert world.running() == ["gpu-1", "gpu-3"]


def test_a_run_killed_in_the_middle_of_a_launch_is_adopted_and_not_doubled(
    world: World,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.converge(world.document())
    world.sandbox.faults(Delay(action="RunInstances", seconds=6, times=1))
    document = world.document(world.claim("gpu-1"), version=2)
    outcomes = []
    updating = threading.Thread(target=lambda: outcomes.append(world.converge(document)[0]))
    updating.start()
    _kill_pulumi_when(lambda: bool(world.sandbox.requests("RunInstances")) and _is_launching(world))
    updating.join()
    assert statuses(outcomes[0]) == {"gpu-1": OutcomeStatus.UNKNOWN}
    assert not outcomes[0].is_settled
    deadline = time.monotonic() + 30
    while not world.running() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert world.running() == ["gpu-1"]

    launched = world.instances()
    outcome, _ = world.converge(document)
    assert statuses(outcome) == {"gpu-1": ADOPTED}
    assert outcome.is_settled
    assert world.instances() == launched
    assert world.converger.stack.state().pending == ()
    assert world.converge(document)[0].is_settled


@pytest.mark.parametrize("action", ["CreateSubnet", "CreateRole"])
def test_a_first_run_killed_while_it_makes_the_foundation_stands_in_nobodys_way(
    world: World,  # noqa: F811
    action: str,
) -> None:
    world.sandbox.faults(Delay(action=action, seconds=3, times=1))
    before = len(world.sandbox.requests(action))
    document = world.document(world.claim("gpu-1"))
    updating = threading.Thread(target=lambda: world.converge(document))
    updating.start()
    _kill_pulumi_when(lambda: len(world.sandbox.requests(action)) > before)
    updating.join()
    deadline = time.monotonic() + 20
    while not _is_answered(world, action) and time.monotonic() < deadline:
        time.sleep(0.2)
    outcome, _ = world.converge(document)
    assert outcome.foundation_failures == ()
    assert outcome.is_settled
    assert world.running() == ["gpu-1"]
    assert len(world.vpcs()) == 1
    assert world.converger.destroy(document, world.instances(), lambda event: None).is_settled
    assert world.vpcs() == []


@pytest.mark.parametrize("is_whole", [True, False], ids=["a whole update", "a targeted update"])
def test_a_half_made_machine_is_finished_while_it_lives_and_is_a_failure_once_it_is_gone(
    world: World,  # noqa: F811
    is_whole: bool,
) -> None:
    document = world.document(world.claim("gpu-1"), world.claim("gpu-2"))
    world.converge(document)
    ids = {instance.claim: instance.id for instance in world.instances()}
    _make_half_made(world, ids)
    world.sandbox.client("ec2").terminate_instances(InstanceIds=[ids["gpu-2"]])
    if is_whole:
        document = evolve(document, version=2, foundation=world.foundation(role_policies=()))

    outcome, _ = world.converge(document)

    assert statuses(outcome) == {"gpu-1": CREATED, "gpu-2": OutcomeStatus.FAILED_OTHER}
    assert {one.claim: one.instance_id for one in outcome.claims} == ids
    assert not outcome.is_settled
    assert world.converger.stack.state().instances_by_claim()["gpu-1"].init_errors == ()
    without = later(document, world.claim("gpu-1"), removals=[removal("gpu-2")])
    outcome, _ = world.converge(without)
    assert statuses(outcome) == {"gpu-2": DELETED}
    assert outcome.is_settled
    assert [instance.id for instance in world.instances()] == [ids["gpu-1"]]


def _make_half_made(within: World, ids: Mapping[str, str]) -> None:
    """The state as a launch leaves it that was no longer waited for."""
    raw = copy.deepcopy(dict(within.converger.stack.state().raw))
    for one in raw["deployment"]["resources"]:
        if one.get("id") in ids.values():
            one["initErrors"] = [f"waiting for EC2 Instance ({one['id']}): context canceled"]
    within.converger.stack.replace_state(json.dumps(raw))


def test_a_role_that_is_somebody_elses_is_left_alone_and_told_of_with_what_to_do(world: World) -> None:  # noqa: F811
    role = f"{world.name}-node"
    iam = world.sandbox.client("iam")
    iam.create_role(RoleName=role, AssumeRolePolicyDocument="{}")
    outcome, _ = world.converge(world.document(world.claim("gpu-1")))
    assert not outcome.is_settled
    told = next(one for one in outcome.foundation_failures if "EntityAlreadyExists" in one)
    assert told.startswith(f"{role}: ")
    assert f"the IAM role {role} exists already and is not this environment's" in told
    assert iam.get_role(RoleName=role)["Role"].get("Tags", []) == []


def _is_answered(within: World, action: str) -> bool:
    """Whether EC2 has made what the killed run asked for."""
    if action == "CreateRole":
        roles = within.sandbox.client("iam").list_roles()["Roles"]
        return any(role["RoleName"] == f"{within.name}-node" for role in roles)
    filters = [{"Name": f"tag:{labels.TAG_ENVIRONMENT}", "Values": [within.name]}]
    return len(within.sandbox.client("ec2").describe_subnets(Filters=filters)["Subnets"]) == 2


def _is_launching(within: World) -> bool:
    """Whether the engine has written down that it begins a create."""
    return any(one.kind == "creating" for one in within.converger.stack.state().pending)


def _kill_pulumi_when(is_time: object) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if is_time():  # type: ignore[operator]
            for process in _updates_of_this_process():
                os.killpg(process, signal.SIGKILL)
            return
        time.sleep(0.05)
    raise AssertionError("the launch never began")


def _updates_of_this_process() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == os.getpid() and b"up" in command[1:3]:
            found.append(int(folder.name))
    return found


def test_a_lost_network_is_made_anew(world: World) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"))
    world.converge(document)
    ec2 = world.sandbox.client("ec2")
    [instance] = world.instances()
    ec2.terminate_instances(InstanceIds=[instance.id])
    _tear_network_down(world)
    after = later(document, world.claim("gpu-2"), removals=[removal("gpu-1")])
    outcome, _ = world.converge(after, refresh=True)
    assert outcome.foundation_failures == ()
    assert statuses(outcome) == {"gpu-1": DELETED, "gpu-2": CREATED}
    assert outcome.is_settled
    assert world.running() == ["gpu-2"]
    assert len(world.vpcs()) == 1


def _tear_network_down(within: World) -> None:
    """By hand, past the stack's protection: what a restart of the sandbox's EC2 does to its whole memory."""
    ec2, [vpc] = within.sandbox.client("ec2"), within.vpcs()
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    for table in ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]:
        for association in table["Associations"]:
            if not association.get("Main"):
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
        if not any(association.get("Main") for association in table["Associations"]):
            ec2.delete_route_table(RouteTableId=table["RouteTableId"])
    for subnet in ec2.describe_subnets(Filters=of_vpc)["Subnets"]:
        ec2.delete_subnet(SubnetId=subnet["SubnetId"])
    for group in ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]:
        if group["GroupName"] != "default":
            ec2.delete_security_group(GroupId=group["GroupId"])
    for gateway in ec2.describe_internet_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": [vpc]}])[
        "InternetGateways"
    ]:
        ec2.detach_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"], VpcId=vpc)
        ec2.delete_internet_gateway(InternetGatewayId=gateway["InternetGatewayId"])
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize("part", ["launch template", "subnet"])
def test_a_part_that_was_deleted_by_hand_is_made_anew_when_a_launch_needs_it(
    world: World,  # noqa: F811
    part: str,
) -> None:
    document = world.document(world.claim("gpu-1"))
    world.converge(document)
    [kept] = world.instances()
    _delete_by_hand(world, part)
    grown = later(document, *document.claims, world.claim("gpu-2", zone="us-east-1b"))
    outcome, _ = world.converge(grown)
    assert statuses(outcome) == {"gpu-2": CREATED}
    assert outcome.foundation_failures == ()
    assert outcome.is_settled
    assert world.running() == ["gpu-1", "gpu-2"]
    assert kept in world.instances()
    assert len(world.vpcs()) == 1


def _delete_by_hand(within: World, part: str) -> None:
    ec2 = within.sandbox.client("ec2")
    if part == "launch template":
        ec2.delete_launch_template(LaunchTemplateName=f"{within.name}-gpu-0123456789")
        return
    zone = {"Name": "availability-zone", "Values": ["us-east-1b"]}
    [subnet] = ec2.describe_subnets(Filters=[zone, {"Name": "vpc-id", "Values": within.vpcs()}])["Subnets"]
    ec2.delete_subnet(SubnetId=subnet["SubnetId"])


def test_a_machine_let_go_while_the_stack_did_not_know_it_leaves_and_a_second_of_a_claim_is_told_of(
    world: World,  # noqa: F811
) -> None:
    document = world.document(world.claim("gpu-1"))
    world.converge(document)
    [known] = world.instances()
    twin, stray = (_launched_by_hand(world, known.id, claim) for claim in ("gpu-1", "gpu-0"))
    recorded = later(document, world.claim("gpu-1"), removals=[removal("gpu-0")])
    outcome, _ = world.converge(recorded)
    assert [(one.claim, one.status, one.code) for one in outcome.claims] == [
        ("gpu-0", DELETED, ""),
        ("gpu-1", OutcomeStatus.UNKNOWN, "DuplicateInstance"),
    ]
    assert {instance.id for instance in world.instances()} == {known.id, twin}
    assert stray not in {instance.id for instance in world.instances()}
    # Taking the environment down takes the machines along that the stack does not know.
    assert world.converger.destroy(recorded, world.instances(), lambda event: None).is_settled
    assert world.instances() == ()


def _launched_by_hand(within: World, like: str, claim: str) -> str:
    ec2 = within.sandbox.client("ec2")
    [of] = ec2.describe_instances(InstanceIds=[like])["Reservations"][0]["Instances"]
    tags = [{"Key": labels.TAG_CLAIM, "Value": claim}, {"Key": labels.TAG_ENVIRONMENT, "Value": within.name}]
    launched = ec2.run_instances(
        ImageId=of["ImageId"],
        InstanceType=of["InstanceType"],
        SubnetId=of["SubnetId"],
        MinCount=1,
        MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )
    return str(launched["Instances"][0]["InstanceId"])


def test_a_missing_stack_is_not_made_anew_while_its_machines_run(world: World, tmp_path: Path) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"))
    world.converge(document)
    (tmp_path / "elsewhere").mkdir()
    stack = world.converger.stack
    variables = {**stack.cli.variables, "PULUMI_BACKEND_URL": (tmp_path / "elsewhere").as_uri()}
    world.converger.stack = evolve(stack, cli=evolve(stack.cli, variables=variables))
    with pytest.raises(StackMissing, match=r"1 instance") as of_the_stack_alone:
        world.converge(document)
    assert "makes an empty one" in of_the_stack_alone.value.hints[-1]
    # With the documents lost as well, an empty stack would leave the machine to nobody.
    with pytest.raises(StackMissing, match=r"1 instance") as of_both:
        world.converge(world.document())
    assert "restore the documents" in of_both.value.hints[1]
    # Made on a person's word, it takes the machine over.
    world.converger.ensure_stack()


def test_a_lost_state_takes_up_the_foundation_and_the_machines_that_stand(world: World) -> None:  # noqa: F811
    document = world.document(world.claim("gpu-1"), world.claim("gpu-2", zone="us-east-1b"))
    world.converge(document)
    vpcs, machines = world.vpcs(), world.instances()
    world.lose_state()
    world.converger.ensure_stack()
    outcome, _ = world.converge(document)
    assert outcome.foundation_failures == ()
    assert statuses(outcome) == {"gpu-1": ADOPTED, "gpu-2": ADOPTED}
    assert outcome.is_settled
    assert (world.vpcs(), world.instances()) == (vpcs, machines)
    preview = declared_whole(world, document)
    assert [set(event.changes) for event in preview.told.events if isinstance(event, Summary)] == [{"same"}]
    assert world.converger.destroy(document, world.instances(), lambda event: None).is_settled
    assert (world.vpcs(), world.instances()) == ([], ())


@pytest.mark.parametrize("claims", [0, 1])
def test_destroying_with_a_lost_state_takes_down_what_stands(world: World, claims: int) -> None:  # noqa: F811
    document = world.document(*[world.claim("gpu-1")][:claims])
    world.converge(document)
    world.lose_state()
    unknown = world.converger.destroy(None, (), lambda event: None)
    assert not unknown.is_settled
    assert world.vpcs()[0] in unknown.foundation_failures[0]
    outcome = world.converger.destroy(document, world.instances(), lambda event: None)
    assert outcome.foundation_failures == ()
    assert outcome.is_settled
    assert (world.vpcs(), world.instances()) == ([], ())
    roles = world.sandbox.client("iam").list_roles()["Roles"]
    assert f"{world.name}-node" not in {role["RoleName"] for role in roles}
