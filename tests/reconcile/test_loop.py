"""The loop in the small world: what begins a pass, what it does not wait for, and how it ends."""

from __future__ import annotations

from pathlib import Path

from engine.model.policy import Disruption
from engine.report.summary import PassResult
from tests.builders import minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.reconcile.loop_world import LoopPorts

EMPTY_AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())


def loop_of(pods: int, folder: Path, **more: object) -> LoopPorts:
    pool = node_pool(disruption=EMPTY_AT_ONCE)
    world = World(policy(pool), [pod(f"llm-{number}", gpu=1) for number in range(pods)], **more)  # type: ignore[arg-type]
    return LoopPorts(world, folder)


def test_what_waits_at_the_start_is_launched_and_then_it_rests(tmp_path: Path) -> None:
    loop = loop_of(3, tmp_path)

    code, heard = loop.run(until=300.0)

    assert code == 0
    assert len(loop.world.running()) == 3
    assert heard.results()[-1] is PassResult.IDLE
    assert heard.warned == []
    assert loop.store.ledger().ledger.settled_version == 1
