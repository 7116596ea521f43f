"""The question that is put to the scheduler about machines that are to go, and what it becomes once some are gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from attrs import evolve, frozen

from engine.disruption.machine import Machine
from engine.model.plan import Unplaced
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NODES, Resources
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.problem import NodeOption, PoolState, Problem


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
    to ``closed`` ones. Those that are ``freed`` count no more in their pools' limits and ceilings, nor in their
    reservations."""

    gone: tuple[str, ...]
    closed: frozenset[str]
    freed: tuple[str, ...] = ()


def without(question: Question, going: Sequence[Machine], closed: Set[str] = frozenset()) -> Problem:
    """The problem without these machines, their pods pending. Limits count the machines all the same: they are there
    until others have taken their place."""
    problem = question.problem
    claims = {each.name for each in going} | closed
    displaced = (pod.key for each in going for pod in each.displaced)
    pods = [question.pods[key] for key in displaced if key in question.pods]
    moved = {pod.key for pod in pods}
    nodes = {pod.node_name for each in going for pod in each.pods}
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
            evolve(each, pods=tuple(pod for pod in each.pods if pod.key not in moved)) if each.name in nodes else each
            for each in problem.standing
        ),
    )


def freed(problem: Problem, machine: Machine) -> Problem:
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


class Rooms:
    """The room that is left on machines, for the pods of some of them on others."""

    def __init__(self, question: Question, machines: Sequence[Machine]) -> None:
        names = {each.name for each in machines}
        self._question = question
        self._rooms = {each.claim: each.room for each in question.problem.existing if each.claim in names}
        self._known: dict[Resources, frozenset[str | None]] = {}

    def may_take(self, machine: Machine) -> bool:
        """Whether each of its pods fits on another machine, whatever else is asked of a place."""
        pods = [self._question.pods.get(pod.key) for pod in machine.displaced]
        return all(pod is not None and self._with_room(pod.placing.requests) - {machine.name} for pod in pods)

    def _with_room(self, requests: Resources) -> frozenset[str | None]:
        if requests not in self._known:
            self._known[requests] = frozenset(name for name, room in self._rooms.items() if requests.fits_in(room))
        return self._known[requests]
