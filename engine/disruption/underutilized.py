"""Underutilized: nodes with pods leave where the pods cost less elsewhere, and the move is worth its trouble.

Which nodes go for which new ones the repacking says, for any set of nodes at once. Pools ask for different things of a
move, so it is asked for all that suffices for some pool, and each move is then held against what every pool of its
nodes asks. Karpenter's policies (disruption/consolidation.go, balanced.go): WhenEmpty moves nobody; Balanced wants the
share of the pool's cost that is saved to be at least half the share of its pods that are disturbed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import datetime, timedelta
from fractions import Fraction

from attrs import field, frozen

from engine.disruption.candidate import Candidate
from engine.disruption.holds import Blocked, kept_by
from engine.disruption.machine import Machine
from engine.model import labels as keys
from engine.model.money import UsdPerHour, total
from engine.model.pod import Pod
from engine.model.policy import ConsolidationPolicy
from engine.model.quantity import NODES, Resources
from engine.model.reason import DisruptionReason
from engine.model.replacement import AwaitsReplacement, MovedLately, NewlyUp, NotQuiet, Unbalanced
from engine.model.stay import ConsolidationOff, RepaidTooLate, SavesTooLittle, StayReason
from engine.scheduling.movable import SECONDS_OF_AN_HOUR, MovableNode, MoveCost
from engine.scheduling.repacking import Move, Repacking

# So long a machine that came to take another's place may wait for the other's pods, whoever else came to it first.
_TAKES_OVER_WITHIN = timedelta(minutes=5)
_OTHERS_FIRST = f"{DisruptionReason.UNDERUTILIZED.value}: its pods could come to what was bought for others"
_ACTIVE = (ConsolidationPolicy.WHEN_EMPTY_OR_UNDERUTILIZED, ConsolidationPolicy.BALANCED)
# Karpenter's k of the Balanced policy.
_BALANCE = 2
# By so much priority a pod counts for one more, up to a bound (pkg/utils/disruption).
_PRIORITY, _MOST_COST = 2**25, 10

Repack = Callable[[Sequence[Machine], MoveCost, Set[str]], Repacking]


@frozen
class Underutilized:
    """``candidates`` in the order of their moves, and why each other machine that was looked at stays, by claim."""

    candidates: tuple[Candidate, ...] = ()
    stays: Mapping[str, StayReason] = field(factory=dict)


def kept_from_moving(machine: Machine, now: datetime, blocked: Blocked) -> StayReason | None:
    """Why a machine with pods may not be vacated for money; None where it may."""
    disruption = machine.pool.disruption
    if machine.pool.is_static:
        return ConsolidationOff(why=f"{machine.pool.name} is static: replicas {machine.pool.replicas}")
    if disruption.consolidation_policy not in _ACTIVE:
        return ConsolidationOff(why=f"consolidationPolicy {disruption.consolidation_policy.value}")
    if disruption.consolidate_after is None:
        return ConsolidationOff(why="consolidateAfter Never")
    kept = kept_by(machine, blocked, has_to_go=False)
    if kept is not None:
        return kept
    if machine.initialized_at is not None and now < machine.initialized_at + machine.pool.upkeep.node_life:
        return NewlyUp(since=machine.initialized_at, until=machine.initialized_at + machine.pool.upkeep.node_life)
    if machine.may_move_at is not None and now < machine.may_move_at:
        return MovedLately(until=machine.may_move_at)
    since = machine.quiet_since
    if since is not None and now < since + disruption.consolidate_after:
        return NotQuiet(since=since, until=since + disruption.consolidate_after)
    return None


def underutilized(
    movable: Sequence[Machine],
    empty: Sequence[Machine],
    every: Sequence[Machine],
    closed: Set[str],
    now: datetime,
    repack: Repack,
) -> Underutilized:
    """Which of the ``movable`` machines go. ``empty`` ones go by themselves: pods move to none of those, and they are
    nobody's saving. ``every`` machine of the pools is what a move's share is of. ``closed`` are claims that take no
    pods either."""
    taking_over = _taking_over(movable, every, now)
    movable = [each for each in movable if each.name not in taking_over]
    if not movable:
        return Underutilized(stays=taking_over)
    known = {each.name: each for each in (*movable, *empty)}
    found = repack((*movable, *empty), _loosest(movable), closed)
    candidates: list[Candidate] = []
    stays = dict(taking_over)
    stays |= {name: why for name, why in found.stays.items() if known[name].workload}
    for number, move in enumerate(found.moves):
        going = [known[name] for name in move.claims if known[name].workload]
        objection = _objection(move, going, every)
        if objection is not None:
            stays |= {each.name: objection for each in going}
            continue
        candidates += [_candidate(each, move, number, now) for each in going]
    moving = {each.machine.name for each in candidates}
    for machine in movable:
        if machine.name not in moving and machine.successors:
            rule = f"{machine.pool.name}: {', '.join(machine.successors)} came to take its place"
            begun = machine.quiet_since or now
            candidates.append(Candidate(machine, DisruptionReason.UNDERUTILIZED, rule, since=begun, may_buy=False))
            stays.pop(machine.name, None)
    opening = _opening(every, now)
    if opening:
        others = {each.machine.name for each in candidates if not (each.may_buy or each.machine.successors)}
        stays |= dict.fromkeys(others, AwaitsReplacement(opening, why=_OTHERS_FIRST))
        candidates = [each for each in candidates if each.machine.name not in others]
    return Underutilized(tuple(candidates), stays)


def is_closed(machine: Machine, now: datetime) -> bool:
    """Whether its pool wants no pods moved to it, since one came or left lately."""
    after, since = machine.pool.disruption.consolidate_after, machine.quiet_since
    if not machine.pool.upkeep.quiet_destinations or after is None or since is None:
        return False
    return now < since + after


def movable_node(machine: Machine, pods: Iterable[Pod]) -> MovableNode:
    """A machine as the repacking knows it; ``pods`` are its own as they would wait."""
    claim, moving = machine.claim, tuple(pods)
    warm_ups = (each.warm_up if each.warm_up is not None else machine.pool.upkeep.warm_up for each in moving)
    return MovableNode(
        node=machine.node.name if machine.node is not None else None,
        claim=machine.name,
        node_pool=machine.pool.name,
        capacity_type=claim.inputs.capacity_type,
        capacity=Resources({**claim.capacity, NODES: 1}),
        usd_per_hour=claim.usd_per_hour + machine.pool.node_cost,
        pods=moving,
        warm_up_seconds=int(max(warm_ups, default=timedelta(0)).total_seconds()),
    )


def _taking_over(movable: Iterable[Machine], every: Iterable[Machine], now: datetime) -> dict[str, StayReason]:
    """Machines that came up lately in the place of others that still stand.

    kube-scheduler may bind anybody's pod there. Were they to go for its sake, the others would need new machines, and
    these might get the very same pod next.
    """
    standing = frozenset(each.name for each in every)
    found: dict[str, StayReason] = {}
    for machine in movable:
        since = machine.initialized_at
        if since is not None and now < since + _TAKES_OVER_WITHIN and not standing.isdisjoint(machine.claim.replaces):
            found[machine.name] = NewlyUp(since=since, until=since + _TAKES_OVER_WITHIN)
    return found


def _opening(every: Sequence[Machine], now: datetime) -> tuple[str, ...]:
    """Machines that open to pods now, or have lately, before those whose place they take are marked: whoever is asked
    to leave meanwhile may come to them."""
    unmarked = frozenset(each.name for each in every if not each.is_marked)
    return tuple(
        each.name
        for each in every
        if each.node is not None
        and not unmarked.isdisjoint(each.claim.replaces)
        and (each.initialized_at is None or now < each.initialized_at + _TAKES_OVER_WITHIN)
    )


def _candidate(machine: Machine, move: Move, number: int, now: datetime) -> Candidate:
    others = len(move.claims) - 1
    together = f" together with {others} more" if others else ""
    instead = f", {len(move.new_nodes)} new in their stead" if move.new_nodes else ""
    # Beside nodes that were launched for it the move looks free; what it saves in all is then the removal's to tell.
    saved = "" if machine.successors else f", which saves {move.saving}"
    rule = f"{machine.pool.name}: its pods fit elsewhere{together}{instead}{saved}"
    return Candidate(
        machine,
        DisruptionReason.UNDERUTILIZED,
        rule,
        since=machine.quiet_since or now,
        may_buy=bool(move.new_nodes),
        least_saving=_least(machine, move) if move.new_nodes else None,
        turn=number,
    )


def _least(machine: Machine, move: Move) -> UsdPerHour:
    """A machine's part of what its move must save."""
    upkeep = machine.pool.upkeep
    share = machine.claim.usd_per_hour.scaled(upkeep.least_share)
    return max(share, UsdPerHour(upkeep.least_saving.micros // len(move.claims)))


def _loosest(machines: Iterable[Machine]) -> MoveCost:
    """What is enough for at least one pool. How young a node may be is looked at before."""
    every = [pool.upkeep for pool in {machine.pool.name: machine.pool for machine in machines}.values()]
    return MoveCost(
        least_saving=min(each.least_saving for each in every),
        least_share=min(each.least_share for each in every),
        spot_share=min(each.spot_share for each in every),
        repaid_within_seconds=max(int(each.repaid_within.total_seconds()) for each in every),
        node_life_seconds=0,
    )


def _objection(move: Move, going: Sequence[Machine], every: Sequence[Machine]) -> StayReason | None:
    """What the strictest of the pools has against a move."""
    price = total(each.claim.usd_per_hour + each.pool.node_cost for each in going)
    restart = sum(movable_node(each, (pod for pod in each.pods if not pod.deleting)).restart_micros for each in going)
    is_spot = any(each.claim.inputs.capacity_type == keys.SPOT for each in going) and any(
        each.option.offering.capacity_type == keys.SPOT for each in move.new_nodes
    )
    pools = {each.pool.name: each.pool for each in going}
    for name in sorted(pools):
        upkeep = pools[name].upkeep
        least = max(upkeep.least_saving, price.scaled(upkeep.spot_share if is_spot else upkeep.least_share))
        if move.saving < least:
            return SavesTooLittle(move.saving, least)
        within = int(upkeep.repaid_within.total_seconds())
        repaid_in = restart * SECONDS_OF_AN_HOUR // move.saving.micros if restart else 0
        if repaid_in > within:
            return RepaidTooLate(restart, move.saving, repaid_in, within)
        if pools[name].disruption.consolidation_policy is ConsolidationPolicy.BALANCED:
            unbalanced = _unbalanced(move, going, [each for each in every if each.pool.name == name])
            if unbalanced is not None:
                return unbalanced
    return None


def _unbalanced(move: Move, going: Sequence[Machine], pool: Sequence[Machine]) -> Unbalanced | None:
    own = {each.name for each in pool}
    cost = sum(each.claim.usd_per_hour.micros for each in pool)
    trouble = sum(map(_trouble, pool))
    saved = Fraction(move.saving.micros, cost) if cost else Fraction(0)
    disturbed = sum((_trouble(each) for each in going if each.name in own), Fraction(0)) / trouble
    if saved * _BALANCE >= disturbed:
        return None
    return Unbalanced(saved_percent=int(saved * 100), disturbed_percent=int(disturbed * 100))


def _trouble(machine: Machine) -> Fraction:
    """Karpenter's reschedule cost of a node: one, and each pod's where that is above nothing."""
    costs = (1 + Fraction(pod.priority, _PRIORITY) for pod in machine.pods)
    return 1 + sum((min(max(each, Fraction(0)), Fraction(_MOST_COST)) for each in costs), Fraction(0))
