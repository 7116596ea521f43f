"""What fails or is in doubt while the loop runs: told once, waited for, and no end of the loop."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from engine.model.fault import Fault
from engine.model.plan import Plan
from engine.reconcile import live_pass
from engine.report.summary import PassResult
from tests.builders import NOON, pod
from tests.reconcile.loops import at_rest, loop_of


def test_nothing_is_decided_before_all_kinds_are_seen_and_the_reason_is_told_once(tmp_path: Path) -> None:
    loop = loop_of(2, tmp_path)
    loop.live.doubts = ("nodes: it was not listed yet", "pods: it was not listed yet")
    loop.at(15.0, lambda: setattr(loop.live, "doubts", ("pods: it was not listed yet",)))
    loop.at(30.0, lambda: setattr(loop.live, "doubts", ()))

    _, heard = loop.run(until=25.0)
    assert (heard.plans, loop.calls) == ([], [])
    assert set(heard.results()) == {PassResult.NOT_SYNCED}
    assert len(heard.warned) == 1
    assert heard.warned[0].endswith("is seen: nodes, pods: it was not listed yet")

    loop.stop.times = 0
    loop.run(until=90.0)
    assert len(loop.world.running()) == 2


def test_a_kind_in_doubt_holds_decisions_until_it_is_seen_again(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.at(20.0, lambda: setattr(loop.live, "doubts", ("pods: the watch broke",)))
    loop.at(21.0, lambda: loop.arrive(pod("late", gpu=1)))
    loop.at(50.0, lambda: setattr(loop.live, "doubts", ()))

    loop.run(until=45.0)
    assert len(loop.world.running()) == 1

    loop.stop.times = 0
    loop.run(until=100.0)
    assert len(loop.world.running()) == 2


def test_an_api_server_that_dies_is_told_at_once_in_short_and_so_is_its_return(tmp_path: Path) -> None:
    loop = at_rest(1, tmp_path)
    why = f"the Kubernetes API server gave no answer to GET /api: {'MaxRetryError: ' * 80}[Errno 111] refused"
    kinds = ("pods", "nodes", "daemonsets", "leases", "poddisruptionbudgets")
    live = loop.live

    def doubt(doubts: tuple[str, ...]) -> None:
        live.doubts = doubts
        live.poke()

    loop.time.at(20.0, lambda: doubt(tuple(f"{kind}: {why}" for kind in kinds)))
    loop.time.at(25.0, lambda: doubt(()))
    _, heard = loop.run(until=26.0)

    [shut] = [report for report in heard.reports if report.result is PassResult.NOT_SYNCED]
    assert shut.started_at - NOON == timedelta(seconds=20)
    assert heard.reports[-1].started_at - NOON == timedelta(seconds=25)
    [warned] = heard.warned
    assert "pods, nodes, daemonsets and 2 more: the Kubernetes API server" in warned
    assert warned.endswith("[Errno 111] refused")
    assert len(warned) <= 200
    assert heard.said == ["the whole cluster is seen again"]


def test_news_from_ec2_while_the_gate_is_shut_waits_for_it_without_turning(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.at(20.0, lambda: setattr(loop.live, "doubts", ("pods: the watch broke",)))
    loop.at(21.0, lambda: loop.world.lose(next(iter(loop.world.document.claims)).name))  # type: ignore[union-attr]
    loop.at(100.0, lambda: setattr(loop.live, "doubts", ()))

    _, heard = loop.run(until=160.0)

    assert len([result for result in heard.results() if result is PassResult.NOT_SYNCED]) < 10
    assert len(loop.world.running()) == 1


def test_a_failing_lane_is_tried_again_with_growing_pauses_and_told_once(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)

    class Stubborn(dict[str, BaseException]):
        def pop(self, key: str, default: object = None) -> BaseException:  # type: ignore[override]
            return Fault("the stack is locked by somebody")

    loop.failures = Stubborn()
    _, heard = loop.run(until=100.0)
    assert heard.warned == ["the stack is locked by somebody"]
    assert 4 <= len(loop.calls) <= 8

    loop.failures = {}
    loop.stop.times = 0
    loop.run(until=300.0)
    assert len(loop.world.running()) == 1


def test_an_api_server_that_is_away_is_told_once_and_waited_for(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    loop.live.fails = Fault("the API server gave no answer")
    loop.at(100.0, lambda: setattr(loop.live, "fails", None))

    _, heard = loop.run(until=200.0)

    assert heard.warned == ["the API server gave no answer"]
    assert 5 <= heard.results().count(PassResult.FAILED) <= 12
    assert "passes go on" in heard.said
    assert len(loop.world.running()) == 1


def test_ec2_that_is_away_holds_nothing_at_first_and_everything_once_it_is_unknown(tmp_path: Path) -> None:
    loop = loop_of(1, tmp_path)
    away = Fault("EC2 gave no answer")
    loop.at(20.0, lambda: setattr(loop, "cloud_fails", away))
    loop.at(50.0, lambda: loop.arrive(pod("early", gpu=1)))
    loop.at(400.0, lambda: loop.arrive(pod("late", gpu=1)))

    _, heard = loop.run(until=500.0)

    assert len(loop.world.running()) == 2
    assert heard.results()[-1] is PassResult.FAILED
    assert any("EC2 has not answered for" in line for line in heard.warned)

    loop.cloud_fails = None
    loop.stop.times = 0
    loop.run(until=600.0)
    assert len(loop.world.running()) == 3


def test_a_fault_of_our_own_does_not_end_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, sound, failures = loop_of(1, tmp_path), live_pass.decide, [ZeroDivisionError("7"), KeyError("x")]

    def decide(*given: object) -> Plan:
        if failures:
            raise failures.pop()
        return sound(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(live_pass, "decide", decide)
    code, heard = loop.run(until=60.0)

    assert code == 0
    assert [line.split(":")[0] for line in heard.warned] == ["internal", "internal"]
    assert len(loop.world.running()) == 1
