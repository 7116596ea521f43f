"""What of a removal is done in one pass: tiers, the end of a terminationGracePeriod, and volumes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from engine.model.drain import ForcedEviction, is_drained
from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.plan import RemovalPhase
from engine.model.pod import Owner, Pod, PodKey, PodPhase
from engine.model.reason import DisruptionReason
from engine.model.refusal import PoolPaused
from engine.model.stay import DoNotDisrupt, InUse
from engine.model.workload import (
    ObjectKey,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    VolumeAttachment,
    Workload,
)
from tests.builders import ANYTHING, NOON, minutes, node_pool
from tests.decide.draining_scene import CLAIM, DAEMONS, Scene, asked, forced, on_node, phases

MARK, RELEASE = RemovalPhase.MARK, RemovalPhase.RELEASE
HOUR = node_pool(termination_grace_period=timedelta(hours=1))
END = NOON + timedelta(hours=1)
WORDS = "terminationGracePeriod 1h since its mark ends at 2026-11-30 13:00:00Z"

WEB = on_node("web")
LOGS = on_node("logs", DAEMONS)
DNS = on_node("dns", priority_class="system-cluster-critical")
PROXY = on_node("proxy", DAEMONS, priority_class="system-node-critical")
ALL = (WEB, LOGS, DNS, PROXY)


def going(one: Pod, seconds: float = 30) -> Pod:
    """A pod that was asked at noon, and has so long to end."""
    return evolve(one, deleting=True, ends_by=NOON + timedelta(seconds=seconds))


# --- tiers


@pytest.mark.parametrize(
    ("left", "first"),
    [(ALL, ["web"]), ((LOGS, DNS, PROXY), ["logs"]), ((DNS, PROXY), ["dns"]), ((PROXY,), ["proxy"])],
)
def test_pods_leave_ordinary_ones_first_then_daemons_then_critical_ones(
    left: tuple[Pod, ...], first: list[str]
) -> None:
    assert asked(Scene(left).marked(*(each for each in left if not each.is_daemon))) == first
    assert asked(Scene(tuple(reversed(left))).marked(*(each for each in left if not each.is_daemon))) == first


def test_a_tier_begins_when_the_one_before_has_left_and_not_when_it_was_asked() -> None:
    found = Scene((going(WEB), LOGS, DNS)).marked(DNS)

    assert found.removals == ()
    assert found.stays == {CLAIM: Drains(pods=3)}


def test_a_pod_that_nobody_ends_holds_no_tier_for_ever() -> None:
    stuck = going(WEB)
    at_its_end = Scene((stuck, LOGS), now=NOON + timedelta(seconds=89)).released()
    later = Scene((stuck, LOGS), now=NOON + timedelta(seconds=90)).released()

    assert (asked(at_its_end), asked(later)) == ([], ["logs"])


def test_daemons_are_not_asked_before_the_node_is_seen_marked() -> None:
    found = Scene((LOGS,), marked_at=None).marked()

    assert (phases(found), asked(found)) == ([MARK], [])


def test_a_machine_is_not_let_go_before_its_daemons_have_left() -> None:
    first, then = Scene((LOGS, PROXY)).released(), Scene((going(LOGS), PROXY)).released()

    assert (phases(first), asked(first)) == ([MARK], ["logs"])
    assert then.stays == {CLAIM: Drains(pods=2)}


@pytest.mark.parametrize(
    "left_alone",
    [
        on_node("static", Owner("Node", "node-1")),
        on_node("everywhere", DAEMONS, tolerations=(ANYTHING,)),
        evolve(on_node("done"), phase=PodPhase.SUCCEEDED),
    ],
    ids=["a mirror pod", "bears the mark", "has finished"],
)
def test_who_a_drain_leaves_alone_keeps_nothing(left_alone: Pod) -> None:
    assert phases(Scene((left_alone,)).released()) == [RELEASE]


def test_a_daemon_that_must_not_be_disrupted_keeps_the_machine_by_name() -> None:
    found = Scene((evolve(LOGS, do_not_disrupt=True),)).released()

    assert found.stays == {CLAIM: DoNotDisrupt(pod="default/logs")}


@pytest.mark.parametrize(
    "reason", [DisruptionReason.LOST, DisruptionReason.NOT_INITIALIZED, DisruptionReason.UNHEALTHY]
)
def test_a_machine_that_goes_by_no_choice_waits_for_nobody(reason: DisruptionReason) -> None:
    attached = Workload(attachments=(VolumeAttachment("csi-1", "node-1", "pv-1"),))

    assert phases(Scene((LOGS,), reason=reason, workload=attached).released()) == [RELEASE]


# --- the end of a terminationGracePeriod (case 46: aws#7708, core#1702)


def test_a_guarded_pod_is_not_asked_and_leaves_its_own_grace_before_the_end() -> None:
    guarded = evolve(WEB, do_not_disrupt=True, grace=minutes(10))
    before = Scene((guarded,), HOUR, now=END - minutes(10) - timedelta(seconds=1)).marked(guarded)
    then = Scene((guarded,), HOUR, now=END - minutes(10)).marked(guarded)

    assert before.stays == {CLAIM: DoNotDisrupt(pod="default/web")}
    assert (asked(then), forced(then)) == ([], ["web"])
    [removal] = then.removals
    assert removal.forced == (
        ForcedEviction(
            PodKey("default", "web"),
            END,
            f"{WORDS}; overridden: it must not be disrupted",
        ),
    )
    assert removal.forced[0].seconds_left(END - minutes(10)) == 600


def test_without_a_grace_period_a_guarded_pod_stays_for_ever() -> None:
    guarded = evolve(WEB, do_not_disrupt=True)
    found = Scene((guarded,), now=NOON + timedelta(days=400)).drained(stays={CLAIM: DoNotDisrupt(pod="default/web")})

    assert found.removals == ()
    assert found.stays == {CLAIM: DoNotDisrupt(pod="default/web")}


def test_a_budget_is_overridden_at_the_end_and_the_plan_says_so() -> None:
    budget = PodDisruptionBudget(ObjectKey("default", "web"), selector=(), is_observed=True)
    found = Scene((WEB,), HOUR, now=END, workload=Workload(disruption_budgets=(budget,))).marked(WEB)

    assert "overridden: PodDisruptionBudget default/web allows no disruption now" in found.removals[0].forced[0].why
    assert found.removals[0].forced[0].seconds_left(END) == 1


def test_a_marked_machine_goes_at_the_end_whatever_keeps_it() -> None:
    kept = {CLAIM: InUse(pods=1, planned=0)}
    due = Scene((WEB,), HOUR, now=END).drained(stays=kept)
    empty = Scene((), HOUR, now=END).drained(stays=kept)
    early = Scene((WEB,), HOUR, now=END - minutes(1)).drained(stays=kept)

    assert (phases(due), forced(due), due.removals[0].record.reason) == ([MARK], ["web"], DisruptionReason.DRIFTED)
    assert (phases(empty), empty.stays) == ([RELEASE], {})
    assert (early.removals, early.stays) == ((), kept)


def test_a_pause_holds_a_machine_beyond_the_end() -> None:
    kept = {CLAIM: PoolPaused(why="audit")}

    assert Scene((WEB,), HOUR, now=END).drained(stays=kept).removals == ()


def test_a_mark_without_a_time_has_no_end() -> None:
    kept = {CLAIM: InUse(pods=1, planned=0)}
    assert Scene((WEB,), HOUR, marked_at=None, now=END).drained(stays=kept).removals == ()


def test_a_pod_that_would_end_too_late_is_hurried_once() -> None:
    slow = evolve(WEB, deleting=True, ends_by=END + minutes(5), grace=minutes(1))
    hurried = evolve(slow, ends_by=END)

    assert forced(Scene((slow,), HOUR, now=END - minutes(1)).marked()) == ["web"]
    assert forced(Scene((hurried,), HOUR, now=END - minutes(1)).marked()) == []


def test_after_the_end_a_pod_that_had_its_time_holds_nothing() -> None:
    over = evolve(WEB, deleting=True, ends_by=END)
    assert phases(Scene((over,), HOUR, now=END).drained(stays={CLAIM: InUse(pods=1, planned=0)})) == [RELEASE]


# --- volumes


def attached(*volumes: str) -> Workload:
    claims = tuple(PersistentVolumeClaim(ObjectKey("default", f"of-{each}"), volume=each) for each in volumes)
    return Workload(
        volume_claims=claims,
        attachments=tuple(VolumeAttachment(f"csi-{each}", "node-1", each) for each in volumes),
    )


def mounting(name: str, volume: str, **more: object) -> Pod:
    made = on_node(name, DAEMONS, **more)
    return evolve(made, placing=evolve(made.placing, volume_claims=(f"of-{volume}",)))


def test_a_machine_waits_until_the_volumes_of_who_left_are_detached() -> None:
    found = Scene((), workload=attached("pv-2", "pv-1")).released()

    assert (found.removals, found.stays) == ((), {CLAIM: DetachesVolumes(volumes=("pv-1", "pv-2"), until=None)})
    assert phases(Scene((), workload=Workload()).released()) == [RELEASE]


def test_a_volume_of_a_daemon_that_stays_holds_nothing() -> None:
    daemon = mounting("cache", "pv-1", tolerations=(ANYTHING,))
    found = Scene((daemon,), workload=attached("pv-1")).released()

    assert phases(found) == [RELEASE]


def test_volumes_are_waited_for_until_the_end_of_the_grace_period_and_no_longer() -> None:
    before = Scene((), HOUR, now=END - timedelta(seconds=1), workload=attached("pv-1"))

    assert before.released().stays == {CLAIM: DetachesVolumes(volumes=("pv-1",), until=END)}
    assert phases(evolve(before, now=END).released()) == [RELEASE]


def test_another_nodes_volumes_hold_nothing() -> None:
    elsewhere = Workload(attachments=(VolumeAttachment("csi-1", "node-2", "pv-1"),))

    assert phases(Scene((), workload=elsewhere).released()) == [RELEASE]


# --- whatever there is

_PODS = st.builds(
    lambda name, daemon, critical, held, ends, tolerates, grace: evolve(
        on_node(
            f"pod-{name}",
            DAEMONS if daemon else Owner("ReplicaSet", "llm"),
            tolerations=(ANYTHING,) if tolerates else (),
        ),
        priority_class="system-node-critical" if critical else "",
        do_not_disrupt=held,
        deleting=ends is not None,
        ends_by=None if ends is None else NOON + timedelta(seconds=ends),
        grace=timedelta(seconds=grace),
    ),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(0, 7200),
    st.booleans(),
    st.integers(0, 5400),
)


@given(
    st.lists(_PODS, max_size=6, unique_by=lambda each: each.key),
    st.integers(0, 7200),
    st.booleans(),
    st.booleans(),
    st.sampled_from([MARK, RELEASE]),
)
def test_nobody_is_asked_who_has_no_place_and_is_no_daemon_and_who_is_deleted_is_out_of_time(
    pods: list[Pod], seconds: int, has_end: bool, is_marked: bool, phase: RemovalPhase
) -> None:
    now = NOON + timedelta(seconds=seconds)
    pool = HOUR if has_end else node_pool()
    placed = [each for each in pods if not (each.is_daemon or each.deleting or each.key.name.endswith(("1", "3")))]
    scene = Scene(tuple(pods), pool, marked_at=NOON if is_marked else None, now=now)
    found = scene.drained(scene.removal(phase, placed if phase is MARK else ()))
    by_name = {each.key.name: each for each in pods}

    may_go = {each.key.name for each in placed if phase is MARK} | {each.key.name for each in pods if each.is_daemon}
    for name in asked(found):
        assert name in may_go
        assert is_drained(by_name[name])
        assert not by_name[name].deleting
        assert not by_name[name].do_not_disrupt
    for name in forced(found):
        assert (has_end, is_marked) == (True, True)
        assert now >= END - by_name[name].grace
    if phases(found) == [RELEASE]:
        assert not any(is_drained(each) and each.is_daemon and not each.deleting for each in pods)
