"""From the engine's events to what became of each claim."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from engine.catalog.refusal_codes import REACH
from engine.converge import urns
from engine.converge.events import StepDone, StepFailed, Told, errors_by_urn
from engine.converge.state import StackState
from engine.model.claim import Claim
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus

# `api error CODE: …` as the AWS provider says it; `(CODE)` as botocore does; `Server.CODE: …` in a state reason.
_CODE = re.compile(r"api error (?P<sdk>[\w.]+):|\((?P<boto>[A-Z][\w.]+)\)|\b(?:Server|Client)\.(?P<state>\w+)")
# What AWS says of a subnet, group, template, network part or profile that exists no more; in lower case, for EC2
# writes SubnetID and SubnetId.
_ABSENT = re.compile(
    r"invalid(subnetid|group|groupid|launchtemplatename|launchtemplateid|vpcid|routetableid|internetgatewayid)"
    r"\.(notfoundexception|notfound)|invalid iam instance profile|nosuchentity",
)
_MADE = frozenset({"create", "create-replacement", "import", "import-replacement", "update"})
_SHOWN_CHARACTERS = 600
DUPLICATE = "DuplicateInstance"
# The engine's closing word on the stack as a whole, when the reasons were given before.
_SAYS_NOTHING = frozenset({"update failed", "destroy failed", "refresh failed", "preview failed"})
_BROKEN_OFF = "broken off while it was being made; the next run finishes it"


def refusal_code(message: str) -> str:
    """AWS's error code in a provider's message; empty when there is none."""
    found = [next(filter(None, match.groups())) for match in _CODE.finditer(message)]
    return next((code for code in found if code in REACH), found[0] if found else "")


def failure(claim: str, message: str, *, offering: str = "", instance_id: str = "") -> ClaimOutcome:
    """A launch that did not succeed; which kind of failure, its code tells."""
    code = refusal_code(message)
    if instance_id:
        # Told apart from the words, so that what befell many machines alike reads alike.
        message = message.replace(f" ({instance_id})", "")
    status = OutcomeStatus.FAILED_CAPACITY if code in REACH else OutcomeStatus.FAILED_OTHER
    return ClaimOutcome(claim, status, instance_id, offering, code, message[:_SHOWN_CHARACTERS])


def offering_of(claim: Claim) -> str:
    """The ledger's key of what the claim asked for."""
    return claim.inputs.offering_key


def launch_outcomes(
    claims: Iterable[Claim], claim_urns: Mapping[str, str], told: Told, adoptions: Mapping[str, str]
) -> list[ClaimOutcome]:
    """What the events say of each claim that was to be launched or adopted.

    A claim of which nothing was said was skipped, unless events are missing: then it is unknown.
    """
    done = {event.urn: event for event in told.events if isinstance(event, StepDone) and event.op in _MADE}
    failed = {event.urn: event for event in told.events if isinstance(event, StepFailed)}
    errors = errors_by_urn(told.events)
    outcomes = []
    for claim in claims:
        urn, offering = claim_urns[claim.name], offering_of(claim)
        if urn in failed:
            message = errors.get(urn, "failed without a message")
            outcomes.append(failure(claim.name, message, offering=offering, instance_id=failed[urn].id))
        elif urn in done:
            status = OutcomeStatus.ADOPTED if claim.name in adoptions else OutcomeStatus.CREATED
            # An adopted machine that differs from what its claim records is held all the same, and says so.
            message = errors.get(urn, "")[:_SHOWN_CHARACTERS]
            outcomes.append(ClaimOutcome(claim.name, status, done[urn].id, offering, message=message))
        elif urn in errors:
            outcomes.append(failure(claim.name, errors[urn], offering=offering))
        else:
            status = OutcomeStatus.SKIPPED if told.is_complete else OutcomeStatus.UNKNOWN
            outcomes.append(ClaimOutcome(claim.name, status, offering=offering))
    return outcomes


def removal_outcomes(removals: Mapping[str, str], told: Told) -> list[ClaimOutcome]:
    """What the events say of each instance that was to be deleted; `removals` are claim names by URN."""
    done = {event.urn for event in told.events if isinstance(event, StepDone) and event.op.startswith("delete")}
    errors = errors_by_urn(told.events)
    outcomes = []
    for urn, name in removals.items():
        if urn in done:
            outcomes.append(ClaimOutcome(name, OutcomeStatus.DELETED))
        elif urn in errors:
            code = refusal_code(errors[urn])
            outcomes.append(
                ClaimOutcome(name, OutcomeStatus.FAILED_OTHER, code=code, message=errors[urn][:_SHOWN_CHARACTERS])
            )
        else:
            status = OutcomeStatus.SKIPPED if told.is_complete else OutcomeStatus.UNKNOWN
            outcomes.append(ClaimOutcome(name, status))
    return outcomes


