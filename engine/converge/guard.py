"""The last question before a full update: would it delete or replace what nobody decided to remove?"""

from __future__ import annotations

from collections.abc import Iterable

from engine.converge import urns
from engine.converge.events import StepStarted, Told
from engine.converge.faults import ConvergeRefused
from engine.model.document import DesiredDocument

# Made anew from the document at any time, and of no use once it declares them no more.
_EXPENDABLE = frozenset(
    {
        urns.LAUNCH_TEMPLATE,
        urns.ROLE,
        urns.ROLE_POLICY_ATTACHMENT,
        urns.INSTANCE_PROFILE,
        urns.ACCESS_ENTRY,
        urns.QUEUE,
        urns.QUEUE_POLICY,
        urns.EVENT_RULE,
        urns.EVENT_TARGET,
        *urns.COMPONENTS,
    }
)
# What only ties other parts together, and which ones; an association has the name of its subnet.
_TIES = {
    urns.ROUTE_TABLE_ASSOCIATION: frozenset({urns.SUBNET, urns.ROUTE_TABLE}),
    urns.ROUTE: frozenset({urns.ROUTE_TABLE, urns.INTERNET_GATEWAY}),
    urns.EGRESS_RULE: frozenset({urns.SECURITY_GROUP}),
    urns.INGRESS_RULE: frozenset({urns.SECURITY_GROUP}),
}
_DELETES = frozenset({"delete", "delete-replaced", "discard-replaced"})
_REPLACES = frozenset({"replace", "create-replacement", "import-replacement"})


def refuse_unrecorded_steps(told: Told, document: DesiredDocument) -> None:
    """Judge a preview of the whole document. Raises ConvergeRefused, naming what would be lost.

    An instance may go only by its removal record, and is never replaced: a new machine is a new claim. A removed
    launch template, role, queue or component may go; the network never, except in `destroy`. A tie between parts may
    be made anew when one of them is: the lost part took it along.
    """
    recorded = {record.claim for record in document.removals}
    steps = [event for event in told.events if isinstance(event, StepStarted)]
    made = [event.urn for event in steps if event.op == "create"]
    lost = sorted(
        {event.urn for event in steps if not (_may_happen(event, recorded) or _hangs_on_new(event.urn, made))}
    )
    if lost:
        raise ConvergeRefused(
            f"converging version {document.version} of environment {document.environment!r} would delete or replace "
            f"{len(lost)} resource(s) that no removal record names: {', '.join(lost)}",
            tuple(lost),
            (
                "nothing was changed; `pulumi preview --diff` shows which of their inputs differ",
                "undo that change in the stack file, or move to a new environment",
            ),
        )


def _hangs_on_new(urn: str, made: Iterable[str]) -> bool:
    """Whether it ties together parts of which one is lost and is made anew, so that it ties nothing any more."""
    ties = _TIES.get(urns.type_of(urn), frozenset())
    name = urns.name_of(urn)
    return any(
        urns.type_of(one) in ties and (urns.type_of(one) != urns.SUBNET or urns.name_of(one) == name) for one in made
    )


def _may_happen(event: StepStarted, recorded: set[str]) -> bool:
    kind = urns.type_of(event.urn)
    if event.op in _REPLACES:
        return kind in _EXPENDABLE
    if event.op in _DELETES:
        is_recorded = kind == urns.INSTANCE and (urns.name_of(event.urn) in recorded or urns.is_stray(event.urn))
        return kind in _EXPENDABLE or is_recorded
    return True
