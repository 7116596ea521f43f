"""Where a launch would go if it were refused: advice for the pass after."""

from __future__ import annotations

from collections.abc import Iterable

from engine.model.refusal import LostOffering
from engine.scheduling.existing import World
from engine.scheduling.new_nodes import Opened


def next_best(opened: Opened, lost: Iterable[LostOffering], world: World) -> tuple[str, ...]:
    """Keys of the offerings to be tried in turn: the same machine in other zones at the same price, then what lost.

    Of the zones that with the fewest nodes of the pool comes first, so that many refused launches do not end in one.

    The next pass decides anew, of what there is by then. Where nothing else changed, and neither weights nor rules'
    preferences tell the offerings apart, it takes the first that is not out by then.
    """
    kind = opened.kind
    elsewhere = sorted(
        (option for option in kind.buyable if option is not opened.option),
        key=lambda option: world.zone_order(kind.pool, option.offering.zone, with_empty=False),
    )
    keys = (*(option.offering.key for option in elsewhere), *(each.offering for each in lost))
    return tuple(dict.fromkeys(keys))
