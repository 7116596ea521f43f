"""How far each claim's machine has come, held against its pool's deadlines.

A machine counts as what its claim promises while it is on its way, and as what it is once it has come. One that does
not come in time has failed where no pod would be hurt, and is overdue where one would. Absence is no proof here: what
an empty or partial read does not show has not failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import evolve, frozen

from engine.decide.fleet import Fleet, Sighting
from engine.model.diagnostic import Position
from engine.model.duration import format_duration
from engine.model.ledger import Milestones
from engine.model.node import Node
from engine.model.policy import NodePool, Policy
from engine.model.quantity import Resources
from engine.model.snapshot import Snapshot
from engine.model.stay import Degraded, Milestone, Overdue

# The deadlines of a claim whose pool is in no file any more.
_NO_POOL = NodePool(name="", node_class="", position=Position(file="", line=0, column=0))
_UNKNOWN = Milestones()


@frozen(eq=False)
class BringUp:
    """One claim's machine: ``milestones`` as of this snapshot, and what follows from them.

    ``counts_as_promised``: pods may be planned for what the claim promises, whatever there is by now. ``is_offered``:
    pods may be planned for it at all. ``trouble`` is what a person should know of a machine that is late or less than
    it was bought as. ``is_settling``: it came up just now, and may waver without being any less expected.
    ``is_doomed``: it has to leave, whatever it could still do; it is offered to nobody then.
    ``has_come`` and ``has_failed`` are true in the one pass that finds it out; a node that came, and
    is barred to its pods, has failed as a try, and stays. ``may_have_node``: none is shown, yet one was there lately.
    """

    sighting: Sighting
    milestones: Milestones
    counts_as_promised: bool
    is_offered: bool
    trouble: Overdue | Degraded | None
    is_settling: bool = False
    has_come: bool = False
    has_failed: bool = False
    lateness: str = ""
    may_have_node: bool = False
    is_doomed: bool = False

    @property
    def is_initialized(self) -> bool:
        """Whether it came up once, and is up now. Fewer accelerators than promised make it no less so."""
        return self.milestones.initialized_at is not None and self.sighting.is_up

    @property
    def is_coming(self) -> bool:
        if self.is_doomed:
            return False
        return self.milestones.initialized_at is None and self.trouble is None and self.milestones.failed_at is None

    @property
    def is_failed(self) -> bool:
        return self.milestones.failed_at is not None

    def allocatable(self) -> Resources:
        """What pods may be planned for: what is there, and what is promised and still expected."""
        claim, node = self.sighting.claim, self.sighting.node
        if node is None:
            return claim.allocatable
        if not self.counts_as_promised:
            return node.allocatable
        expected = claim.allocatable.accelerators()
        if self.milestones.initialized_at is not None:
            raised = {name: max(claim.allocatable.amount(name), node.allocatable.amount(name)) for name in expected}
            return Resources({**node.allocatable, **raised})
        missing = {
            name: amount
            for name, amount in claim.allocatable.items()
            if not node.allocatable.amount(name) or (name in expected and node.allocatable.amount(name) < amount)
        }
        return Resources({**node.allocatable, **missing})


def bring_ups(fleet: Fleet, policy: Policy, snapshot: Snapshot) -> Mapping[str, BringUp]:
    """Every claim's, by name."""
    pools = {pool.name: pool for pool in policy.node_pools}
    held = set(snapshot.karpenter.node_pools) if snapshot.karpenter.is_live else set()
    may_fail = {pool.name for pool in policy.node_pools if not pool.paused and pool.name not in held}
    is_blind = _is_blind(fleet, snapshot)
    is_partial = is_blind or not fleet.pods_by_node.keys() <= {node.name for node in snapshot.nodes}
    before = snapshot.ledger.milestones
    return {
        sighting.claim.name: _bring_up(
            sighting,
            before.get(sighting.claim.name),
            pools.get(sighting.claim.node_pool, _NO_POOL),
            snapshot.taken_at,
            is_blind=is_blind,
            is_partial=is_partial,
            may_fail=sighting.claim.node_pool in may_fail and not sighting.is_karpenters and not sighting.other_nodes,
        )
        for sighting in fleet.sightings
    }


