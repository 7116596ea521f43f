"""Loops over the small world, before their first pass or at rest."""

from __future__ import annotations

from pathlib import Path

from engine.model.document import DesiredDocument
from engine.model.policy import Disruption
from tests.builders import minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.reconcile.loop_world import LoopPorts

EMPTY_AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())


def loop_of(pods: int, folder: Path, **more: object) -> LoopPorts:
    pool = node_pool(disruption=EMPTY_AT_ONCE)
    world = World(policy(pool), [pod(f"llm-{number}", gpu=1) for number in range(pods)], **more)  # type: ignore[arg-type]
    return LoopPorts(world, folder)


def at_rest(pods: int, folder: Path, **more: object) -> LoopPorts:
    """A loop that has run for ten seconds and was stopped; it may run again."""
    loop = loop_of(pods, folder, **more)
    loop.run(until=10.0)
    loop.stop.times = 0
    return loop


def stacks_converged(loop: LoopPorts) -> list[str]:
    return [stack for what, stack, _ in loop.calls if what == "converge"]


def claims_of(document: DesiredDocument | None) -> list[str]:
    return sorted(claim.name for claim in document.claims) if document else []
