"""Nodes that may be vacated, and what a move must bring in for its trouble. Values."""

from __future__ import annotations

from decimal import Decimal

from attrs import frozen

from engine.model.money import UsdPerHour
from engine.model.pod import Pod
from engine.model.quantity import Resources

SECONDS_OF_AN_HOUR = 3600

# A node's name and its claim's, of which one may be missing.
NodeName = tuple[str | None, str | None]


@frozen
class MovableNode:
    """An existing node of a problem that may be vacated, by the names that it has there.

    ``pods`` are those that would need another place: as they would wait, so pending and without a node. Daemons and
    pods that end with the node are none of them; what the volumes of the others need is in their placing.
    ``capacity`` is what the node takes of its pool's limits, one ``nodes`` included. ``usd_per_hour`` includes what the
    pool says that a node costs besides its price.

    ``warm_up_seconds`` is for how long its pods serve nobody once they start anew elsewhere: the longest of theirs.
    ``age_seconds`` is how long the node is initialized; None: for ever.
    """

    node: str | None
    claim: str
    node_pool: str
    capacity_type: str
    capacity: Resources
    usd_per_hour: UsdPerHour
    pods: tuple[Pod, ...]
    warm_up_seconds: int = 0
    age_seconds: int | None = None

    @property
    def name(self) -> NodeName:
        return self.node, self.claim

    @property
    def restart_micros(self) -> int:
        """What it costs, in millionths of a dollar, that its pods start anew: the node's price while they warm up."""
        return self.usd_per_hour.micros * self.warm_up_seconds // SECONDS_OF_AN_HOUR


@frozen
class MoveCost:
    """What a move must save to be worth it. All of it holds.

    ``least_saving`` is an amount, ``least_share`` a part of the price of the nodes that go; ``spot_share`` is the part
    asked for where spot nodes are replaced by spot nodes, whose prices move by themselves. What restarts cost must be
    saved within ``repaid_within_seconds``. No node goes that is younger than ``node_life_seconds``.
    """

    least_saving: UsdPerHour = UsdPerHour(10_000)
    least_share: Decimal = Decimal("0.1")
    spot_share: Decimal = Decimal("0.15")
    repaid_within_seconds: int = 3600
    node_life_seconds: int = 600
