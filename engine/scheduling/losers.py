"""What else would have held a new node's pods, and how much dearer: advice for a person, and after a refusal."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.money import UsdPerHour
from engine.model.refusal import LostOffering
from engine.scheduling.kinds import Kind

_OTHERS_SHOWN = 3


# A kind that would have done, and how many of its nodes it takes to hold the same pods.
Rival = tuple[Kind, int]


def losers(winner: Kind, price: UsdPerHour, rivals: Iterable[Rival]) -> tuple[LostOffering, ...]:
    """The next best of ``rivals``, by what all their nodes for the pods of one ``winner`` cost together.

    Of each type and capacity type the cheapest: three at most, and besides them the winner's own type at its other
    capacity types, and in other zones where it costs something else there. Those that cannot be bought now are left
    out; ``price`` is the winner's, and ``rivals`` may have it among them.
    """
    cheapest: dict[tuple[str, str], tuple[int, UsdPerHour, Kind]] = {}
    for cost, paid, kind in sorted(_bought_instead(winner, rivals), key=lambda rival: (*rival[:2], rival[2].order)):
        cheapest.setdefault(kind.type_at, (cost, paid, kind))
    others = [name for name in cheapest if name != winner.type_at][:_OTHERS_SHOWN]
    return tuple(
        LostOffering(kind.buyable[0].offering.key, paid, UsdPerHour(cost - price.micros))
        for name, (cost, paid, kind) in cheapest.items()
        if name in others or name[0] == winner.instance_type.name
    )


def _bought_instead(winner: Kind, rivals: Iterable[Rival]) -> Iterable[tuple[int, UsdPerHour, Kind]]:
    zones = {option.offering.zone for option in winner.options}
    for kind, nodes in rivals:
        if kind.usd_per_hour is None or not kind.buyable:
            continue
        is_same = kind.type_at == winner.type_at
        if not is_same or (kind.usd_per_hour != winner.usd_per_hour and kind.buyable[0].offering.zone not in zones):
            yield kind.usd_per_hour.micros * nodes, kind.usd_per_hour, kind