def settled_by_state(
    outcomes: Iterable[ClaimOutcome], state: StackState, removals: Mapping[str, str]
) -> list[ClaimOutcome]:
    """The outcomes corrected by what the state holds, where events were lost.

    A create that is still pending stays unknown: whether a machine was made, only EC2 can tell.
    """
    urn_of = {name: urn for urn, name in removals.items()}
    held = state.instances_by_claim()
    pending = {urns.name_of(one.urn) for one in state.pending}
    settled = []
    for one in outcomes:
        found = held.get(one.claim)
        if one.status is not OutcomeStatus.UNKNOWN or one.claim in pending:
            settled.append(one)
        elif one.claim in urn_of:
            is_there = urn_of[one.claim] in state.resources
            settled.append(evolve(one, status=OutcomeStatus.SKIPPED if is_there else OutcomeStatus.DELETED))
        elif found is None:
            settled.append(evolve(one, status=OutcomeStatus.SKIPPED))
        elif found.init_errors:
            message = "\n".join(found.init_errors)
            settled.append(failure(one.claim, message, offering=one.offering, instance_id=found.id))
        else:
            settled.append(evolve(one, status=OutcomeStatus.CREATED, instance_id=found.id))
    return settled


def misses_ground(outcome: Outcome) -> bool:
    """Whether something failed because a part that the stack believes in exists no more."""
    said = (f"{one.code} {one.message}" for one in outcome.claims if one.status is OutcomeStatus.FAILED_OTHER)
    return any(_ABSENT.search(words.lower()) for words in (*said, *outcome.foundation_failures))


def with_second_try(first: Outcome, second: Outcome) -> Outcome:
    """One outcome of a converge that was done twice: the second tells of what the first left undone."""
    told_again = {one.claim for one in second.claims}
    return evolve(second, claims=(*(one for one in first.claims if one.claim not in told_again), *second.claims))


def of_all_lanes(outcomes: Sequence[Outcome]) -> Outcome:
    """One outcome of several lanes, at least one: settled when all are."""
    return evolve(
        outcomes[-1],
        claims=tuple(one for outcome in outcomes for one in outcome.claims),
        foundation_failures=tuple(words for outcome in outcomes for words in outcome.foundation_failures),
        is_settled=all(outcome.is_settled for outcome in outcomes),
        was_interrupted=any(outcome.was_interrupted for outcome in outcomes),
        stack="",
        slice_digest="",
    )


def broken_off(outcomes: Iterable[ClaimOutcome]) -> list[ClaimOutcome]:
    """The outcomes of an interrupted update: a machine that exists, and was only no longer waited for, is no failure.

    A refusal stays one. So does a launch that left no id: whether there is a machine is then for EC2 to tell.
    """
    return [
        evolve(one, status=OutcomeStatus.UNKNOWN, message=_BROKEN_OFF)
        if one.status is OutcomeStatus.FAILED_OTHER and one.instance_id and not one.code
        else one
        for one in outcomes
    ]


def foundation_failures(told: Told, claim_urns: Iterable[str]) -> tuple[str, ...]:
    """What was said in error of anything but the claims, each ``NAME: MESSAGE``."""
    of_claims = set(claim_urns)
    failures = []
    for urn, message in errors_by_urn(told.events).items():
        if urn in of_claims or message in _SAYS_NOTHING:
            continue
        failures.append(f"{urns.name_of(urn) or 'pulumi'}: {message[:_SHOWN_CHARACTERS]}{_advice(urn, message)}")
    return tuple(failures)


def _advice(urn: str, message: str) -> str:
    """What to do about a name in IAM that is taken; empty for any other failure."""
    kinds = {urns.ROLE: "role", urns.INSTANCE_PROFILE: "instance profile"}
    if not urn or urns.type_of(urn) not in kinds or "EntityAlreadyExists" not in message:
        return ""
    return (
        f" - the IAM {kinds[urns.type_of(urn)]} {urns.name_of(urn)} exists already and is not this environment's. "
        "Name another `role` in the EC2NodeClass, or leave `role` out so that the environment makes its own; "
        "or name an `instanceProfile` that exists; or delete it in IAM"
    )
