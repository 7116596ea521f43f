"""Whether priority goes first.

Kubernetes documentation, "Pod Priority and Preemption": pods of higher priority are ahead in the queue, so none of them
is left without a node that one of lower priority is put on, where it could be in its stead. Pods that were expected on
a machine before stay there: what is launched for them is theirs. Nobody owes a new accelerated node to pods that ask
for no accelerator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from engine.model.catalog import Catalog
from engine.model.constraint import Taint
from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.amounts import daemons_to_come, overdrawn
from tests.scheduling.checker.machines import machines
from tests.scheduling.checker.places import World, world_of
from tests.scheduling.checker.placing import accepts, asks_for_accelerators
from tests.scheduling.checker.ties import torn_ties
from tests.scheduling.checker.violation import Violation


@frozen
class _Spot:
    """A machine or a launch with those planned there. ``taken``: what bound pods and daemons ask for.

    ``expected`` were there in the plan before; ``is_wasted``: a new accelerated node.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]
    taken: tuple[Mapping[str, int], ...]
    planned: tuple[Pod, ...]
    expected: tuple[Pod, ...]
    is_wasted: bool


def priority_first(snapshot: Snapshot, plan: Plan, policy: Policy, catalog: Catalog) -> Iterator[Violation]:
    """Each refused pod against those of lower priority that are placed where it could be."""
    pods = {pod.key: pod for pod in snapshot.pods}
    refused = [pods[each.pod] for each in plan.unplaced if each.pod in pods]
    world = world_of(snapshot, plan, policy)
    for spot in _spots(snapshot, plan, policy, catalog, pods):
        for pod in refused:
            stay = [each for each in spot.planned if each.priority >= pod.priority or each in spot.expected]
            if len(stay) == len(spot.planned) or (spot.is_wasted and not asks_for_accelerators(pod)):
                continue
            fits = not any(overdrawn(spot.allocatable, spot.taken, [*stay, pod]))
            if fits and not any(accepts(pod, spot.labels, spot.taints)) and not _is_torn(pod, spot, stay, world):
                less = next(each for each in spot.planned if each not in stay)
                facts = f"is refused, and {less.key} of less priority is on {spot.name}"
                yield Violation("priority", str(pod.key), facts)


def _is_torn(pod: Pod, spot: _Spot, stay: list[Pod], world: World) -> bool:
    """Whether the pod's ties, or others' to it, forbid it the spot: with all the rest of the plan, or with what comes
    before it in the queue and with what is expected where it is."""
    swapped = [evolve(place, planned=(*stay, pod)) if place.name == spot.name else place for place in world.places]
    ahead = [
        evolve(place, planned=tuple(each for each in place.planned if each.priority >= pod.priority or each in stay))
        for place in swapped
    ]
    return any(torn_ties(evolve(world, places=tuple(places))) for places in (swapped, ahead))


def _spots(
    snapshot: Snapshot, plan: Plan, policy: Policy, catalog: Catalog, pods: Mapping[PodKey, Pod]
) -> Iterator[_Spot]:
    accelerated = {kind.name for kind in catalog.instance_types if kind.is_accelerated}
    for each in machines(snapshot, plan, policy):
        there = [place.pod for place in plan.placements if (place.node, place.claim) == (each.node, each.claim)]
        planned = tuple(pods[key] for key in there if key in pods)
        daemons = daemons_to_come(snapshot.daemon_sets, each.labels, each.taints, each.pods)
        yield _Spot(
            name=each.name,
            labels=each.labels,
            taints=each.taints,
            allocatable=each.allocatable,
            taken=(*(pod.placing.requests for pod in each.pods), *daemons),
            planned=planned,
            expected=tuple(pod for pod in planned if _is_expected(pod, each.node, each.claim, snapshot)),
            is_wasted=each.node is None and each.instance_type in accelerated,
        )
    for launch in plan.launches:
        claim = launch.claim
        yield _Spot(
            name=claim.name,
            labels=claim.labels,
            taints=claim.taints,
            allocatable=claim.allocatable,
            taken=tuple(daemons_to_come(snapshot.daemon_sets, claim.labels, claim.taints, ())),
            planned=tuple(pods[key] for key in launch.pods if key in pods),
            expected=(),
            is_wasted=claim.inputs.instance_type in accelerated,
        )


def _is_expected(pod: Pod, node: str | None, claim: str | None, snapshot: Snapshot) -> bool:
    planned = snapshot.ledger.planned.get(str(pod.key))
    return (claim is not None and planned == claim) or (node is not None and pod.nominated_node_name == node)
