"""The environment's Lease: one holder at a time, judged by one's own monotonic clock alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from engine.actuate.failure import ActuationFailed
from engine.actuate.lease import LEASE_SECONDS, KubernetesLease
from engine.model import labels as keys
from engine.model.fault import Fault
from tests.actuate.lease_server import LeaseServer

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Clock:
    """Monotonic seconds, and a wall clock that may be wrong by anything."""

    def __init__(self, wrong_by: timedelta = timedelta()) -> None:
        self.seconds, self.wrong_by = 0.0, wrong_by

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds) + self.wrong_by


def lease_of(server: LeaseServer, holder: str, clock: Clock) -> KubernetesLease:
    return KubernetesLease(
        server, "kube-system", "nodewright-test", holder, monotonic=clock.monotonic, now=clock.now, keeps=False
    )


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


def test_the_first_takes_it_and_the_second_is_told_who_has_it(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)

    assert one.take() == ""
    assert two.take() == "one (Lease kube-system/nodewright-test)"
    assert (one.is_held(), two.is_held()) == (True, False)


def test_a_released_lease_is_free_at_once_and_costs_its_last_holder_one_write(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)
    one.take()
    one.release()
    asked = len(server.asked)

    assert one.take() == ""
    assert server.asked[asked:] == ["PUT"]
    one.release()
    assert two.take() == ""


@pytest.mark.parametrize("wrong_by", [timedelta(hours=-1), timedelta(), timedelta(hours=1)])
def test_a_silent_holder_loses_it_after_a_leases_length_whatever_the_wall_clocks_say(
    server: LeaseServer, wrong_by: timedelta
) -> None:
    one, clock = lease_of(server, "one", Clock(wrong_by)), Clock()
    two = lease_of(server, "two", clock)
    one.take()

    assert two.take()
    clock.seconds += LEASE_SECONDS - 0.1
    assert two.take()
    clock.seconds += 0.2
    assert two.take() == ""


def test_a_holder_that_renews_keeps_it_for_ever(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)
    one.take()

    for _ in range(20):
        clock.seconds += LEASE_SECONDS / 3
        assert one.renew()
        assert two.take()


def test_a_holder_that_cannot_renew_lets_go_before_another_may_take_it(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)
    one.take()
    two.take()
    server.is_away = True
    with pytest.raises(Fault):
        one.renew()
    assert one.is_held()

    clock.seconds += LEASE_SECONDS * 2 / 3
    server.is_away = False

    assert not one.is_held()
    assert two.take(), "not yet"


def test_a_renewal_after_somebody_else_took_it_says_so(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)
    one.take()
    two.take()
    clock.seconds += LEASE_SECONDS
    assert two.take() == ""

    assert not one.renew()
    assert not one.is_held()
    one.release()
    assert two.renew(), "a late release takes nothing from its new holder"


def test_an_annotation_pauses_and_outlives_takes_and_releases(server: LeaseServer) -> None:
    clock = Clock()
    one = lease_of(server, "one", clock)
    one.take()
    server.annotate(keys.PAUSED, "audit until Monday")

    assert one.renew(), "an annotation is no other holder"
    assert one.paused() == "audit until Monday"
    one.release()
    one.take()
    assert server.lease is not None
    assert server.lease["metadata"]["annotations"] == {keys.PAUSED: "audit until Monday"}


def test_an_annotation_without_a_reason_pauses_as_well(server: LeaseServer) -> None:
    one = lease_of(server, "one", Clock())
    server.annotate(keys.PAUSED, "")
    one.look()

    assert keys.PAUSED in one.paused()


def test_without_its_namespace_nobody_holds_it_and_the_refusal_is_named() -> None:
    class NoNamespace(LeaseServer):
        def ask(
            self, method: str, path: str, *, body: object = None, content_type: str = "application/json"
        ) -> tuple[int, bytes]:
            return 404, b'{"message": "namespaces not found"}'

    one = lease_of(NoNamespace(), "one", Clock())

    with pytest.raises(ActuationFailed, match="refused writing the Lease kube-system/nodewright-test with 404"):
        one.take()
    assert not one.is_held()


def test_who_finds_the_lease_deleted_has_lost_it_and_makes_it_anew_at_the_next_take(server: LeaseServer) -> None:
    one = lease_of(server, "one", Clock())
    one.take()
    server.lease = None

    assert not one.renew()
    assert one.take() == ""
    assert server.lease is not None


def test_a_refusal_names_the_right_that_is_missing(server: LeaseServer) -> None:
    server.refuses = 403

    with pytest.raises(ActuationFailed, match="refused reading the Lease kube-system/nodewright-test with 403") as said:
        lease_of(server, "one", Clock()).take()
    assert "get, create and update leases" in said.value.hints[0]


def test_looking_needs_no_right() -> None:
    server = LeaseServer()
    server.refuses = 403
    one = lease_of(server, "one", Clock())

    one.look()

    assert one.paused() == ""


def test_a_destroyed_environment_leaves_no_lease_and_a_second_removal_finds_none(server: LeaseServer) -> None:
    one = lease_of(server, "one", Clock())
    one.take()

    one.remove()
    one.remove()

    assert server.lease is None
    assert not one.is_held()


def test_a_lease_that_another_holds_by_now_is_not_removed(server: LeaseServer) -> None:
    clock = Clock()
    one, two = lease_of(server, "one", clock), lease_of(server, "two", clock)
    one.take()
    one.release()
    two.take()

    one.remove()

    assert two.renew()


def test_a_removal_that_is_refused_says_which_right_is_missing(server: LeaseServer) -> None:
    server.refuses = 403

    with pytest.raises(ActuationFailed) as said:
        lease_of(server, "one", Clock()).remove()
    assert "to delete them for a destroy" in said.value.hints[0]
