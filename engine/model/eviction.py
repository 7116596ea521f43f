"""What became of a request to move a pod off its node."""

from __future__ import annotations

from enum import Enum

from attrs import frozen

from engine.model.pod import PodKey


class EvictionStatus(str, Enum):
    """``REFUSED_BY_BUDGET`` is a PodDisruptionBudget that allows no more now, ``SEVERAL_BUDGETS`` a pod matched by two.

    The API server answers them with 429 and 500; the first passes with time, the second needs a person.
    """

    EVICTED = "evicted"
    REFUSED_BY_BUDGET = "refused-by-pdb"
    SEVERAL_BUDGETS = "two-pdbs"
    GONE = "gone"
    FAILED = "failed"


_REFUSALS = frozenset({EvictionStatus.REFUSED_BY_BUDGET, EvictionStatus.SEVERAL_BUDGETS, EvictionStatus.FAILED})


@frozen
class Eviction:
    """One pod's answer; ``message`` is the API server's own, empty where nothing went wrong."""

    pod: PodKey
    status: EvictionStatus
    message: str = ""

    @property
    def is_refused(self) -> bool:
        return self.status in _REFUSALS


@frozen
class RefusedEviction:
    """A pod that stays on a node that is to leave; ``answer`` is the first of its kind, whatever numbers it names."""

    node: str
    answer: Eviction
