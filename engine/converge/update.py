"""One update of a stack: of everything, guarded by a preview, or of what it names and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pulumi
from attrs import evolve

from engine.converge.changes import Changes
from engine.converge.faults import fault_of
from engine.converge.guard import refuse_unrecorded_steps
from engine.converge.lane_program import declare_lane
from engine.converge.pulumi_process import Finished, OnEvent, Program
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.state import StackState
from engine.converge.targeted import declare_changes
from engine.converge.urns import Urns
from engine.model.document import DesiredDocument, node_sets
from engine.model.environment import Environment
from engine.model.fault import Fault

# Without it the first failed launch would keep every other from being made, and every removal from being done.
GO_ON = "--continue-on-error"


def update_whole(
    stack: PulumiStack,
    document: DesiredDocument,
    environment: Environment,
    state: StackState,
    changes: Changes,
    on_event: OnEvent,
) -> Finished:
    """Declare all of the document. Raises ConvergeRefused when a preview shows a loss that no record names."""
    # Importing pulumi_aws takes seconds of CPU, which a targeted update should not pay.
    from engine.converge.program import declare

    held = set(state.instances_by_claim())
    launching = {claim.name for claim in changes.launches}
    declared = evolve(
        document,
        node_sets=node_sets(tuple(claim for claim in document.claims if claim.name in held | launching)),
    )
    program = refusing(lambda: declare(declared, environment, adopt=changes.adoptions))
    if not state.is_empty:
        _refuse_losses(stack, document, [], program)
    return stack.operate("up", [GO_ON], program=program, on_event=on_event)


def update_targets(
    stack: PulumiStack,
    document: DesiredDocument,
    environment: Environment,
    state: StackState,
    changes: Changes,
    on_event: OnEvent,
) -> Finished:
    """Declare only what is new and name only what goes, so that nothing else can be touched.

    Its cost grows little with the stack. The foundation must stand. Raises ConvergeRefused when finishing a machine
    that is half-made would replace it.
    """
    program = refusing(
        lambda: declare_changes(
            document,
            environment,
            {urn: one.id for urn, one in state.resources.items() if one.id},
            claims=changes.declared,
            templates=changes.new_templates,
            adopt=changes.adoptions,
        )
    )
    targets = [f"--target={urn}" for urn in _targets(Urns(stack.name), state, changes)]
    if changes.unfinished:
        _refuse_losses(stack, document, targets, program)
    return stack.operate("up", [GO_ON, *targets], program=program, on_event=on_event)


def update_lane(
    stack: PulumiStack,
    document: DesiredDocument,
    environment: Environment,
    ground_ids: Mapping[str, str],
    state: StackState,
    changes: Changes,
    on_event: OnEvent,
) -> Finished:
    """The same in a stack of claims alone; `ground_ids` are the main stack's resource ids by URN.

    Raises ConvergeRefused when finishing a machine that is half-made would replace it.
    """
    program = refusing(
        lambda: declare_lane(document, environment, ground_ids, claims=changes.declared, adopt=changes.adoptions)
    )
    targets = [f"--target={urn}" for urn in _targets(Urns(stack.name), state, changes)]
    if changes.unfinished:
        _refuse_losses(stack, document, targets, program)
    return stack.operate("up", [GO_ON, *targets], program=program, on_event=on_event)


def _refuse_losses(stack: PulumiStack, document: DesiredDocument, targets: Sequence[str], program: Program) -> None:
    """Preview, and raise ConvergeRefused when that shows a loss that no record names; Fault when it fails."""
    preview = stack.operate("preview", targets, program=program, on_event=_nothing)
    refuse_unrecorded_steps(preview.told, document)
    if not preview.succeeded:
        raise fault_of(preview, stack.name, f"previewing the update of stack {stack.name}")


def _targets(stack_urns: Urns, state: StackState, changes: Changes) -> Iterator[str]:
    """A target that the state lacks and the program does not register fails the update, so only real ones."""
    pools = {claim.node_pool for claim in changes.declared} | {one.node_pool for one in changes.new_templates}
    # A component that stands needs no target; a new one does.
    yield from (urn for urn in map(stack_urns.node_set, sorted(pools)) if urn not in state.resources)
    yield from map(stack_urns.template, changes.new_templates)
    yield from map(stack_urns.claim, changes.declared)
    yield from (urn for urn in (*changes.removals, *changes.gone_templates) if urn in state.resources)


def refusing(program: Callable[[], None]) -> Program:
    """A Fault in the program becomes the engine's error, without a traceback."""

    def run() -> None:
        try:
            program()
        except Fault as fault:
            raise pulumi.RunError(str(fault)) from None

    return run


def _nothing(_: object) -> None:
    return None
