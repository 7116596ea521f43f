"""Reserved capacity as something to launch: which reservations a node class may use, and how many places are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from attrs import frozen

from engine.model import labels as keys
from engine.model.catalog import Offering
from engine.model.money import FREE
from engine.model.outcome import OutcomeStatus
from engine.model.policy import NodeClass
from engine.model.reservation import CapacityReservation
from engine.model.snapshot import Snapshot

_REFUSED = (OutcomeStatus.FAILED_CAPACITY, OutcomeStatus.FAILED_OTHER)


@frozen
class Places:
    """A reservation, and how many more machines it takes: EC2's count less launches that EC2 does not count yet."""

    reservation: CapacityReservation
    left: int

    @property
    def offering(self) -> Offering:
        """What a claim buys: nothing is added to the bill."""
        of = self.reservation
        return Offering(of.instance_type, of.zone, keys.RESERVED, FREE, of.id)

    @property
    def labels(self) -> Mapping[str, str]:
        """What Karpenter labels such a node with, beside its capacity type."""
        return {
            keys.CAPACITY_RESERVATION_ID: self.reservation.id,
            keys.CAPACITY_RESERVATION_TYPE: self.reservation.kind.value,
        }


def places(snapshot: Snapshot) -> tuple[Places, ...]:
    """Every reservation that is open now, in id order, full ones too.

    A claim of the published document whose machine nobody has seen yet is taken off; one that is gone is not.
    """
    coming = Counter(_in_flight(snapshot))
    return tuple(
        Places(each, max(0, each.available - coming[each.id]))
        for each in sorted(snapshot.cloud.reservations, key=lambda each: each.id)
        if each.is_open_at(snapshot.taken_at)
    )


def is_selected(reservation: CapacityReservation, node_class: NodeClass) -> bool:
    """Whether any term of the class selects it."""
    return any(term.selects(reservation) for term in node_class.capacity_reservation_selector_terms)


def selected(every: tuple[Places, ...], node_class: NodeClass) -> tuple[Places, ...]:
    """Those that the class may use."""
    return tuple(each for each in every if is_selected(each.reservation, node_class))


def _in_flight(snapshot: Snapshot) -> list[str]:
    """The reservations that claims aim at whose machine EC2 does not show, one entry a claim."""
    if snapshot.document is None:
        return []
    known = {each.claim for each in snapshot.cloud.instances} | set(snapshot.cloud.absent_claims)
    known |= {each.claim for each in snapshot.ledger.outcomes if each.status in _REFUSED and not each.instance_id}
    aims = ((each.name, each.inputs.capacity_reservation_id) for each in snapshot.document.claims)
    return [reservation for claim, reservation in aims if reservation is not None and claim not in known]
