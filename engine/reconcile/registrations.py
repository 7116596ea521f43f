"""What the nodes of claims still lack: labels, taints, and the moment at which kube-scheduler may look at them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from attrs import frozen

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.constraint import Taint
from engine.model.ledger import Milestones
from engine.model.node import Node
from engine.model.plan import Plan
from engine.model.snapshot import Snapshot
from engine.model.stay import Degraded, Overdue


class Step(str, Enum):
    """``REGISTER``: a new node is opened at once. ``HOLD``: it stays cordoned until it is whole, since a pod that is
    tried before its GPUs are there loses its nomination; daemons' pods tolerate a cordon, so its drivers come up.
    ``OPEN``: a held node is whole, or too late to wait for. ``LABEL``: an open node lacks labels.
    """

    REGISTER = "register"
    HOLD = "hold"
    OPEN = "open"
    LABEL = "label"


@frozen
class Registration:
    """One node's next step, with the ``labels`` that it lacks; ``taints`` are its claim's, for a node that is new.

    One that is not ``closed`` is open to pods already, by itself.
    """

    node: str
    step: Step
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    closed: bool = True

    @property
    def opens(self) -> bool:
        return self.closed and self.step in (Step.REGISTER, Step.OPEN)


def registrations(plan: Plan, snapshot: Snapshot) -> tuple[Registration, ...]:
    """Each node of a claim that lacks something. Labels that a node has already stay as they are, but for the capacity
    type of one whose reservation has ended."""
    claims = {claim.name: claim for claim in snapshot.document.claims} if snapshot.document else {}
    claim_of = {instance.id: claims.get(instance.claim) for instance in snapshot.cloud.instances if instance.is_alive}
    late = {kept.claim for kept in plan.kept if isinstance(kept.reason, Overdue | Degraded)}
    found = (
        _registration(node, claim, plan.ledger.milestones.get(claim.name), is_late=claim.name in late)
        for node in snapshot.nodes
        if (claim := claim_of.get(node.instance_id)) is not None
    )
    return tuple(each for each in found if each is not None)


def closed_nodes(snapshot: Snapshot, due: tuple[Registration, ...]) -> frozenset[str]:
    """Nodes that kube-scheduler may not look at yet, and that these steps do not open: pods are not told of them."""
    opening = {each.node for each in due if each.opens}
    held = {each.node for each in due if each.step is Step.HOLD}
    held |= {node.name for node in snapshot.nodes if keys.HELD in node.labels}
    return frozenset(held - opening)


def _registration(node: Node, claim: Claim, milestones: Milestones | None, *, is_late: bool) -> Registration | None:
    came_closed = any(taint.key == keys.UNREGISTERED_TAINT for taint in node.taints)
    is_new = came_closed or keys.REGISTERED not in node.labels
    is_held = keys.HELD in node.labels
    is_initialized = milestones is not None and milestones.initialized_at is not None
    is_relabelled = node.labels.get(keys.CAPACITY_TYPE) == keys.RESERVED != claim.labels.get(keys.CAPACITY_TYPE)
    if (
        not (is_new or is_held or is_relabelled)
        and node.labels.keys() >= claim.labels.keys()
        and (not is_initialized or keys.INITIALIZED in node.labels)
    ):
        # A thousand nodes are such, in every pass.
        return None
    promised = {**claim.labels, keys.REGISTERED: "true"} | ({keys.INITIALIZED: "true"} if is_initialized else {})
    lacking = {key: value for key, value in promised.items() if key not in node.labels}
    if is_relabelled and keys.CAPACITY_TYPE in claim.labels:
        lacking[keys.CAPACITY_TYPE] = claim.labels[keys.CAPACITY_TYPE]
    may_open = is_initialized or is_late or _is_whole(node, claim)
    if is_new:
        step = Step.HOLD if came_closed and not may_open else Step.REGISTER
        return Registration(node.name, step, lacking, claim.taints, closed=came_closed or is_held)
    if is_held and may_open:
        return Registration(node.name, Step.OPEN, lacking)
    return Registration(node.name, Step.LABEL, lacking) if lacking else None


def _is_whole(node: Node, claim: Claim) -> bool:
    """Whether all that the node is still closed by is us: it is ready, its start-up taints are gone, its GPUs there."""
    promised = claim.allocatable.accelerators()
    has_all = all(node.allocatable.amount(name) >= claim.allocatable.amount(name) for name in promised)
    return node.ready and has_all and not any(taint in claim.startup_taints for taint in node.taints)
