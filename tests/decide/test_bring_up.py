"""How far a machine has come, and what it counts as meanwhile."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from engine.decide.bring_up import BringUp, bring_ups
from engine.decide.failures import failures
from engine.decide.fleet import match
from engine.model.ledger import Ledger, Milestones
from engine.model.plan import RemovalPhase
from engine.model.pod import Owner, PodPhase
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts
from engine.model.stay import Degraded, Milestone, Overdue
from tests.builders import NOON, claim, document, minutes, node, node_pool, pod, snapshot, taint
from tests.decide.test_fleet import instance
from tests.decide.world import policy

POOL = node_pool(initialization_deadline=minutes(20), registration_deadline=minutes(10), accelerator_grace=minutes(2))
ONE = claim("gpu-1", pool=POOL)
UP = node("n", instance_id="i-1", created=NOON + minutes(1))
SHORT = evolve(UP, allocatable=Resources({**UP.allocatable, NVIDIA_GPU: 0}))
AGENT = evolve(UP, taints=(taint("agent.example.com/not-ready"),))
ASKED = Milestones(asked_at=NOON)


def seen(at: float, *nodes: Any, before: Milestones | None = ASKED, **more: Any) -> BringUp:
    """The machine ``at`` minutes after its launch."""
    fields = {"cloud": CloudFacts(instances=(instance(),)), "document": document(ONE), **more}
    looked = snapshot(
        taken_at=NOON + minutes(at),
        nodes=nodes,
        ledger=Ledger(milestones={"gpu-1": before} if before else {}),
        **fields,
    )
    return bring_ups(match(looked), policy(POOL), looked)["gpu-1"]


def test_each_milestone_is_written_once_with_its_own_time() -> None:
    launched = seen(0.5)
    assert launched.milestones == evolve(ASKED, launched_at=NOON)
    registered = seen(2, evolve(UP, ready=False), before=launched.milestones)
    assert registered.milestones == evolve(launched.milestones, registered_at=NOON + minutes(1))
    initialized = seen(3, UP, before=registered.milestones)
    assert initialized.milestones == evolve(registered.milestones, initialized_at=NOON + minutes(3))
    assert initialized.has_come
    again = seen(4, UP, before=initialized.milestones)
    assert again.milestones == initialized.milestones
    assert not again.has_come


def test_the_first_workload_that_runs_tells_of_its_image_and_daemons_do_not() -> None:
    up = Milestones(NOON, NOON, NOON)
    daemon = evolve(pod("agent", node="n", owner=Owner("DaemonSet", "agent")), started_at=NOON, ready_at=NOON)
    first = evolve(pod("a", node="n"), started_at=NOON + minutes(4))
    second = evolve(pod("b", node="n"), started_at=NOON + minutes(3), ready_at=NOON + minutes(5))
    told = seen(6, UP, before=up, pods=(daemon, first, second)).milestones
    assert (told.image_pulled_at, told.first_pod_ready_at) == (NOON + minutes(3), NOON + minutes(5))
    later = seen(9, UP, before=told, pods=(evolve(first, ready_at=NOON + minutes(8)),)).milestones
    assert later == told


def test_a_machine_without_a_node_is_offered_until_it_should_have_registered() -> None:
    assert seen(9).is_offered
    assert seen(9).trouble is None
    late = seen(10)
    assert (late.is_offered, late.has_failed) == (False, True)
    assert late.trouble == Overdue(Milestone.REGISTERED, NOON + minutes(10))
    assert not seen(11, before=late.milestones).has_failed, "found out once"


def test_a_ledger_that_does_not_know_the_machine_fails_it_only_the_next_time() -> None:
    forgotten = seen(60, before=None)
    assert not forgotten.has_failed
    assert not forgotten.is_offered


def test_a_machine_whose_node_was_there_and_is_not_shown_has_not_failed() -> None:
    gone = seen(60, node("other"), before=evolve(ASKED, launched_at=NOON, registered_at=NOON))
    assert not gone.is_failed
    assert not gone.is_offered


WAS_UP = Milestones(NOON, NOON, NOON, asked_at=NOON)


def test_a_machine_whose_node_was_deleted_fails_once_it_had_as_long_as_to_register() -> None:
    missed = seen(60, node("other"), before=WAS_UP)
    assert missed.milestones.node_gone_since == NOON + minutes(60)
    assert not seen(69, node("other"), before=missed.milestones).is_failed
    late = seen(70, node("other"), before=missed.milestones)
    assert (late.is_failed, late.is_offered) == (True, False)
    assert not late.has_failed, "it had come, so neither its pool nor its offering is to blame"
    assert late.lateness == "its node has been gone for 10m while its instance runs"
    assert not seen(70, node("other"), before=missed.milestones, cloud=CloudFacts()).is_failed


def test_a_node_that_is_away_for_a_short_while_fails_nothing() -> None:
    missed = seen(60, node("other"), before=WAS_UP).milestones
    back = seen(61, UP, before=missed).milestones
    assert back.node_gone_since is None
    again = seen(75, node("other"), before=back)
    assert (again.is_failed, again.milestones.node_gone_since) == (False, NOON + minutes(75))


def test_a_read_that_shows_no_node_or_not_all_of_them_takes_no_node_for_gone() -> None:
    missed = seen(60, node("other"), before=WAS_UP).milestones
    blind = seen(75, before=missed)
    assert (blind.is_failed, blind.milestones.node_gone_since) == (False, None)
    assert not seen(76, node("other"), before=blind.milestones).is_failed, "the clock starts anew"
    assert not seen(75, node("other"), before=missed, pods=(pod("web", node="n"),)).is_failed


def test_a_machine_that_failed_is_not_let_go_because_its_node_is_not_shown_for_once() -> None:
    failed = Milestones(NOON, NOON, failed_at=NOON + minutes(20), asked_at=NOON)
    hidden = seen(22, node("other"), before=failed)
    assert hidden.is_failed
    assert not failures([hidden], cap=9, released=0).removals
    gone = seen(32, node("other"), before=hidden.milestones)
    assert [each.phase for each in failures([gone], cap=9, released=0).removals] == [RemovalPhase.RELEASE]
    blind = seen(32, before=hidden.milestones, pods=(pod("web", node="n"),))
    assert not failures([blind], cap=9, released=0).removals


def test_a_machine_whose_node_comes_back_before_it_left_is_taken_back() -> None:
    failed = evolve(WAS_UP, node_gone_since=NOON + minutes(60), failed_at=NOON + minutes(70))
    back = seen(71, UP, before=failed)
    assert (back.is_failed, back.is_initialized, back.is_offered) == (False, True, True)
    marked = evolve(UP, unschedulable=True, taints=(taint("karpenter.sh/disrupted"),))
    assert seen(71, marked, before=failed).is_failed


def test_a_node_counts_as_promised_until_its_deadline_and_as_what_it_is_after() -> None:
    booting = evolve(SHORT, ready=False)
    early, late = seen(19, booting), seen(21, booting, before=evolve(ASKED, accelerators_short_since=NOON))
    assert early.counts_as_promised
    assert early.allocatable().amount(NVIDIA_GPU) == 1
    assert not late.counts_as_promised
    assert (late.has_failed, late.is_offered) == (True, False)


def test_a_late_node_with_a_workload_or_a_persons_word_has_not_failed() -> None:
    known = evolve(ASKED, accelerators_short_since=NOON)
    assert seen(21, SHORT, before=known).is_failed
    busy = seen(21, SHORT, before=known, pods=(pod("web", node="n"),))
    assert not busy.is_failed
    assert busy.trouble == Degraded(NVIDIA_GPU, 0, 1)
    assert not seen(21, evolve(SHORT, do_not_disrupt=True), before=known).is_failed
    done = pod("done", node="n", phase=PodPhase.SUCCEEDED)
    assert seen(21, SHORT, before=known, pods=(done,)).is_failed
    unready = seen(21, evolve(UP, ready=False), pods=(pod("web", node="n"),))
    assert unready.trouble == Overdue(Milestone.INITIALIZED, NOON + minutes(20), pods=1)


def test_one_that_failed_and_came_up_before_it_was_marked_is_taken_back() -> None:
    failed = Milestones(NOON, NOON, failed_at=NOON + minutes(20), asked_at=NOON)
    back = seen(22, UP, before=failed)
    assert (back.is_failed, back.has_come, back.is_offered) == (False, True, True)
    marked = evolve(UP, unschedulable=True, taints=(taint("karpenter.sh/disrupted"),))
    assert seen(22, marked, before=failed).is_failed


def test_a_foreign_taint_passes_until_the_deadline_unless_something_runs_under_it() -> None:
    assert seen(19, AGENT).milestones.initialized_at is None
    assert seen(19, AGENT).counts_as_promised
    used = seen(5, AGENT, pods=(pod("web", node="n"),))
    assert (used.milestones.initialized_at, used.has_failed) == (NOON + minutes(5), False)
    late = seen(20, AGENT)
    assert (late.is_failed, late.is_initialized, late.has_failed, late.has_come) == (False, True, True, False)
    forgotten = seen(60, AGENT, before=None)
    assert (forgotten.is_initialized, forgotten.has_failed) == (True, False)


def test_a_node_is_not_up_while_something_that_it_waits_for_is_not_ready() -> None:
    """Karpenter's known ephemeral taints, which must be gone before a node is initialized."""
    waiting = evolve(UP, taints=(taint("readiness.k8s.io/network"),))
    runs = (pod("daemon-like", node="n"),)
    assert seen(3, waiting, pods=runs).milestones.initialized_at is None
    assert seen(3, UP, pods=runs).milestones.initialized_at == NOON + minutes(3)


