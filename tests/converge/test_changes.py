"""What has to happen, from a document, a state and the machines that run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from engine.converge import urns
from engine.converge.changes import Changes, Duplicate, Stray, changes_between
from engine.converge.events import StepStarted, Summary, Told
from engine.converge.faults import ConvergeRefused
from engine.converge.guard import refuse_unrecorded_steps
from engine.converge.recovery import withheld_claims
from engine.converge.state import StackState
from engine.model import labels
from engine.model.document import DesiredDocument
from engine.model.node import Instance, InstanceState
from tests.converge import states
from tests.converge.documents import NOON, TEMPLATE, claim, document, environment, foundation, removal, template
from tests.converge.states import NAMES, instance, launch_template, providers, state_of, stray

STANDING = (*providers(), states.foundation("d1"), launch_template(TEMPLATE))


def running(id_: str, of: str, *, age_minutes: int = 5, state: InstanceState = InstanceState.RUNNING) -> Instance:
    launched = NOON - timedelta(minutes=age_minutes)
    return Instance(id_, of, state, "g5.xlarge", "us-east-1a", labels.ON_DEMAND, launched)


def changes(
    of: DesiredDocument,
    state: StackState,
    *instances: Instance,
    digest: str = "d1",
    known_ids: Mapping[str, str] | None = None,
) -> Changes:
    return changes_between(
        of, state, instances, environment="test", foundation_digest=digest, known_ids=known_ids or {}
    )


def test_a_state_that_holds_what_the_document_says_needs_nothing() -> None:
    found = changes(document(claim("gpu-1")), state_of(*STANDING, instance("gpu-1", "i-1")), running("i-1", "gpu-1"))
    assert found.is_empty


def test_new_claims_are_launched_and_recorded_ones_leave() -> None:
    of = document(claim("gpu-1"), claim("gpu-3"), removals=[removal("gpu-2")])
    found = changes(of, state_of(*STANDING, instance("gpu-1", "i-1"), instance("gpu-2", "i-2")))
    assert [one.name for one in found.launches] == ["gpu-3"]
    assert found.removals == (NAMES.claim(claim("gpu-2")),)
    assert not found.foundation_is_stale


def test_claims_of_another_stack_are_not_this_ones() -> None:
    found = changes(document(claim("gpu-1", stack="test.2")), state_of(*STANDING))
    assert found.is_empty


def test_the_oldest_machine_of_a_claim_is_adopted_and_a_second_is_told_of() -> None:
    machines = (running("i-new", "gpu-1", age_minutes=1), running("i-old", "gpu-1", age_minutes=9))
    dead = running("i-dead", "gpu-1", age_minutes=99, state=InstanceState.TERMINATED)
    found = changes(document(claim("gpu-1")), state_of(*STANDING), *machines, dead)
    assert found.adoptions == {"gpu-1": "i-old"}
    assert found.duplicates == (Duplicate("gpu-1", "i-new", "i-old"),)


def test_a_machine_in_the_state_is_the_one_that_counts() -> None:
    machines = (running("i-1", "gpu-1"), running("i-0", "gpu-1", age_minutes=9))
    found = changes(document(claim("gpu-1")), state_of(*STANDING, instance("gpu-1", "i-1")), *machines)
    assert found.is_empty
    assert found.duplicates == (Duplicate("gpu-1", "i-0", "i-1"),)


def test_a_machine_whose_claim_left_unseen_is_a_stray_and_one_of_no_record_is_left_alone() -> None:
    of = document(removals=[removal("gpu-1")])
    found = changes(of, state_of(*STANDING), running("i-1", "gpu-1"), running("i-2", "nobodys"))
    assert found.strays == (Stray("gpu-1", "i-1"),)
    assert found.duplicates == (Duplicate("nobodys", "i-2", None),)
    assert found.removals == ()


def test_of_several_machines_a_record_lets_only_the_remembered_one_go() -> None:
    of = document(removals=[removal("gpu-1")])
    both = (running("i-1", "gpu-1", age_minutes=9), running("i-2", "gpu-1"))
    found = changes(of, state_of(*STANDING), *both, known_ids={"gpu-1": "i-1"})
    assert found.strays == (Stray("gpu-1", "i-1"),)
    assert found.duplicates == (Duplicate("gpu-1", "i-2", None),)
    # Nobody remembers which: a person has to tell.
    found = changes(of, state_of(*STANDING), *both)
    assert (found.strays, [one.instance_id for one in found.duplicates]) == ((), ["i-1", "i-2"])


@pytest.mark.parametrize("known_ids", [{}, {"gpu-1": "i-1"}], ids=["seen dead", "remembered"])
def test_a_second_machine_outlives_the_record_of_the_first(known_ids: dict[str, str]) -> None:
    of = document(removals=[removal("gpu-1")])
    gone, second = running("i-1", "gpu-1", state=InstanceState.TERMINATED), running("i-2", "gpu-1")
    seen = (second,) if known_ids else (gone, second)
    found = changes(of, state_of(*STANDING), *seen, known_ids=known_ids)
    assert (found.strays, found.duplicates) == ((), (Duplicate("gpu-1", "i-2", None),))


def test_a_second_machine_is_not_told_of_as_beside_one_that_leaves_now() -> None:
    of = document(removals=[removal("gpu-1")])
    state = state_of(*STANDING, instance("gpu-1", "i-1"))
    found = changes(of, state, running("i-1", "gpu-1"), running("i-2", "gpu-1"))
    assert found.duplicates == (Duplicate("gpu-1", "i-2", None),)


def test_a_stray_that_was_taken_in_already_leaves_without_a_record_of_its_id() -> None:
    of = document(removals=[removal("gpu-1")])
    found = changes(of, state_of(*STANDING, stray("i-1")), running("i-1", "gpu-1"))
    assert (found.strays, found.removals) == ((), (NAMES.stray("i-1"),))


@pytest.mark.parametrize("kept", [[], ["gpu-1"]])
def test_a_machine_that_the_document_forgot_is_refused(kept: list[str]) -> None:
    state = state_of(*STANDING, instance("gpu-1", "i-1"), instance("gpu-2", "i-2"))
    with pytest.raises(ConvergeRefused, match="gpu-2") as refused:
        changes(document(*map(claim, kept)), state)
    assert NAMES.claim(claim("gpu-2")) in refused.value.urns


def test_templates_come_and_go_with_the_document_but_not_from_under_a_machine() -> None:
    new = template("test-gpu-aaaaaaaaaa")
    used = NAMES.template(template("test-gpu-old-used"))
    state = state_of(
        *STANDING,
        launch_template("test-gpu-old-used"),
        launch_template("test-gpu-old"),
        instance("gpu-1", "i-1", dependencies=[used]),
    )
    of = document(claim("gpu-1"), on=foundation([template(), new]))
    found = changes(of, state)
    assert found.new_templates == (new,)
    assert found.gone_templates == (NAMES.template(template("test-gpu-old")),)
    assert not found.foundation_is_stale


@pytest.mark.parametrize(
    "state",
    [
        state_of(),
        state_of(states.foundation("d1")),
        state_of(*providers()),
        state_of(*providers(), states.foundation("another")),
        state_of(*providers(), states.foundation("d1", parts=["urn:of:a:part:that:is:gone"])),
    ],
    ids=["empty", "no providers", "no foundation", "declared otherwise", "a part is gone"],
)
def test_a_foundation_that_does_not_stand_as_declared_is_stale(state: StackState) -> None:
    assert changes(document(), state).foundation_is_stale


def test_a_claim_whose_launch_was_cut_off_waits_until_ec2_must_show_its_machine() -> None:
    of = document(claim("gpu-1"), claim("gpu-2"))
    state = state_of(*STANDING, pending=["gpu-1"])
    real, emulated = environment(), environment(endpoint_url="http://127.0.0.1:1")
    seen, unseen = changes(of, state, running("i-1", "gpu-1")), changes(of, state)
    soon, later = NOON + timedelta(seconds=20), NOON + timedelta(seconds=90)
    assert [one.name for one in withheld_claims(state, unseen, real, soon)] == ["gpu-1"]
    assert withheld_claims(state, unseen, real, later) == ()
    assert withheld_claims(state, seen, real, soon) == ()
    at_once = NOON + timedelta(seconds=4)
    assert [one.name for one in withheld_claims(state, unseen, emulated, at_once)] == ["gpu-1"]
    assert withheld_claims(state, unseen, emulated, soon) == ()
    assert withheld_claims(state_of(*STANDING), unseen, emulated, at_once) == ()


VPC = NAMES.of_foundation("aws:ec2/vpc:Vpc", "test")
ROUTE = NAMES.of_foundation("aws:ec2/route:Route", "test-internet")
ROLE = NAMES.of_foundation("aws:iam/role:Role", "old")
GPU_1, GPU_2 = NAMES.claim(claim("gpu-1")), NAMES.claim(claim("gpu-2"))


@pytest.mark.parametrize(
    ("urn", "op"),
    [
        (GPU_1, "create"),
        (GPU_1, "import"),
        (GPU_1, "update"),
        (GPU_2, "delete"),
        (NAMES.stray("i-1"), "delete"),
        (NAMES.template(template("test-gpu-old")), "delete"),
        (NAMES.node_set("gpu"), "delete"),
        (ROLE, "delete"),
        (VPC, "create"),
        (VPC, "update"),
    ],
)
def test_a_preview_may_make_change_and_remove_what_is_recorded_or_expendable(urn: str, op: str) -> None:
    of = document(claim("gpu-1"), removals=[removal("gpu-2")])
    refuse_unrecorded_steps(Told((StepStarted(urn, op, planning=True), Summary("succeeded")), is_complete=True), of)


@pytest.mark.parametrize(
    ("urn", "op"),
    [
        (GPU_1, "delete"),
        (GPU_1, "replace"),
        (GPU_1, "create-replacement"),
        (GPU_2, "replace"),
        (VPC, "delete"),
        (VPC, "replace"),
        (ROUTE, "delete"),
    ],
)
def test_a_preview_that_would_lose_anything_else_is_refused_by_name(urn: str, op: str) -> None:
    of = document(claim("gpu-1"), removals=[removal("gpu-2")])
    with pytest.raises(ConvergeRefused) as refused:
        refuse_unrecorded_steps(Told((StepStarted(urn, op, planning=True), Summary("succeeded")), is_complete=True), of)
    assert refused.value.urns == (urn,)
    assert urn in str(refused.value)


SUBNET_A, SUBNET_B = (NAMES.of_foundation(urns.SUBNET, f"test-us-east-1{zone}") for zone in "ab")
TIE_A = NAMES.of_foundation(urns.ROUTE_TABLE_ASSOCIATION, "test-us-east-1a")
TABLE = NAMES.of_foundation(urns.ROUTE_TABLE, "test")


@pytest.mark.parametrize(("made", "tie"), [(SUBNET_A, TIE_A), (TABLE, TIE_A), (TABLE, ROUTE)])
def test_what_ties_parts_together_may_be_made_anew_with_a_lost_one(made: str, tie: str) -> None:
    steps = (StepStarted(made, "create", planning=True), StepStarted(tie, "replace", planning=True))
    refuse_unrecorded_steps(Told((*steps, Summary("succeeded")), is_complete=True), document())


@pytest.mark.parametrize(("made", "lost"), [(SUBNET_B, TIE_A), (TABLE, SUBNET_A), (SUBNET_A, ROUTE), (TABLE, VPC)])
def test_a_part_that_is_made_anew_excuses_the_loss_of_no_other(made: str, lost: str) -> None:
    steps = (StepStarted(made, "create", planning=True), StepStarted(lost, "replace", planning=True))
    with pytest.raises(ConvergeRefused):
        refuse_unrecorded_steps(Told((*steps, Summary("succeeded")), is_complete=True), document())


HALF_MADE = state_of(*STANDING, instance("gpu-1", "i-1", init_errors=["it never ran"]))


@pytest.mark.parametrize("alive", [InstanceState.PENDING, InstanceState.RUNNING])
def test_a_half_made_machine_that_lives_is_finished_and_not_launched_again(alive: InstanceState) -> None:
    found = changes(document(claim("gpu-1")), HALF_MADE, running("i-1", "gpu-1", state=alive))
    assert [one.name for one in found.unfinished] == ["gpu-1"]
    assert (found.launches, found.half_made, found.is_empty) == ((), (), False)


def test_a_half_made_machine_that_is_gone_or_another_is_a_failure_and_needs_no_update() -> None:
    dead = running("i-1", "gpu-1", state=InstanceState.TERMINATED)
    for machines in ((), (dead,)):
        found = changes(document(claim("gpu-1")), HALF_MADE, *machines)
        assert (found.half_made, found.unfinished, found.is_empty) == (("gpu-1",), (), True)
    assert changes(document(claim("gpu-1")), HALF_MADE, dead, running("i-2", "gpu-1")).half_made == ("gpu-1",)


def test_a_half_made_machine_whose_claim_left_by_record_is_deleted_and_not_finished() -> None:
    found = changes(document(removals=[removal("gpu-1")]), HALF_MADE, running("i-1", "gpu-1"))
    assert (found.removals, found.unfinished) == ((NAMES.claim(claim("gpu-1")),), ())
