"""The nodes that stand and the claims in flight, as the snapshot shows them, and which of them pods may be planned on.

What a machine promises while it comes up is Karpenter's rule (reference, 5.2, 5.3 and 11.4): resources that its node
does not show yet are the claim's; startup taints and taints of start-up do not count. Once it is up, its node is
believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from engine.model.claim import Claim
from engine.model.constraint import Taint
from engine.model.diagnostic import Position
from engine.model.ledger import Milestones
from engine.model.node import Instance, Node
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool, Policy
from engine.model.quantity import ACCELERATORS
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.taints import is_ephemeral

_HELD = "nodewright.dev/held"
_DISRUPTED = "karpenter.sh/disrupted"
_CORDON = "node.kubernetes.io/unschedulable"
# The deadlines of a claim whose pool no file defines any more.
_NO_POOL = NodePool(name="", node_class="", position=Position(file="", line=0, column=0))


@frozen
class Machine:
    """A node, or a claim without one. ``closed`` says why no pod may be planned on it; empty: it may.

    ``pods`` are those bound there, under any name that its machine has, that have not finished.
    """

    node: str | None
    claim: str | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Mapping[str, int]
    pods: tuple[Pod, ...]
    instance_type: str
    closed: str

    @property
    def name(self) -> str:
        return self.node or self.claim or ""


def machines(snapshot: Snapshot, plan: Plan, policy: Policy) -> tuple[Machine, ...]:
    """Every claim of the published document, and every node that is no claim's."""
    # By machine, not by Node: one that registered anew under another name runs the pods of both.
    machine_of = {node.name: _instance_of(node) or node.name for node in snapshot.nodes}
    bound: dict[str, list[Pod]] = {}
    for pod in snapshot.pods:
        if pod.node_name is not None and pod.phase.value not in ("Succeeded", "Failed"):
            bound.setdefault(machine_of.get(pod.node_name, pod.node_name), []).append(pod)
    of_claim = nodes_by_claim(snapshot)
    # A record that is not settled still owns its node.
    records = snapshot.document.removals if snapshot.document else ()
    leaving = [of_claim[record.claim] for record in records if record.claim in of_claim]
    gone = {removal.record.claim for removal in plan.removals}
    pools = {pool.name: pool for pool in policy.node_pools}
    found, taken = [], {_instance_of(node) for node in leaving}
    for claim in snapshot.document.claims if snapshot.document else ():
        node = of_claim.get(claim.name)
        milestones = plan.ledger.milestones.get(claim.name) or Milestones()
        closed = "the plan removes it" if claim.name in gone else _lost(claim, snapshot)
        pool = pools.get(claim.node_pool, _NO_POOL)
        if node is None:
            closed = closed or _never_came(milestones, claim, pool, snapshot)
            found.append(
                Machine(
                    None, claim.name, claim.labels, claim.taints, claim.allocatable, (), _type_of(claim.labels), closed
                )
            )
        else:
            taken.add(_instance_of(node))
            found.append(
                _standing(claim, node, milestones, pool, tuple(bound.get(machine_of[node.name], ())), closed, snapshot)
            )
    for node in snapshot.nodes:
        # Another Node of a machine that is known already, registered under another name, is no machine more.
        if _instance_of(node) not in taken:
            closed = _shut(node) or ("" if node.ready else "it is not ready")
            pods = tuple(bound.get(machine_of[node.name], ()))
            # A cordon that was taken off leaves its taint for a moment.
            taints = tuple(each for each in node.taints if each.key != _CORDON)
            kind = _type_of(node.labels)
            found.append(Machine(node.name, None, node.labels, taints, node.allocatable, pods, kind, closed))
    return tuple(found)


def nodes_by_claim(snapshot: Snapshot) -> Mapping[str, Node]:
    """The node of each claim's or record's machine; of several, the newest that is ready."""
    by_id: dict[str, Node] = {}
    for node in sorted(snapshot.nodes, key=lambda each: (each.ready and not each.deleting, each.created_at, each.name)):
        if node.provider_id:
            by_id[_instance_of(node)] = node
    return {claim: by_id[instance] for claim, instance in _instances(snapshot).items() if instance in by_id}


def _instances(snapshot: Snapshot) -> dict[str, str]:
    """The instance of each claim: the live one, else the one that is dead, else the one that is remembered."""
    instances = dict(snapshot.ledger.instance_ids)
    instances.update(_ids(each for each in snapshot.cloud.instances if not each.is_alive))
    instances.update(_ids(each for each in snapshot.cloud.instances if each.is_alive))
    return instances


def _instance_of(node: Node) -> str:
    return node.provider_id.rsplit("/", 1)[-1]


