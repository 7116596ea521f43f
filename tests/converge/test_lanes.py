"""A lane beside the main one: what it answers for, what its program declares, where its settings are kept."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from engine.converge import urns
from engine.converge.changes import Changes, Duplicate, Stray, changes_between, foundation_stands
from engine.converge.faults import ConvergeRefused
from engine.converge.lane_program import declare_lane, lacking_ground
from engine.converge.lane_project import lane_project
from engine.converge.outcomes import of_all_lanes
from engine.converge.program import declare
from engine.converge.state import StackState, parse_state
from engine.converge.urns import Urns
from engine.model import labels
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import NetworkMode
from engine.model.node import Instance, InstanceState
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from tests.converge import states
from tests.converge.documents import NOON, TEMPLATE, claim, document, environment, foundation, removal, template
from tests.converge.programs import registered_by
from tests.converge.states import exported, launch_template, providers, resource, state_of

LANE = "test.1"
MAIN, BESIDE = Urns("test"), Urns(LANE)
GROUND = {
    MAIN.template(template()): "lt-1",
    MAIN.of_foundation(urns.SUBNET, "test-us-east-1a"): "subnet-a",
    MAIN.of_foundation(urns.SECURITY_GROUP, "test"): "sg-1",
}


def lane_claim(name: str, **more: Any) -> Claim:
    return claim(name, stack=LANE, **more)


def held(*names: str) -> StackState:
    """The lane's state with these claims, each with an instance of its name."""
    machines = [resource(BESIDE.claim(lane_claim(name)), urns.INSTANCE, f"i-{name}") for name in names]
    return parse_state(LANE, exported(*machines))


def running(id_: str, of: str) -> Instance:
    launched = NOON - timedelta(minutes=5)
    return Instance(id_, of, InstanceState.RUNNING, "g5.xlarge", "us-east-1a", labels.ON_DEMAND, launched)


def changes(of: DesiredDocument, state: StackState, *instances: Instance) -> Changes:
    return changes_between(of, state, instances, environment="test", foundation_digest="d1", known_ids={})


def test_a_lane_launches_its_own_claims_and_leaves_the_foundation_to_the_main_stack() -> None:
    found = changes(document(claim("main"), lane_claim("mine"), claim("theirs", stack="test.2")), held())

    assert [one.name for one in found.launches] == ["mine"]
    assert (found.new_templates, found.gone_templates, found.foundation_is_stale) == ((), (), False)
    assert changes(document(claim("main")), held()).is_empty


def test_a_lane_lets_go_what_it_holds_by_a_record_of_any_stack() -> None:
    of = document(lane_claim("kept"), removals=[removal("gone", stack=LANE), removal("old"), removal("elsewhere")])

    found = changes(of, held("kept", "gone", "old"))

    assert set(found.removals) == {BESIDE.claim(lane_claim("gone")), BESIDE.claim(lane_claim("old"))}


def test_machines_of_other_lanes_are_neither_adopted_nor_told_of() -> None:
    of = document(claim("main"), lane_claim("mine"), removals=[removal("left", stack="test.2")])
    machines = (running("i-1", "main"), running("i-2", "mine"), running("i-3", "left"), running("i-4", "nobodys"))

    beside = changes(of, held(), *machines)
    main = changes(of, state_of(*providers(), states.foundation("d1"), launch_template(TEMPLATE)), *machines)

    assert (beside.adoptions, beside.strays, beside.duplicates) == ({"mine": "i-2"}, (), ())
    assert (main.adoptions, main.strays) == ({"main": "i-1"}, ())
    assert main.duplicates == (Duplicate("nobodys", "i-4", None),)


def test_a_machine_that_left_a_lane_unseen_is_that_lanes_stray() -> None:
    of = document(removals=[removal("left", stack=LANE)])

    assert changes(of, held(), running("i-1", "left")).strays == (Stray("left", "i-1"),)
    assert changes(of, state_of(*providers(), states.foundation("d1")), running("i-1", "left")).strays == ()


