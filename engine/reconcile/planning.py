"""Plans for people to read: of the world as it is, or of a recorded snapshot."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from attrs import evolve, frozen

from engine.decide import decide
from engine.model.canonical import UnreadableValue, from_json
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.reconcile import passes
from engine.reconcile.assembly import assemble, catalog_of
from engine.reconcile.passes import Proposal
from engine.reconcile.workspace import Workspace


@frozen
class Planned:
    """A proposal, with what it was decided by. ``recorded_at``: when its snapshot was taken, where that was moved."""

    proposal: Proposal
    environment: Environment
    policy: Policy
    catalog: Catalog
    recorded_at: datetime | None = None


def plan_now(workspace: Workspace, name: str) -> Planned:
    """Plan on the world as it is now, and pin the plan so that it can be applied by its hash. Raises Fault."""
    ports = assemble(workspace, name)
    proposal = passes.propose(ports)
    if proposal.needs_converging:
        passes.pin(ports, proposal.plan)
    else:
        passes.remember_clocks(ports, proposal.plan)
    return Planned(proposal, ports.environment, ports.policy, ports.catalog)


def plan_from_snapshot(workspace: Workspace, name: str, file: Path, at: datetime | None = None) -> Planned:
    """Plan on a recorded snapshot: no cluster and no account is asked, and nothing is kept. Raises Fault.

    ``at``: as if it had been taken then.
    """
    environment = workspace.environment(name)
    policy = workspace.policy(environment)
    catalog = catalog_of(workspace, environment)
    recorded = read_snapshot(file)
    snapshot = recorded if at is None else evolve(recorded, taken_at=at)
    plan = decide(snapshot, policy, catalog, environment)
    proposal = Proposal(snapshot=snapshot, plan=plan, problems=(), is_settled=True)
    return Planned(proposal, environment, policy, catalog, recorded.taken_at if at is not None else None)


def read_snapshot(file: Path) -> Snapshot:
    """A snapshot that ``nodewright snapshot`` wrote. Raises Fault."""
    try:
        return from_json(Snapshot, file.read_bytes())
    except OSError as error:
        raise Fault(
            f"{file} cannot be read: {error.strerror}", "nodewright snapshot ENV --file FILE writes one"
        ) from None
    except UnreadableValue as unreadable:
        raise Fault(f"{file} is no snapshot: {unreadable}", "nodewright snapshot ENV --file FILE writes one") from None
