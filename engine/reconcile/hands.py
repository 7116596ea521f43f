"""What a pass does in the cluster itself: it labels nodes, nominates pods, marks nodes and asks pods to leave."""

from __future__ import annotations

from collections.abc import Mapping
from queue import Empty, SimpleQueue

from attrs import frozen

from engine.model.fault import Fault
from engine.model.plan import Nomination, Plan, RemovalPhase
from engine.model.pod import PodKey
from engine.model.snapshot import Snapshot
from engine.reconcile.host import Host, Work
from engine.reconcile.ports import Ports
from engine.reconcile.troubles import as_fault

# A pod whose budget holds it back is asked again this often, not at every pass.
_AGAIN_SECONDS = 5.0
# So many faults in a row are the API server's, not an object's.
_MOST_FAULTS = 3


@frozen
class Chores:
    """``marks`` are nodes with the pods that have to leave them; ``labels`` what nodes lack."""

    labels: tuple[tuple[str, Mapping[str, str]], ...] = ()
    nominations: tuple[Nomination, ...] = ()
    marks: tuple[tuple[str, tuple[PodKey, ...]], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.labels or self.nominations or self.marks)


def chores_of(plan: Plan, snapshot: Snapshot) -> Chores:
    """All that the plan wants done in the cluster and that the snapshot does not show done."""
    named = {pod.key: pod.nominated_node_name for pod in snapshot.pods} if plan.nominations else {}
    return Chores(
        labels=lacking_labels(snapshot),
        nominations=tuple(each for each in plan.nominations if named.get(each.pod) != each.node),
        marks=tuple(
            (removal.record.node, removal.pods)
            for removal in plan.removals
            if removal.phase is RemovalPhase.MARK and removal.record.node
        ),
    )


def lacking_labels(snapshot: Snapshot) -> tuple[tuple[str, Mapping[str, str]], ...]:
    """The labels of their claims that nodes lack: a kubelet knows its pool, and not its type's facts.

    Labels that a node has already stay as they are.
    """
    claims = {claim.name: claim for claim in snapshot.document.claims} if snapshot.document else {}
    claim_of = {instance.id: claims.get(instance.claim) for instance in snapshot.cloud.instances if instance.is_alive}
    found = []
    for node in snapshot.nodes:
        claim = claim_of.get(node.instance_id)
        if claim is not None and not claim.labels.keys() <= node.labels.keys():
            found.append((node.name, {key: value for key, value in claim.labels.items() if key not in node.labels}))
    return tuple(found)


class Hands:
    """Works in the background, one set of chores at a time. ``wake`` is called when it is done."""

    def __init__(self, host: Host, wake: Work) -> None:
        self._host, self._wake = host, wake
        self._faults: SimpleQueue[tuple[tuple[str, Fault], ...]] = SimpleQueue()
        self._done_at: dict[object, float] = {}
        self.is_busy = False

    @property
    def has_ended(self) -> bool:
        return not self._faults.empty()

    def due(self, chores: Chores) -> Chores:
        """Those that were not done a moment ago."""
        now = self._host.monotonic()
        self._done_at = {what: at for what, at in self._done_at.items() if now - at < _AGAIN_SECONDS}
        return Chores(
            labels=tuple(each for each in chores.labels if each[0] not in self._done_at),
            nominations=tuple(each for each in chores.nominations if each not in self._done_at),
            marks=tuple(each for each in chores.marks if each not in self._done_at),
        )

    def begin(self, chores: Chores, ports: Ports) -> None:
        """They must not be busy."""
        self.is_busy = True
        at = self._host.monotonic()
        self._done_at |= dict.fromkeys((*(name for name, _ in chores.labels), *chores.nominations, *chores.marks), at)
        self._host.start("cluster", lambda: self._work(chores, ports))

    def ended(self) -> tuple[tuple[str, Fault], ...] | None:
        """What went wrong, each with its subject, once the chores are done; None before."""
        try:
            faults = self._faults.get_nowait()
        except Empty:
            return None
        self.is_busy = False
        return faults

    def _work(self, chores: Chores, ports: Ports) -> None:
        faults: list[tuple[str, Fault]] = []
        for subject, work in _steps(chores, ports):
            try:
                work()
            except Exception as error:
                faults.append((subject, as_fault(error)))
                if len(faults) >= _MOST_FAULTS:
                    break
        self._faults.put(tuple(faults))
        self._wake()


def _steps(chores: Chores, ports: Ports) -> list[tuple[str, Work]]:
    """In the order in which pods gain by them."""
    steps: list[tuple[str, Work]] = []
    for name, lacking in chores.labels:
        steps.append((f"node {name}", lambda name=name, lacking=lacking: _label(ports, name, lacking)))  # type: ignore[misc]
    if chores.nominations:
        steps.append(("nominations", lambda: _nominate(ports, chores.nominations)))
    for name, pods in chores.marks:
        steps.append((f"node {name}", lambda name=name, pods=pods: _drain(ports, name, pods)))  # type: ignore[misc]
    return steps


def _label(ports: Ports, node: str, lacking: Mapping[str, str]) -> None:
    ports.labeler.label(node, lacking)


def _nominate(ports: Ports, nominations: tuple[Nomination, ...]) -> None:
    """The first refusal ends it: what one pod is refused, all are."""
    for each in nominations:
        refusal = ports.nominator.nominate(each.pod, each.node)
        if refusal:
            raise Fault(f"pods are not nominated to their nodes: {refusal}", "kube-scheduler binds them by itself")


def _drain(ports: Ports, node: str, pods: tuple[PodKey, ...]) -> None:
    if ports.drainer.mark(node):
        ports.drainer.evict(pods)
