"""The question of where pods would go whose machines are to go by choice, as a pass puts it to the scheduler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cache

from attrs import evolve

from engine.decide.bring_up import BringUp
from engine.decide.ceilings import Ceilings
from engine.decide.guarding import Closed
from engine.decide.launches import Replaced
from engine.decide.question import Seen, problem_of
from engine.decide.remembered import answers
from engine.decide.requirement_rules import RequirementRules
from engine.disruption.candidate import Candidate
from engine.disruption.machine import Machine
from engine.disruption.replacing import Replacing, pools_of
from engine.disruption.trial import Question, Trial, without
from engine.disruption.underutilized import movable_node
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.money import UsdPerHour
from engine.model.node import Node
from engine.model.plan import Kept, Launch, Removal
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodePool
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.replacement import AwaitsReplacement
from engine.scheduling.movable import MoveCost
from engine.scheduling.problem import Problem, Solution
from engine.scheduling.relaxed import told_of_relaxing
from engine.scheduling.repacking import Repacking, repacked
from engine.scheduling.steps import MOST_STEPS
from engine.scheduling.within_waste import answered

# Several trials are made in a pass. Where nobody waits, all that more steps could do is to buy others' places for a
# little less; that repacking does as well, and thoroughly.
_STEPS_OF_A_TRIAL = 2_000_000


class Elsewhere:
    """Asks where pods would go whose machines go. Nothing is asked before somebody wants to know."""

    def __init__(
        self,
        seen: Seen,
        asked: tuple[Pod, ...],
        before: Solution,
        rules: RequirementRules,
        ceilings: Ceilings,
        closed: Closed,
        machines: tuple[Machine, ...],
    ) -> None:
        """``asked`` are the pods that ``before`` answers for."""
        self._seen, self._asked, self._before = seen, asked, before
        self._rules, self._ceilings, self._closed = rules, ceilings, closed
        self._machines = machines

    def repacked(self, movable: Sequence[Machine], cost: MoveCost, closed: Set[str]) -> Repacking:
        """Which of these machines, some of which may be without pods, should go for money. Nobody moves to those that
        are ``closed``, by claim."""
        asked = ("repacked", self._closed, _names(movable), frozenset(closed), cost)
        return answers(self._seen).to(asked, lambda: self._repacked(movable, cost, closed))

    def _repacked(self, movable: Sequence[Machine], cost: MoveCost, closed: Set[str]) -> Repacking:
        question = self._question(movable)
        mountable = [
            each
            for each in movable
            if all(pod.key in question.pods for pod in each.displaced) and each.node is not None
        ]
        nodes = [movable_node(each, (question.pods[pod.key] for pod in each.displaced)) for each in mountable]
        own = {each.name for each in movable}
        problem = question.problem
        if closed - own:
            existing = tuple(each for each in problem.existing if each.claim in own or each.claim not in closed)
            problem = evolve(problem, existing=existing)
        return repacked(problem, nodes, cost)

    def pools_without(self, machines: Sequence[Machine]) -> Mapping[PodKey, NodePool]:
        """The pools that the pods of these machines would come to if all of them were gone."""
        asked = ("all gone", self._closed, _names(machines))
        answer = answers(self._seen).to(asked, lambda: answered(without(self._question(machines), machines)))
        named = pools_of(answer, {each.name: each.pool.name for each in self._machines})
        pools = {pool.name: pool for pool in self._seen.policy.node_pools}
        return {pod: pools[name] for pod, name in named.items() if name in pools}

    def replacing(self, candidates: tuple[Candidate, ...], idle: frozenset[str], most: int) -> Replacing:
        """Where the pods of any of these would go. ``idle`` machines go by themselves before long; so many at ``most``
        may be marked in this pass."""

        going = {each.machine.name: each.machine for each in candidates}
        machines = [going[name] for name in sorted(going)]
        asked = (self._closed, _names(machines))

        @cache
        def question() -> Question:
            return answers(self._seen).to(("question", *asked), lambda: self._question(machines))

        def solved(trial: Trial, problem: Callable[[], Problem]) -> Solution:
            # Whether somebody goes first is only a question of room.
            few = bool(trial.freed) or not self._asked
            steps = _STEPS_OF_A_TRIAL if few else MOST_STEPS
            return answers(self._seen).to(("trial", *asked, trial), lambda: _answer(problem(), steps))

        @cache
        def up() -> Set[str]:
            return nodes_that_are_up(self._seen, self._seen.brought)

        return Replacing(question, self._before, solved, up, self._machines, most, idle)

    def _question(self, machines: Sequence[Machine]) -> Question:
        movable = tuple(pod for each in machines for pod in each.displaced)
        mounting = self._seen.volumes.mounting((*self._asked, *movable))
        keys = {pod.key for pod in movable}
        return Question(
            problem=problem_of(self._seen, self._asked, self._rules, self._ceilings, self._closed, movable),
            pods={pod.key: pod for pod in mounting.pods if pod.key in keys},
            refused={each.pod: each for each in mounting.refused if each.pod in keys},
        )


def answer_to(seen: Seen, problem: Problem, closed: Closed) -> Solution:
    """Where the pods that wait go. Where nobody does, nothing has to be remembered."""
    if not problem.pods:
        return _answer(problem)
    return answers(seen).to(("waiting", closed), lambda: _answer(problem))


def _answer(problem: Problem, most_steps: int = MOST_STEPS) -> Solution:
    """The scheduler's, each new node told what was relaxed for it."""
    return told_of_relaxing(answered(problem, most_steps), problem)


