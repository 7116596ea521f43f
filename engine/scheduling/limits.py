"""How much more may be launched: pools' limits and groups' ceilings, exactly, and one pass's caps."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from attrs import frozen

from engine.model.environment import Caps
from engine.model.money import FREE, UsdPerHour
from engine.model.plan import LimitUse
from engine.model.quantity import ACCELERATORS, CPU, MEMORY, NODES, NOTHING, Resources
from engine.model.refusal import BringUpsFailed, CapReached, CeilingReached, GuardrailBlocks, LimitReached
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.kinds import Kind
from engine.scheduling.problem import PoolState

UNLIMITED = sys.maxsize
_FIRST_NAMED = (*ACCELERATORS, NODES, CPU, MEMORY)


def resource_order(resource: str) -> tuple[int, str]:
    """Scarce resources first, so that the reason names the GPU before the memory."""
    return (_FIRST_NAMED.index(resource) if resource in _FIRST_NAMED else len(_FIRST_NAMED), resource)


@frozen(eq=False)
class LimitRow:
    """One bound on all nodes of a plan together: ``left`` of it, and what a node of a kind takes."""

    left: int
    taken_by: Callable[[Kind], int]


class Headroom:
    """Counts what this plan launches against limits and caps. Capacities include one ``nodes`` each."""

    def __init__(self, pools: Iterable[PoolState], caps: Caps, ceilings: Iterable[Ceiling] = ()) -> None:
        """Of the ceilings those of groups of pools are counted here; pods are counted as they are placed."""
        self._pools = {state.pool.name: state for state in pools}
        self._of_pools = tuple(each for each in ceilings if each.pods is None)
        self._ceilings = {
            name: tuple(each for each in self._of_pools if name in each.node_pools) for name in self._pools
        }
        self._under = dict.fromkeys(self._of_pools, 0)
        self._planned = dict.fromkeys(self._pools, NOTHING)
        # How many nodes of a capacity are admitted, by its identity, until something is opened or closed.
        self._admitted: dict[str, dict[int, tuple[Resources, int]]] = {name: {} for name in self._pools}
        # Of what is on probation one launch is tried in a pass; of a reservation as many as it has places.
        self._tried: Counter[str] = Counter()
        self._places = {
            option.offering.reservation_id: option.available
            for state in self._pools.values()
            for option in state.options
            if option.available is not None
        }
        self._reserved: Counter[str] = Counter()
        self._caps = caps
        self._launches = 0
        self._added_micros = 0

    def may_try(self, probes: Iterable[str]) -> bool:
        """Whether none of what is on probation is tried by this plan already."""
        return not any(self._tried[probe] for probe in probes)

    def places_left(self, reservation: str) -> int:
        """How many more nodes a reservation takes; without bound where it is none."""
        if reservation not in self._places:
            return UNLIMITED
        return max(0, self._places[reservation] - self._reserved[reservation])

    def nodes_within_limits(
        self, pool: str, capacity: Resources, price: UsdPerHour, probes: Sequence[str] = (), reservation: str = ""
    ) -> int:
        """How many nodes of this capacity and price the pool's limits and ceilings, and the reservation, still admit;
        no more than one where something is probed by it."""
        admitted = min(self._nodes_within_limits(pool, capacity, price), self.places_left(reservation))
        return min(admitted, int(self.may_try(probes))) if probes else admitted

    def _nodes_within_limits(self, pool: str, capacity: Resources, price: UsdPerHour) -> int:
        if self._ceilings[pool]:
            return self._nodes_admitted(pool, capacity, price)
        # Asked for each kind and each class of pods, and mostly nothing was opened between.
        known = self._admitted[pool].get(id(capacity))
        if known is None or known[0] is not capacity:
            known = self._admitted[pool][id(capacity)] = (capacity, self._nodes_admitted(pool, capacity, price))
        return known[1]

    def _nodes_admitted(self, pool: str, capacity: Resources, price: UsdPerHour) -> int:
        state, planned = self._pools[pool], self._planned[pool]
        admitted = UNLIMITED if state.one_by_one is None else max(0, 1 - planned.amount(NODES))
        for resource, limit in state.limits.items():
            each = capacity.amount(resource)
            # A limit that is broken already bars only nodes that would add to it.
            if each > 0:
                left = limit - state.used.amount(resource) - planned.amount(resource)
                admitted = min(admitted, max(0, left // each))
        if state.replacing is not None:
            admitted = min(admitted, _replaced(state.replacing.room - planned, capacity))
        for ceiling in self._ceilings[pool]:
            each = ceiling.of_node(capacity, price) if ceiling.is_enforced else 0
            if each > 0:
                admitted = min(admitted, self._left(ceiling) // each)
        return admitted

    def rows(self) -> tuple[LimitRow, ...]:
        """Limits, ceilings, reservations, and what is on probation, caps apart, with what this plan has left of it."""
        rows = [row for pool, state in sorted(self._pools.items()) for row in self._rows_of(pool, state)]
        ceilings = (each for each in self._of_pools if each.is_enforced)
        rows += (LimitRow(self._left(each), partial(_taken_of_ceiling, each)) for each in ceilings)
        options = (option for state in self._pools.values() for option in state.options)
        probes = sorted({probe for option in options for probe in option.probes})
        rows += self.places()
        return (*rows, *(LimitRow(int(self.may_try((probe,))), partial(_tries, probe)) for probe in probes))

    def places(self) -> tuple[LimitRow, ...]:
        """Those of reservations, with what this plan has left of each."""
        return tuple(LimitRow(self.places_left(each), partial(_reserves, each)) for each in sorted(self._places))

    def _rows_of(self, pool: str, state: PoolState) -> Iterator[LimitRow]:
        planned = self._planned[pool]
        for resource, limit in state.limits.items():
            left = limit - state.used.amount(resource) - planned.amount(resource)
            yield LimitRow(max(0, left), partial(_taken_of_limit, pool, resource))
        if state.replacing is not None:
            room = state.replacing.room - planned
            for resource in (NODES, *ACCELERATORS):
                yield LimitRow(max(0, room.amount(resource)), partial(_taken_of_limit, pool, resource))

    def nodes_within_caps(self, price: UsdPerHour) -> int:
        """How many nodes of this price the pass may still launch."""
        launches = max(0, self._caps.launches - self._launches)
        if price.micros <= 0:
            return launches
        money = max(0, self._caps.added_usd_per_hour.micros - self._added_micros)
        return min(launches, money // price.micros)

    def take(
        self, pool: str, capacity: Resources, price: UsdPerHour, probes: Iterable[str] = (), reservation: str = ""
    ) -> None:
        """Counts one node."""
        self._tried.update(probes)
        self._reserved[reservation] += 1
        self._planned[pool] = self._planned[pool] + capacity
        self._admitted[pool].clear()
        for ceiling in self._ceilings[pool]:
            self._under[ceiling] += ceiling.of_node(capacity, price)
        self._launches += 1
        self._added_micros += price.micros

    def give_back(
        self, pool: str, capacity: Resources, price: UsdPerHour, probes: Iterable[str] = (), reservation: str = ""
    ) -> None:
        """Takes one node off again."""
        self._tried.subtract(probes)
        self._reserved[reservation] -= 1
        self._planned[pool] = self._planned[pool] - capacity
        self._admitted[pool].clear()
        for ceiling in self._ceilings[pool]:
            self._under[ceiling] -= ceiling.of_node(capacity, price)
        self._launches -= 1
        self._added_micros -= price.micros

    def limit_in_the_way(
        self, pool: str, nodes: Iterable[tuple[Resources, UsdPerHour]]
    ) -> LimitReached | CeilingReached | GuardrailBlocks | BringUpsFailed | None:
        """What bars the last of these nodes, capacity and price; None when one of them is within all limits."""
        state, planned = self._pools[pool], self._planned[pool]
        if state.one_by_one is not None and planned.amount(NODES):
            return state.one_by_one
        remaining = list(nodes)
        if state.replacing is not None:
            left_to_replace = state.replacing.room - planned
            remaining = [each for each in remaining if _replaced(left_to_replace, each[0])]
            if not remaining:
                return state.replacing.refusal
        for resource in sorted(state.limits, key=resource_order):
            limit, used, adding = state.limits[resource], state.used.amount(resource), planned.amount(resource)
            left = max(0, limit - used - adding)
            within = [each for each in remaining if each[0].amount(resource) <= left]
            if not within:
                needed = min((each[0].amount(resource) for each in remaining), default=0)
                return LimitReached(resource, limit=limit, used=used, planned=adding, needed=needed)
            remaining = within
        return self._ceiling_in_the_way(pool, remaining)

    def _ceiling_in_the_way(self, pool: str, nodes: list[tuple[Resources, UsdPerHour]]) -> CeilingReached | None:
        for ceiling in self._ceilings[pool]:
            if not ceiling.is_enforced:
                continue
            within = [each for each in nodes if ceiling.of_node(*each) <= self._left(ceiling)]
            if not within:
                needed = min((ceiling.of_node(*each) for each in nodes), default=0)
                return ceiling.reached(self._under[ceiling], needed)
            nodes = within
        return None

    def _left(self, ceiling: Ceiling) -> int:
        return max(0, ceiling.limit - ceiling.used - self._under[ceiling])

    def cap_in_the_way(self) -> CapReached:
        """The cap that ended the launching: that on launches when it is used up, else that on money."""
        if self._launches >= self._caps.launches:
            return CapReached(cap="launches", limit=str(self._caps.launches))
        return CapReached(cap="addedUsdPerHour", limit=str(self._caps.added_usd_per_hour))

    def limit_uses(self) -> tuple[LimitUse, ...]:
        """Each limit of each pool with what runs and what is planned, in name order; then the ceilings."""
        own = tuple(
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
        return (*own, *(ceiling.use(self._under[ceiling]) for ceiling in self._of_pools))


def _tries(probe: str, kind: Kind) -> int:
    return int(probe in kind.probes)


def _reserves(reservation: str, kind: Kind) -> int:
    return int(kind.reservation == reservation)


def _taken_of_limit(pool: str, resource: str, kind: Kind) -> int:
    return kind.capacity.amount(resource) if kind.pool == pool else 0


def _taken_of_ceiling(ceiling: Ceiling, kind: Kind) -> int:
    return ceiling.of_node(kind.capacity, kind.usd_per_hour or FREE) if kind.pool in ceiling.node_pools else 0


def _replaced(left: Resources, capacity: Resources) -> int:
    """How many such nodes may take the place of lost ones: as many nodes, and no more accelerators."""
    counted = Resources({NODES: 1, **{name: capacity.amount(name) for name in capacity.accelerators()}})
    return counted.times_in(left)
