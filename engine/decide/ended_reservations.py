"""Machines that outlive their reservation: EC2 lets them run on, and bills them as on-demand from then on.

As with Karpenter (capacityreservation/capacitytype of its AWS provider) such a node is relabelled, not replaced: its
claim carries the on-demand label and price, and what it was launched with stays as it was. Whether it still fits its
pool is for drift to say. A capacity block's machines end with it, so they are no such.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from engine.catalog.price import node_usd_per_hour
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.policy import Policy
from engine.model.reservation import ReservationKind
from engine.model.snapshot import Snapshot


def as_on_demand(claims: Iterable[Claim], snapshot: Snapshot, policy: Policy, catalog: Catalog) -> tuple[Claim, ...]:
    """The claims, those whose reservation has ended as on-demand ones."""
    open_ids = {each.id for each in snapshot.cloud.reservations if each.is_open_at(snapshot.taken_at)}
    # Where no class selects any, a read of reservations that failed looks like there being none.
    is_known = any(each.capacity_reservation_selector_terms for each in policy.node_classes)
    running = {each.claim for each in snapshot.cloud.instances if each.is_alive}
    return tuple(
        _relabelled(claim, policy, catalog)
        if is_known and claim.name in running and _is_reserved(claim) and _reservation_of(claim) not in open_ids
        else claim
        for claim in claims
    )


def changed(before: Iterable[Claim], after: Iterable[Claim]) -> tuple[str, ...]:
    """The names of claims that are others now, in name order."""
    return tuple(sorted(now.name for was, now in zip(before, after, strict=True) if now is not was))


def _is_reserved(claim: Claim) -> bool:
    is_labelled = claim.labels.get(keys.CAPACITY_TYPE) == keys.RESERVED
    return is_labelled and claim.inputs.capacity_reservation_kind is not ReservationKind.CAPACITY_BLOCK


def _reservation_of(claim: Claim) -> str:
    return claim.inputs.capacity_reservation_id or ""


def _relabelled(claim: Claim, policy: Policy, catalog: Catalog) -> Claim:
    gone = (keys.CAPACITY_RESERVATION_ID, keys.CAPACITY_RESERVATION_TYPE)
    labels = {key: value for key, value in claim.labels.items() if key not in gone}
    inputs, node_class = claim.inputs, policy.node_class(claim.node_class)
    sold = (inputs.instance_type, inputs.zone, keys.ON_DEMAND)
    offering = next(
        (each for each in catalog.offerings if (each.instance_type, each.zone, each.capacity_type) == sold), None
    )
    price = node_usd_per_hour(catalog, offering, node_class) if offering and node_class else None
    return evolve(
        claim,
        labels={**labels, keys.CAPACITY_TYPE: keys.ON_DEMAND},
        usd_per_hour=claim.usd_per_hour if price is None else price,
    )
