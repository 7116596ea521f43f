"""Which instance and which node belong to which claim, as far as one snapshot shows it.

Absence proves nothing here: an instance or node that the snapshot lacks may be there all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from engine.decide.pods_by_node import PodsByNode
from engine.model import labels
from engine.model.claim import Claim
from engine.model.constraint import Taint, TaintEffect
from engine.model.document import RemovalRecord
from engine.model.node import Instance, Node
from engine.model.pod import Pod, PodKey
from engine.model.quantity import CPU, MEMORY, PODS
from engine.model.reason import DisruptionReason
from engine.model.snapshot import KarpenterFacts, Snapshot

# Taints that Kubernetes and Karpenter put on a node until it is up; no pod tolerates them, and none has to.
EPHEMERAL_TAINTS = frozenset(
    {
        labels.UNREGISTERED_TAINT,
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    }
)
# The node readiness controller's, one for each thing that it waits for (Karpenter's known ephemeral taints).
_READINESS_TAINTS = "readiness.k8s.io/"


@frozen
class Sighting:
    """A claim of the published document with what was seen of it.

    ``instance`` is the live one; ``seen_dead`` an instance of the claim's tag that is terminated or shutting down,
    where no live one is. ``node`` is the one that pods may be planned on, ``other_nodes`` are more of the same machine:
    it registered anew under another name, or somebody made a Node that claims to be it. ``pods`` are those bound to any
    of them that have not finished, in no order, and ``workload`` those of them that are no daemon's; ``guarded_by`` is
    the first of them all that must not be disrupted.
    ``is_karpenters``: a live Karpenter owns the machine too, so its node counts as foreign and is left alone.
    """

    claim: Claim
    instance: Instance | None = None
    seen_dead: Instance | None = None
    node: Node | None = None
    other_nodes: tuple[Node, ...] = ()
    pods: Sequence[Pod] = ()
    workload: Sequence[Pod] = ()
    guarded_by: PodKey | None = None
    is_karpenters: bool = False

    @cached_property
    def is_up(self) -> bool:
        """Whether the node can run pods at all: ready, untainted by start-up, its cpu and memory there.

        Karpenter's rule (nodeclaim/lifecycle/initialization.go), accelerators apart. Of other extended resources a node
        may lack some for good, such as EFA without its device plugin.
        """
        node, expected = self.node, self.claim.allocatable
        if node is None or not node.ready or node.deleting:
            return False
        if node.taints and any(is_passing(taint, self.claim) for taint in node.taints):
            return False
        there = node.allocatable
        return all(there.amount(name) > 0 or expected.amount(name) <= 0 for name in (CPU, MEMORY, PODS))

    @property
    def short_of(self) -> tuple[str, int, int] | None:
        """The first accelerator of which the node advertises fewer than the claim promises: its name, how many there
        are, how many were promised. (Karpenter takes any number above zero for all.)"""
        if self.node is None:
            return None
        promised, there = self.claim.allocatable, self.node.allocatable
        for name in promised.accelerators():
            if there.amount(name) < promised.amount(name):
                return name, there.amount(name), promised.amount(name)
        return None

    @property
    def is_foreign_tainted(self) -> bool:
        """Whether somebody put a taint on the node that the claim does not foretell, such as an agent that is still
        setting it up. Taints for a node's own troubles, and the mark, are no such."""
        return self.node is not None and any(is_foreign(taint, self.claim) for taint in self.node.taints)


@frozen
class Leaving:
    """A removal record of the published document whose deletion nothing says is done.

    ``may_run``: nothing proves that its machine is gone, so it still counts.
    """

    record: RemovalRecord
    may_run: bool


@frozen
class Fleet:
    """All that is ours, and the nodes that are not: those belong to no claim and no removal record.

    Sightings are in claim order, leaving ones in record order, nodes in name order. ``pods_by_node`` are the pods that
    have not finished, ``waiting_pods`` those that want a node, both in no order.
    """

    sightings: tuple[Sighting, ...]
    leaving: tuple[Leaving, ...]
    foreign_nodes: tuple[Node, ...]
    pods_by_node: Mapping[str, Sequence[Pod]]
    waiting_pods: tuple[Pod, ...] = ()


def is_passing(taint: Taint, claim: Claim) -> bool:
    """Whether a taint goes away once the node is up."""
    is_ephemeral = taint.key in EPHEMERAL_TAINTS or taint.key.startswith(_READINESS_TAINTS)
    return is_ephemeral or taint in claim.startup_taints


def is_foreign(taint: Taint, claim: Claim) -> bool:
    """Whether neither the pool, nor Kubernetes, nor a mark accounts for a taint that keeps pods away."""
    if taint in claim.taints or taint.effect is TaintEffect.PREFER_NO_SCHEDULE:
        return False
    known = taint.key == labels.DISRUPTED_TAINT or taint.key.startswith("node.kubernetes.io/")
    return not known and not is_passing(taint, claim)


@frozen(eq=False)
class _Asked:
    """All that a fleet follows from."""

    snapshot: Snapshot

    def is_like(self, other: _Asked) -> bool:
        """What is large is taken for equal only where it is the very same: most passes see what the one before saw."""
        mine, theirs = self.snapshot, other.snapshot
        return (
            mine.pods is theirs.pods
            and mine.nodes is theirs.nodes
            and mine.document is theirs.document
            and mine.cloud.instances is theirs.cloud.instances
            and mine.cloud.absent_claims == theirs.cloud.absent_claims
            and mine.karpenter == theirs.karpenter
            and mine.ledger.settled_version == theirs.ledger.settled_version
            and mine.ledger.instance_ids == theirs.ledger.instance_ids
        )


