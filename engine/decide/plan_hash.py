"""What a plan does, as one digest.

Not when it was decided, nor what it remembers, nor how near its cost is to the least, nor what stays empty of
reservations, which others fill too, nor since when a machine may leave, which for some causes is the moment of the
plan: so a plan that is made again of an unchanged world has the hash that was reviewed. The claims that stay are
covered by the version and the hash of the document that holds them, and not looked at one by one: nothing else is ever
published under that version.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from attrs import evolve, fields

from engine.model.canonical import canonical_json, digest
from engine.model.document import DesiredDocument, RemovalRecord
from engine.model.plan import Kept, Plan
from engine.model.stay import StayReason

_NO_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_APART = frozenset(
    {"decided_at", "document", "hash", "idle_reservations", "kept", "launches", "ledger", "packing", "removals"}
)


def sealed(plan: Plan, published: DesiredDocument | None) -> Plan:
    """The plan with its hash, which a document of its own making carries too. A published one stays as it is."""
    is_new = plan.document is not published
    content = digest(
        {
            **{each.name: getattr(plan, each.name) for each in fields(Plan) if each.name not in _APART},
            "base": (published.environment, published.version, published.plan_hash) if published else (),
            "foundation": plan.document.foundation if is_new else (),
            "kept": tuple(_stays(plan.kept)),
            "launches": tuple(evolve(each, claim=evolve(each.claim, created_at=_NO_TIME)) for each in plan.launches),
            "records": tuple(map(_timeless, plan.document.removals)) if is_new else (),
            "removals": tuple(evolve(each, record=_timeless(each.record)) for each in plan.removals),
        }
    )
    return evolve(plan, hash=content, document=evolve(plan.document, plan_hash=content) if is_new else plan.document)


def _timeless(record: RemovalRecord) -> RemovalRecord:
    return evolve(record, since=_NO_TIME)


def _stays(kept: tuple[Kept, ...]) -> Iterator[str]:
    """Each machine that stays with its reason. What else a line of the plan shows of it is its claim's, or does nothing
    before that reason is another."""
    known: dict[StayReason, str] = {}
    for each in kept:
        told = known.get(each.reason)
        if told is None:
            told = f"{each.reason.code} {canonical_json(each.reason).decode('utf-8', 'surrogatepass')}"
            known[each.reason] = told
        yield f"{each.claim} {each.node} {told}"
