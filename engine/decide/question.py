"""What a pass knows before it plans, and the question that it puts to the scheduler."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from engine.decide.attaching import AttachRoom
from engine.decide.bring_up import BringUp, bring_ups
from engine.decide.ceilings import Ceilings
from engine.decide.expected_labels import ComingLabels, with_label_doubts
from engine.decide.fillers import terms_of
from engine.decide.fleet import Fleet, match
from engine.decide.guarding import Closed
from engine.decide.headroom import spare_pods, wants_headroom
from engine.decide.held_nodes import as_if_open
from engine.decide.holding import owed_with
from engine.decide.involuntary import Doomed, displaced, doomed, with_signs, without_offers_of
from engine.decide.losses import lessons, losses, under_way
from engine.decide.nominations import reservations
from engine.decide.options import Market
from engine.decide.pools import pool_states, standing_nodes
from engine.decide.requirement_rules import RequirementRules
from engine.decide.room import existing_nodes
from engine.decide.volumes import Volumes
from engine.decide.wrong_clocks import by_the_right_clock
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.ledger import Ledger, Owed
from engine.model.plan import Removal
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import Problem
from engine.scheduling.topology.neighbourhood import StandingNode


@frozen(eq=False)
class Seen:
    """``owed`` is what pools may replace, this pass's losses included; ``snapshot`` has its held nodes open.

    ``doomed`` are the machines that have to go by nobody's choice, ``displaced`` the pods that they leave without a
    place.
    """

    fleet: Fleet
    brought: Mapping[str, BringUp]
    lost: tuple[Removal, ...]
    gone: tuple[str, ...]
    learned: Ledger
    owed: Mapping[str, Owed]
    snapshot: Snapshot
    policy: Policy
    catalog: Catalog
    environment: Environment
    volumes: Volumes
    doomed: Doomed
    displaced: tuple[Pod, ...]


def see(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Seen:
    """Put together what one snapshot shows."""
    snapshot = as_if_open(by_the_right_clock(snapshot))
    fleet = match(snapshot)
    brought = bring_ups(fleet, policy, snapshot)
    lost = losses(fleet, snapshot)
    gone = tuple(removal.record.claim for removal in lost)
    learned = lessons(fleet, lost, brought, snapshot)
    learned = with_label_doubts(learned, brought.values(), policy, catalog, snapshot.taken_at)
    learned = with_signs(learned, fleet, brought, snapshot)
    doom = doomed(fleet, brought, gone, learned, policy, snapshot)
    brought = without_offers_of(doom, brought)
    owed = owed_with(learned.owed, lost, snapshot.taken_at)
    volumes, moved = Volumes(snapshot), displaced(fleet, doom.causes)
    return Seen(fleet, brought, lost, gone, learned, owed, snapshot, policy, catalog, environment, volumes, doom, moved)


def market_of(seen: Seen) -> Market:
    """What can be bought now, with what was refused lately and what is being tried."""
    tried = under_way(seen.fleet, seen.gone, seen.brought)
    return Market(seen.catalog, seen.environment, seen.snapshot, seen.learned, tried)


def problem_of(
    seen: Seen,
    waiting: tuple[Pod, ...],
    rules: RequirementRules,
    ceilings: Ceilings,
    closed: Closed,
    movable: tuple[Pod, ...] | None = None,
) -> Problem:
    """What is asked of the scheduler. Where nobody wants a node, only limits are looked up: most passes are such.

    Pods whose volumes no node can mount are not in it. ``movable`` are pods that run, given as if they waited: they are
    not in it either, yet all that is needed to ask about them is. None: nobody asks.
    """
    fleet, brought, gone, learned, snapshot = seen.fleet, seen.brought, seen.gone, seen.learned, seen.snapshot
    standing = standing_nodes(fleet, gone, brought)
    short = any(standing.get(pool.name, 0) < pool.base_nodes for pool in seen.policy.node_pools)
    wanted = bool(waiting) or movable is not None or short or wants_headroom(seen.policy)
    market = market_of(seen)
    coming = ComingLabels(seen.policy, seen.catalog, learned, snapshot.taken_at)
    existing = existing_nodes(fleet, brought, gone, snapshot, seen.catalog, coming) if wanted else ()
    mounting = seen.volumes.mounting(waiting)
    everybody = (*waiting, *movable) if movable else waiting
    drivers = seen.volumes.mounting(everybody).drivers if movable else mounting.drivers
    room = AttachRoom(drivers, seen.volumes, snapshot, seen.policy, seen.catalog)
    states = pool_states(
        fleet,
        brought,
        gone,
        seen.policy,
        seen.environment,
        market,
        learned,
        snapshot,
        with_options=wanted,
        blocked=closed.add,
        replaceable={pool: each.capacity for pool, each in seen.owed.items()} if closed.may_replace else {},
    )
    return Problem(
        pods=(*mounting.pods, *spare_pods(states, fleet, snapshot)),
        existing=room.on_existing(existing, fleet),
        pools=room.widened(states),
        daemon_sets=snapshot.daemon_sets,
        caps=seen.environment.caps,
        reservations=reservations(waiting, existing, fleet, learned),
        rulings=rules.rulings(everybody, states, existing),
        ceilings=ceilings.of(states, fleet.waiting_pods, market, snapshot) if wanted else (),
        terms=terms_of(everybody, snapshot.workload),
        standing=_standing(fleet, snapshot, waiting) if wanted else (),
        namespaces=snapshot.workload.namespaces,
    )


def _standing(fleet: Fleet, snapshot: Snapshot, asked: Iterable[Pod]) -> tuple[StandingNode, ...]:
    """All nodes with the pods bound to them, but for those that are asked about as if they waited."""
    moved = {pod.key for pod in asked}.difference(pod.key for pod in fleet.waiting_pods)
    there = fleet.pods_by_node
    return tuple(
        StandingNode(
            node.name,
            node.labels,
            node.taints,
            tuple(pod for pod in there.get(node.name, ()) if pod.key not in moved)
            if moved
            else there.get(node.name, ()),
        )
        for node in snapshot.nodes
    )
