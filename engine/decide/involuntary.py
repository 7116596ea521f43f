"""Machines that go by nobody's choice while they are still there: interrupted, unhealthy, or never come up.

No budget, no rule and no annotation holds that back; all of them count it. An interrupted machine's marks and releases
are not held by the cap of a pass either, since AWS takes it whatever we say; they are counted all the same. A node is
marked at once and its pods are asked to leave, whether or not there is a place for them; the same pass looks for their
places as if they waited, so that what has to be bought for them is bought now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from attrs import evolve, field, frozen

from engine.catalog.ledger import with_refusal
from engine.decide.bring_up import BringUp
from engine.decide.failures import failures
from engine.decide.fleet import Fleet, Sighting
from engine.decide.unhealthy_pools import kept_for_others
from engine.disruption.interrupted import interrupted
from engine.disruption.involuntary import Cause
from engine.disruption.machine import Machine
from engine.disruption.unhealthy import illnesses, unhealthy
from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.document import RemovalRecord
from engine.model.interruption import Interruption, InterruptionKind, decisive
from engine.model.ledger import Illness, Ledger
from engine.model.plan import Removal, RemovalPhase
from engine.model.pod import Pod, PodPhase
from engine.model.policy import NodePool, Policy
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot
from engine.model.stay import RemovalCap, StayReason

# Told as a refusal of EC2's is: the offering took a machine back.
INTERRUPTED = "SpotInterruption"
_MARK = Taint(keys.DISRUPTED_TAINT, "", TaintEffect.NO_SCHEDULE)


@frozen
class Doomed:
    """``causes`` of machines that have to go, and ``stays`` of those that would and are kept, both by claim, in its
    order."""

    causes: Mapping[str, Cause] = field(factory=dict)
    stays: Mapping[str, StayReason] = field(factory=dict)


NOBODY = Doomed()


@frozen
class Involuntary:
    """What leaves, and why each other machine that has to stays, by claim."""

    removals: tuple[Removal, ...]
    stays: Mapping[str, StayReason]

    @property
    def claims(self) -> frozenset[str]:
        return frozenset({removal.record.claim for removal in self.removals} | self.stays.keys())

    def count(self, phase: RemovalPhase) -> int:
        return sum(removal.phase is phase for removal in self.removals)


def with_signs(ledger: Ledger, fleet: Fleet, brought: Mapping[str, BringUp], snapshot: Snapshot) -> Ledger:
    """The ledger with what was told of machines since, and how long their nodes have been unwell; the offering of a
    spot machine that is taken back is out for a while."""
    before = ledger.interruptions
    told = _told(fleet, snapshot)
    for sighting in fleet.sightings:
        claim = sighting.claim
        now_told, known = told.get(claim.name), before.get(claim.name)
        is_new = known is None or known.kind is not InterruptionKind.SPOT
        if now_told is not None and now_told.kind is InterruptionKind.SPOT and is_new:
            ledger = with_refusal(ledger, claim.inputs.offering_key, INTERRUPTED, snapshot.taken_at, claim.node_class)
    clocks = {name: found for name, each in brought.items() if (found := _clocks(each, ledger, snapshot.taken_at))}
    if told == before and clocks == ledger.illnesses:
        return ledger
    return evolve(ledger, interruptions=told, illnesses=clocks)


def doomed(
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    lost: Iterable[str],
    learned: Ledger,
    policy: Policy,
    snapshot: Snapshot,
) -> Doomed:
    """Which machines have to go. ``learned`` knows this pass's signs already."""
    pools = {pool.name: pool for pool in policy.node_pools}
    gone = frozenset(lost)
    causes: dict[str, Cause] = {}
    ill: dict[str, Cause] = {}
    for each in brought.values():
        claim = each.sighting.claim
        if claim.name in gone or each.is_failed or each.sighting.is_karpenters:
            continue
        pool = pools.get(claim.node_pool)
        told = learned.interruptions.get(claim.name)
        cause = interrupted(claim, pool, each.sighting.instance, told, snapshot.cloud.reservations, snapshot.taken_at)
        if cause is not None:
            causes[claim.name] = cause
        elif (sick := _sick(each, pool, learned.illnesses.get(claim.name, {}), snapshot.taken_at)) is not None:
            ill[claim.name] = sick
    stays = kept_for_others(ill, fleet, brought, learned, causes, pools)
    causes |= {name: cause for name, cause in ill.items() if name not in stays}
    return Doomed({name: causes[name] for name in sorted(causes)}, {name: stays[name] for name in sorted(stays)})


def without_offers_of(doom: Doomed, brought: Mapping[str, BringUp]) -> Mapping[str, BringUp]:
    """The machines as they are to be planned with: nothing is planned for those that have to go."""
    if not doom.causes:
        return brought
    return {
        name: evolve(each, is_doomed=True, is_offered=False) if name in doom.causes else each
        for name, each in brought.items()
    }


def displaced(fleet: Fleet, causes: Mapping[str, Cause]) -> tuple[Pod, ...]:
    """The pods that will look for another place, as if they waited by now, in no order.

    Not those that are going already: whoever keeps them has made others. Nor those that nobody makes again.
    """
    return tuple(
        evolve(pod, node_name=None, phase=PodPhase.PENDING, nominated_node_name=None)
        for sighting in fleet.sightings
        if sighting.claim.name in causes
        for pod in _asked_to_leave(sighting)
        if pod.owner is not None and not pod.placing.refuses_every_pool and not pod.scheduling_gated
    )


