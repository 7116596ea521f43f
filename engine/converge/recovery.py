"""Getting a state back in line with EC2: after a kill, after a loss, before a destroy."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from engine.converge import urns
from engine.converge.changes import Changes
from engine.converge.faults import fault_of
from engine.converge.providers import declare_providers
from engine.converge.pulumi_process import OnEvent, Program
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.state import StackState, with_strays, without_pending
from engine.converge.urns import Urns
from engine.model.claim import Claim
from engine.model.environment import Environment

# A refresh or a destroy otherwise uses the providers as the state holds them: with an emulator's former address, say.
RUN_PROGRAM = "--run-program"

# EC2 may not list a machine yet that it made a moment ago, so absence means nothing at first.
LAUNCH_IS_VISIBLE_AFTER = timedelta(seconds=60)


def withheld_claims(state: StackState, changes: Changes, environment: Environment, now: datetime) -> tuple[Claim, ...]:
    """Claims that must not be launched yet: their launch was cut off, and their machine may still come into sight.

    An emulator lists what it made at once.
    """
    if environment.endpoint_url is not None:
        return ()
    if state.written_at is not None and now - state.written_at > LAUNCH_IS_VISIBLE_AFTER:
        return ()
    cut_off = {urns.name_of(one.urn) for one in state.pending if one.type == urns.INSTANCE and one.kind == "creating"}
    return tuple(claim for claim in changes.launches if claim.name in cut_off and claim.name not in changes.adoptions)


def forget_pending(stack: PulumiStack, state: StackState, keep: Collection[str]) -> StackState:
    """The state without its pending operations, except those of the claims in `keep`.

    Right only after EC2 was asked for the machines of its claims by their tags. Raises Fault.
    """
    if all(urns.name_of(one.urn) in keep for one in state.pending):
        return state
    stack.replace_state(without_pending(state, lambda one: urns.name_of(one.urn) not in keep))
    return stack.state()


def providers_only(environment: Environment) -> Program:
    """A program for operations that create nothing, and reach AWS as the environment says now."""

    def run() -> None:
        declare_providers(environment)

    return run


def refreshed(stack: PulumiStack, environment: Environment, on_event: OnEvent) -> StackState:
    """The state after everything in it was compared with EC2: what exists no more is dropped. Raises Fault."""
    arguments = [RUN_PROGRAM, "--clear-pending-creates"]
    done = stack.operate("refresh", arguments, program=providers_only(environment), on_event=on_event)
    if not done.succeeded:
        raise fault_of(done, stack.name, f"comparing stack {stack.name} with EC2")
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
    program = providers_only(environment)
    done = stack.operate("refresh", [RUN_PROGRAM, *targets], program=program, on_event=on_event)
    if not done.succeeded:
        raise fault_of(done, stack.name, f"reading unknown instances into stack {stack.name}")
    return stack.state()