def nodes_that_are_up(seen: Seen, brought: Mapping[str, BringUp]) -> frozenset[str]:
    """The nodes on which a pod can start at once.

    One that was up before and shows fewer devices now, since its Node was made anew or its device plugin restarts, is
    given time and counts as room; nobody is sent there meanwhile.
    """
    up = (each.sighting for each in brought.values() if each.is_offered and each.is_initialized)
    ours = frozenset(each.node.name for each in up if each.node is not None and _shows_all(each.claim, each.node))
    return ours.union(node.name for node in seen.fleet.foreign_nodes if node.ready)


def _shows_all(claim: Claim, node: Node) -> bool:
    promised = claim.allocatable.accelerators()
    return node.ready and all(node.allocatable.amount(each) >= claim.allocatable.amount(each) for each in promised)


def _names(machines: Iterable[Machine]) -> tuple[str, ...]:
    return tuple(each.name for each in machines)


def replaced(seen: Seen, replacing: Replacing | None, before: Solution) -> Replaced:
    """Whose place the answer's new nodes take. A pool's new base nodes that it would have got anyway take nobody's."""
    causes = seen.doomed.causes
    doomed = {pod.key for pod in seen.displaced}
    displaced = {
        pod.key: each.claim.name
        for each in seen.fleet.sightings
        if each.claim.name in causes
        for pod in each.workload
        if pod.key in doomed
    }
    short: dict[str, tuple[str, ...]] = {}
    if replacing is not None:
        displaced |= replacing.displaced
        wanted = Counter(new.node_pool for new in before.new_nodes if new.for_base_capacity)
        for pool, claims in replacing.short.items():
            now = sum(new.for_base_capacity and new.node_pool == pool for new in replacing.answer.new_nodes)
            short[pool] = claims[-(now - wanted[pool]) :] if now > wanted[pool] else ()
    return Replaced(displaced, short)


def awaiting(kept: Iterable[Kept], new: Iterable[Launch]) -> tuple[Kept, ...]:
    """What stays, told which of these launches it waits for."""
    launched: dict[str, list[str]] = {}
    for launch in new:
        for claim in launch.claim.replaces:
            launched.setdefault(claim, []).append(launch.claim.name)

    def told(each: Kept) -> Kept:
        if not isinstance(each.reason, AwaitsReplacement) or each.claim not in launched:
            return each
        claims = {*each.reason.claims, *launched[each.claim]}
        return evolve(each, reason=evolve(each.reason, claims=tuple(sorted(claims))))

    return tuple(map(told, kept))


def with_savings(removals: Iterable[Removal], document: DesiredDocument | None) -> tuple[Removal, ...]:
    """Each removal by choice with its saving: its price less that of what was launched to take its place, shared among
    all that it replaces. What goes first has none yet: what takes its place is not chosen before it is gone."""
    shares: dict[str, int] = {}
    for claim in document.claims if document is not None else ():
        for name in claim.replaces:
            shares[name] = shares.get(name, 0) + claim.usd_per_hour.micros // len(claim.replaces)

    def told(each: Removal) -> Removal:
        record = each.record
        if record.reason not in VOLUNTARY_REASONS or each.delete_first is not None:
            return each
        return evolve(each, saving=UsdPerHour(record.usd_per_hour.micros - shares.get(record.claim, 0)))

    return tuple(map(told, removals))
