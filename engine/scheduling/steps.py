"""What one decision may spend on searching, in steps of packing: not in seconds, so answers are the same everywhere."""

from __future__ import annotations

from functools import lru_cache

from attrs import define, field

from engine.scheduling.packing.pack import DEFAULT_STEPS, pack
from engine.scheduling.packing.problem import Packing, PackingProblem

# Of one decision, unless whoever asks has less time.
MOST_STEPS = 2 * DEFAULT_STEPS
# Answers are kept for the next decisions, where pods may still wait for the same: so many, of questions no larger.
_KEPT, _FEW_CLASSES = 256, 200


@define
class Steps:
    """Each question of packing may use half of what is left, so that those that come later are asked, too."""

    left: int = MOST_STEPS
    _known: dict[PackingProblem, Packing] = field(factory=dict)

    def pack(self, problem: PackingProblem) -> Packing:
        """The answer. Several drafts of a decision ask the same: the first answer is that of all."""
        if problem not in self._known:
            ask = _packed if len(problem.classes) <= _FEW_CLASSES else pack
            self._known[problem] = ask(problem, self.left // 2)
            self.left = max(0, self.left - self._known[problem].steps)
        return self._known[problem]


def forget() -> None:
    """Nothing is kept of earlier decisions: for who measures what an answer takes."""
    _packed.cache_clear()


@lru_cache(maxsize=_KEPT)
def _packed(problem: PackingProblem, steps: int) -> Packing:
    return pack(problem, steps)