def test_a_device_that_went_away_has_its_grace_and_then_counts_as_gone() -> None:
    up = Milestones(NOON, NOON, NOON)
    gone = seen(60, SHORT, before=up)
    assert gone.milestones.accelerators_short_since == NOON + minutes(60)
    assert gone.allocatable().amount(NVIDIA_GPU) == 1
    assert (gone.is_initialized, gone.trouble) == (True, None)
    late = seen(62, SHORT, before=gone.milestones)
    assert late.allocatable().amount(NVIDIA_GPU) == 0
    assert late.trouble == Degraded(NVIDIA_GPU, 0, 1)
    assert not late.is_failed, "it was up once"
    assert seen(63, UP, before=late.milestones).milestones.accelerators_short_since is None


def test_a_machine_is_not_late_because_ec2s_clock_is_behind_ours() -> None:
    """Our clock said three hours past NOON when its launch was decided, and EC2's said NOON when it came."""
    decided = minutes(180)
    mine: dict[str, Any] = {"document": document(evolve(ONE, created_at=NOON + decided))}
    launched = seen(180.5, before=Milestones(asked_at=NOON + decided), **mine)
    assert (launched.is_failed, launched.trouble, launched.is_offered) == (False, None, True)
    slow = seen(194, evolve(UP, ready=False), before=launched.milestones, **mine)
    assert (slow.is_failed, slow.trouble) == (False, None)
    assert seen(196, before=launched.milestones, **mine).is_failed, "its deadline holds all the same"


def test_a_pool_that_no_file_names_fails_nothing() -> None:
    looked = snapshot(
        document=document(ONE),
        taken_at=NOON + minutes(90),
        cloud=CloudFacts(instances=(instance(),)),
        ledger=Ledger(milestones={"gpu-1": ASKED}),
    )
    assert not bring_ups(match(looked), policy(), looked)["gpu-1"].is_failed
