"""How a pool's nodes are replaced, and what a move must bring in: our annotations on a NodePool, as values."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from attrs import frozen

from engine.model.money import UsdPerHour

# Nobody declares more, on a pool or on a pod: nothing that takes longer would ever be repaid.
LONGEST_WARM_UP = timedelta(days=1)


@frozen
class Upkeep:
    """``surge`` 0: a machine that drifted or expired goes before another takes its place; 1: never before that; None:
    only where limits or a reservation leave no room for another.

    ``canaries`` machines that drifted go first, and the rest once those in their place are up for ``soak``; 0 lets all
    go at once. ``least_saving`` an hour, and ``least_share`` of the price of what goes, are asked of a move for money;
    ``spot_share`` where spot replaces spot. What it costs to start pods anew, which takes ``warm_up`` for those that do
    not say it themselves, must be repaid within ``repaid_within``. No node goes for money that is up for less than
    ``node_life``.

    ``returns``: nodes go back to the capacity that policy prefers once that is there again, cheaper or not.
    ``quiet_destinations``: a node that got or lost a pod within consolidateAfter takes none that move for money.
    """

    surge: int | None = None
    canaries: int = 1
    soak: timedelta = timedelta(minutes=10)
    least_saving: UsdPerHour = UsdPerHour(10_000)
    least_share: Decimal = Decimal("0.1")
    spot_share: Decimal = Decimal("0.15")
    repaid_within: timedelta = timedelta(hours=1)
    node_life: timedelta = timedelta(minutes=10)
    warm_up: timedelta = timedelta(0)
    returns: bool = False
    quiet_destinations: bool = False
