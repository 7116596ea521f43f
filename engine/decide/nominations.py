"""Waiting pods and the machines they were planned for: kept together, told to kube-scheduler, and told apart.

kube-scheduler binds as it likes. A pod whose machine has a node is nominated to it; a pod that was planned for a
machine stays planned for it, so that a new plan neither shuffles nor buys again; a pod bound elsewhere is told once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from engine.decide.fleet import Fleet
from engine.model.claim import Claim
from engine.model.ledger import Ledger
from engine.model.plan import BindingDifference, Launch, Nomination, Placement
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NOTHING, Resources
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import ExistingNode, Reservation


def reservations(
    waiting: Iterable[Pod], existing: Iterable[ExistingNode], fleet: Fleet, ledger: Ledger
) -> tuple[Reservation, ...]:
    """Where waiting pods are expected already: on the node that they are nominated to, else on what they were planned
    for. A nomination that came by pre-emption holds although the room is not there yet."""
    nodes = {each.node: each for each in existing if each.node is not None}
    claims = {each.claim: each for each in existing if each.claim is not None}
    found = []
    nominated: list[tuple[Pod, ExistingNode]] = []
    for pod in waiting:
        planned = ledger.planned.get(str(pod.key))
        node = nodes.get(pod.nominated_node_name) if pod.nominated_node_name is not None else None
        if node is not None and (planned is None or node.claim != planned):
            nominated.append((pod, node))
            continue
        target = node or (claims.get(planned) if planned is not None else None)
        if target is not None:
            found.append(Reservation(pod.key, node=target.node, claim=target.claim))
    return (*found, *_nominated_by_others(nominated, fleet))


def _nominated_by_others(nominated: Iterable[tuple[Pod, ExistingNode]], fleet: Fleet) -> Iterator[Reservation]:
    """In the order in which kube-scheduler takes them: each has the room that those before it leave."""
    promised: dict[str, Resources] = {}
    for pod, node in sorted(nominated, key=lambda each: (-each[0].priority, each[0].key)):
        before = promised.get(node.node or "", NOTHING)
        holds = _makes_room(pod, node, before, fleet)
        if holds:
            promised[node.node or ""] = before + pod.placing.requests
        yield Reservation(pod.key, node=node.node, claim=node.claim, holds_regardless_of_room=holds)


def _makes_room(pod: Pod, node: ExistingNode, promised: Resources, fleet: Fleet) -> bool:
    """Whether the pod would fit beside what is ``promised`` to others, once those that are going, or of lower priority,
    had left the node."""
    there = fleet.pods_by_node.get(node.node or "", ())
    leaving = (each.placing.requests for each in there if each.deleting or each.priority < pod.priority)
    return pod.placing.requests.fits_in(sum(leaving, NOTHING) + node.room - promised)


def nominations(placements: Iterable[Placement], waiting: Iterable[Pod]) -> tuple[Nomination, ...]:
    """Each waiting pod that is placed on a machine of ours whose node is there, and not nominated to it yet; in pod
    order."""
    nominated = {pod.key: pod.nominated_node_name for pod in waiting}
    told = (
        Nomination(pod=each.pod, node=each.node)
        for each in placements
        if each.claim is not None and each.node is not None
        if each.pod in nominated and nominated[each.pod] != each.node
    )
    return tuple(sorted(told, key=lambda each: each.pod))


def binding_differences(fleet: Fleet, snapshot: Snapshot) -> tuple[BindingDifference, ...]:
    """Each planned pod that by now is bound to another node than its claim's, in pod order."""
    planned = snapshot.ledger.planned
    if not planned:
        return ()
    nodes = {each.claim.name: each.node.name for each in fleet.sightings if each.node is not None}
    told = (
        BindingDifference(pod=pod.key, planned=planned[str(pod.key)], node=pod.node_name)
        for pod in snapshot.pods
        if pod.node_name is not None and str(pod.key) in planned and nodes.get(planned[str(pod.key)]) != pod.node_name
    )
    return tuple(sorted(told, key=lambda each: each.pod))


def next_planned(
    ledger: Ledger,
    waiting: Iterable[Pod],
    placements: Iterable[Placement],
    launches: Iterable[Launch],
    claims: Iterable[Claim],
) -> Mapping[str, str]:
    """The claims that waiting pods are planned for after this plan, by ``NAMESPACE/NAME``, in pod order.

    A pod that this plan has no machine for keeps the one that it had while the document names it.
    """
    now: dict[PodKey, str] = {each.pod: each.claim for each in placements if each.claim is not None}
    now.update({pod: launch.claim.name for launch in launches for pod in launch.pods})
    placed = {each.pod for each in placements}
    standing = {claim.name for claim in claims}
    planned: dict[str, str] = {}
    for pod in sorted(waiting, key=lambda each: each.key):
        before = ledger.planned.get(str(pod.key)) if pod.key not in placed else None
        claim = now.get(pod.key, before)
        if claim is not None and claim in standing:
            planned[str(pod.key)] = claim
    return planned