@pytest.mark.parametrize("moved_to", [[], ["test"], ["test.2"]], ids=["forgotten", "to main", "to another lane"])
def test_a_claim_that_a_lane_holds_is_refused_when_it_is_forgotten_or_moved(moved_to: list[str]) -> None:
    of = document(lane_claim("mine"), *(claim("lost", stack=stack) for stack in moved_to))

    with pytest.raises(ConvergeRefused, match="lost"):
        changes(of, held("mine", "lost"))


def test_a_lanes_program_declares_a_claim_as_the_main_one_does_on_literal_ground() -> None:
    of, emulated = document(lane_claim("mine", zone="us-east-1a")), environment(endpoint_url="http://127.0.0.1:4566")
    whole = registered_by(lambda: declare(document(claim("mine", zone="us-east-1a")), emulated))

    made = registered_by(lambda: declare_lane(of, emulated, GROUND, claims=tuple(of.claims), adopt={"mine": "i-7"}))

    [beside] = [one for one in made.values() if one.type == urns.INSTANCE]
    [main] = [one for one in whole.values() if one.type == urns.INSTANCE]
    assert beside.inputs == {**main.inputs, "subnetId": "subnet-a", "vpcSecurityGroupIds": ["sg-1"]}
    assert beside.import_id == "i-7"
    assert not beside.dependencies & GROUND.keys()
    assert {one.type for one in made.values()} <= {urns.INSTANCE, urns.NODE_SET, urns.PROVIDER, "pulumi:pulumi:Stack"}
    [provider] = [one for one in made.values() if one.type == urns.PROVIDER]
    assert (provider.name, provider.inputs["maxRetries"]) == (urns.LAUNCHES, "3")


def test_a_claim_waits_for_what_the_main_stack_does_not_hold_yet() -> None:
    of = document(lane_claim("mine"))
    without = {urn: id_ for urn, id_ in GROUND.items() if "Subnet" not in urn}

    assert lacking_ground(lane_claim("mine"), of, environment(), GROUND) == ""
    assert lacking_ground(lane_claim("mine"), of, environment(), without) == "test-us-east-1a"
    assert TEMPLATE in lacking_ground(lane_claim("mine"), of, environment(), {})
    on = foundation(network_mode=NetworkMode.EXISTING)
    placed = lane_claim("mine", subnet_id="subnet-9", security_group_ids=("sg-9",))
    assert lacking_ground(placed, document(placed, on=on), environment(), {MAIN.template(template()): "lt-1"}) == ""


def test_the_foundation_stands_only_as_it_is_declared() -> None:
    standing = state_of(*providers(), states.foundation("d1"), launch_template(TEMPLATE))

    assert foundation_stands(standing, "test", "d1")
    assert not foundation_stands(standing, "test", "d2")
    assert not foundation_stands(state_of(), "test", "d1")


def test_a_lanes_settings_lie_outside_the_folder_of_environments_and_open_its_secrets_alike(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    stacks.mkdir()
    (stacks / "Pulumi.test.yaml").write_text("config:\n  nodewright:region: us-east-1\nencryptionsalt: v1:abc=\n")

    folder = lane_project(tmp_path, "test", LANE)

    assert [file.name for file in stacks.iterdir()] == ["Pulumi.test.yaml"]
    assert (folder / f"Pulumi.{LANE}.yaml").read_text() == "encryptionsalt: v1:abc=\n"
    assert "name: nodewright\n" in (folder / "Pulumi.yaml").read_text()


def test_several_lanes_are_settled_when_each_is() -> None:
    def outcome(stack: str, *, is_settled: bool) -> Outcome:
        told = ClaimOutcome(f"of-{stack}", OutcomeStatus.CREATED)
        return Outcome("test", 3, NOON, (told,), is_settled=is_settled, stack=stack, slice_digest="d")

    both = of_all_lanes([outcome("test", is_settled=False), outcome(LANE, is_settled=True)])

    assert ([one.claim for one in both.claims], both.is_settled) == (["of-test", f"of-{LANE}"], False)
    assert (both.stack, both.slice_digest) == ("", "")
    assert of_all_lanes([outcome("test", is_settled=True), outcome(LANE, is_settled=True)]).is_settled
