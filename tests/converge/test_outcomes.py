"""What became of each claim, from what the engine said and what its state holds."""

from __future__ import annotations

import pytest

from engine.converge.events import Event, Remark, StepDone, StepFailed, Summary, Told
from engine.converge.outcomes import (
    broken_off,
    failure,
    foundation_failures,
    launch_outcomes,
    misses_ground,
    refusal_code,
    removal_outcomes,
    settled_by_state,
    with_second_try,
)
from engine.converge.urns import Urns
from engine.model import labels
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from tests.converge.documents import NOON, claim
from tests.converge.states import instance, state_of

URNS = Urns("test")
SDK = "creating EC2 Instance: operation error EC2: RunInstances, StatusCode: 400, api error {}: sorry"
BOTO = "An error occurred ({}) when calling the RunInstances operation: sorry"


def told(*events: Event, is_complete: bool = True) -> Told:
    return Told((*events, Summary("failed")), is_complete)


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (SDK.format("InsufficientInstanceCapacity"), "InsufficientInstanceCapacity"),
        (BOTO.format("SpotMaxPriceTooLow"), "SpotMaxPriceTooLow"),
        (
            "unexpected state 'terminated', last error: Server.InsufficientInstanceCapacity: Insufficient capacity",
            "InsufficientInstanceCapacity",
        ),
        (SDK.format("InvalidAMIID.NotFound"), "InvalidAMIID.NotFound"),
        ("the connection was lost", ""),
    ],
)
def test_awss_code_is_found_however_the_provider_words_it(message: str, code: str) -> None:
    assert refusal_code(message) == code


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("InsufficientInstanceCapacity", OutcomeStatus.FAILED_CAPACITY),
        ("UnfulfillableCapacity", OutcomeStatus.FAILED_CAPACITY),
        ("MaxSpotInstanceCountExceeded", OutcomeStatus.FAILED_CAPACITY),
        ("VcpuLimitExceeded", OutcomeStatus.FAILED_CAPACITY),
        ("InsufficientReservedInstanceCapacity", OutcomeStatus.FAILED_CAPACITY),
        ("Unsupported", OutcomeStatus.FAILED_CAPACITY),
        ("InvalidAMIID.NotFound", OutcomeStatus.FAILED_OTHER),
        ("UnauthorizedOperation", OutcomeStatus.FAILED_OTHER),
    ],
)
def test_a_refusal_is_told_apart_by_its_code(code: str, status: OutcomeStatus) -> None:
    one = claim("gpu-1", capacity_type=labels.SPOT)
    urn = URNS.claim(one)
    said = told(Remark(urn, "error", SDK.format(code)), StepFailed(urn, "create"))
    [outcome] = launch_outcomes([one], {"gpu-1": urn}, said, {})
    assert (outcome.status, outcome.code) == (status, code)
    assert outcome.offering == "g5.xlarge/us-east-1a/spot"


def test_each_claim_gets_what_was_said_of_it() -> None:
    claims = [claim(name) for name in ("made", "found", "skipped")]
    names = {one.name: URNS.claim(one) for one in claims}
    said = told(StepDone(names["made"], "create", "i-1"), StepDone(names["found"], "import", "i-2"))
    outcomes = launch_outcomes(claims, names, said, {"found": "i-2"})
    assert [(one.claim, one.status, one.instance_id) for one in outcomes] == [
        ("made", OutcomeStatus.CREATED, "i-1"),
        ("found", OutcomeStatus.ADOPTED, "i-2"),
        ("skipped", OutcomeStatus.SKIPPED, ""),
    ]


def test_a_machine_that_was_made_and_then_failed_is_a_failure_with_its_id() -> None:
    one = claim("gpu-1")
    urn = URNS.claim(one)
    said = told(Remark(urn, "error", "timeout while waiting for state"), StepFailed(urn, "create", "i-9"))
    [outcome] = launch_outcomes([one], {"gpu-1": urn}, said, {})
    assert (outcome.status, outcome.instance_id) == (OutcomeStatus.FAILED_OTHER, "i-9")


def test_machines_that_met_the_same_read_the_same_whatever_their_ids() -> None:
    claims = [claim(name) for name in ("gpu-1", "gpu-2")]
    names = {one.name: URNS.claim(one) for one in claims}
    ids = {"gpu-1": "i-1", "gpu-2": "i-2"}
    said = told(
        *(Remark(names[name], "error", f"waiting for EC2 Instance ({id_}): timeout") for name, id_ in ids.items()),
        *(StepFailed(names[name], "create", id_) for name, id_ in ids.items()),
    )
    outcomes = launch_outcomes(claims, names, said, {})
    assert {one.message for one in outcomes} == {"waiting for EC2 Instance: timeout"}
    assert {one.claim: one.instance_id for one in outcomes} == ids


def test_an_interrupted_launch_is_unknown_where_its_machine_exists_and_a_failure_where_none_is_known() -> None:
    refused = SDK.format("InvalidAMIID.NotFound")
    outcomes = [
        failure("made", "context canceled", instance_id="i-1"),
        failure("never", "context canceled"),
        failure("refused", refused, instance_id="i-2"),
        ClaimOutcome("done", OutcomeStatus.CREATED, "i-3"),
    ]
    assert {one.claim: one.status for one in broken_off(outcomes)} == {
        "made": OutcomeStatus.UNKNOWN,
        "never": OutcomeStatus.FAILED_OTHER,
        "refused": OutcomeStatus.FAILED_OTHER,
        "done": OutcomeStatus.CREATED,
    }