def _is_blind(fleet: Fleet, snapshot: Snapshot) -> bool:
    """Whether no node at all is shown although there must be some."""
    if snapshot.nodes:
        return False
    before = snapshot.ledger.milestones
    stood = any(each.claim.name in before and before[each.claim.name].registered_at for each in fleet.sightings)
    return stood or bool(fleet.pods_by_node)


def _bring_up(
    sighting: Sighting,
    before: Milestones | None,
    pool: NodePool,
    now: datetime,
    *,
    is_blind: bool,
    is_partial: bool,
    may_fail: bool,
) -> BringUp:
    seen = _seen(sighting, before or _UNKNOWN, now)
    if sighting.node is None:
        may_fail = may_fail and before is not None
        if seen.registered_at is not None:
            return _after_its_node(
                sighting, seen, pool, now, is_blind=is_blind, is_partial=is_partial, may_fail=may_fail
            )
        return _without_node(sighting, seen, pool, now, is_blind=is_blind, may_fail=may_fail)
    return _with_node(sighting.node, sighting, before, seen, pool, now, may_fail=may_fail)


def _seen(sighting: Sighting, before: Milestones, now: datetime) -> Milestones:
    """The milestones that need no deadline."""
    node, instance = sighting.node, sighting.instance
    is_short = node is not None and sighting.short_of is not None
    seen = before
    if seen.asked_at is None:
        # A reviewed plan may be published long after it was made, so the claim's own time starts no clock.
        seen = evolve(seen, asked_at=now)
    if seen.launched_at is None and instance is not None:
        seen = evolve(seen, launched_at=instance.launched_at)
    if seen.registered_at is None and node is not None:
        seen = evolve(seen, registered_at=node.created_at)
    if node is not None and seen.node_gone_since is not None:
        # It came back before the machine left: one that was up is as good as ever.
        is_taken_back = seen.initialized_at is not None and not node.is_marked
        seen = evolve(seen, node_gone_since=None, failed_at=None if is_taken_back else seen.failed_at)
    if is_short and seen.accelerators_short_since is None:
        seen = evolve(seen, accelerators_short_since=now)
    if not is_short and node is not None and seen.accelerators_short_since is not None:
        seen = evolve(seen, accelerators_short_since=None)
    if node is not None and (seen.image_pulled_at is None or seen.first_pod_ready_at is None):
        workload = sighting.workload
        started = min([pod.started_at for pod in workload if pod.started_at is not None], default=None)
        ready = min([pod.ready_at for pod in workload if pod.ready_at is not None], default=None)
        pulled_at, ready_at = seen.image_pulled_at or started, seen.first_pod_ready_at or ready
        if (pulled_at, ready_at) != (seen.image_pulled_at, seen.first_pod_ready_at):
            seen = evolve(seen, image_pulled_at=pulled_at, first_pod_ready_at=ready_at)
    return seen


def _without_node(
    sighting: Sighting, seen: Milestones, pool: NodePool, now: datetime, *, is_blind: bool, may_fail: bool
) -> BringUp:
    began = _began(sighting, seen, seen.launched_at or now)
    milestone, deadline = Milestone.REGISTERED, began + pool.registration_deadline
    if seen.launched_at is None:
        milestone, deadline = Milestone.LAUNCHED, (seen.asked_at or now) + pool.launch_deadline
    is_late = now >= deadline
    fails = is_late and may_fail and not is_blind and sighting.instance is not None
    has_failed = fails and seen.failed_at is None
    return BringUp(
        sighting=sighting,
        milestones=evolve(seen, failed_at=now) if has_failed else seen,
        counts_as_promised=True,
        is_offered=seen.failed_at is None and (is_blind or not is_late) and not sighting.is_karpenters,
        trouble=Overdue(milestone=milestone, deadline=deadline) if is_late else None,
        has_failed=has_failed,
        lateness=f"not registered within {format_duration(pool.registration_deadline)} of its launch",
    )


