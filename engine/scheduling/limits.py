"""How much more may be launched: pools' limits, exactly, and one pass's caps."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from engine.model.environment import Caps
from engine.model.money import UsdPerHour
from engine.model.plan import LimitUse
from engine.model.quantity import ACCELERATORS, CPU, MEMORY, NODES, NOTHING, Resources
from engine.model.refusal import BringUpsFailed, CapReached, LimitReached
from engine.scheduling.problem import PoolState

UNLIMITED = sys.maxsize
_FIRST_NAMED = (*ACCELERATORS, NODES, CPU, MEMORY)


def resource_order(resource: str) -> tuple[int, str]:
    """Scarce resources first, so that the reason names the GPU before the memory."""
    return (_FIRST_NAMED.index(resource) if resource in _FIRST_NAMED else len(_FIRST_NAMED), resource)


class Headroom:
    """Counts what this plan launches against limits and caps. Capacities include one ``nodes`` each."""

    def __init__(self, pools: Iterable[PoolState], caps: Caps) -> None:
        self._pools = {state.pool.name: state for state in pools}
        self._planned = dict.fromkeys(self._pools, NOTHING)
        self._caps = caps
        self._launches = 0
        self._added_micros = 0

    def nodes_within_limits(self, pool: str, capacity: Resources) -> int:
        """How many nodes of this capacity the pool's limits still admit."""
        state, planned = self._pools[pool], self._planned[pool]
        admitted = UNLIMITED if state.one_by_one is None else max(0, 1 - planned.amount(NODES))
        for resource, limit in state.limits.items():
            each = capacity.amount(resource)
            # A limit that is broken already bars only nodes that would add to it.
            if each > 0:
                left = limit - state.used.amount(resource) - planned.amount(resource)
                admitted = min(admitted, max(0, left // each))
        return admitted

    def nodes_within_caps(self, price: UsdPerHour) -> int:
        """How many nodes of this price the pass may still launch."""
        launches = max(0, self._caps.launches - self._launches)
        if price.micros <= 0:
            return launches
        money = max(0, self._caps.added_usd_per_hour.micros - self._added_micros)
        return min(launches, money // price.micros)

    def take(self, pool: str, capacity: Resources, price: UsdPerHour) -> None:
        """Counts one node."""
        self._planned[pool] = self._planned[pool] + capacity
        self._launches += 1
        self._added_micros += price.micros

    def give_back(self, pool: str, capacity: Resources, price: UsdPerHour) -> None:
        """Takes one node off again."""
        self._planned[pool] = self._planned[pool] - capacity
        self._launches -= 1
        self._added_micros -= price.micros

    def limit_in_the_way(self, pool: str, capacities: Iterable[Resources]) -> LimitReached | BringUpsFailed | None:
        """The limit that bars the last of these nodes; None when one of them is within all limits."""
        state, planned = self._pools[pool], self._planned[pool]
        if state.one_by_one is not None and planned.amount(NODES):
            return state.one_by_one
        remaining = list(capacities)
        for resource in sorted(state.limits, key=resource_order):
            limit, used, adding = state.limits[resource], state.used.amount(resource), planned.amount(resource)
            left = max(0, limit - used - adding)
            within = [each for each in remaining if each.amount(resource) <= left]
            if not within:
                needed = min((each.amount(resource) for each in remaining), default=0)
                return LimitReached(resource, limit=limit, used=used, planned=adding, needed=needed)
            remaining = within
        return None

    def cap_in_the_way(self) -> CapReached:
        """The cap that ended the launching: that on launches when it is used up, else that on money."""
        if self._launches >= self._caps.launches:
            return CapReached(cap="launches", limit=str(self._caps.launches))
        return CapReached(cap="addedUsdPerHour", limit=str(self._caps.added_usd_per_hour))

    def limit_uses(self) -> tuple[LimitUse, ...]:
        """Each limit of each pool with what runs and what is planned, in name order."""
        return tuple(
            LimitUse(
                node_pool=pool,
                resource=resource,
                limit=state.limits[resource],
                used=state.used.amount(resource),
                planned=self._planned[pool].amount(resource),
            )
            for pool, state in sorted(self._pools.items())
            for resource in state.limits
        )
