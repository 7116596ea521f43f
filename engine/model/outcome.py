"""What became of each claim when a document was converged."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

from attrs import frozen


class OutcomeStatus(str, Enum):
    CREATED = "created"
    ADOPTED = "adopted"
    FAILED_CAPACITY = "failed-capacity"
    FAILED_OTHER = "failed-other"
    DELETED = "deleted"
    SKIPPED = "skipped"
    UNKNOWN = "unknown"


@frozen
class ClaimOutcome:
    """``code`` is AWS's error code where there was one (``InsufficientInstanceCapacity``); ``message`` its words."""

    claim: str
    status: OutcomeStatus
    instance_id: str = ""
    offering: str = ""
    code: str = ""
    message: str = ""


@frozen
class Outcome:
    """``is_settled``: every claim and the foundation stand as the document of ``version`` says; nothing is left to do.

    ``plan_hash`` is that of the document.
    ``foundation_failures`` are diagnostics of what is not a claim, each ``NAME: MESSAGE``. ``was_interrupted``: a
    person broke it off, and what had not begun by then was left out. ``stack`` is the Pulumi stack, one lane of the
    environment, that was converged; ``slice_digest`` is of what the document says of that stack.
    """

    environment: str
    version: int
    finished_at: datetime
    claims: tuple[ClaimOutcome, ...] = ()
    foundation_failures: tuple[str, ...] = ()
    is_settled: bool = False
    plan_hash: str = ""
    was_interrupted: bool = False
    stack: str = ""
    slice_digest: str = ""
