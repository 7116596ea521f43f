"""Where the pods of machines that are to go would find another place: asked of the scheduler itself.

All of them at once, beside the pods that wait, since they compete for the same room. Where not all find a place, the
machines are asked about in halves, so that those without one keep nobody else. A machine that has to go, and for which
limits, a rule's ceiling or a reservation leave no room for another, may go first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from attrs import evolve, frozen

from engine.disruption.candidate import Candidate
from engine.disruption.machine import Machine
from engine.disruption.relocation import Relocation
from engine.model.money import FREE, UsdPerHour, total
from engine.model.plan import Unplaced
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NODES, Resources
from engine.model.reason import DisruptionReason
from engine.model.refusal import CeilingReached, LimitReached, PoolRefusal, Refusal, ReservedExhausted
from engine.model.replacement import DeleteFirst, NoPlace
from engine.model.stay import KeepsHeadroom, SavesTooLittle, StayReason
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.problem import NodeOption, PoolState, Problem, Solution
from engine.scheduling.terms import is_spare

# So often the scheduler is asked in one pass; whoever is not reached then is in the next.
_MOST_QUESTIONS = 24


@frozen(eq=False)
class Question:
    """What the scheduler is asked for pods that wait, with all that it has to know to be asked about ``pods`` as well:
    those of machines that may go, as they would wait, by key. Those that no node could mount are in ``refused``."""

    problem: Problem
    pods: Mapping[PodKey, Pod]
    refused: Mapping[PodKey, Unplaced]


@frozen
class Trial:
    """A question's problem once machines are ``gone``, by claim, whose pods look for another place then. Nobody comes
    to ``closed`` ones. ``freed`` counts no more in its pool's limits and ceilings, nor in its reservation; empty for
    none."""

    gone: tuple[str, ...]
    closed: frozenset[str]
    freed: str = ""


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
        idle: frozenset[str] = frozenset(),
    ) -> None:
        """``before`` answers the question without any of the machines' pods; ``up`` are the nodes that pods can start
        on at once, by name. Nobody moves to ``idle`` machines, by claim, for money: they go by themselves."""
        self._idle = idle
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
        for batch in _batches(rest):
            self._settle(batch)
        return {**self._others, **{each.machine.name: self._relocation(each) for each in self._accepted}}

    def _settle(self, batch: Sequence[Candidate]) -> None:
        if not batch:
            return
        if self._questions >= _MOST_QUESTIONS:
            self._others |= {each.machine.name: Relocation(refused=_not_asked(each)) for each in batch}
            return
        together = [*self._accepted, *batch]
        trial = self._asked(together, self._closed_to(batch))
        failure = self._failure(trial, batch, together)
        if failure is None:
            self._accepted, self.answer = together, trial
        elif len(batch) == 1:
            self._others[batch[0].machine.name] = self._alone(batch[0], failure)
        else:
            half = len(batch) // 2
            self._settle(batch[:half])
            self._settle(batch[half:])

    def _closed_to(self, batch: Sequence[Candidate]) -> frozenset[str]:
        """Machines that go first themselves; and, for money, idle ones that nobody needs so far."""
        first = frozenset(name for name, each in self._others.items() if each.delete_first is not None)
        if not any(each.reason is DisruptionReason.UNDERUTILIZED for each in batch):
            return first
        return first | self._idle.difference(each.claim or "" for each in self.answer.placements)

    def _asked(self, going: Sequence[Candidate], closed: frozenset[str], freed: Machine | None = None) -> Solution:
        self._questions += 1
        machines = [each.machine for each in going]

        def problem() -> Problem:
            gone = without(self._question(), machines, closed)
            return gone if freed is None else _freed(gone, freed)

        names = tuple(each.name for each in machines)
        return self._solve(Trial(names, closed, freed.name if freed is not None else ""), problem)

    def _failure(self, trial: Solution, batch: Sequence[Candidate], together: Sequence[Candidate]) -> StayReason | None:
        """The first pod that would go without, that does not now; or a pool whose base capacity would be short."""
        known = {each.pod for each in self._before.unplaced}
        refused = self._question().refused
        unmounted = [refused[pod.key] for each in batch for pod in each.machine.displaced if pod.key in refused]
        for each in sorted((*unmounted, *trial.unplaced), key=lambda one: one.pod):
            if each.pod not in known and not is_spare(each.pod):
                return NoPlace(str(each.pod), each.refusals)
        before = {each.node_pool: each.wanted - each.have for each in self._before.base_shortfalls}
        pools = {each.machine.pool.name for each in together if each.machine.name in self._short}
        for short in trial.base_shortfalls:
            if short.node_pool in pools and short.wanted - short.have > before.get(short.node_pool, 0):
                return NoPlace("", (PoolRefusal(short.node_pool, short.refusal),))
        return self._in_vain(trial, batch) or self._price_of(trial, batch)

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

    def _alone(self, candidate: Candidate, failure: StayReason) -> Relocation:
        """It may go first where it is its own room that is wanting."""
        refusals = failure.refusals if isinstance(failure, NoPlace) else ()
        wanting = tuple(each for each in refusals if _is_of_room(each.refusal))
        together = [*self._accepted, candidate]
        # Whoever was promised a place on it keeps that until it is taken.
        is_wanted = any(each.claim == candidate.machine.name for each in self.answer.placements)
        if wanting and not is_wanted and candidate.has_to_go and candidate.machine.pool.upkeep.surge is None:
            freed = self._asked(together, self._closed_to([candidate]), candidate.machine)
            if self._failure(freed, [candidate], together) is None:
                return Relocation(delete_first=DeleteFirst(wanting))
        return Relocation(refused=failure)

    def _relocation(self, candidate: Candidate) -> Relocation:
        wanted = {pod.key for pod in candidate.machine.displaced}
        places = tuple(sorted((each for each in self.answer.placements if each.pod in wanted), key=lambda one: one.pod))
        awaits = {each.claim or "" for each in places if each.node not in self._up()}
        buys = len(places) < len(wanted)
        if candidate.machine.name in self._short:
            coming = self._coming.get(candidate.machine.pool.name, [])
            own = set(coming).intersection(candidate.machine.successors)
            awaits |= own or set(coming)
            buys = buys or not awaits
        return Relocation(places, tuple(sorted(awaits)), buys)


def _batches(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Those that are asked about together: what came to marked nodes, what has to go, then move by move, and then what
    returns to capacity that is liked better."""
    batches: dict[tuple[int, int], list[Candidate]] = {}
    for each in candidates:
        rank = 1 if each.has_to_go else 2 if each.reason is DisruptionReason.UNDERUTILIZED else 0
        batches.setdefault((rank + each.returns, each.turn), []).append(each)
    return [batches[at] for at in sorted(batches)]


