"""Which machines leave by choice, and why each other one stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from attrs import evolve, frozen

from engine.decide.bring_up import BringUp, bring_ups
from engine.decide.draining import drained
from engine.decide.elsewhere import Elsewhere
from engine.decide.fleet import Fleet, Sighting, match
from engine.decide.held_nodes import as_if_open
from engine.decide.involuntary import NOBODY, Doomed, doomed, involuntary, with_signs
from engine.decide.losses import losses
from engine.decide.machines import machines
from engine.decide.standing_in import StandIns
from engine.disruption.budget_rules import BudgetRules
from engine.disruption.budgets import PoolStanding
from engine.disruption.candidate import Candidate
from engine.disruption.candidates import choose, nobody_moves
from engine.disruption.counted import Counted, Counts
from engine.disruption.involuntary import Cause
from engine.disruption.machine import Machine
from engine.disruption.pending import pending, pressing
from engine.disruption.reasons import reasons
from engine.disruption.replacing import Replacing
from engine.model.claim import Claim
from engine.model.pending import Pending
from engine.model.plan import Kept, Removal, RemovalPhase, Verdict
from engine.model.policy import NodePool, Policy
from engine.model.reason import DisruptionReason
from engine.model.refusal import GuardrailBlocks
from engine.model.snapshot import Snapshot
from engine.model.stay import PoolUnknown, StayReason
from engine.policy.facts.values import gpu_count


@frozen
class Departures:
    """``removals`` in claim order; ``kept`` are all machines that neither leave nor are marked, in claim order;
    ``verdicts`` of budget rules in name order. ``replacing`` knows what has to be there before others go."""

    removals: tuple[Removal, ...]
    kept: tuple[Kept, ...]
    verdicts: tuple[Verdict, ...] = ()
    replacing: Replacing | None = None


def departures(
    fleet: Fleet,
    lost: tuple[Removal, ...],
    brought: Mapping[str, BringUp],
    known: tuple[Machine, ...],
    cap: int,
    rules: BudgetRules | None,
    snapshot: Snapshot,
    elsewhere: Elsewhere,
    *,
    blocked: GuardrailBlocks | None = None,
    replacing: GuardrailBlocks | None = None,
    doom: Doomed = NOBODY,
) -> Departures:
    """What goes by nobody's choice is first; then each reason is asked, and base capacity, rules and budgets too.

    ``blocked``: nothing goes by choice, and why; ``replacing``: nothing that others take the place of.
    """
    now = snapshot.taken_at
    forced = involuntary(doom, brought, known, fleet, lost, cap=cap)
    free = (machine for machine in known if machine.name not in forced.claims)
    may_move = blocked is None and replacing is None
    found = (
        reasons(free, now, snapshot.blocked_evictions, elsewhere.repacked, elsewhere.pools_without)
        if may_move
        else reasons(free, now, snapshot.blocked_evictions)
    )
    candidates = found.candidates
    if replacing is not None:
        found = found.without_replacing(replacing)
    asked = elsewhere.replacing(found.candidates, found.idle, cap - forced.count(RemovalPhase.MARK))
    standings = _standings(fleet, lost, known, doom)
    choice = choose(
        found.candidates,
        standings,
        cap=cap,
        marked=forced.count(RemovalPhase.MARK),
        released=len(lost) + forced.count(RemovalPhase.RELEASE),
        now=now,
        rules=rules,
        ask=asked.ask if blocked is None else nobody_moves,
        rollouts=found.rollouts,
    )
    if blocked is not None:
        held_back = {removal.record.claim: blocked for removal in choice.removals}
        choice = evolve(choice, removals=(), stays={**choice.stays, **held_back})
    stays = {**found.stays, **choice.stays, **forced.stays}
    removals = (*lost, *forced.removals, *choice.removals)
    pools = {each.claim.name: each.pool for each in known}
    draining = drained(removals, stays, fleet, pools, snapshot, blocked)
    removals, kept_for = draining.removals, draining.stays
    going = {removal.record.claim for removal in removals}
    causes = _causes(known, candidates, now)
    stand_ins = StandIns(fleet.sightings, removals, kept_for, asked if blocked is None else None)
    kept = (
        _kept(
            sighting,
            stand_ins.told(sighting.claim, _reason(kept_for, sighting.claim)),
            causes.get(sighting.claim.name, ()),
            draining.deadlines.get(sighting.claim.name),
        )
        for sighting in fleet.sightings
        if sighting.claim.name not in going
    )
    ordered = tuple(sorted(removals, key=lambda each: each.record.claim))
    return Departures(ordered, tuple(kept), choice.verdicts, asked if blocked is None else None)


def standings_of(snapshot: Snapshot, policy: Policy) -> Mapping[str, PoolStanding]:
    """How each pool of the policy that has machines stands, as the next pass would count it."""
    seen = as_if_open(snapshot)
    fleet = match(seen)
    lost, brought = losses(fleet, seen), bring_ups(fleet, policy, seen)
    gone = tuple(removal.record.claim for removal in lost)
    known = machines(brought, gone, (), policy, seen)
    signs = with_signs(seen.ledger, fleet, brought, seen)
    return _standings(fleet, lost, known, doomed(fleet, brought, gone, signs, policy, seen))


def _standings(
    fleet: Fleet, lost: Iterable[Removal], known: Iterable[Machine], doom: Doomed
) -> Mapping[str, PoolStanding]:
    """How each pool stands, as budgets count it.

    Machines that have to go are out, marked or not; so are those that left before and may still run, and those that are
    lost. A launch that was refused never was in, nor was a machine that failed before it had a node. A node that came
    up only now counts as out until it is initialized, as one does that fell ill: from outside the two look alike. One
    that is to take another's place is in neither number before, and no part of the base while the other stands.
    """
    base: dict[str, int] = {}
    out: dict[str, int] = {}
    serving: dict[str, int] = {}
    gpus: dict[str, int] = {}
    pools: dict[str, NodePool] = {}
    counted: dict[str, list[Counted]] = {}

    def add(counts: dict[str, int], pool: str, more: int = 1) -> None:
        counts[pool] = counts.get(pool, 0) + more

    standing = frozenset(machine.name for machine in known)
    for machine in known:
        pools[machine.pool.name] = machine.pool
        takes_over = bool(machine.claim.replaces)
        if machine.node is not None and not (takes_over and machine.is_coming):
            if standing.isdisjoint(machine.claim.replaces):
                add(base, machine.pool.name)
            add(gpus, machine.pool.name, gpu_count(machine.claim.capacity))
            is_serving = machine.serves and machine.claim.name not in doom.causes
            add(serving if is_serving else out, machine.pool.name)
            if not is_serving:
                counted.setdefault(machine.pool.name, []).append(_out(machine, doom.causes.get(machine.claim.name)))
    left_before = [(leaving.record, Counts.LEFT) for leaving in fleet.leaving if leaving.may_run]
    for record, how in (*left_before, *((removal.record, Counts.LOST) for removal in lost)):
        had_no_node = record.reason is DisruptionReason.NOT_INITIALIZED and record.node is None
        if record.reason is not DisruptionReason.LAUNCH_REFUSED and not had_no_node:
            add(base, record.node_pool)
            add(gpus, record.node_pool, gpu_count(record.capacity))
            add(out, record.node_pool)
            of_record = Counted(record.claim, record.node, how, record.reason)
            counted.setdefault(record.node_pool, []).append(of_record)
    return {
        name: PoolStanding(
            pool=pool,
            base=base.get(name, 0),
            out=out.get(name, 0),
            serving=serving.get(name, 0),
            gpus=gpus.get(name, 0),
            counted=tuple(sorted(counted.get(name, ()), key=lambda each: each.claim)),
        )
        for name, pool in pools.items()
    }


def _out(machine: Machine, cause: Cause | None) -> Counted:
    name = machine.node.name if machine.node is not None else None
    if cause is not None:
        return Counted(machine.name, name, Counts.DOOMED, cause.reason)
    if machine.is_marked:
        return Counted(machine.name, name, Counts.MARKED, machine.going_for)
    return Counted(machine.name, name, Counts.NOT_READY)


def _causes(
    known: Iterable[Machine], candidates: Iterable[Candidate], now: datetime
) -> Mapping[str, tuple[Pending, ...]]:
    """What each machine is to go for, by claim."""
    own: dict[str, list[Candidate]] = {}
    for each in candidates:
        own.setdefault(each.machine.name, []).append(each)
    return {each.name: pending(each, own.get(each.name, ()), now) for each in known}


def _reason(stays: Mapping[str, StayReason], claim: Claim) -> StayReason:
    return stays.get(claim.name) or PoolUnknown(node_pool=claim.node_pool)


def _kept(sighting: Sighting, reason: StayReason, causes: tuple[Pending, ...], drained_by: datetime | None) -> Kept:
    claim = sighting.claim
    return Kept(
        claim=claim.name,
        node=sighting.node.name if sighting.node else None,
        node_pool=claim.node_pool,
        instance_type=claim.inputs.instance_type,
        zone=claim.inputs.zone,
        capacity_type=claim.inputs.capacity_type,
        usd_per_hour=claim.usd_per_hour,
        reason=reason,
        pending=pressing(causes, reason),
        drained_by=drained_by,
    )