def involuntary(
    doom: Doomed,
    brought: Mapping[str, BringUp],
    known: Iterable[Machine],
    fleet: Fleet,
    lost: Sequence[Removal],
    *,
    cap: int,
) -> Involuntary:
    """What leaves by nobody's choice beside what is ``lost``: machines that failed to come up, then what has to go,
    each in claim order.

    A machine of ``known`` that is held is left alone, unless AWS takes it by itself; so is one of no pool.
    """
    free = {machine.claim.name for machine in known if machine.held is None}
    failed = failures((brought[name] for name in free), cap=cap, released=len(lost))
    passing = {
        RemovalPhase.MARK: cap - failed.count(RemovalPhase.MARK),
        RemovalPhase.RELEASE: cap - len(lost) - failed.count(RemovalPhase.RELEASE),
    }
    removals = list(failed.removals)
    stays: dict[str, StayReason] = {**doom.stays, **failed.stays}
    for name, cause in doom.causes.items():
        phase = _next_phase(brought[name], cause, fleet)
        is_taken = cause.reason is DisruptionReason.INTERRUPTED
        if phase is None or not (is_taken or name in free):
            continue
        if passing[phase] <= 0 and not is_taken:
            stays[name] = RemovalCap(cap=cap)
            continue
        passing[phase] -= 1
        pods = _asked_to_leave(brought[name].sighting) if phase is RemovalPhase.MARK else ()
        record = _record(brought[name].sighting, cause)
        removals.append(Removal(record=record, phase=phase, pods=tuple(sorted(pod.key for pod in pods))))
    return Involuntary(removals=tuple(removals), stays=stays)


def _told(fleet: Fleet, snapshot: Snapshot) -> Mapping[str, Interruption]:
    """What counts of all that was told of each machine, now and before, by claim, in its order."""
    remembered = snapshot.ledger
    if not (snapshot.interruptions or remembered.interruptions):
        return {}
    by_instance: dict[str, list[Interruption]] = {}
    for message in snapshot.interruptions:
        if message.kind is not InterruptionKind.STATE_CHANGE:
            by_instance.setdefault(message.instance_id, []).append(message)
    told: dict[str, Interruption] = {}
    for sighting in fleet.sightings:
        name = sighting.claim.name
        instance = sighting.instance.id if sighting.instance else remembered.instance_ids.get(name, "")
        before = (remembered.interruptions[name],) if name in remembered.interruptions else ()
        found = decisive((*before, *by_instance.get(instance, ())))
        if found is not None:
            told[name] = found
    return told


def _clocks(each: BringUp, ledger: Ledger, now: datetime) -> Mapping[str, Illness]:
    """A node that never was up is held to its deadlines instead, while no pod runs there."""
    node, before = each.sighting.node, ledger.illnesses.get(each.sighting.claim.name, {})
    if node is None:
        return before
    if each.milestones.initialized_at is None and not each.sighting.workload:
        return {}
    return illnesses(before, node, now)


def _sick(each: BringUp, pool: NodePool | None, clocks: Mapping[str, Illness], now: datetime) -> Cause | None:
    node = each.sighting.node
    if node is None or pool is None or each.sighting.other_nodes or not clocks:
        return None
    return unhealthy(clocks, node, now)


def _asked_to_leave(sighting: Sighting) -> list[Pod]:
    """The pods that are on the node and stay there unless they are asked. One that bears the mark would come back."""
    return [pod for pod in sighting.workload if not pod.deleting and not _bears_the_mark(pod)]


def _bears_the_mark(pod: Pod) -> bool:
    return any(each.tolerates(_MARK) for each in pod.placing.tolerations)


def _next_phase(each: BringUp, cause: Cause, fleet: Fleet) -> RemovalPhase | None:
    """None where its node is not shown and may be there all the same."""
    sighting = each.sighting
    if sighting.node is None:
        never_came = each.milestones.registered_at is None and not each.may_have_node
        return RemovalPhase.RELEASE if never_came and not fleet.pods_by_node.keys() - _shown(fleet) else None
    if not sighting.node.is_marked:
        return RemovalPhase.MARK
    is_empty = all(_bears_the_mark(pod) for pod in sighting.workload)
    return RemovalPhase.RELEASE if is_empty or cause.is_silent else RemovalPhase.MARK


def _shown(fleet: Fleet) -> set[str]:
    ours = {node.name for each in fleet.sightings for node in (each.node, *each.other_nodes) if node is not None}
    return ours | {node.name for node in fleet.foreign_nodes}


def _record(sighting: Sighting, cause: Cause) -> RemovalRecord:
    claim = sighting.claim
    return RemovalRecord(
        claim=claim.name,
        node_pool=claim.node_pool,
        reason=cause.reason,
        rule=f"{claim.node_pool}: {cause.rule}",
        since=cause.since,
        usd_per_hour=claim.usd_per_hour,
        node=sighting.node.name if sighting.node else None,
        capacity=claim.capacity,
        stack=claim.stack,
    )
