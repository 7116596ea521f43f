"""How near the cost of a plan's launches is to the least that is possible, as far as that is proven."""

from __future__ import annotations

from attrs import frozen

from engine.model.money import FREE, UsdPerHour


@frozen
class PackingBound:
    """``cost`` is an hour of all nodes to launch, what pools say that a node costs besides its price included.

    ``lower_bound`` is proven: new nodes for the same pods, once what stands is filled, where spreads and affinities
    send the pods and of the offerings that policy prefers, cost no less. Free where nothing is proven. ``apart`` is the
    part of the cost that the bound says nothing of: of nodes that no pod asked for, as base capacity is.
    """

    cost: UsdPerHour
    lower_bound: UsdPerHour = FREE
    apart: UsdPerHour = FREE

    @property
    def gap(self) -> float | None:
        """By how much the cost, what is ``apart`` left out, is over the bound at most, as a part of it; None where
        nothing is proven."""
        compared = self.cost.micros - self.apart.micros
        return compared / self.lower_bound.micros - 1 if self.lower_bound.micros else None
