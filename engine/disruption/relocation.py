"""What becomes of the pods of one machine that is to go. A value."""

from __future__ import annotations

from attrs import frozen

from engine.model.plan import Placement
from engine.model.replacement import DeleteFirst
from engine.model.stay import StayReason


@frozen
class Relocation:
    """``places`` are where its pods go, as far as that is there already; ``awaits`` are claims on their way that some
    of them, or the pool's base capacity, wait for; ``buys``: some wait for nodes that this plan launches."""

    places: tuple[Placement, ...] = ()
    awaits: tuple[str, ...] = ()
    buys: bool = False
    delete_first: DeleteFirst | None = None
    refused: StayReason | None = None

    @property
    def lets_go(self) -> bool:
        """Whether the machine may be marked now."""
        return not (self.awaits or self.buys or self.refused is not None)