def _after_its_node(
    sighting: Sighting,
    seen: Milestones,
    pool: NodePool,
    now: datetime,
    *,
    is_blind: bool,
    is_partial: bool,
    may_fail: bool,
) -> BringUp:
    """Its Node was deleted and nothing makes it anew, so the machine serves nobody while it is paid for.

    It gets as long as it had to register, from when the Node was first missed. An API server's bad minute fails
    nothing, nor does it let a machine go that had failed, since pods may be on the node that is not shown.
    """
    since = None if is_blind else seen.node_gone_since or now
    is_gone = since is not None and now >= since + pool.registration_deadline and not is_partial
    failed_at = now if is_gone and may_fail and sighting.instance is not None else None
    told = _without_node(sighting, seen, pool, now, is_blind=is_blind, may_fail=False)
    # No lesson for the pool or the offering: the machine had come.
    return evolve(
        told,
        milestones=evolve(seen, node_gone_since=since, failed_at=seen.failed_at or failed_at),
        may_have_node=not is_gone,
        lateness=f"its node has been gone for {format_duration(pool.registration_deadline)} while its instance runs",
    )


def _with_node(
    node: Node,
    sighting: Sighting,
    before: Milestones | None,
    seen: Milestones,
    pool: NodePool,
    now: datetime,
    *,
    may_fail: bool,
) -> BringUp:
    short, short_since = sighting.short_of, seen.accelerators_short_since
    grace_ends = short_since + pool.accelerator_grace if short_since is not None else None
    if seen.initialized_at is not None:
        in_grace = grace_ends is not None and now < grace_ends
        degraded = Degraded(*short) if short is not None and not in_grace else None
        is_settling = now < seen.initialized_at + pool.accelerator_grace
        return BringUp(sighting, seen, in_grace, node.ready or is_settling, degraded, is_settling=is_settling)

    # A ledger that was lost knows nothing of a node that was up for long, so its accelerators have their grace too.
    deadline = max(filter(None, (_initialization_due(sighting, node, seen, pool), grace_ends)))
    is_late = now >= deadline
    workload = len(sighting.workload)
    # Marked for having failed, it goes although it came up by now: nothing takes a mark off.
    stays_marked = node.is_marked and seen.failed_at is not None
    is_barred = sighting.is_foreign_tainted and not workload
    if sighting.is_up and short is None and not stays_marked and (is_late or not is_barred):
        came = evolve(seen, initialized_at=now, failed_at=None)
        # Where nothing ever ran under a taint that nobody foretold, the next machine would be no better than this one.
        is_no_use = is_barred and before is not None and seen.image_pulled_at is None
        return BringUp(sighting, came, False, True, None, has_come=not is_barred, has_failed=is_no_use)
    fails = is_late and may_fail and before is not None and not workload and not node.do_not_disrupt
    has_failed = fails and seen.failed_at is None
    trouble: Overdue | Degraded | None = None
    if is_late or seen.failed_at is not None:
        is_degraded = short is not None and sighting.is_up
        trouble = Degraded(*short) if is_degraded and short else Overdue(Milestone.INITIALIZED, deadline, workload)
    return BringUp(
        sighting=sighting,
        milestones=evolve(seen, failed_at=now) if has_failed else seen,
        counts_as_promised=not is_late,
        is_offered=seen.failed_at is None and not has_failed and (not is_late or node.ready),
        trouble=trouble,
        has_failed=has_failed,
        lateness=_lateness(sighting, pool.initialization_deadline),
    )


def _initialization_due(sighting: Sighting, node: Node, seen: Milestones, pool: NodePool) -> datetime:
    began = seen.launched_at or seen.registered_at or node.created_at
    return _began(sighting, seen, began) + pool.initialization_deadline


def _began(sighting: Sighting, seen: Milestones, told: datetime) -> datetime:
    """Since when a machine is held to its deadlines. Who tells of it may have a clock that is behind ours; nothing was
    launched before it was decided, and nothing decided after it was first asked for, whatever clock dated it."""
    decided_at = sighting.claim.created_at
    return max(told, min(decided_at, seen.asked_at) if seen.asked_at is not None else decided_at)


def _lateness(sighting: Sighting, deadline: timedelta) -> str:
    short = sighting.short_of
    what = f": {short[1]} of {short[2]} {short[0]}" if short is not None else ""
    return f"not initialized within {format_duration(deadline)} of its launch{what}"
