"""A world with capacity reservations: EC2 counts what runs in each, and refuses what a full one has no place for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from attrs import evolve

from engine.model.claim import Claim
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.reservation import CapacityReservation, MatchCriteria, ReservationKind, ReservationTerm
from engine.model.snapshot import CloudFacts
from tests.builders import node_class
from tests.decide.world import World

RESERVATION_FULL = "ReservationCapacityExceeded"
SELECTING = node_class(capacity_reservation_selector_terms=(ReservationTerm(tags={"team": "search"}),))


def reservation(name: str, places: int, instance_type: str = "p5.48xlarge", **more: object) -> CapacityReservation:
    """A reservation that SELECTING selects, empty, unless ``more`` says otherwise."""
    plain = CapacityReservation(name, instance_type, "us-east-1a", places, places, tags={"team": "search"})
    return evolve(plain, **more)


def block(name: str, places: int, **more: object) -> CapacityReservation:
    return evolve(reservation(name, places, **more), kind=ReservationKind.CAPACITY_BLOCK)


def unselected(name: str, places: int, instance_type: str, criteria: MatchCriteria) -> CapacityReservation:
    return reservation(name, places, instance_type, tags={}, match_criteria=criteria)


class ReservingWorld(World):
    """``others`` are machines of other people in each reservation, which only EC2's count tells of."""

    def __init__(
        self, rules: Policy, pods: Iterable[Pod], reservations: Iterable[CapacityReservation], **more: object
    ) -> None:
        super().__init__(rules, pods, **{"refuses": self._is_full, **more})  # type: ignore[arg-type]
        self.reservations = {each.id: each for each in reservations}
        self.others: Counter[str] = Counter()

    def cloud(self) -> CloudFacts:
        there = (
            evolve(each, available=max(0, each.total - self._running_in(each.id)))
            for each in self.reservations.values()
        )
        return evolve(super().cloud(), reservations=tuple(there))

    def _running_in(self, name: str) -> int:
        alive = {each.claim for each in self.running()}
        claims = self.document.claims if self.document else ()
        own = sum(each.name in alive and each.inputs.capacity_reservation_id == name for each in claims)
        return own + self.others[name]

    def _is_full(self, claim: Claim) -> str:
        target = claim.inputs.capacity_reservation_id
        if target is None or self._running_in(target) < self.reservations[target].total:
            return ""
        return RESERVATION_FULL
