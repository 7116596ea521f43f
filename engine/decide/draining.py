"""What of a removal is done now: which pods are asked to leave in this pass, and what the machine still waits for.

Pods leave tier by tier, so that those which others need on their node leave last. Daemons go once the node is seen
marked and its other pods of the tier before have left; then the volumes of the pods that left must be detached, so that
nothing is written to a disk whose machine goes. A pool's terminationGracePeriod bounds all of it: it counts from the
node's mark, and towards its end what is left is deleted, whatever holds it there.
Source of the rules: Karpenter's node/termination (terminator, controller).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property

from attrs import evolve, field, frozen

from engine.decide.fleet import Fleet, Sighting
from engine.model.document import RemovalRecord
from engine.model.drain import ForcedEviction, is_drained, tier_of
from engine.model.drain_stay import DetachesVolumes, Drains
from engine.model.duration import format_duration
from engine.model.plan import Removal, RemovalPhase
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodePool
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.refusal import GuardrailBlocks, KarpenterOwnsPool, PoolPaused
from engine.model.snapshot import Snapshot
from engine.model.stay import DoNotDisrupt, PodsUnseen, SeveralNodes, StayReason
from engine.model.workload import VolumeAttachment

# So long after its own end a pod is taken for one that nobody ends (Karpenter's IsStuckTerminating).
_STUCK_AFTER = timedelta(minutes=1)
# The API server rounds a pod's end to whole seconds.
_ROUNDING = timedelta(seconds=2)


# Whatever the time: a person's word, another's machine, or nobody knows what runs there.
_HOLDS_FOR_GOOD = (PoolPaused, KarpenterOwnsPool, SeveralNodes, GuardrailBlocks, PodsUnseen)


@frozen
class Drained:
    """``removals`` with the pods that this pass asks; ``stays`` are why each other machine stays, by claim, and
    ``deadlines`` by when what is left on the marked ones of them is deleted."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason] = field(factory=dict)
    deadlines: Mapping[str, datetime] = field(factory=dict)


def drained(
    removals: Iterable[Removal],
    stays: Mapping[str, StayReason],
    fleet: Fleet,
    pools: Mapping[str, NodePool],
    snapshot: Snapshot,
    blocked: GuardrailBlocks | None = None,
) -> Drained:
    """Each removal as far as it comes in this pass. ``pools`` are by claim; ``blocked``: nothing goes by choice.

    A MARK asks the first tier that is still there. A RELEASE by choice becomes a MARK while daemons are to leave, and
    waits while they end and while volumes are attached; who goes by no choice of ours waits for nothing. A marked
    machine whose terminationGracePeriod comes to its end is emptied and goes, wherever its pods may go, whatever guards
    them, and whatever kept it: budgets were asked when it was marked, and count it as out since then.
    """
    draining = _Draining(fleet, pools, snapshot)
    done: list[Removal] = []
    kept = dict(stays)
    for removal in (*removals, *draining.ended(kept, blocked)):
        step = draining.step(removal)
        if isinstance(step, Removal):
            done.append(step)
            kept.pop(removal.record.claim, None)
        else:
            kept[removal.record.claim] = step
    return Drained(tuple(done), kept, draining.deadlines(kept) if blocked is None else {})


