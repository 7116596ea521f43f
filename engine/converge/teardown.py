"""Taking down all that a stack holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from attrs import evolve

from engine.converge import urns
from engine.converge.outcomes import foundation_failures, removal_outcomes, settled_by_state
from engine.converge.pulumi_process import OnEvent
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.recovery import (
    RUN_PROGRAM,
    FoundationFinder,
    forget_pending,
    providers_only,
    take_in,
    with_lost_parts,
)
from engine.converge.standing_parts import holds_no_part, network_that_stands, parts_that_stand, with_parts
from engine.converge.state import FoundPart
from engine.converge.update import GO_ON
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome


def tear_down(
    stack: PulumiStack,
    environment: Environment,
    document: DesiredDocument | None,
    instances: Sequence[Instance],
    finder: FoundationFinder | None,
    on_event: OnEvent,
) -> Outcome:
    """Delete everything in the stack, and the live `instances` that it does not know. Raises Fault.

    The state is asked again at the end: settled is what holds nothing.
    """
    alive = [instance for instance in instances if instance.is_alive]
    state = stack.state() if stack.exists() else None
    found = _standing(environment, document, finder, stack.name) if state is None or holds_no_part(state) else ()
    if state is None and not alive and not found:
        return _untouched(environment, document, finder)
    stack.ensure()
    state = stack.state()
    known = {one.id for one in state.of_type(urns.INSTANCE)}
    unknown = tuple(instance.id for instance in alive if instance.id not in known)
    if state.is_empty and not unknown and not found and not state.pending:
        return _untouched(environment, document, finder)
    if found or (unknown and holds_no_part(state)):
        pools = {template.node_pool for template in document.foundation.launch_templates} if document else ()
        state = with_parts(stack, environment, found, pools, on_event)
    state = with_lost_parts(stack, environment, state, finder, on_event)
    state = forget_pending(stack, state, keep=())
    if unknown:
        state = take_in(stack, environment, state, unknown, on_event)
    stack.unprotect_all()
    claim_of = {instance.id: instance.claim for instance in alive}
    leaving = {one.urn: claim_of.get(one.id) or urns.name_of(one.urn) for one in state.of_type(urns.INSTANCE)}
    program = providers_only(environment, stack.name)
    finished = stack.operate("destroy", [RUN_PROGRAM, GO_ON], program=program, on_event=on_event)
    left = stack.state()
    failures = foundation_failures(finished.told, leaving)
    if not left.is_empty and not failures:
        failures = tuple(f"{urns.name_of(urn)}: still there" for urn in left.resources)
    claims = settled_by_state(removal_outcomes(leaving, finished.told), left, leaving)
    return evolve(
        _outcome(environment, document, tuple(claims), failures, is_settled=left.is_empty),
        was_interrupted=finished.was_interrupted,
    )


def _standing(
    environment: Environment, document: DesiredDocument | None, finder: FoundationFinder | None, stack: str
) -> tuple[FoundPart, ...]:
    """What the document's foundation still consists of, for a stack that holds nothing of it."""
    return parts_that_stand(document, environment, finder, stack) if document and finder else ()


def _untouched(environment: Environment, document: DesiredDocument | None, finder: FoundationFinder | None) -> Outcome:
    """Nothing to delete was found: settled, unless a network stands that no document describes any more."""
    vpc = network_that_stands(environment, finder) if finder else None
    left = (
        (
            f"{environment.name}: {vpc} carries this environment's tags, and neither its stack nor its documents "
            "know it; restore them (`store` and `backend` in the stack file), or delete it by hand",
        )
        if vpc
        else ()
    )
    return _outcome(environment, document, (), left, is_settled=not left)


def _outcome(
    environment: Environment,
    document: DesiredDocument | None,
    claims: tuple[ClaimOutcome, ...],
    failures: tuple[str, ...],
    *,
    is_settled: bool,
) -> Outcome:
    return Outcome(
        environment=environment.name,
        version=document.version if document else 0,
        finished_at=datetime.now(UTC),
        claims=claims,
        foundation_failures=failures,
        is_settled=is_settled,
    )
