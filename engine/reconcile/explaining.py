"""What explanations are about: one environment at one moment, seen now or recorded, and what a pass would do then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from pathlib import Path

from attrs import evolve

from engine.decide import decide
from engine.decide.offered import Offered
from engine.decide.question import Seen, see
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.rule import Enforcement, Guardrail
from engine.model.snapshot import Snapshot
from engine.policy.findings import did_you_mean
from engine.reconcile import passes
from engine.reconcile.assembly import assemble, catalog_of
from engine.reconcile.planning import read_snapshot
from engine.reconcile.workspace import Workspace


class Asked:
    """One environment at one moment. What an answer does not need is not worked out."""

    def __init__(self, environment: Environment, policy: Policy, catalog: Catalog, snapshot: Snapshot) -> None:
        self.environment, self.policy, self.catalog, self.snapshot = environment, policy, catalog, snapshot

    @cached_property
    def plan(self) -> Plan:
        return decide(self.snapshot, self.policy, self.catalog, self.environment)

    @cached_property
    def unguarded(self) -> Plan:
        """The plan that guardrails are asked about first, when nothing that they block has been left out of it."""
        rules = tuple(
            evolve(rule, enforcement=Enforcement.AUDIT) if isinstance(rule, Guardrail) else rule
            for rule in self.policy.rules
        )
        return decide(self.snapshot, evolve(self.policy, rules=rules), self.catalog, self.environment)

    @cached_property
    def seen(self) -> Seen:
        return see(self.snapshot, self.policy, self.catalog, self.environment)

    def offered(self, pods: Sequence[Pod]) -> Offered:
        return Offered(self.seen, pods)


def asked(workspace: Workspace, name: str | None, snapshot: Path | None, at: datetime | None) -> Asked:
    """The environment of that name as it is seen now, or in a recorded ``snapshot``; None: the only one, or the one
    that the snapshot is of. ``at`` supposes another time of it. Raises Fault, InvalidInput."""
    recorded = read_snapshot(snapshot) if snapshot is not None else None
    chosen = name or only_environment(workspace, recorded)
    if recorded is not None:
        environment = workspace.environment(chosen)
        found = Asked(environment, workspace.policy(environment), catalog_of(workspace, environment), recorded)
    else:
        ports = assemble(workspace, chosen)
        found = Asked(ports.environment, ports.policy, ports.catalog, passes.observe(ports)[0])
    if at is None:
        return found
    moved = evolve(found.snapshot, taken_at=at)
    return Asked(found.environment, found.policy, found.catalog, moved)


def unknown(what: str, name: str, known: Sequence[str]) -> Fault:
    """There is no such thing in what was seen; the nearest name, the names where they are few, or one of many."""
    message = f"there is no {what} {name[:100]!r}"
    if not known:
        return Fault(message, "nothing of the kind is there")
    return Fault(message, did_you_mean(name, known) or f"{len(known):,} are there, such as {known[0]}")


def only_environment(workspace: Workspace, recorded: Snapshot | None = None) -> str:
    """The environment that is meant where none is named. Raises Fault where that is not clear."""
    names = workspace.environment_names()
    if recorded is not None and recorded.environment in names:
        return recorded.environment
    if len(names) == 1:
        return names[0]
    raise Fault("which environment is meant?", f"name one of them: {', '.join(names) or 'there is none'}")