def test_where_events_were_lost_the_state_decides_and_a_pending_create_stays_unknown() -> None:
    claims = [claim(name) for name in ("made", "half", "pending", "never")]
    names = {one.name: URNS.claim(one) for one in claims}
    unknown = launch_outcomes(claims, names, told(is_complete=False), {})
    leaving = {URNS.claim(claim("gone")): "gone", URNS.claim(claim("stays")): "stays"}
    unknown += removal_outcomes(leaving, told(is_complete=False))
    assert {one.status for one in unknown} == {OutcomeStatus.UNKNOWN}
    state = state_of(
        instance("made", "i-1"),
        instance("half", "i-2", init_errors=["waiting failed"]),
        instance("stays", "i-3"),
        pending=["pending"],
    )
    settled = settled_by_state(unknown, state, leaving)
    assert [(one.claim, one.status, one.instance_id) for one in settled] == [
        ("made", OutcomeStatus.CREATED, "i-1"),
        ("half", OutcomeStatus.FAILED_OTHER, "i-2"),
        ("pending", OutcomeStatus.UNKNOWN, ""),
        ("never", OutcomeStatus.SKIPPED, ""),
        ("gone", OutcomeStatus.DELETED, ""),
        ("stays", OutcomeStatus.SKIPPED, ""),
    ]


def test_a_removal_is_deleted_failed_or_skipped() -> None:
    leaving = {URNS.claim(claim(name)): name for name in ("a", "b", "c")}
    a, b, _ = leaving
    said = told(StepDone(a, "delete", "i-1"), StepFailed(b, "delete"), Remark(b, "error", SDK.format("Nope")))
    assert removal_outcomes(leaving, said) == [
        ClaimOutcome("a", OutcomeStatus.DELETED),
        ClaimOutcome("b", OutcomeStatus.FAILED_OTHER, code="Nope", message=SDK.format("Nope")),
        ClaimOutcome("c", OutcomeStatus.SKIPPED),
    ]


def test_what_fails_besides_claims_is_told_by_name_and_the_engines_closing_word_is_not() -> None:
    one = claim("gpu-1")
    vpc = URNS.of_foundation("aws:ec2/vpc:Vpc", "test")
    root = "urn:pulumi:test::nodewright::pulumi:pulumi:Stack::nodewright-test"
    said = told(
        Remark(URNS.claim(one), "error", "no capacity"),
        Remark(vpc, "error", "VpcLimitExceeded"),
        Remark(root, "error", "update failed"),
        Remark("", "error", "the backend went away"),
    )
    assert foundation_failures(said, [URNS.claim(one)]) == ("test: VpcLimitExceeded", "pulumi: the backend went away")


@pytest.mark.parametrize(
    ("kind", "words"), [("aws:iam/role:Role", "IAM role"), ("aws:iam/instanceProfile:InstanceProfile", "IAM instance")]
)
def test_a_role_that_exists_already_is_told_of_with_what_to_do(kind: str, words: str) -> None:
    taken = "creating IAM Role (gpu-nodes): api error EntityAlreadyExists: Role with name gpu-nodes already exists."
    urn = URNS.of_foundation(kind, "gpu-nodes")
    [failed] = foundation_failures(told(Remark(urn, "error", taken)), [])
    assert failed.startswith(f"gpu-nodes: {taken}")
    assert f"{words}" in failed
    assert "is not this environment's" in failed
    assert "leave `role` out" in failed


def test_another_failure_of_a_role_gets_no_advice_about_its_name() -> None:
    urn = URNS.of_foundation("aws:iam/role:Role", "gpu-nodes")
    assert foundation_failures(told(Remark(urn, "error", "AccessDenied")), []) == ("gpu-nodes: AccessDenied",)


def outcome_of(*claims: ClaimOutcome, failures: tuple[str, ...] = ()) -> Outcome:
    return Outcome("test", 1, NOON, claims, failures, is_settled=False)


@pytest.mark.parametrize(
    "message",
    [
        SDK.format("InvalidSubnetID.NotFound"),
        SDK.format("InvalidLaunchTemplateName.NotFoundException"),
        SDK.format("InvalidGroup.NotFound"),
        SDK.format("InvalidParameterValue") + ": Value (gpu) for parameter iamInstanceProfile.name is invalid. Invalid "
        "IAM Instance Profile name",
    ],
)
def test_a_part_that_exists_no_more_is_recognized_in_a_launch_and_in_the_foundation(message: str) -> None:
    assert misses_ground(outcome_of(failure("gpu-1", message)))
    assert misses_ground(outcome_of(failures=(f"prod: {message}",)))


@pytest.mark.parametrize("code", ["InvalidAMIID.NotFound", "InsufficientInstanceCapacity"])
def test_another_refusal_says_nothing_of_the_foundation(code: str) -> None:
    assert not misses_ground(outcome_of(failure("gpu-1", SDK.format(code)), failures=("prod: AccessDenied",)))


def test_a_second_try_tells_of_what_the_first_left_undone_and_keeps_the_rest() -> None:
    made, refused = ClaimOutcome("gpu-1", OutcomeStatus.CREATED, "i-1"), failure("gpu-2", "sorry")
    again = ClaimOutcome("gpu-2", OutcomeStatus.CREATED, "i-2")
    both = with_second_try(outcome_of(made, refused, failures=("prod: gone",)), outcome_of(again))
    assert (both.claims, both.foundation_failures) == ((made, again), ())
