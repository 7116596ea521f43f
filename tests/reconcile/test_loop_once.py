"""The loop run once: until the world is at rest, or only waits."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.claim import Claim
from engine.model.fault import Fault
from engine.model.policy import Budget, Disruption
from engine.reconcile import loop as loop_module
from engine.reconcile.one_writer import StoreLease
from engine.report.summary import PassResult
from tests.builders import minutes, node_pool, pod
from tests.decide.world import policy
from tests.reconcile.loops import at_rest, loop_of


class TestOnce:
    """``--once``: for a scheduler."""

    def test_it_ends_at_rest(self, tmp_path: Path) -> None:
        loop = loop_of(3, tmp_path)
        loop.time.delays["lane"] = 20.0

        code, heard = loop.run(once=True)

        assert code == 0
        assert len(loop.world.running()) == 3
        assert heard.results() == [PassResult.UNDER_WAY, PassResult.CONVERGED]

    def test_with_nothing_to_do_it_starts_no_pulumi(self, tmp_path: Path) -> None:
        loop = at_rest(0, tmp_path)

        assert loop.run(once=True)[0] == 0
        assert loop.opened == 1, "by the run before"

    def test_it_drains_and_releases_what_is_empty(self, tmp_path: Path) -> None:
        loop = loop_of(2, tmp_path)
        loop.run(once=True)
        loop.world.finish(list(loop.world.pods.values()))

        assert loop.run(once=True)[0] == 0
        assert loop.world.running() == []

    def test_nodes_in_flight_do_not_hold_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = loop_of(2, tmp_path)
        monkeypatch.setattr(loop.world, "settle", lambda: None)

        assert loop.run(once=True)[0] == 0
        assert (len(loop.world.running()), len(loop.world.nodes)) == (2, 0)

    def test_a_launch_that_fails_for_good_needs_a_person(self, tmp_path: Path) -> None:
        loop = loop_of(1, tmp_path)
        loop.broken = {"*"}

        code, heard = loop.run(once=True)

        assert code == 1
        assert any("no AMI" in line for line in heard.warned)

    def test_an_api_server_that_stays_away_needs_a_person(self, tmp_path: Path) -> None:
        loop = loop_of(1, tmp_path)
        loop.live.fails = Fault("the API server gave no answer")

        assert loop.run(once=True)[0] == 1
        assert loop.time.seconds < 60

    def test_a_paused_environment_is_a_result(self, tmp_path: Path) -> None:
        loop = loop_of(1, tmp_path)
        paused = evolve(loop.ports, environment=evolve(loop.ports.environment, paused="audit"))

        assert loop.run(once=True, ports=paused)[0] == 0
        assert loop.calls == []

    @pytest.mark.parametrize("is_shown_by_looking", [True, False])
    def test_a_pause_on_the_lease_is_what_it_ends_with(self, tmp_path: Path, is_shown_by_looking: bool) -> None:
        loop = loop_of(1, tmp_path)

        class Lease(StoreLease):
            why = ""

            def look(self) -> None:
                self.why = self.why or ("audit" if is_shown_by_looking else "")

            def take(self) -> str:
                # So slowly that the run's patience with others is over.
                self.why, loop.time.seconds = "audit", loop.time.seconds + 30.0
                return super().take()

            def paused(self) -> str:
                return self.why

        code, heard = loop.run(once=True, ports=evolve(loop.ports, lease=Lease(loop.store)))

        assert (code, loop.calls) == (0, [])
        assert heard.loud[-1].result is PassResult.PAUSED
        assert len(heard.loud) == (1 if is_shown_by_looking else 2)
        assert heard.warned == ["environment test is paused: audit"]

    def test_what_goes_on_for_longer_than_one_run_is_left_to_the_next(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop_module, "_ONCE_PASSES", 4)
        loop = loop_of(4, tmp_path)
        loop.run(once=True)
        one_at_a_time = Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=1),))
        loop.ports = evolve(loop.ports, policy=policy(node_pool(disruption=one_at_a_time)))
        loop.world.finish(list(loop.world.pods.values()))

        assert loop.run(once=True)[0] == 0
        assert 0 < len(loop.world.running()) < 4
        for _ in range(4):
            assert loop.run(once=True)[0] == 0
        assert loop.world.running() == []

    def test_pods_that_never_cease_to_come_do_not_keep_it_for_ever(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop_module, "_ONCE_BUSY_PASSES", 6)
        loop = loop_of(1, tmp_path)
        numbers = itertools.count()

        def brings_another(claim: Claim) -> bool:
            late = pod(f"late-{next(numbers)}", gpu=1)
            loop.world.pods[late.key] = late
            return False

        loop.world.refuses = brings_another

        assert loop.run(once=True)[0] == 0
        assert len(loop.world.running()) > 1
        assert any(not each.node_name for each in loop.world.pods.values())