class _Draining:
    def __init__(self, fleet: Fleet, pools: Mapping[str, NodePool], snapshot: Snapshot) -> None:
        self._sightings = {each.claim.name: each for each in fleet.sightings}
        self._pools = pools
        self._snapshot = snapshot
        self._now = snapshot.taken_at

    def ended(self, stays: Mapping[str, StayReason], blocked: GuardrailBlocks | None) -> Iterator[Removal]:
        """A removal of each machine that would stay although its time to drain is over, or over for some pod."""
        for claim, reason in sorted(stays.items(), key=lambda each: each[0]) if blocked is None else ():
            sighting = self._sightings.get(claim)
            deadline = self._deadline(sighting) if sighting is not None else None
            if sighting is None or deadline is None or isinstance(reason, _HOLDS_FOR_GOOD):
                continue
            if any(_is_due(pod, deadline, self._now) for pod in sighting.pods):
                yield Removal(self._record(sighting, deadline), RemovalPhase.MARK)
            elif self._now >= deadline:
                yield Removal(self._record(sighting, deadline), RemovalPhase.RELEASE)

    def deadlines(self, stays: Mapping[str, StayReason]) -> Mapping[str, datetime]:
        """When the time to drain is over of each of these whose end nothing holds back."""
        found = {}
        for claim, reason in stays.items():
            sighting = self._sightings.get(claim)
            deadline = self._deadline(sighting) if sighting is not None else None
            if deadline is not None and not isinstance(reason, _HOLDS_FOR_GOOD):
                found[claim] = deadline
        return found

    def step(self, removal: Removal) -> Removal | StayReason:
        """The removal as it is done now, or why it waits."""
        sighting = self._sightings.get(removal.record.claim)
        if sighting is None or sighting.node is None:
            return removal
        is_by_choice = removal.record.reason in VOLUNTARY_REASONS
        if removal.phase is RemovalPhase.RELEASE and not is_by_choice:
            return removal
        is_marked = sighting.node.is_marked
        deadline = self._deadline(sighting)
        is_late = deadline is not None and self._now >= deadline
        here = [pod for pod in sighting.pods if is_drained(pod) and not self._is_past(pod, is_late=is_late)]
        may_go = set(removal.pods)
        forced = self._forced(here, sighting, deadline)
        left = [pod for pod in here if pod.deleting or pod.key in may_go or (is_marked and pod.is_daemon)]
        # Who must not be disrupted is asked where the machine is taken from us, and otherwise leaves at the end.
        guarded = {pod.key for pod in left if pod.do_not_disrupt and is_by_choice}
        asked = _first_tier(left, {each.pod for each in forced} | guarded)
        if asked or forced or not is_marked or not is_by_choice:
            return evolve(removal, phase=RemovalPhase.MARK, pods=asked, forced=forced, drained_by=deadline)
        if left:
            staying = min((pod.key for pod in left if pod.key in guarded and not pod.deleting), default=None)
            return DoNotDisrupt(pod=str(staying)) if staying is not None else Drains(pods=len(left))
        if removal.phase is RemovalPhase.MARK:
            return evolve(removal, pods=(), drained_by=deadline)
        if is_late:
            return removal
        volumes = self._attached(sighting)
        return DetachesVolumes(volumes=volumes, until=deadline) if volumes else removal

    def _deadline(self, sighting: Sighting) -> datetime | None:
        """When the node's time to drain is over; None where its pool gives no end, or it bears no mark with a time."""
        pool, node = self._pools.get(sighting.claim.name), sighting.node
        if pool is None or pool.termination_grace_period is None:
            return None
        if node is None or not node.is_marked or node.marked_at is None:
            return None
        return self._marked_at(sighting.claim.name, node.marked_at) + pool.termination_grace_period

    def _marked_at(self, claim: str, told: datetime) -> datetime:
        """What the mark itself tells; where a clock that ran ahead has dated it, when its removal began."""
        known = self._snapshot.ledger.disruptions.get(claim)
        return known.begun_at if told > self._now and known is not None else told

    def _record(self, sighting: Sighting, deadline: datetime) -> RemovalRecord:
        claim, node = sighting.claim, sighting.node
        assert node is not None
        return RemovalRecord(
            claim=claim.name,
            node_pool=claim.node_pool,
            reason=node.marked_for or DisruptionReason.EMPTY,
            rule=f"{claim.node_pool}: {self._grace_words(sighting, deadline)}",
            since=node.marked_at or deadline,
            usd_per_hour=claim.usd_per_hour,
            node=node.name,
            capacity=claim.capacity,
            stack=claim.stack,
        )

    def _grace_words(self, sighting: Sighting, deadline: datetime) -> str:
        grace = self._pools[sighting.claim.name].termination_grace_period or timedelta()
        return f"terminationGracePeriod {format_duration(grace)} since its mark ends at {deadline:%Y-%m-%d %H:%M:%SZ}"

    def _is_past(self, pod: Pod, *, is_late: bool) -> bool:
        """Whether a pod that is still listed need not be waited for."""
        if pod.ends_by is None:
            return False
        return self._now >= pod.ends_by + (timedelta() if is_late else _STUCK_AFTER)

    def _forced(self, here: Sequence[Pod], sighting: Sighting, deadline: datetime | None) -> tuple[ForcedEviction, ...]:
        if deadline is None:
            return ()
        words = self._grace_words(sighting, deadline)
        return tuple(
            ForcedEviction(pod.key, deadline, f"{words}{self._held_by(pod)}")
            for pod in sorted(here, key=lambda each: each.key)
            if _is_due(pod, deadline, self._now)
        )

    def _held_by(self, pod: Pod) -> str:
        """What is overridden, where something is."""
        blocked = self._snapshot.blocked_evictions.get(pod.key)
        held = [
            *(["it must not be disrupted"] if pod.do_not_disrupt else []),
            *([str(blocked)] if blocked is not None else []),
        ]
        return f"; overridden: {', '.join(held)}" if held else ""

    def _attached(self, sighting: Sighting) -> tuple[str, ...]:
        """What is attached to the node and no pod that stays until the end mounts, in name order."""
        assert sighting.node is not None
        here = self._attachments.get(sighting.node.name, ())
        if not here:
            return ()
        staying = {
            volume
            for pod in sighting.pods
            if not is_drained(pod)
            for claim in pod.placing.volume_claims
            if (volume := self._volumes.get((pod.key.namespace, claim)))
        }
        return tuple(sorted(each.volume or each.name for each in here if each.volume not in staying))

    @cached_property
    def _attachments(self) -> Mapping[str, Sequence[VolumeAttachment]]:
        by_node: dict[str, list[VolumeAttachment]] = {}
        for each in self._snapshot.workload.attachments:
            by_node.setdefault(each.node, []).append(each)
        return by_node

    @cached_property
    def _volumes(self) -> Mapping[tuple[str, str], str]:
        return {(each.key.namespace, each.key.name): each.volume for each in self._snapshot.workload.volume_claims}


def _first_tier(pods: Sequence[Pod], but: set[PodKey]) -> tuple[PodKey, ...]:
    """Those of the first tier that is still there who are not going yet, in pod order, ``but`` some."""
    if not pods:
        return ()
    first = min(map(tier_of, pods))
    return tuple(sorted(pod.key for pod in pods if tier_of(pod) is first and not pod.deleting and pod.key not in but))


def _is_due(pod: Pod, deadline: datetime, now: datetime) -> bool:
    """Whether a pod has to begin to end now, so that it has its own grace until the deadline, or as good as that.

    One that is going already is hurried where it would take longer.
    """
    if not is_drained(pod) or now < deadline - pod.grace:
        return False
    if not pod.deleting:
        return True
    return pod.ends_by is not None and pod.ends_by > max(deadline, now) + _ROUNDING
