"""Pods on marked nodes, and whether each has another place to go to.

Only an empty node is marked, yet a pod may be bound to it at that very moment. It would keep the machine for as long as
it runs, closed to everybody else. It is asked to leave once there is a place for it on a node that is up: nothing is
bought for that, and nobody who waits loses a place to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen

from engine.decide.bring_up import BringUp
from engine.decide.fleet import Fleet, Sighting
from engine.model import labels as keys
from engine.model.constraint import Taint, TaintEffect
from engine.model.plan import Placement
from engine.model.pod import Pod, PodKey, PodPhase
from engine.scheduling.problem import Solution

_MARK = Taint(keys.DISRUPTED_TAINT, "", TaintEffect.NO_SCHEDULE)


@frozen
class Moving:
    """``pods`` that may be asked to leave now, by claim, in pod order; ``placements`` are where they would go."""

    pods: Mapping[str, tuple[PodKey, ...]] = field(factory=dict)
    placements: tuple[Placement, ...] = ()


def moving(
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    waiting: tuple[Pod, ...],
    solution: Solution,
    solve: Callable[[tuple[Pod, ...]], Solution],
) -> Moving:
    """Which marked machines can be emptied, in claim order: all pods of one, or none.

    ``solution`` is the answer for the pods that wait, ``solve`` answers for more of them.
    """
    up = {each.sighting.node.name for each in brought.values() if each.is_initialized and each.sighting.node}
    up |= {node.name for node in fleet.foreign_nodes if node.ready}
    found = Moving()
    accepted: tuple[Pod, ...] = ()
    for sighting in fleet.sightings:
        leaving = _leaving(sighting)
        if not leaving or brought[sighting.claim.name].is_doomed:
            continue
        asked = (*accepted, *leaving)
        answer = solve((*waiting, *asked))
        places = _places(answer, asked, up)
        if places is None or _costs_somebody(answer, solution):
            continue
        pods = {**found.pods, sighting.claim.name: tuple(sorted(pod.key for pod in leaving))}
        found, accepted = Moving(pods, places), asked
    return found


def _leaving(sighting: Sighting) -> tuple[Pod, ...]:
    """The pods that somebody has to ask, as if they waited; none where one of them cannot be asked, or the machine
    has another node that they could come back by.

    A pod that nobody would make again is not ended, and one that bears the mark would only come back.
    """
    if sighting.node is None or not sighting.node.is_marked or sighting.other_nodes:
        return ()
    staying = [pod for pod in sighting.workload if not pod.deleting]
    if any(pod.owner is None or any(each.tolerates(_MARK) for each in pod.placing.tolerations) for pod in staying):
        return ()
    return tuple(evolve(pod, node_name=None, phase=PodPhase.PENDING, nominated_node_name=None) for pod in staying)


def _places(answer: Solution, asked: Sequence[Pod], up: set[str]) -> tuple[Placement, ...] | None:
    """A place for each on a node that is up, or None."""
    wanted = {pod.key for pod in asked}
    places = tuple(each for each in answer.placements if each.pod in wanted and each.node in up)
    return places if len(places) == len(wanted) else None


def _costs_somebody(answer: Solution, before: Solution) -> bool:
    """Whether a machine is bought, or a pod goes without, that would not otherwise."""
    return len(answer.new_nodes) > len(before.new_nodes) or len(answer.unplaced) > len(before.unplaced)
