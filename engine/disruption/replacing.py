"""Where the pods of machines that are to go would find another place: asked of the scheduler itself.

All of them at once, beside the pods that wait, since they compete for the same room. Where not all find a place, the
machines are asked about in parts, so that those without one keep nobody else. A machine that has to go, and for which
limits, a rule's ceiling or a reservation leave no room for another, may go first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import groupby

from engine.disruption.candidate import Candidate
from engine.disruption.machine import Machine
from engine.disruption.relocation import Relocation
from engine.disruption.shortage import holds_for_fewer, no_place, not_asked, room_wanting
from engine.disruption.trial import Question, Rooms, Trial, freed, without
from engine.model.money import FREE, UsdPerHour, total
from engine.model.plan import Placement, Unplaced
from engine.model.pod import PodKey
from engine.model.reason import DisruptionReason
from engine.model.refusal import PoolRefusal
from engine.model.replacement import DeleteFirst, NoPlace
from engine.model.stay import KeepsHeadroom, SavesTooLittle, StayReason
from engine.scheduling.problem import Problem, Solution
from engine.scheduling.terms import is_spare

# So often the scheduler is asked in one pass; whoever is not reached then is in the next.
_MOST_QUESTIONS = 24


# The answer to a trial, whose problem is made only where it has to be.
Solve = Callable[[Trial, Callable[[], Problem]], Solution]


class Replacing:
    """Remembers what it found room for. ``answer`` is the scheduler's, for the pods that wait and for all of those."""

    def __init__(
        self,
        question: Callable[[], Question],
        before: Solution,
        solve: Solve,
        up: Callable[[], Set[str]],
        machines: Sequence[Machine],
        most: int,
        idle: frozenset[str] = frozenset(),
    ) -> None:
        """``before`` answers the question without any of the machines' pods; ``up`` are the nodes that pods can start
        on at once, by name. No more than ``most`` go before others are up. Nobody moves to ``idle`` machines, by claim,
        for money: they go by themselves."""
        self._most, self._idle = most, idle
        self._question, self._solve, self._up = question, solve, up
        self._before, self.answer = before, before
        self._spare = frozenset(each.name for each in machines if each.serves and not each.workload)
        self._coming: dict[str, list[str]] = {}
        for each in machines:
            if each.is_coming:
                self._coming.setdefault(each.pool.name, []).append(each.name)
        self._pools = {each.name: each.pool.name for each in machines}
        self._accepted: list[Candidate] = []
        self._short: set[str] = set()
        self._others: dict[str, Relocation] = {}
        self._questions = 0

    @property
    def displaced(self) -> Mapping[PodKey, str]:
        """The pods that ``answer`` is for beside those that wait, each with its claim."""
        return {pod.key: each.machine.name for each in self._accepted for pod in each.machine.displaced}

    @property
    def short(self) -> Mapping[str, tuple[str, ...]]:
        """The claims of base capacity that the answer puts others in place of, by pool, in the order asked."""
        found: dict[str, tuple[str, ...]] = {}
        for machine in (each.machine for each in self._accepted if each.machine.name in self._short):
            found[machine.pool.name] = (*found.get(machine.pool.name, ()), machine.name)
        return found

    def ask(self, candidates: Sequence[Candidate], short: Set[str]) -> Mapping[str, Relocation]:
        """What becomes of these, and of all that were asked about before, by claim. Those of ``short`` are base
        capacity of their pools."""
        self._short |= short
        first = [
            each
            for each in candidates
            if each.has_to_go and each.machine.pool.upkeep.surge == 0
            if each.machine.displaced or each.machine.name in self._short
        ]
        self._others |= {each.machine.name: Relocation(delete_first=DeleteFirst()) for each in first}
        rest = [each for each in candidates if each.machine.name not in self._others]
        for is_free, batches in groupby(_batches(rest), key=_is_free_move):
            if is_free:
                self._settle_moves(list(batches))
            else:
                for batch in batches:
                    self._settle(batch)
        there = {each.pod: each for each in self.answer.placements}
        return {**self._others, **{each.machine.name: self._relocation(each, there) for each in self._accepted}}

    def _settle_moves(self, moves: Sequence[Sequence[Candidate]]) -> None:
        """Moves for which nothing is bought: all at once, since most can be made beside each other."""
        every = [each for move in moves for each in move]
        if len(moves) == 1 or self._questions >= _MOST_QUESTIONS:
            self._settle(every)
            return
        together = [*self._accepted, *every]
        trial = self._asked(together, self._closed_to(every))
        if self._failure(trial, every, together) is None:
            self._accepted, self.answer = together, trial
            return
        half = len(moves) // 2
        self._settle_moves(moves[:half])
        self._settle_moves(moves[half:])

    def _settle(self, batch: Sequence[Candidate]) -> None:
        if not batch:
            return
        if self._questions >= _MOST_QUESTIONS:
            self._others |= {each.machine.name: Relocation(refused=not_asked(each.machine)) for each in batch}
            return
        together = [*self._accepted, *batch]
        trial = self._asked(together, self._closed_to(batch))
        failure = self._failure(trial, batch, together)
        if failure is None:
            self._accepted, self.answer = together, trial
        elif len(batch) == 1:
            self._refuse({batch[0].machine.name: failure}, batch)
        else:
            self._settle_in_parts(batch, trial, failure)

    def _settle_in_parts(self, batch: Sequence[Candidate], trial: Solution, failure: StayReason) -> None:
        """As many first as had a place for all of their pods, since for as many there may be room; else half of them.

        Where not one pod has a place, a machine's pods find none by themselves either, unless it is on another of these
        machines.
        """
        first = len(batch) // 2
        if isinstance(failure, NoPlace) and all(each.has_to_go for each in batch):
            failures = self._failures(trial, batch)
            if 0 < len(failures) < len(batch):
                first = len(batch) - len(failures)
            elif failures and not _is_any_placed(trial, batch):
                rooms = Rooms(self._question(), [each.machine for each in batch])
                lost = {name: each for name, each in failures.items() if holds_for_fewer(each)}
                hopeless = [each for each in batch if each.machine.name in lost and not rooms.may_take(each.machine)]
                self._refuse(lost, hopeless)
                batch = [each for each in batch if each not in hopeless]
                first = -(-len(batch) // 2)
        self._settle(batch[:first])
        self._settle(batch[first:])

    def _refuse(self, failures: Mapping[str, StayReason], batch: Sequence[Candidate]) -> None:
        """Those of which only their own room is wanting may go first; ``failures`` are by claim."""
        self._others |= {each.machine.name: Relocation(refused=failures[each.machine.name]) for each in batch}
        # Whoever was promised a place on one keeps that until it is taken; what is only kept spare holds no machine.
        wanted = {each.claim for each in self.answer.placements if not is_spare(each.pod)}
        self._let_go_first(
            [each for each in batch if _may_go_first(each, failures) and each.machine.name not in wanted]
        )

    def _let_go_first(self, batch: Sequence[Candidate]) -> None:
        """Those of the batch, refused so far, that find room once they count no more themselves."""
        left = self._most - sum(each.delete_first is not None for each in self._others.values())
        batch = batch[: max(0, left)]
        if not batch or self._questions >= _MOST_QUESTIONS:
            return
        together = [*self._accepted, *batch]
        if self._failure(self._asked(together, self._closed_to(batch), batch), batch, together) is None:
            for each in batch:
                wanting = room_wanting(self._others[each.machine.name].refused)
                self._others[each.machine.name] = Relocation(delete_first=DeleteFirst(wanting))
        elif len(batch) > 1:
            half = len(batch) // 2
            self._let_go_first(batch[:half])
            self._let_go_first(batch[half:])

    def _closed_to(self, batch: Sequence[Candidate]) -> frozenset[str]:
        """Machines that go first themselves; and, for money, idle ones that nobody needs so far."""
        first = frozenset(name for name, each in self._others.items() if each.delete_first is not None)
        if not any(each.reason is DisruptionReason.UNDERUTILIZED for each in batch):
            return first
        return first | self._idle.difference(each.claim or "" for each in self.answer.placements)

    def _asked(self, going: Sequence[Candidate], closed: frozenset[str], first: Sequence[Candidate] = ()) -> Solution:
        self._questions += 1
        machines = [each.machine for each in going]

        def problem() -> Problem:
            gone = without(self._question(), machines, closed)
            for each in first:
                gone = freed(gone, each.machine)
            return gone

        names = tuple(each.name for each in machines)
        return self._solve(Trial(names, closed, tuple(each.machine.name for each in first)), problem)

    def _failure(self, trial: Solution, batch: Sequence[Candidate], together: Sequence[Candidate]) -> StayReason | None:
        """The first pod that would go without, that does not now; or a pool whose base capacity would be short."""
        unplaced = self._unplaced(trial, batch)
        if unplaced:
            return no_place(unplaced[min(unplaced)])
        before = {each.node_pool: each.wanted - each.have for each in self._before.base_shortfalls}
        pools = {each.machine.pool.name for each in together if each.machine.name in self._short}
        for short in trial.base_shortfalls:
            if short.node_pool in pools and short.wanted - short.have > before.get(short.node_pool, 0):
                return NoPlace("", (PoolRefusal(short.node_pool, short.refusal),))
        return self._in_vain(trial, batch) or self._price_of(trial, batch)

    def _unplaced(self, trial: Solution, batch: Sequence[Candidate]) -> Mapping[PodKey, Unplaced]:
        """The pods that would go without, and do not now; those that no node could mount are only looked for here."""
        known = {each.pod for each in self._before.unplaced}
        refused = self._question().refused
        unmounted = [refused[pod.key] for each in batch for pod in each.machine.displaced if pod.key in refused]
        every = (*unmounted, *trial.unplaced)
        return {each.pod: each for each in every if each.pod not in known and not is_spare(each.pod)}

    def _failures(self, trial: Solution, batch: Sequence[Candidate]) -> Mapping[str, NoPlace]:
        """The machines of the batch of which a pod would go without, by claim, each with the first such pod."""
        unplaced = self._unplaced(trial, batch)
        found = {
            each.machine.name: [pod.key for pod in each.machine.displaced if pod.key in unplaced] for each in batch
        }
        return {name: no_place(unplaced[keys[0]]) for name, keys in found.items() if keys}

    def _in_vain(self, trial: Solution, batch: Sequence[Candidate]) -> NoPlace | None:
        """A pod for which more would be bought although what was bought for it is up, and of no use: the next would be
        none either, and the one after that."""
        new = {pod for node in trial.new_nodes for pod in node.pods}
        used = {each.claim for each in trial.placements}
        for each in batch:
            if self._spare.intersection(each.machine.successors).difference(used):
                for pod in each.machine.displaced:
                    if pod.key in new:
                        return NoPlace(str(pod.key), ())
        return None

    def _price_of(self, trial: Solution, batch: Sequence[Candidate]) -> StayReason | None:
        """What the price of other nodes has against machines that need not go. Such are asked about by themselves."""
        if all(each.has_to_go for each in batch):
            return None
        had = {each.pod for each in self._before.unplaced}
        short = sum(is_spare(each.pod) and each.pod not in had for each in trial.unplaced)
        if short and not any(each.has_to_go or each.machine.is_marked for each in batch):
            # What limits leave no room for now would be launched anew once the machine is gone.
            return KeepsHeadroom(devices=short)
        places = {each.pod: each for each in trial.placements}
        if any(each.returns for each in batch):
            return self._less_liked(trial, batch)
        for each in batch:
            for pod in each.machine.displaced if not each.may_buy else ():
                place = places.get(pod.key)
                waits = each.reason is not DisruptionReason.EMPTY
                if place is None or not (waits or place.node in self._up()):
                    return NoPlace(str(pod.key), ())
        more = UsdPerHour(self._cost(trial).micros - self._cost(self.answer).micros)
        price = total(each.machine.claim.usd_per_hour + each.machine.pool.node_cost for each in batch)
        saving = UsdPerHour(price.micros - more.micros)
        least = total(each.least_saving for each in batch if each.least_saving is not None)
        if more.micros > 0 and (saving.micros <= 0 or saving < least or not all(each.may_buy for each in batch)):
            return SavesTooLittle(saving, least)
        return None

    def _less_liked(self, trial: Solution, batch: Sequence[Candidate]) -> StayReason | None:
        """The first pod that would come to a pool that is liked no better."""
        target = pools_of(trial, self._pools)
        weights = {state.pool.name: state.pool.weight for state in self._question().problem.pools}
        for each in batch:
            for pod in each.machine.displaced:
                if weights.get(target.get(pod.key, ""), -1) <= each.machine.pool.weight:
                    return NoPlace(str(pod.key), ())
        return None

    def _cost(self, answer: Solution) -> UsdPerHour:
        pools = {state.pool.name: state.pool for state in self._question().problem.pools}
        return total((new.option.usd_per_hour or FREE) + pools[new.node_pool].node_cost for new in answer.new_nodes)

    def _relocation(self, candidate: Candidate, there: Mapping[PodKey, Placement]) -> Relocation:
        wanted = [pod.key for pod in candidate.machine.displaced]
        places = tuple(there[key] for key in wanted if key in there)
        awaits = {each.claim or "" for each in places if each.node not in self._up()}
        buys = len(places) < len(wanted)
        if candidate.machine.name in self._short:
            coming = self._coming.get(candidate.machine.pool.name, [])
            own = set(coming).intersection(candidate.machine.successors)
            awaits |= own or set(coming)
            buys = buys or not awaits
        return Relocation(places, tuple(sorted(awaits)), buys)


def _may_go_first(candidate: Candidate, failures: Mapping[str, StayReason]) -> bool:
    """Whether its pool lets it, and nothing but room is what it would have to wait for."""
    is_of_room = bool(room_wanting(failures[candidate.machine.name]))
    return is_of_room and candidate.has_to_go and candidate.machine.pool.upkeep.surge is None


def _is_any_placed(trial: Solution, batch: Sequence[Candidate]) -> bool:
    placed = {each.pod for each in trial.placements}.union(*(new.pods for new in trial.new_nodes))
    return any(pod.key in placed for each in batch for pod in each.machine.displaced)


def _batches(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Those that are asked about together: what came to marked nodes, what has to go, then move by move, and then what
    returns to capacity that is liked better."""
    batches: dict[tuple[int, int], list[Candidate]] = {}
    for each in candidates:
        rank = 1 if each.has_to_go else 2 if each.reason is DisruptionReason.UNDERUTILIZED else 0
        batches.setdefault((rank + each.returns, each.turn), []).append(each)
    return [batches[at] for at in sorted(batches)]


def _is_free_move(batch: Sequence[Candidate]) -> bool:
    """Whether it is a move for money for which nothing is bought."""
    return all(each.reason is DisruptionReason.UNDERUTILIZED and not (each.may_buy or each.returns) for each in batch)


def pools_of(answer: Solution, pools: Mapping[str, str]) -> Mapping[PodKey, str]:
    """The pool that each pod comes to; ``pools`` are those of claims."""
    found = {each.pod: pools.get(each.claim or "", "") for each in answer.placements}
    return found | {pod: new.node_pool for new in answer.new_nodes for pod in new.pods}