def _ids(instances: Iterable[Instance]) -> Iterator[tuple[str, str]]:
    return ((each.claim, each.id) for each in instances if each.claim)


def lost_claims(snapshot: Snapshot) -> frozenset[str]:
    """The claims that EC2 says have no machine any more, or whose launch it refused."""
    claims = snapshot.document.claims if snapshot.document else ()
    return frozenset(claim.name for claim in claims if _lost(claim, snapshot))


def _lost(claim: Claim, snapshot: Snapshot) -> str:
    states = [each.is_alive for each in snapshot.cloud.instances if each.claim == claim.name]
    if any(states):
        return ""
    if states or claim.name in snapshot.cloud.absent_claims:
        return "its instance is gone"
    refused = [
        each
        for each in snapshot.ledger.outcomes
        if each.claim == claim.name and each.status.value in ("failed-capacity", "failed-other")
    ]
    started = claim.name in snapshot.ledger.instance_ids or any(each.instance_id for each in refused)
    return "its launch was refused" if refused and not started else ""


def _never_came(milestones: Milestones, claim: Claim, pool: NodePool, snapshot: Snapshot) -> str:
    """A claim that is past its deadlines is waited for by nobody; where no node at all is shown, nothing is known."""
    if milestones.failed_at is not None:
        return "it failed to come up"
    if not snapshot.nodes or milestones.registered_at is not None:
        return ""
    now = snapshot.taken_at
    if milestones.launched_at is None:
        late = milestones.asked_at is not None and now >= milestones.asked_at + pool.launch_deadline
    else:
        late = now >= max(milestones.launched_at, claim.created_at) + pool.registration_deadline
    return "it is past its deadline without a node" if late else ""


def _shut(node: Node) -> str:
    if node.deleting:
        return "it is being deleted"
    if node.unschedulable and any(taint.key == _DISRUPTED for taint in node.taints):
        return "it is marked for removal"
    # Nodes that we hold cordoned until they are whole are open to plans.
    return "it is cordoned" if node.unschedulable and _HELD not in node.labels else ""


def _standing(
    claim: Claim,
    node: Node,
    milestones: Milestones,
    pool: NodePool,
    pods: tuple[Pod, ...],
    closed: str,
    snapshot: Snapshot,
) -> Machine:
    now = snapshot.taken_at
    is_up = milestones.initialized_at is not None
    grace = pool.accelerator_grace
    short = milestones.accelerators_short_since
    in_grace = short is not None and now < short + grace
    settles = milestones.initialized_at is not None and now < milestones.initialized_at + grace
    coming = not is_up and not _is_late(claim, node, milestones, pool, snapshot)
    taints = tuple(each for each in node.taints if each.key != _CORDON)
    amounts = dict(node.allocatable)
    if coming:
        # Whoever else taints it before it is up is an agent that sets it up; the claim's own taints will come.
        own = tuple(each for each in taints if each in claim.taints or each.effect.value == "PreferNoSchedule")
        troubles = tuple(
            each
            for each in taints
            if not is_ephemeral(each)
            and each not in claim.startup_taints
            and (each.key.startswith("node.kubernetes.io/") or each.key == _DISRUPTED)
        )
        taints = tuple(dict.fromkeys((*claim.taints, *own, *troubles)))
        for resource, promised in claim.allocatable.items():
            if not amounts.get(resource) or resource in ACCELERATORS:
                amounts[resource] = max(promised, amounts.get(resource, 0))
    else:
        if settles:
            taints = tuple(each for each in taints if not is_ephemeral(each) and each not in claim.startup_taints)
        if in_grace and is_up:
            for resource in ACCELERATORS:
                if claim.allocatable.get(resource):
                    amounts[resource] = max(claim.allocatable[resource], amounts.get(resource, 0))
    closed = closed or _shut(node)
    if not closed and milestones.failed_at is not None:
        closed = "it failed to come up"
    if not closed and not (node.ready or coming or settles):
        closed = "it is not ready"
    # Karpenter's rule 5.5: the claim's labels are put on its node.
    labels = {**claim.labels, **node.labels}
    return Machine(node.name, claim.name, labels, taints, amounts, pods, claim.inputs.instance_type, closed)


def _is_late(claim: Claim, node: Node, milestones: Milestones, pool: NodePool, snapshot: Snapshot) -> bool:
    began = milestones.launched_at or milestones.registered_at or node.created_at
    due = max(began, claim.created_at) + pool.initialization_deadline
    if milestones.accelerators_short_since is not None:
        due = max(due, milestones.accelerators_short_since + pool.accelerator_grace)
    return snapshot.taken_at >= due


def _type_of(labels: Mapping[str, str]) -> str:
    return labels.get("node.kubernetes.io/instance-type", "")
