"""Why the pods of a machine that is to go have no other place, and whether it is only room that is wanting."""

from __future__ import annotations

from engine.disruption.machine import Machine
from engine.model.coupling_refusal import (
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    SpreadUnsatisfiable,
)
from engine.model.plan import Unplaced
from engine.model.refusal import CapReached, CeilingReached, LimitReached, PoolRefusal, ReservedExhausted, TooFewValues
from engine.model.replacement import NoPlace
from engine.model.spare_refusal import GpuWaste
from engine.model.stay import StayReason

# What refuses pods that look for a place together, and may not refuse fewer of them.
_OF_SEVERAL = (
    SpreadUnsatisfiable,
    AffinityUnsatisfiable,
    AntiAffinityInTheWay,
    HostPortTaken,
    GpuWaste,
    TooFewValues,
    CapReached,
)


def no_place(unplaced: Unplaced) -> NoPlace:
    """As the scheduler tells of the pod."""
    return NoPlace(str(unplaced.pod), unplaced.refusals)


def not_asked(machine: Machine) -> NoPlace:
    """Where nobody got to ask about its pods."""
    return NoPlace(str(machine.displaced[0].key) if machine.displaced else "", ())


def holds_for_fewer(failure: NoPlace) -> bool:
    """Whether what refuses a pod among others refuses it without them as well."""
    return not any(isinstance(each.refusal, _OF_SEVERAL) for each in failure.refusals)


def room_wanting(failure: StayReason | None) -> tuple[PoolRefusal, ...]:
    """What says that another machine finds no room beside those that stand."""
    refusals = failure.refusals if isinstance(failure, NoPlace) else ()
    return tuple(each for each in refusals if _is_of_room(each))


def _is_of_room(each: PoolRefusal) -> bool:
    """A rule that gave no number does not say so."""
    if isinstance(each.refusal, CeilingReached):
        return not each.refusal.error
    return isinstance(each.refusal, LimitReached | ReservedExhausted)
