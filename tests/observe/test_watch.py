"""One kind is followed through everything that a watch may meet, and is believed only while it is whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.observe.board import Board
from engine.observe.kinds import PRIORITY_CLASSES, Kind
from engine.observe.live_kind import LiveKind
from engine.observe.shelf import Shelf
from engine.observe.watch import KindWatch, Patience
from tests.builders import NOON
from tests.observe.watched_server import WatchedServer

NEEDED = evolve(PRIORITY_CLASSES, is_needed=True)
PATIENCE = Patience()


@define
class Follower:
    server: WatchedServer
    board: Board
    live: LiveKind
    watch: KindWatch

    def values(self) -> dict[str, int]:
        return {each.name: each.value for each in self.live.shelf.in_order()}

    def step(self) -> float:
        return self.watch.step()

    @property
    def is_believed(self) -> bool:
        return not self.live.unsynced()


def follower(server: WatchedServer, kind: Kind = NEEDED) -> Follower:
    board = Board()
    live = LiveKind(Shelf(kind, lambda: NOON), board, server.clock)
    return Follower(server, board, live, KindWatch(server, kind, live, PATIENCE, server.clock, lambda: 1.0))


@pytest.fixture
def followed() -> Follower:
    """A kind of three objects that was listed and watched once."""
    server = WatchedServer()
    for name in "abc":
        server.put(name, 1)
    server.extra = [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1003"}}}]
    made = follower(server)
    made.step()
    server.extra = []
    return made


def lists(server: WatchedServer) -> int:
    return sum(1 for asked in server.asked if asked["limit"] == "500" and "continue" not in asked)


def test_nothing_is_believed_before_it_was_listed() -> None:
    assert follower(WatchedServer()).live.unsynced() == "it was not listed yet"


def test_every_page_is_listed_and_then_watched_from_the_lists_version(followed: Follower) -> None:
    assert followed.values() == {"a": 1, "b": 1, "c": 1}
    assert followed.is_believed
    (watched,) = followed.server.watched
    assert watched == {"allowWatchBookmarks": "true", "resourceVersion": "1003", "timeoutSeconds": "300"}


def test_a_kind_of_which_one_object_is_wanted_is_listed_and_watched_by_its_name() -> None:
    server = WatchedServer()
    follower(server, evolve(NEEDED, only="the-one")).step()

    assert server.asked[0]["fieldSelector"] == server.watched[0]["fieldSelector"] == "metadata.name=the-one"


def test_events_are_taken_in_and_a_clean_end_goes_on_from_the_last_of_them(followed: Follower) -> None:
    followed.server.put("d", 1)
    followed.server.put("a", 2)
    followed.server.delete("b")

    assert followed.step() == 0.0
    assert followed.values() == {"a": 2, "c": 1, "d": 1}
    followed.step()
    assert followed.server.watched[-1]["resourceVersion"] == "1006"
    assert lists(followed.server) == 1


def test_a_bookmark_moves_the_version_and_nothing_else(followed: Follower) -> None:
    revision = followed.board.revision
    followed.server.version = 1500
    followed.server.extra = [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "1400"}}}]
    followed.step()
    followed.server.extra = []
    followed.step()

    assert followed.server.watched[-1]["resourceVersion"] == "1400"
    assert followed.board.revision == revision


def test_an_event_that_changes_nothing_decoded_does_not_grow_the_revision(followed: Follower) -> None:
    revision = followed.board.revision
    followed.server.put("a", 1)
    followed.step()

    assert followed.server.watched[-1]["resourceVersion"] == "1003"
    assert followed.board.revision == revision


@pytest.mark.parametrize(
    "fell_behind",
    [
        pytest.param(lambda server: server.answers.extend([200, 410]), id="by the answer's status"),
        pytest.param(lambda server: (server.put("z", 1), server.forget()), id="by an ERROR event"),
    ],
)
def test_a_watch_that_fell_behind_is_listed_again_and_what_vanished_meanwhile_goes(
    followed: Follower, fell_behind: Callable[[WatchedServer], Any]
) -> None:
    del followed.server.objects["b"]
    fell_behind(followed.server)

    followed.step()
    assert "fell behind" in followed.live.unsynced()
    assert "b" in followed.values()
    followed.step()

    assert followed.is_believed
    assert followed.values() == followed.server.values()


def test_a_list_refused_with_410_between_pages_is_begun_again() -> None:
    server = WatchedServer(answers=[200, 410])
    for name in "abc":
        server.put(name, 1)
    made = follower(server)
    made.step()

    assert made.values() == {"a": 1, "b": 1, "c": 1}
    assert made.is_believed
    assert lists(server) == 2


@pytest.mark.parametrize("status", [0, 500, 403, 404])
def test_a_list_that_fails_half_way_keeps_the_last_good_set_and_puts_it_in_doubt(
    followed: Follower, status: int
) -> None:
    followed.server.forget()
    followed.server.answers = [200, 410]
    followed.step()
    followed.server.put("d", 1)
    followed.server.answers = [200, status]

    followed.step()

    assert followed.values() == {"a": 1, "b": 1, "c": 1}
    assert not followed.is_believed


def test_a_connection_that_broke_is_taken_up_again_without_a_list(followed: Follower) -> None:
    followed.server.breaks = "cut"
    assert 0 < followed.step() <= PATIENCE.first_pause
    assert followed.is_believed
    followed.server.breaks = ""
    followed.server.put("a", 2)
    followed.step()

    assert followed.values()["a"] == 2
    assert lists(followed.server) == 1


def test_a_server_that_stays_away_puts_the_kind_in_doubt_until_it_is_back(followed: Follower) -> None:
    followed.server.breaks = "cut"
    followed.step()
    followed.server.answers = [0]
    followed.step()
    assert "no answer" in followed.live.unsynced()

    followed.server.breaks = ""
    followed.step()
    assert followed.is_believed
    assert lists(followed.server) == 1


def test_failures_are_met_with_growing_pauses_up_to_the_longest() -> None:
    server = WatchedServer(answers=[0] * 12)
    made = follower(server)
    pauses = [made.step() for _ in range(12)]

    assert pauses[:3] == pytest.approx([0.1, 0.2, 0.4])
    assert pauses[-1] == PATIENCE.longest_pause


def test_pauses_are_spread_by_jitter() -> None:
    server = WatchedServer(answers=[0, 0])
    made = follower(server)
    calm = KindWatch(server, NEEDED, made.live, PATIENCE, server.clock, lambda: 0.0)

    assert calm.step() == pytest.approx(PATIENCE.first_pause / 2)


def test_a_server_that_ends_each_watch_at_once_is_not_asked_without_a_pause(followed: Follower) -> None:
    assert followed.step() > 0.0


def test_a_watch_that_said_nothing_for_long_is_listed_again(followed: Follower) -> None:
    followed.server.breaks = "silence"
    followed.step()
    assert not followed.is_believed
    followed.server.breaks = ""
    followed.step()

    assert followed.is_believed
    assert lists(followed.server) == 2


def test_a_server_restored_from_a_backup_is_listed_again_instead_of_waiting_for_the_old_version(
    followed: Follower,
) -> None:
    followed.server.restore()
    followed.server.put("new", 7)
    followed.step()

    assert followed.values() == {"a": 1, "b": 1, "new": 7}
    assert followed.server.watched[-1]["resourceVersion"] == "11"


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"[]",
        b'{"type": "ADDED"}',
        b'{"type": "ADDED", "object": []}',
        b'{"type": 1, "object": {}}',
        b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "2000"}}}',
        b'{"type": "ADDED", "object": {"metadata": {"name": "x"}}}',
        b'{"type": "RENAMED", "object": {"metadata": {"name": "x", "resourceVersion": "2000"}}}',
        b'{"type": "MODIFIED", "object": {"metadata": {"name": "a", "resourceVersion": "3"}, "value": 9}}',
        b'{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "3"}}}',
    ],
)
def test_an_event_that_cannot_be_right_has_all_listed_again(followed: Follower, line: bytes) -> None:
    followed.server.extra = [line]
    followed.step()
    assert "listed again" in followed.live.unsynced()
    followed.server.extra = []
    followed.step()

    assert followed.is_believed
    assert followed.values() == followed.server.values()
    assert lists(followed.server) == 2


def test_a_broken_object_in_an_event_is_a_problem_and_no_reason_to_list_again(followed: Follower) -> None:
    broken = {"metadata": {"name": "a", "resourceVersion": "1004"}, "value": "high"}
    followed.server.version = 1004
    followed.server.extra = [{"type": "MODIFIED", "object": broken}]
    followed.step()

    assert [problem.name for problem in followed.live.shelf.problems()] == ["a"]
    assert followed.is_believed
    followed.server.extra = []
    followed.server.put("a", 3)
    followed.step()
    assert followed.live.shelf.problems() == ()
    assert followed.values()["a"] == 3


def test_an_empty_list_is_taken_only_from_a_server_that_answered_whole(followed: Follower) -> None:
    followed.server.objects.clear()
    followed.server.forget()
    followed.server.version += 1
    followed.server.oldest += 1
    followed.step()
    followed.server.answers = [500]
    followed.step()
    assert followed.values() == {"a": 1, "b": 1, "c": 1}
    followed.step()

    assert followed.values() == {}
    assert followed.is_believed


def test_an_error_of_our_own_is_said_and_survived(followed: Follower, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(raw: Any, position: int) -> None:
        raise RuntimeError("boom")

    followed.server.put("d", 1)
    with monkeypatch.context() as patched:
        patched.setattr(followed.live.shelf, "see", fail)
        assert followed.step() > 0
    assert "RuntimeError: boom" in followed.live.unsynced()
    followed.step()

    assert followed.is_believed
    assert followed.values()["d"] == 1


def test_a_kind_that_is_needed_stays_in_doubt_while_it_is_forbidden_and_says_what_is_missing() -> None:
    made = follower(WatchedServer(answers=[403]))
    made.step()

    assert "refused the list of priorityclasses with 403" in made.live.unsynced()


def test_a_kind_that_is_not_needed_is_named_and_stops_nothing_while_it_is_forbidden() -> None:
    made = follower(WatchedServer(answers=[403]), PRIORITY_CLASSES)

    assert made.step() == PATIENCE.refused
    assert made.is_believed
    gap = made.live.gap()
    assert gap is not None
    assert "403" in gap.what
    made.server.put("a", 1)
    made.step()
    assert made.live.gap() is None
    assert made.values() == {"a": 1}


def test_a_kind_that_the_cluster_does_not_serve_is_empty_and_asked_for_again_later() -> None:
    made = follower(WatchedServer(answers=[404]), PRIORITY_CLASSES)

    assert made.step() == PATIENCE.absent
    assert made.is_believed
    assert made.live.gap() is None
    made.server.clock.seconds += PATIENCE.absent
    assert made.is_believed
    made.server.put("a", 1)
    made.step()
    assert made.values() == {"a": 1}


def test_a_kind_that_is_installed_while_we_run_is_seen_within_ten_seconds() -> None:
    server = WatchedServer(answers=[404, 404])
    made = follower(server, PRIORITY_CLASSES)
    pauses = [made.step(), made.step()]
    revision = made.board.revision
    server.put("a", 1)
    made.step()

    assert max(pauses) <= 10.0
    assert made.values() == {"a": 1}
    assert made.board.revision > revision


def test_a_kind_that_held_objects_is_not_gone_because_a_starting_server_does_not_know_it_yet() -> None:
    server = WatchedServer()
    server.put("a", 1)
    made = follower(server, PRIORITY_CLASSES)
    made.step()
    server.answers = [404] * 100
    made.step()
    made.step()
    assert made.values() == {"a": 1}
    assert not made.is_believed

    server.clock.seconds += PATIENCE.failing
    assert made.step() == PATIENCE.absent
    assert made.values() == {}
    assert made.is_believed


def test_a_kind_that_is_not_needed_stops_decisions_only_for_a_while_when_it_fails() -> None:
    made = follower(WatchedServer(answers=[500] * 100), PRIORITY_CLASSES)
    made.step()
    assert not made.is_believed
    made.server.clock.seconds += PATIENCE.failing
    made.step()

    assert made.is_believed
    gap = made.live.gap()
    assert gap is not None
    assert "500" in gap.what


def test_a_thread_that_hangs_is_noticed(followed: Follower) -> None:
    followed.server.clock.seconds += 250

    assert "nothing was heard of it for 250 s" in followed.live.unsynced()


def test_an_interrupted_watch_ends_at_once(followed: Follower) -> None:
    followed.server.put("d", 1)
    followed.watch.interrupt()
    followed.step()

    assert "d" not in followed.values()
    assert all(stream.is_closed for stream in followed.server.streams)


NAMES = st.sampled_from("abcdef")
HAPPENINGS = st.one_of(
    st.tuples(st.just("put"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("delete"), NAMES),
    st.tuples(st.just("step"), st.sampled_from(["", "cut", "silence"])),
    st.tuples(st.just("answers"), st.lists(st.sampled_from([0, 200, 403, 404, 410, 429, 500]), max_size=4)),
    st.tuples(st.just("extra"), st.sampled_from([b"<html>", b'{"type": "ERROR", "object": {"code": 500}}'])),
    st.tuples(st.just("forget")),
    st.tuples(st.just("restore")),
)


def happen(made: Follower, happening: tuple[Any, ...]) -> None:
    server = made.server
    match happening:
        case ("put", name, value):
            server.put(name, value)
        case ("delete", name):
            server.delete(name)
        case ("answers", statuses):
            server.answers = list(statuses)
        case ("extra", line):
            server.extra = [line]
        case ("forget",):
            server.forget()
        case ("restore",):
            # A second one may pass for the first, when as much happened since: that no client can tell.
            if server.version > 1000:
                server.restore()
        case ("step", breaks):
            server.breaks = breaks
            made.step()
            server.extra = []


@settings(max_examples=300, deadline=None)
@given(st.lists(HAPPENINGS, max_size=40), st.booleans())
def test_whatever_happens_what_is_known_was_shown_and_in_the_end_it_is_what_the_server_holds(
    happenings: list[tuple[Any, ...]], is_needed: bool
) -> None:
    made = follower(WatchedServer(), evolve(PRIORITY_CLASSES, is_needed=is_needed))
    for happening in happenings:
        before = made.values()
        happen(made, happening)
        assert set(made.values().items()) <= made.server.shown
        if happening[0] != "step":
            assert made.values() == before
    made.server.answers = []
    made.server.breaks, made.server.extra = "", []
    for _ in range(3):
        made.step()

    assert made.is_believed
    assert made.values() == made.server.values()