def pools_of(answer: Solution, pools: Mapping[str, str]) -> Mapping[PodKey, str]:
    """The pool that each pod comes to; ``pools`` are those of claims."""
    found = {each.pod: pools.get(each.claim or "", "") for each in answer.placements}
    return found | {pod: new.node_pool for new in answer.new_nodes for pod in new.pods}


def _not_asked(candidate: Candidate) -> NoPlace:
    pods = candidate.machine.displaced
    return NoPlace(str(pods[0].key) if pods else "", ())


def without(question: Question, going: Sequence[Machine], closed: Set[str] = frozenset()) -> Problem:
    """The problem without these machines, their pods pending. Limits count the machines all the same: they are there
    until others have taken their place."""
    problem = question.problem
    claims = {each.name for each in going} | closed
    displaced = (pod.key for each in going for pod in each.displaced)
    pods = [question.pods[key] for key in displaced if key in question.pods]
    moved = {pod.key for pod in pods}
    standing = {each.pool.name: 0 for each in going}
    for each in going:
        standing[each.pool.name] += not each.is_marked
    return evolve(
        problem,
        pods=(*problem.pods, *pods),
        existing=tuple(each for each in problem.existing if each.claim not in claims),
        pools=tuple(
            evolve(each, nodes=each.nodes - standing[each.pool.name]) if each.pool.name in standing else each
            for each in problem.pools
        ),
        standing=tuple(
            evolve(each, pods=tuple(pod for pod in each.pods if pod.key not in moved))
            if any(pod.key in moved for pod in each.pods)
            else each
            for each in problem.standing
        ),
    )


def _is_of_room(refusal: Refusal) -> bool:
    """Whether another machine finds no room beside those that stand: a rule that gave no number does not say so."""
    if isinstance(refusal, CeilingReached):
        return not refusal.error
    return isinstance(refusal, LimitReached | ReservedExhausted)


def _freed(problem: Problem, machine: Machine) -> Problem:
    """The problem once a machine counts no more: of its pool's limits and ceilings, and of its reservation's places."""
    own = Resources({**machine.claim.capacity, NODES: 1})
    reservation = machine.claim.inputs.capacity_reservation_id
    return evolve(
        problem,
        pools=tuple(_pool_freed(each, machine, own, reservation) for each in problem.pools),
        ceilings=tuple(_ceiling_freed(each, machine) for each in problem.ceilings),
    )


def _ceiling_freed(ceiling: Ceiling, machine: Machine) -> Ceiling:
    if ceiling.error or ceiling.pods is not None or machine.pool.name not in ceiling.node_pools:
        return ceiling
    own = ceiling.of_node(machine.claim.capacity, machine.claim.usd_per_hour)
    return evolve(ceiling, used=max(ceiling.used - own, 0))


def _pool_freed(state: PoolState, machine: Machine, own: Resources, reservation: str | None) -> PoolState:
    used = state.used - own if state.pool.name == machine.pool.name else state.used
    if reservation is None:
        return evolve(state, used=used)
    return evolve(state, used=used, options=tuple(_place_freed(each, reservation) for each in state.options))


def _place_freed(option: NodeOption, reservation: str) -> NodeOption:
    if option.offering.reservation_id != reservation:
        return option
    return evolve(option, available=(option.available or 0) + 1)
