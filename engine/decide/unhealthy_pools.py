"""How many of a pool's nodes may be taken down for their health at once.

Where more are unhealthy than may be by chance, what watches them is more likely at fault, and none goes. A small pool
is over that number with its second sick node: there those beyond it go one at a time instead, each once the one before
has gone and what took its place is up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.decide.bring_up import BringUp
from engine.decide.fleet import Fleet, Sighting
from engine.disruption.involuntary import Cause
from engine.disruption.unhealthy import is_ill
from engine.model.ledger import Ledger
from engine.model.policy import NodePool
from engine.model.reason import DisruptionReason
from engine.model.stay import TooManyUnhealthy


def kept_for_others(
    ill: Mapping[str, Cause],
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    learned: Ledger,
    taken: Iterable[str],
    pools: Mapping[str, NodePool],
) -> Mapping[str, TooManyUnhealthy]:
    """Why those of the ``ill`` stay that do, by claim. ``taken`` are machines that go for another reason, and count for
    nothing here. What is marked already goes on."""
    gone = frozenset(taken)
    nodes: dict[str, list[Sighting]] = {}
    for each in fleet.sightings:
        if each.node is not None and each.claim.name not in gone:
            nodes.setdefault(each.claim.node_pool, []).append(each)
    kept: dict[str, TooManyUnhealthy] = {}
    for pool, members in nodes.items():
        sick = sorted(
            (ill[each.claim.name].since, each.claim.name)
            for each in members
            if each.claim.name in ill and not _is_marked(each)
        )
        unwell = sum(is_ill(learned.illnesses.get(each.claim.name, {})) for each in members)
        limit = pools[pool].unhealthy_limit.of(len(members)) if pool in pools else 0
        if not sick or unwell <= limit:
            continue
        may_go = 1 if limit == 1 and _is_quiet(pool, members, ill, fleet, brought, learned) else 0
        for _, name in sick[may_go:]:
            kept[name] = TooManyUnhealthy(ill[name].rule, unwell, len(members), limit)
    return kept


def _is_marked(sighting: Sighting) -> bool:
    return sighting.node is not None and sighting.node.is_marked


def _is_quiet(
    pool: str,
    members: Iterable[Sighting],
    ill: Mapping[str, Cause],
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    learned: Ledger,
) -> bool:
    """Whether no node of the pool is going for its health, none is on its way to take a place, and the last one that
    was came up."""
    is_going = any(each.claim.name in ill and _is_marked(each) for each in members)
    is_leaving = any(
        each.may_run and each.record.node_pool == pool and each.record.reason is DisruptionReason.UNHEALTHY
        for each in fleet.leaving
    )
    is_coming = any(
        each.milestones.initialized_at is None and each.sighting.claim.node_pool == pool for each in brought.values()
    )
    return not (is_going or is_leaving or is_coming or pool in learned.bring_ups)
