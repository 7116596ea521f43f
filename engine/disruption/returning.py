"""Back to preferred capacity: a node that was bought because better-liked capacity was out goes once that is there.

Only where its pool says so, cheaper or not; the reason is Underutilized, and budgets hold it as any other. Better liked
is what a pool of more weight has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model.pod import PodKey
from engine.model.policy import NodePool
from engine.model.reason import DisruptionReason

# The pools that pods would come to if these machines were gone.
PoolsOf = Callable[[Sequence[Machine]], Mapping[PodKey, NodePool]]


def returning(machines: Sequence[Machine], now: datetime, blocked: Blocked, pools_of: PoolsOf) -> tuple[Candidate, ...]:
    """Those of the machines whose pods would all come to pools that are liked better, in claim order."""
    free = [each for each in machines if each.pool.upkeep.returns and _may_go(each, now, blocked)]
    if not free:
        return ()
    target = pools_of(free)
    found = []
    for machine in free:
        pools = {pod.key: target.get(pod.key) for pod in machine.displaced}
        if pools and all(pool is not None and pool.weight > machine.pool.weight for pool in pools.values()):
            names = sorted({pool.name for pool in pools.values() if pool is not None})
            rule = f"{machine.pool.name}: returns to {', '.join(names)}, which is liked better"
            begun = machine.quiet_since or now
            found.append(Candidate(machine, DisruptionReason.UNDERUTILIZED, rule, since=begun, returns=True))
    return tuple(sorted(found, key=lambda each: each.machine.name))


def _may_go(machine: Machine, now: datetime, blocked: Blocked) -> bool:
    """Not before it is up, and quiet, for as long as the pool asks where it moves pods for money."""
    if machine.pool.is_static or kept_by(machine, blocked, has_to_go=False) is not None:
        return False
    up, quiet = machine.initialized_at, machine.quiet_since
    if up is not None and now < up + machine.pool.upkeep.node_life:
        return False
    after = machine.pool.disruption.consolidate_after
    return after is not None and (quiet is None or now >= quiet + after)
