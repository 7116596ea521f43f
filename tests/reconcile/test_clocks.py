"""Runners whose clocks differ share one ledger: what happens when is by EC2's clock, whoever decides."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts
from engine.reconcile.passes import observe
from tests.builders import NOON, minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.reconcile.loop_world import LoopPorts

DEADLINE_SECONDS = 900.0
HOUR = timedelta(hours=1)


class AtClocks(LoopPorts):
    """EC2's clock is right; a runner's is as wrong as ``time.wall_jump`` says."""

    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        return evolve(super().read(environment, policy, document, ledger), clock_ahead=self.time.wall_jump)


def begun(folder: Path) -> AtClocks:
    """A runner whose clock is right has launched a machine that does not register; it was stopped after 60 s."""
    pool = node_pool(registration_deadline=timedelta(seconds=DEADLINE_SECONDS))
    loop = AtClocks(World(policy(pool), [pod("llm", gpu=1)], registers=lambda claim: False), folder)
    loop.run(until=60.0)
    loop.stop.times = 0
    assert len(loop.world.launched_ever) == 1
    return loop


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_a_runner_with_a_wrong_clock_fails_no_machine_that_another_just_launched(
    tmp_path: Path, ahead: timedelta
) -> None:
    loop = begun(tmp_path)
    loop.time.wall_jump = ahead
    _, heard = loop.run(until=DEADLINE_SECONDS - 60.0)

    assert len(heard.plans) > 3
    assert [removal for plan in heard.plans for removal in plan.removals] == []
    assert len(loop.world.launched_ever) == 1
    side = "ahead of" if ahead == HOUR else "behind"
    assert heard.warned == [f"this machine's clock is 60 min {side} EC2's, which decisions go by"]


@pytest.mark.parametrize("ahead", [HOUR, timedelta(), -HOUR])
def test_a_machine_is_late_at_the_same_time_by_each_runners_clock(tmp_path: Path, ahead: timedelta) -> None:
    loop = begun(tmp_path)
    loop.time.wall_jump = ahead
    _, heard = loop.run(until=DEADLINE_SECONDS + 200.0)

    first = next(plan for plan in heard.plans if plan.removals)
    late_for = (first.decided_at - NOON).total_seconds() - DEADLINE_SECONDS
    assert 0 <= late_for <= 61, "at the heartbeat after its deadline"


def test_a_single_pass_goes_by_the_same_clock_and_says_so(tmp_path: Path) -> None:
    loop = begun(tmp_path)
    loop.time.wall_jump = minutes(20)
    seen, told = observe(loop.ports)

    assert seen.taken_at == NOON + timedelta(seconds=loop.time.seconds)
    assert told == ("this machine's clock is 20 min ahead of EC2's, which decisions go by",)
