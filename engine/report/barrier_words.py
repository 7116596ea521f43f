"""Why a pool makes no node of a type for pods, in a person's words."""

from __future__ import annotations

from engine.decide.offered import Barrier, BarrierKind


def barrier_words(barrier: Barrier) -> str:
    """``rule gold-on-nvlink bars it: gold inference needs …``."""
    pool, detail = barrier.node_pool, barrier.detail
    match barrier.kind:
        case BarrierKind.RULE if barrier.error:
            return f"rule {detail} cannot be evaluated for it in {pool}: {barrier.error}"
        case BarrierKind.RULE:
            return f"rule {detail} bars it in {pool}: {barrier.message}"
        case BarrierKind.POOL_REQUIREMENT:
            return f"{pool} requires {detail}"
        case BarrierKind.TAINT:
            return f"the pods do not tolerate {pool}'s taint {detail}"
        case BarrierKind.POD_REQUIREMENT:
            return f"the pods ask for {detail}, which {pool} does not give"
        case BarrierKind.TOO_SMALL:
            return f"too little {detail} for the pods in {pool}"
        case BarrierKind.POOL_NOT_READY:
            return f"{pool} cannot launch: {detail}"
        case BarrierKind.UNSUPPORTED:
            return f"the pods use what is not placed yet: {detail}"
        case _:
            return _of_the_pool(barrier)


def _of_the_pool(barrier: Barrier) -> str:
    pool = barrier.node_pool
    match barrier.kind:
        case BarrierKind.NO_POOL:
            return f"there is no pool {pool}"
        case BarrierKind.STATIC_POOL:
            return f"{pool} has fixed replicas"
        case BarrierKind.NOT_SOLD:
            return f"not sold in {pool}'s zones, or without a known price"
        case BarrierKind.KEPT_FOR_ACCELERATORS:
            return f"{pool} keeps accelerated nodes for pods that ask for accelerators"
        case _:
            return f"{pool}'s minValues are not met"
