"""What the Pulumi program declares: the previewed document, or the published one. Preview and update are two
processes that share only the pin on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from attrs import frozen

from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.plan import Plan
from engine.reconcile import passes
from engine.reconcile.assembly import assemble
from engine.reconcile.one_writer import sole_writer
from engine.reconcile.ports import Ports
from engine.reconcile.workspace import find_workspace
from engine.report.plan_report import plan_line

# A preview shows a plan that someone has made a moment ago; an older one may no longer be what the cluster needs.
PIN_IS_FRESH_FOR = timedelta(minutes=10)

# Held until this process ends, which is when the update's program has ended.
_held = contextlib.ExitStack()


@frozen
class Declaration:
    """The document to declare, and running instances of its claims by claim name: none is launched twice.

    ``summary`` is the plan in a line, for the log of the preview; empty where the published document is declared.
    """

    document: DesiredDocument
    environment: Environment
    adopt: Mapping[str, str]
    summary: str


def declaration(stack: str, *, is_preview: bool, start: Path) -> Declaration:
    """What ``pulumi preview`` or ``pulumi up`` of that stack declares. Raises Fault, InvalidInput.

    A preview proposes: a fresh pin, or a new one that it makes. An update takes the lease, publishes the pin by
    compare-and-swap, and without one declares the published document as it stands.
    """
    ports = assemble(find_workspace(start), stack)
    plan = _previewed(ports) if is_preview else _published(ports)
    document = plan.document if plan else ports.store.document()
    if document is None:
        raise Fault(
            f"environment {stack}: nothing was ever published and no plan is pinned",
            (f"nodewright plan {stack}", "or run pulumi up without --skip-preview: its preview makes a plan"),
        )
    cloud = ports.cloud.read(ports.environment, ports.policy, document, ports.store.ledger().ledger)
    with ports.session(_say_nothing) as session:
        adopt = session.lane(ports.environment.name).adoptable(document, cloud.instances)
    return Declaration(document=document, environment=ports.environment, adopt=adopt, summary=_summary(plan))


def _say_nothing(line: str) -> None:
    """Nothing is fetched or built under a running ``pulumi``, so there is nothing to tell."""


def _summary(plan: Plan | None) -> str:
    return f"{plan_line(plan)} ({plan.hash[:12]})" if plan else ""


def _previewed(ports: Ports) -> Plan | None:
    pinned = ports.store.pin()
    published = ports.store.document()
    version = published.version if published else 0
    if pinned and pinned.base_version == version and abs(ports.now() - pinned.made_at) < PIN_IS_FRESH_FOR:
        return pinned.plan
    ports.store.drop_pin()
    plan = passes.propose(ports).plan
    if plan.document.version == version:
        return None
    passes.pin(ports, plan)
    return plan


def _published(ports: Ports) -> Plan | None:
    _held.enter_context(sole_writer(ports, _say_nothing))
    pinned = ports.store.pin()
    if pinned is None:
        return None
    passes.refuse_if_stale(ports, pinned.plan)
    if pinned.plan.document.version == pinned.base_version:
        return None
    ports.store.write_ledger(pinned.plan.ledger)
    ports.store.publish(pinned.plan.document)
    ports.store.drop_pin()
    return pinned.plan
