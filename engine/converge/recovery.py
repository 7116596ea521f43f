"""Getting a state back in line with EC2: after a kill, after a loss, before a destroy."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from engine.converge import urns
from engine.converge.changes import Changes
from engine.converge.faults import fault_of
from engine.converge.providers import declare_launches, declare_providers
from engine.converge.pulumi_process import OnEvent, Program
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.state import StackState, with_finished_creates, with_strays, without_pending
from engine.converge.urns import Urns
from engine.model.claim import Claim
from engine.model.environment import Environment

# A refresh or a destroy otherwise uses the providers as the state holds them: with an emulator's former address, say.
RUN_PROGRAM = "--run-program"

# EC2 may not list a machine yet that it made a moment ago, so absence means nothing at first.
LAUNCH_IS_VISIBLE_AFTER = timedelta(seconds=60)
# An emulator lists what it made at once, but a request of a killed run may still be on its way to it.
EMULATED_LAUNCH_IS_VISIBLE_AFTER = timedelta(seconds=5)


def withheld_claims(state: StackState, changes: Changes, environment: Environment, now: datetime) -> tuple[Claim, ...]:
    """Claims that must not be launched yet: their launch was cut off, and their machine may still come into sight."""
    visible_after = EMULATED_LAUNCH_IS_VISIBLE_AFTER if environment.endpoint_url else LAUNCH_IS_VISIBLE_AFTER
    if state.written_at is not None and now - state.written_at > visible_after:
        return ()
    cut_off = {urns.name_of(one.urn) for one in state.pending if one.type == urns.INSTANCE and one.kind == "creating"}
    return tuple(claim for claim in changes.launches if claim.name in cut_off and claim.name not in changes.adoptions)


class FoundationFinder(Protocol):
    """Finds a part of a foundation that a killed run may have made."""

    def find(self, kind: str, inputs: Mapping[str, Any]) -> str | None:
        """The id by which its provider reads it; None when it does not exist. `kind` is its Pulumi type."""
        ...


def with_lost_parts(
    stack: PulumiStack,
    environment: Environment,
    state: StackState,
    finder: FoundationFinder | None,
    on_event: OnEvent,
) -> StackState:
    """The state with the foundation parts and templates whose making was cut off and which exist all the same.

    Made a second time they would stand in their own way: a role's name, a subnet's addresses are taken. Raises Fault.
    """
    cut_off = [
        one
        for one in state.pending
        if one.kind == "creating" and one.type != urns.INSTANCE and one.urn not in state.resources
    ]
    found = {one.urn: finder.find(one.type, one.inputs) for one in cut_off} if finder else {}
    ids = {urn: id_ for urn, id_ in found.items() if id_ is not None}
    if not ids:
        return state
    stack.replace_state(with_finished_creates(state, ids))
    _refresh(stack, environment, [f"--target={urn}" for urn in ids], on_event)
    return stack.state()


def forget_pending(stack: PulumiStack, state: StackState, keep: Collection[str]) -> StackState:
    """The state without its pending operations, except those of the claims in `keep`.

    Right only after EC2 was asked for the machines of its claims by their tags. Raises Fault.
    """
    if all(urns.name_of(one.urn) in keep for one in state.pending):
        return state
    stack.replace_state(without_pending(state, lambda one: urns.name_of(one.urn) not in keep))
    return stack.state()


def providers_only(environment: Environment, stack: str) -> Program:
    """A program for operations that create nothing, and reach AWS as the environment says now.

    It declares the providers that a stack of that name holds: launches alone in any but the environment's main one.
    """

    def run() -> None:
        if stack == environment.name:
            declare_providers(environment)
        else:
            declare_launches(environment)

    return run


def refreshed(stack: PulumiStack, environment: Environment, on_event: OnEvent) -> StackState:
    """The state after everything in it was compared with EC2: what exists no more is dropped. Raises Fault."""
    _refresh(stack, environment, ["--clear-pending-creates"], on_event)
    return stack.state()


def refreshed_ground(stack: PulumiStack, environment: Environment, state: StackState, on_event: OnEvent) -> StackState:
    """The state after all that claims stand on was compared with EC2. Machines are not: they are told of by tags.

    Raises Fault.
    """
    machines_and_ways = {urns.INSTANCE, urns.PROVIDER, *urns.COMPONENTS}
    parts = [one.urn for one in state.resources.values() if one.id and one.type not in machines_and_ways]
    if not parts:
        return state
    _refresh(stack, environment, [f"--target={urn}" for urn in parts], on_event)
    return stack.state()


def take_in(
    stack: PulumiStack,
    environment: Environment,
    state: StackState,
    instance_ids: Collection[str],
    on_event: OnEvent,
) -> StackState:
    """The state with machines that it did not know, so that they can be deleted. Raises Fault."""
    stack.replace_state(with_strays(state, instance_ids))
    targets = [f"--target={Urns(stack.name).stray(instance_id)}" for instance_id in instance_ids]
    _refresh(stack, environment, targets, on_event)
    return stack.state()


def _refresh(stack: PulumiStack, environment: Environment, arguments: list[str], on_event: OnEvent) -> None:
    program = providers_only(environment, stack.name)
    done = stack.operate("refresh", [RUN_PROGRAM, *arguments], program=program, on_event=on_event)
    if not done.succeeded:
        raise fault_of(done, stack.name, f"comparing stack {stack.name} with EC2")
