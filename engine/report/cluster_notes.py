"""What a reader has to know before the numbers: what is paused, and who else acts on this cluster."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.report.tables import examples
from engine.report.words import counted


def pause_of(snapshot: Snapshot, plan: Plan | None) -> str:
    """Why the environment is paused; empty is not paused."""
    return (plan.paused if plan is not None else "") or snapshot.paused


def paused_notes(snapshot: Snapshot, plan: Plan | None, policy: Policy | None = None) -> Iterator[Text]:
    """The environment's pause, and those of pools."""
    if why := pause_of(snapshot, plan):
        yield Text(f"Paused: {why}. Nothing is launched, drained or removed.", "bold yellow")
    for pool in policy.node_pools if policy is not None else ():
        if pool.paused:
            yield Text(f"Pool {pool.name} is paused: {pool.paused}", "yellow")


def karpenter_notes(snapshot: Snapshot) -> Iterator[Text]:
    """A Karpenter in the same cluster: what it has is left to it."""
    facts = snapshot.karpenter
    pools = f"{counted(len(facts.node_pools), 'NodePool')} ({examples(facts.node_pools)})" if facts.node_pools else ""
    if facts.is_live:
        nodes = f"{counted(len(facts.nodes), 'node')} of its own, left to it"
        yield Text(f"A live Karpenter is in this cluster: {', '.join(filter(None, [pools, nodes]))}", "yellow")
    elif pools:
        yield Text(f"Karpenter's {pools} are in this cluster, and no live controller", "dim")
