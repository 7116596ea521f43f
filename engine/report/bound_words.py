"""What the launches of a plan cost, and how near that is to the least, in a person's words."""

from __future__ import annotations

from math import ceil

from engine.model.money import total
from engine.model.packing_bound import PackingBound
from engine.model.plan import Plan

# From 10 % on it is told in whole numbers.
_A_LOT, _NEXT_TO_NOTHING = 0.1, 0.0005


def packing_words(plan: Plan) -> str:
    """``The launches cost $12.34/h, at most 0.4 % over the least for their pods on new nodes.`` Nothing is launched:
    an empty text."""
    packing = plan.packing
    if packing is None:
        return ""
    paid = total(launch.claim.usd_per_hour for launch in plan.launches)
    besides = f" with {packing.cost - paid} for what nodes cost besides" if packing.cost > paid else ""
    # Nodes that no pod asked for are no part of what is compared.
    apart = f", {packing.apart} of it for nodes that no pod asked for" if packing.apart.micros else ""
    distance = f"the rest is {_distance(packing)}" if apart and packing.gap is not None else _distance(packing)
    return f"The launches cost {packing.cost}{besides}{apart}, {distance}."


def _distance(packing: PackingBound) -> str:
    gap = packing.gap
    if gap is None:
        return "and what they cost at the least is not known"
    # Rounded up: it is at most what is told.
    percent = ceil(gap * 1000) / 10 if gap < _A_LOT else ceil(gap * 100)
    told = "0.05" if gap <= _NEXT_TO_NOTHING else f"{percent:g}"
    return f"at most {told} % over the least for their pods on new nodes"
