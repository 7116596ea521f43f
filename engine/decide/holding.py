"""What pools lost by no choice of ours: it may be replaced, one for one, while rules let nothing else be launched.

So a rule that cannot be evaluated stops growth, and a fleet that serves does not waste away under it. The memory is
the ledger's. Losing it costs such a replacement, and lets nothing be launched that was not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import datetime, timedelta

from engine.model.ledger import Owed
from engine.model.money import FREE
from engine.model.plan import Launch, Removal, RemovalPhase
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.reason import DisruptionReason

_NO_CHOICE = frozenset(
    {
        DisruptionReason.LOST,
        DisruptionReason.LAUNCH_REFUSED,
        DisruptionReason.NOT_INITIALIZED,
        DisruptionReason.INTERRUPTED,
        DisruptionReason.UNHEALTHY,
    }
)
# The pods of a machine that is lost come to wait again within minutes. What nobody has asked for by then is not missed.
_MISSED_FOR = timedelta(minutes=15)


def owed_with(owed: Mapping[str, Owed], removals: Iterable[Removal], now: datetime) -> Mapping[str, Owed]:
    """What is owed to each pool once the machines of these removals, as far as they go by no choice, are gone."""
    found = dict(owed)
    for removal in removals:
        record = removal.record
        if removal.phase is not RemovalPhase.RELEASE or record.reason not in _NO_CHOICE:
            continue
        before = found.get(record.node_pool, Owed(NOTHING, FREE, now))
        found[record.node_pool] = Owed(
            capacity=before.capacity + Resources({**record.capacity, NODES: 1}),
            usd_per_hour=before.usd_per_hour + record.usd_per_hour,
            since=now,
        )
    return found


def next_owed(
    owed: Mapping[str, Owed], launches: Iterable[Launch], closed_pools: Set[str], now: datetime
) -> Mapping[str, Owed]:
    """What is still owed after these launches, in pool order. It lasts while launches of the pool are closed."""
    left = {pool: each for pool, each in owed.items() if pool in closed_pools or now - each.since < _MISSED_FOR}
    for launch in launches:
        claim = launch.claim
        before = left.get(claim.node_pool)
        if before is not None:
            rest = before.capacity - Resources({**claim.capacity, NODES: 1})
            price = max(before.usd_per_hour - claim.usd_per_hour, FREE)
            left[claim.node_pool] = Owed(_not_below_zero(rest), price, before.since)
    return {pool: left[pool] for pool in sorted(left) if left[pool].capacity.amount(NODES) > 0}


def _not_below_zero(amounts: Resources) -> Resources:
    return Resources({resource: max(0, amount) for resource, amount in amounts.items()})
