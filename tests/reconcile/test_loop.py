"""The loop in the small world: what begins a pass, what it does not wait for, and how it ends."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.environment import Running
from engine.model.plan import Nomination, Plan
from engine.reconcile import live_pass
from engine.reconcile.one_writer import StoreLease
from engine.reconcile.ports import Ports
from engine.reconcile.troubles import Troubles
from engine.report.summary import PassResult
from tests.builders import NOON, pod
from tests.builders import environment as built_environment
from tests.reconcile.loops import at_rest, claims_of, loop_of, stacks_converged


def test_what_waits_at_the_start_is_launched_and_then_it_rests(tmp_path: Path) -> None:
    loop = loop_of(3, tmp_path)

    code, heard = loop.run(until=300.0)

    assert code == 0
    assert len(loop.world.running()) == 3
    assert heard.results()[-1] is PassResult.IDLE
    assert heard.warned == []
    assert loop.store.ledger().ledger.settled_version == 1
    assert (loop.live.is_started, loop.live.is_stopped, loop.ports.lease.is_held()) == (True, True, False)


def test_a_pod_that_arrives_is_decided_on_after_the_idle_time_of_a_batch(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.at(20.0, lambda: loop.arrive(pod("late", gpu=1)))

    _, heard = loop.run(until=40.0)

    late = next(plan for plan in heard.plans if any(key.name == "late" for each in plan.launches for key in each.pods))
    assert (late.decided_at - loop.time.now()).total_seconds() + loop.time.seconds == pytest.approx(20.05)
    assert len(loop.world.running()) == 2


def test_with_nothing_to_do_it_looks_only_at_heartbeats_and_says_only_those(tmp_path: Path) -> None:
    loop = at_rest(0, tmp_path)
    calls, stood = list(loop.calls), loop.store.document()

    _, heard = loop.run(until=610.0)

    assert heard.results() == [PassResult.IDLE] * 10
    assert heard.loud == heard.reports
    assert loop.calls == calls
    assert loop.store.document() == stood


def test_a_busy_cluster_with_nothing_to_do_is_told_of_at_each_heartbeat_all_the_same(tmp_path: Path) -> None:
    loop = at_rest(0, tmp_path)
    for number in range(60):
        loop.at(10.0 + 10 * number, lambda: None)

    _, heard = loop.run(until=610.0)

    assert len(heard.reports) >= 60
    at = [(report.started_at - NOON).total_seconds() for report in heard.loud]
    assert max(later - earlier for earlier, later in pairwise((10.0, *at, 610.0))) <= 60.1
    assert len(at) <= 11


def test_a_launch_does_not_wait_for_an_update_under_way(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.run(until=10.0)
    loop.stop.times = 0
    loop.time.delays["lane"] = 40.0
    loop.at(20.0, lambda: loop.arrive(pod("second", gpu=1)))
    loop.at(25.0, lambda: loop.arrive(pod("third", gpu=1)))

    _, heard = loop.run(until=200.0)

    busy = [snapshot.busy_stacks for snapshot in heard.snapshots]
    assert ("test",) in busy
    published = [report for report in heard.reports if "published" in report.seconds]
    assert [(report.started_at - loop.time.now()).total_seconds() + loop.time.seconds for report in published] == [
        pytest.approx(20.05),
        pytest.approx(25.05),
    ]
    assert stacks_converged(loop) == ["test", "test", "test.1"]
    assert len(loop.world.running()) == 3
    assert loop.store.ledger().ledger.settled_version == 3


def test_outcomes_are_recorded_before_their_lane_begins_anew_and_all_are(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.time.delays["lane"] = 3.0
    for number in range(12):
        loop.at(1.0 + number, lambda number=number: loop.arrive(pod(f"more-{number}", gpu=1)))  # type: ignore[misc]

    _, heard = loop.run(until=200.0)

    assert len(heard.outcomes) == len(loop.calls)
    assert set(loop.store.outcomes()) == {stack for _, stack, _ in loop.calls}
    assert all(outcome.is_settled for outcome in loop.store.outcomes().values())
    assert len(loop.world.running()) == 13
    document = loop.store.document()
    assert document is not None
    assert loop.store.ledger().ledger.settled_version == document.version
    assert sorted(loop.store.ledger().ledger.instance_ids) == claims_of(document)


def test_an_empty_node_is_marked_released_and_gone(tmp_path: Path) -> None:
    loop = loop_of(3, tmp_path)
    loop.at(20.0, lambda: loop.world.finish(list(loop.world.pods.values())[:2]))

    loop.run(until=200.0)

    assert len(loop.world.running()) == 1


def test_a_refused_launch_is_planned_around(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path, refuses=lambda claim: claim.inputs.capacity_type == "spot")

    _, heard = loop.run(until=60.0)

    assert [instance.capacity_type for instance in loop.world.running()] == ["on-demand"]
    assert heard.warned == []


def test_a_stop_in_mid_flight_lets_the_update_finish_and_records_it(tmp_path: Path) -> None:
    loop = loop_of(2, tmp_path)
    loop.time.delays["lane"] = 30.0

    code, heard = loop.run(until=5.0)

    assert (code, loop.interrupted) == (0, 1)
    assert len(loop.world.running()) == 2
    assert loop.store.outcome() is not None
    assert len(loop.store.ledger().ledger.instance_ids) == 2
    assert not loop.ports.lease.is_held()
    assert any(line.startswith("stopping: test") for line in heard.said)


def test_an_update_that_a_stop_broke_off_is_no_trouble(tmp_path: Path) -> None:
    loop = loop_of(2, tmp_path)
    loop.is_broken_off_by_interrupt = True
    loop.time.delays["lane"] = 30.0

    code, heard = loop.run(until=5.0)

    assert (code, heard.warned) == (0, [])
    assert [outcome.was_interrupted for outcome in loop.store.outcomes().values()] == [True]


def test_a_second_stop_does_not_wait(tmp_path: Path) -> None:
    loop = loop_of(2, tmp_path)
    loop.time.delays["lane"] = 3000.0
    loop.time.at(8.0, loop.stop.request)

    code, _ = loop.run(until=5.0)

    assert (code, loop.interrupted) == (130, 2)
    assert loop.time.seconds < 20.0


def test_a_paused_environment_is_decided_on_and_left_alone(tmp_path: Path) -> None:
    loop = loop_of(2, tmp_path)
    paused = evolve(loop.ports, environment=evolve(loop.ports.environment, paused="audit until Monday"))

    _, heard = loop.run(until=200.0, ports=paused)

    assert set(heard.results()) == {PassResult.PAUSED}
    assert heard.warned == ["environment test is paused: audit until Monday"]
    assert (loop.calls, loop.store.document(), loop.store.ledger().ledger.planned) == ([], None, {})
    assert all(len(plan.launches) == 2 for plan in heard.plans)


def test_a_pause_that_ends_lets_it_go_on(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)

    def refresh(ports: Ports, troubles: Troubles) -> Ports:
        why = "audit" if loop.time.seconds < 100 else ""
        return evolve(ports, environment=evolve(ports.environment, paused=why))

    _, heard = loop.run(until=300.0, refresh=refresh)

    assert "environment test is paused no more" in heard.said
    assert len(loop.world.running()) == 1


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_wall_clock_that_jumps_changes_when_nothing_happens(tmp_path: Path, jump: timedelta) -> None:
    loop = loop_of(1, tmp_path)
    loop.time.at(15.0, lambda: setattr(loop.time, "wall_jump", jump))
    loop.at(20.0, lambda: loop.arrive(pod("late", gpu=1)))

    _, heard = loop.run(until=30.0)

    assert len(loop.world.running()) == 2
    assert heard.warned == []


def test_runners_that_take_turns_say_so_once_for_each_other_one(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    turns = {0.0: "process 7 on a (`run`, since 1)", 40.0: "process 7 on a (`run`, since 2)", 80.0: "process 8 on b"}

    class TakingTurns(StoreLease):
        def take(self) -> str:
            now = loop.time.seconds
            return next((who for at, who in turns.items() if at <= now < at + 10), "") or super().take()

    for at in (42.0, 82.0):
        loop.at(at, partial(loop.arrive, pod(f"more-{at:.0f}", gpu=1)))
    _, heard = loop.run(until=120.0, ports=evolve(loop.ports, lease=TakingTurns(loop.store)))

    stood_by = [(one.started_at - NOON).total_seconds() for one in heard.reports if one.result is PassResult.STANDBY]
    assert {at // 40 for at in stood_by} == {0, 1, 2}
    assert [line.partition(" (")[0].partition(" changes")[0] for line in heard.warned] == [
        "standing by: process 7 on a",
        "standing by: process 8 on b",
    ]
    assert heard.said.count("environment test: taking over") == 2


def test_settings_that_pace_the_loop_count(tmp_path: Path) -> None:
    running = Running(every=timedelta(seconds=10), cloud_every=timedelta(seconds=5))
    loop = at_rest(0, tmp_path, stack=built_environment(run=running))

    _, heard = loop.run(until=111.0)

    assert len(heard.reports) == 11


def test_a_pod_is_nominated_to_its_node_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, sound = loop_of(1, tmp_path), live_pass.decide
    loop.run(until=10.0)
    loop.stop.times = 0
    waiting = pod("waiting", gpu=1)
    node = next(iter(loop.world.nodes))

    def decide(*given: object) -> Plan:
        return evolve(sound(*given), nominations=(Nomination(waiting.key, node),), launches=())  # type: ignore[arg-type]

    monkeypatch.setattr(live_pass, "decide", decide)
    loop.world.pods[waiting.key] = evolve(waiting, nominated_node_name=node)
    loop.run(until=20.0)
    assert loop.nominated == []

    loop.stop.times = 0
    loop.world.pods[waiting.key] = waiting
    loop.run(until=24.0)
    assert loop.nominated == [(waiting.key, node)]
