"""Launches into capacity reservations.

EC2's documentation, "On-Demand Capacity Reservations" and "Capacity Blocks for ML", and Karpenter's of reserved
capacity (reference, section 9): a launch that names a reservation is of its type and zone, while it is active and, if a
block, more than 40 minutes from its end; its node class selects it; and it takes as many machines as are available,
less those on their way that EC2 has not counted yet. Nothing is added to the bill for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from engine.model.claim import Claim
from engine.model.plan import Plan
from engine.model.policy import NodeClass, Policy
from engine.model.reservation import CapacityReservation, ReservationTerm
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.machines import lost_claims
from tests.scheduling.checker.violation import Violation

RESERVED = "reserved"
_BLOCK_CLOSES = timedelta(minutes=40)


def within_reservations(snapshot: Snapshot, plan: Plan, policy: Policy) -> Iterator[Violation]:
    """Each launch at the capacity type ``reserved`` against the reservation that it names, and all of them together."""
    known = {each.id: each for each in snapshot.cloud.reservations}
    asked: Counter[str] = Counter()
    for launch in plan.launches:
        claim, name = launch.claim, launch.claim.inputs.capacity_reservation_id
        if (claim.inputs.capacity_type == RESERVED) != (name is not None):
            yield Violation("reservation", claim.name, f"is {claim.inputs.capacity_type}, and names {name}")
        elif name is not None:
            asked[name] += 1
            for what in _cannot_be_used(claim, known.get(name), snapshot, policy.node_class(claim.node_class)):
                yield Violation("reservation", claim.name, what)
    coming = _coming(snapshot)
    for name, count in sorted(asked.items()):
        free = known[name].available - coming[name] if name in known else 0
        if count > free:
            yield Violation("reservation", name, f"{count} are launched in it, and {free} are free")


def _cannot_be_used(
    claim: Claim, reservation: CapacityReservation | None, snapshot: Snapshot, node_class: NodeClass | None
) -> Iterator[str]:
    if reservation is None:
        yield f"{claim.inputs.capacity_reservation_id} is no reservation"
        return
    if (claim.inputs.instance_type, claim.inputs.zone) != (reservation.instance_type, reservation.zone):
        yield f"{reservation.id} is of {reservation.instance_type} in {reservation.zone}"
    notice = _BLOCK_CLOSES if reservation.kind.value == "capacity-block" else timedelta()
    if reservation.state != "active":
        yield f"{reservation.id} is {reservation.state}"
    elif reservation.ends_at is not None and snapshot.taken_at >= reservation.ends_at - notice:
        yield f"{reservation.id} ends at {reservation.ends_at}"
    terms = node_class.capacity_reservation_selector_terms if node_class else ()
    if not any(_selects(term, reservation) for term in terms):
        yield f"{reservation.id} is selected by no term of its class"
    told = claim.labels.get("karpenter.k8s.aws/capacity-reservation-id")
    if told != reservation.id:
        yield f"its node will be labelled with {reservation.id}, and {told} is told"


def _selects(term: ReservationTerm, reservation: CapacityReservation) -> bool:
    if term.id is not None:
        return term.id == reservation.id
    tags = all(
        reservation.tags.get(key) is not None and value in ("*", "", reservation.tags[key])
        for key, value in term.tags.items()
    )
    owner = term.owner_id is None or term.owner_id == reservation.owner_id
    criteria = term.match_criteria is None or term.match_criteria.value == reservation.match_criteria.value
    return tags and owner and criteria


def _coming(snapshot: Snapshot) -> Counter[str]:
    """The machines that are asked for and that EC2 does not show yet, by reservation."""
    shown = {each.claim for each in snapshot.cloud.instances}
    lost = lost_claims(snapshot)
    claims = snapshot.document.claims if snapshot.document else ()
    return Counter(
        claim.inputs.capacity_reservation_id
        for claim in claims
        if claim.inputs.capacity_reservation_id is not None and claim.name not in shown and claim.name not in lost
    )
