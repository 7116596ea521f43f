"""Who scales what: autoscalers and the pods of their targets, gathered from a snapshot and from manifests."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, evolve, field

from engine.decide.scale_ceilings import ScaledWorkload
from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.model.pod import DaemonSet, Placing, Pod
from engine.model.snapshot import Snapshot
from engine.model.workload import Autoscaler, ObjectKey

# Kinds whose replicas are pods. What other kinds make of a replica is not known here.
SCALABLE = ("Deployment", "ReplicaSet", "StatefulSet")
# The number that Kubernetes keeps replicas in.
_MOST_REPLICAS = 2**31 - 1

Target = tuple[str, ObjectKey]


@define
class ScaleObjects:
    """Grows by what is read; of one object read twice the later stands.

    ``autoscalers`` are with the place of their ceiling; ``pods`` are what each pod of a target asks of a node, None
    for a target whose pods are not known; ``findings`` are about the reading.
    """

    autoscalers: dict[Target, tuple[Autoscaler, Position]] = field(factory=dict)
    pods: dict[Target, Placing | None] = field(factory=dict)
    daemon_sets: dict[str, DaemonSet] = field(factory=dict)
    findings: list[Diagnostic] = field(factory=list)

    def add_autoscaler(self, autoscaler: Autoscaler, position: Position) -> None:
        self.autoscalers[autoscaler.kind, autoscaler.key] = autoscaler, position

    def add_snapshot(self, snapshot: Snapshot, position: Position) -> None:
        """A workload's pods are as its newest is; without a pod nothing is known of them."""
        for autoscaler in snapshot.workload.autoscalers:
            self.add_autoscaler(autoscaler, position)
        newest = _newest_pods(snapshot)
        for owner in snapshot.workload.owners:
            pod = newest.get((owner.key.namespace, f"{owner.kind}/{owner.key.name}"))
            self.pods[owner.kind, owner.key] = pod.placing if pod is not None else None
        self.daemon_sets.update({each.name: each for each in snapshot.daemon_sets})

    def scaled_workloads(self) -> tuple[tuple[ScaledWorkload, ...], tuple[Diagnostic, ...]]:
        """The workloads that can be judged, each once, and what is wrong with the autoscalers of the others."""
        by_target: dict[Target, list[tuple[Autoscaler, Position]]] = {}
        findings = []
        for autoscaler, position in self.autoscalers.values():
            finding = _bad_replicas(autoscaler, position) or self._bad_target(autoscaler, position)
            if finding is not None:
                findings.append(finding)
            else:
                by_target.setdefault(_target_of(autoscaler), []).append((autoscaler, position))
        return tuple(self._judged(by_target)), tuple(findings)

    def _judged(self, by_target: dict[Target, list[tuple[Autoscaler, Position]]]) -> Iterator[ScaledWorkload]:
        for (kind, key), scaling in by_target.items():
            placing = self.pods[kind, key]
            if placing is None:
                continue
            # KEDA works through an autoscaler of its own, whose numbers are its ScaledObject's.
            leading = [each for each in scaling if each[0].kind == "ScaledObject"] or scaling
            highest, position = max(leading, key=lambda each: each[0].max_replicas)
            yield ScaledWorkload(
                kind=kind,
                key=key,
                scaled_by=highest.kind,
                min_replicas=max(_standing(each) for each, _ in leading),
                max_replicas=highest.max_replicas,
                pod=placing,
                position=position,
            )

    def _bad_target(self, autoscaler: Autoscaler, position: Position) -> Diagnostic | None:
        kind, key = _target_of(autoscaler)
        scales = f"{autoscaler.kind} {autoscaler.key} scales {kind} {key}"
        if kind not in SCALABLE:
            message = f"{scales}: what a replica of a {kind} is, is not known here, so its ceiling is not judged"
            return _warning("autoscaler-without-target", message, position, f"{', '.join(SCALABLE)} are judged")
        if (kind, key) not in self.pods:
            message = f"{scales}, which is not among what was read: its ceiling is not judged"
            hint = "correct scaleTargetRef, or name the target's manifest in --workloads"
            return _warning("autoscaler-without-target", message, position, hint)
        if self.pods[kind, key] is None:
            message = f"{scales}, which has no pod in the snapshot: what its pods ask for is unknown"
            return _warning("scaled-pods-unknown", message, position, "name its manifest in --workloads")
        return None


def _standing(autoscaler: Autoscaler) -> int:
    """How many replicas are there whatever happens."""
    idle = autoscaler.idle_replicas
    return autoscaler.min_replicas if idle is None else min(idle, autoscaler.min_replicas)


def _bad_replicas(autoscaler: Autoscaler, position: Position) -> Diagnostic | None:
    """Numbers that Kubernetes or KEDA would refuse; nothing is multiplied by those."""
    numbers = (autoscaler.min_replicas, autoscaler.max_replicas, autoscaler.idle_replicas or 0)
    named = f"{autoscaler.kind} {autoscaler.key}"
    if not all(0 <= number <= _MOST_REPLICAS for number in numbers):
        message = f"{named} counts replicas from 0 to {_MOST_REPLICAS}; it has a number beyond"
    elif autoscaler.max_replicas == 0:
        message = f"{named} has no most replicas above 0, so it scales nothing"
    elif autoscaler.min_replicas > autoscaler.max_replicas:
        least, most = autoscaler.min_replicas, autoscaler.max_replicas
        message = f"{named} wants at least {least} replicas and at most {most}: both cannot be"
    else:
        return None
    return _warning("bad-replicas", message, position, "its ceiling is not judged; correct the numbers")


def _target_of(autoscaler: Autoscaler) -> Target:
    kind, _, name = autoscaler.target.partition("/")
    return kind, ObjectKey(autoscaler.key.namespace, name)


def _newest_pods(snapshot: Snapshot) -> dict[tuple[str, str], Pod]:
    """The newest readable pod below each owner, by namespace and ``KIND/NAME``; owners of owners included."""
    above = {
        (each.key.namespace, f"{each.kind}/{each.key.name}"): (each.key.namespace, each.owner)
        for each in snapshot.workload.owners
        if each.owner
    }
    newest: dict[tuple[str, str], Pod] = {}
    for pod in snapshot.pods:
        if pod.owner is None or any(each.startswith("unreadable") for each in pod.placing.unsupported):
            continue
        owner: tuple[str, str] | None = (pod.key.namespace, f"{pod.owner.kind}/{pod.owner.name}")
        passed: set[tuple[str, str]] = set()
        while owner is not None and owner not in passed:
            passed.add(owner)
            known = newest.get(owner)
            if known is None or (known.created_at, known.key) < (pod.created_at, pod.key):
                newest[owner] = pod
            owner = above.get(owner)
    return newest


def _warning(rule: str, message: str, position: Position, hint: str) -> Diagnostic:
    return Diagnostic(Severity.WARNING, rule, message, position, hint)


def in_namespace(key: ObjectKey) -> ObjectKey:
    """A manifest that names no namespace goes where kubectl would put it."""
    return key if key.namespace else evolve(key, namespace="default")