# The last fleet of each environment.
_LAST: dict[str, tuple[_Asked, Fleet]] = {}


def match(snapshot: Snapshot) -> Fleet:
    """Put the claims, instances, nodes and pods of a snapshot together."""
    asked = _Asked(snapshot)
    known = _LAST.get(snapshot.environment)
    if known is None or not known[0].is_like(asked):
        known = _LAST[snapshot.environment] = (asked, _matched(snapshot))
    return known[1]


def _matched(snapshot: Snapshot) -> Fleet:
    instances = _instances_by_claim(snapshot.cloud.instances)
    karpenter = snapshot.karpenter if snapshot.karpenter.is_live else KarpenterFacts()
    owned_nodes, owned_instances = frozenset(karpenter.nodes), frozenset(karpenter.instance_ids)
    theirs = {each.name for each in snapshot.nodes if each.name in owned_nodes or each.instance_id in owned_instances}
    owned_instances |= {each.instance_id for each in snapshot.nodes if each.name in theirs and each.instance_id}
    nodes = _nodes_by_instance(each for each in snapshot.nodes if each.name not in theirs)
    pods = PodsByNode(snapshot.pods)
    document, remembered = snapshot.document, snapshot.ledger.instance_ids
    claims = sorted(document.claims, key=lambda claim: claim.name) if document else ()
    records = sorted(document.removals, key=lambda record: record.claim) if document else ()

    ours: set[str] = set()
    for name in (*(claim.name for claim in claims), *(record.claim for record in records)):
        ours.update(instance.id for instance in instances.get(name, ()))
        if name in remembered:
            ours.add(remembered[name])
    foreign = (node for node in snapshot.nodes if node.instance_id not in ours or node.name in theirs)
    return Fleet(
        sightings=tuple(
            _sight(claim, instances.get(claim.name, ()), remembered.get(claim.name), nodes, pods, owned_instances)
            for claim in claims
        ),
        leaving=tuple(
            Leaving(record=record, may_run=_may_run(record, instances.get(record.claim, ()), snapshot))
            for record in records
            if not _is_settled(instances.get(record.claim, ()), snapshot)
        ),
        foreign_nodes=tuple(sorted(foreign, key=lambda node: node.name)),
        pods_by_node=pods.bound,
        waiting_pods=tuple(pods.waiting),
    )


def _sight(
    claim: Claim,
    instances: Sequence[Instance],
    remembered: str | None,
    nodes: Mapping[str, Sequence[Node]],
    pods: PodsByNode,
    owned_by_karpenter: frozenset[str],
) -> Sighting:
    alive = [instance for instance in instances if instance.is_alive]
    # Two live ones are a launch that was doubled: the one that was recorded is the claim's, else the oldest.
    instance = alive[0] if alive else None
    if len(alive) > 1:
        instance = next((each for each in alive if each.id == remembered), instance)
    seen_dead = instances[0] if instances and not alive else None
    known = instance or seen_dead
    identity = known.id if known else remembered or ""
    known_by = nodes.get(identity, ())
    guarded = _on_any(known_by, pods.guarded)
    return Sighting(
        claim=claim,
        instance=instance,
        seen_dead=seen_dead,
        node=known_by[0] if known_by else None,
        other_nodes=tuple(known_by[1:]),
        pods=_on_any(known_by, pods.bound),
        workload=_on_any(known_by, pods.workload),
        guarded_by=min(pod.key for pod in guarded) if guarded else None,
        is_karpenters=identity in owned_by_karpenter,
    )


def _is_settled(instances: Sequence[Instance], snapshot: Snapshot) -> bool:
    """Whether a record of the published document is done with: converge said so, and no machine says otherwise.

    Until then the next document carries it, since converge deletes nothing that no record names.
    """
    version = snapshot.document.version if snapshot.document else 0
    return version <= snapshot.ledger.settled_version and not any(instance.is_alive for instance in instances)


def _may_run(record: RemovalRecord, instances: Sequence[Instance], snapshot: Snapshot) -> bool:
    if any(instance.is_alive for instance in instances):
        return True
    was_gone = record.reason in (DisruptionReason.LOST, DisruptionReason.LAUNCH_REFUSED)
    return not (instances or was_gone or record.claim in snapshot.cloud.absent_claims)


def _instances_by_claim(instances: Iterable[Instance]) -> dict[str, list[Instance]]:
    """Each claim's instances, oldest first."""
    by_claim: dict[str, list[Instance]] = {}
    for instance in sorted(instances, key=lambda each: (each.launched_at, each.id)):
        if instance.claim:
            by_claim.setdefault(instance.claim, []).append(instance)
    return by_claim


def _nodes_by_instance(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    """Each instance's nodes, the one to plan on first: of those that are ready, and then of all, the newest."""
    by_instance: dict[str, list[Node]] = {}
    for node in nodes:
        if node.instance_id:
            by_instance.setdefault(node.instance_id, []).append(node)
    for known_by in by_instance.values():
        if len(known_by) > 1:
            known_by.sort(key=lambda each: (each.ready and not each.deleting, each.created_at, each.name), reverse=True)
    return by_instance


def _on_any(nodes: Sequence[Node], by_node: Mapping[str, Sequence[Pod]]) -> Sequence[Pod]:
    if len(nodes) == 1:
        return by_node.get(nodes[0].name, ())
    return [pod for node in nodes for pod in by_node.get(node.name, ())]
