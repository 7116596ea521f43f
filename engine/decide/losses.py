"""Claims that leave by themselves: the machine is gone, or its launch was refused. No budget can hold that back.

Both need a proof: EC2's word that the instance is gone, or its refusal. A claim that an empty or partial read does not
show stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from engine.catalog.ledger import names, pruned, with_bring_up, with_failed_bring_up, with_launch, with_refusal
from engine.decide.bring_up import BringUp
from engine.decide.fleet import Fleet, Sighting
from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.ledger import FailedBringUps, Ledger
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.plan import Removal, RemovalPhase
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot

_REFUSED = (OutcomeStatus.FAILED_CAPACITY, OutcomeStatus.FAILED_OTHER)


def losses(fleet: Fleet, snapshot: Snapshot) -> tuple[Removal, ...]:
    """A removal for each claim whose machine is gone or never came, in claim order."""
    outcomes = _outcomes(snapshot.ledger)
    found = (_loss(sighting, outcomes.get(sighting.claim.name), snapshot) for sighting in fleet.sightings)
    return tuple(Removal(record=record, phase=RemovalPhase.RELEASE) for record in found if record is not None)


def lessons(fleet: Fleet, lost: tuple[Removal, ...], brought: Mapping[str, BringUp], snapshot: Snapshot) -> Ledger:
    """The ledger once the launches since the last pass are known: new machines clear their offering's refusals, those
    that came up their pool's failures too; then each refused launch, and each machine that did not come up in time,
    bars its offering for a while."""
    ledger = snapshot.ledger
    for sighting in fleet.sightings:
        if sighting.instance is not None and sighting.claim.name not in ledger.instance_ids:
            claim, launched_at = sighting.claim, sighting.instance.launched_at
            ledger = with_launch(ledger, offering_key(claim), claim.node_class, launched_at)
    gone = {removal.record.claim for removal in lost}
    came = [each.sighting.claim for each in brought.values() if each.has_come]
    for claim in came:
        ledger = with_bring_up(ledger, offering_key(claim), claim.node_pool)
    working = {claim.node_pool for claim in came}
    for each in brought.values():
        claim = each.sighting.claim
        if each.has_failed and claim.name not in gone:
            ledger = with_failed_bring_up(ledger, offering_key(claim), claim.node_pool, snapshot.taken_at)
            if claim.node_pool in working:
                # One that came up in the same pass says that the pool works.
                ledger = evolve(ledger, bring_ups=_without(ledger.bring_ups, claim.node_pool))
    claims = {sighting.claim.name: sighting.claim for sighting in fleet.sightings}
    outcomes = _outcomes(snapshot.ledger)
    for removal in lost:
        outcome = outcomes.get(removal.record.claim)
        refused = removal.record.reason is DisruptionReason.LAUNCH_REFUSED
        if refused and outcome is not None and outcome.status is OutcomeStatus.FAILED_CAPACITY:
            claim = claims[outcome.claim]
            ledger = with_refusal(ledger, offering_key(claim), outcome.code, snapshot.taken_at, claim.node_class)
    return pruned(ledger, snapshot.taken_at)


def under_way(fleet: Fleet, gone: Iterable[str], brought: Mapping[str, BringUp]) -> frozenset[str]:
    """All that a launch whose answer is still out puts to the proof, by the ledger's names: it is tried, and nothing
    more of it while it is on probation. A launch that is overdue holds up no other."""
    answered = frozenset(gone)
    asked = (
        sighting.claim
        for sighting in fleet.sightings
        if sighting.instance is None and sighting.claim.name not in answered and brought[sighting.claim.name].is_coming
    )
    return frozenset(name for claim in asked for name in names(offering_key(claim), claim.node_class))


def _without(bring_ups: Mapping[str, FailedBringUps], node_pool: str) -> Mapping[str, FailedBringUps]:
    return {pool: each for pool, each in bring_ups.items() if pool != node_pool}


def offering_key(claim: Claim) -> str:
    """The ledger's key of the offering that a claim is of."""
    return claim.inputs.offering_key


def _outcomes(ledger: Ledger) -> Mapping[str, ClaimOutcome]:
    return {outcome.claim: outcome for outcome in ledger.outcomes}


def _loss(sighting: Sighting, outcome: ClaimOutcome | None, snapshot: Snapshot) -> RemovalRecord | None:
    claim = sighting.claim
    if sighting.instance is not None:
        return None
    if sighting.seen_dead is not None or claim.name in snapshot.cloud.absent_claims:
        known = sighting.seen_dead.id if sighting.seen_dead else snapshot.ledger.instance_ids.get(claim.name)
        what = f"instance {known} is gone" if known else "its instance is gone"
        return _record(sighting, DisruptionReason.LOST, what, snapshot)
    if outcome is not None and _never_came(outcome, snapshot.ledger):
        what = f"{outcome.code or outcome.status.value} for {offering_key(claim)}"
        return _record(sighting, DisruptionReason.LAUNCH_REFUSED, what, snapshot)
    return None


def _never_came(outcome: ClaimOutcome, ledger: Ledger) -> bool:
    """Whether a launch failed before there was an instance. One that failed later is lost only when EC2 says so."""
    was_there = bool(outcome.instance_id) or outcome.claim in ledger.instance_ids
    return outcome.status in _REFUSED and not was_there


def _record(sighting: Sighting, reason: DisruptionReason, what: str, snapshot: Snapshot) -> RemovalRecord:
    claim = sighting.claim
    return RemovalRecord(
        claim=claim.name,
        node_pool=claim.node_pool,
        reason=reason,
        rule=f"{claim.node_pool}: {what}",
        since=snapshot.taken_at,
        usd_per_hour=claim.usd_per_hour,
        node=sighting.node.name if sighting.node else None,
        capacity=claim.capacity,
        stack=claim.stack,
    )
