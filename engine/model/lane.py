"""Lanes: the Pulumi stacks of one environment, and what a desired document says of each."""

from __future__ import annotations

from engine.model.canonical import digest
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation, RemovalRecord


def stacks_of(document: DesiredDocument) -> tuple[str, ...]:
    """The stacks that the document says anything of: the environment's own first, then further lanes in name order."""
    main = document.environment
    named = {claim.stack for claim in document.claims} | {stack_of(record, main) for record in document.removals}
    return (main, *sorted(named - {main}))


def lane_part(
    document: DesiredDocument, stack: str, environment: str
) -> tuple[Foundation | None, tuple[Claim, ...], tuple[RemovalRecord, ...]]:
    """What the document says of one stack: the foundation, in the environment's own stack; its claims; its records."""
    return (
        document.foundation if stack == environment else None,
        tuple(claim for claim in document.claims if claim.stack == stack),
        tuple(record for record in document.removals if stack_of(record, environment) == stack),
    )


def lane_slice(document: DesiredDocument, stack: str, environment: str) -> str:
    """The digest of that part: a lane has converged when its outcome carries the same one."""
    return digest(lane_part(document, stack, environment))


def stack_of(record: RemovalRecord, environment: str) -> str:
    """Where a leaving claim lives; records from before there were lanes are the environment's own stack's."""
    return record.stack or environment
