"""What one decision may spend on searching, in steps of packing: not in seconds, so answers are the same everywhere."""

from __future__ import annotations

from attrs import define

from engine.scheduling.packing.pack import DEFAULT_STEPS


@define
class Steps:
    """Each question of packing may use half of what is left, so that those that come later are asked, too."""

    left: int = 2 * DEFAULT_STEPS

    @property
    def for_a_question(self) -> int:
        return self.left // 2

    def use(self, steps: int) -> None:
        """So many are gone."""
        self.left = max(0, self.left - steps)
