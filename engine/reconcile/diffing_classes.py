"""Which instance types pods gain and lose by a change of policy, and what decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence

from attrs import frozen

from engine.decide.offered import Offered
from engine.model.pod import Pod, PodKey
from engine.model.snapshot import Snapshot
from engine.policy.rules.ruling import TypeAt
from engine.report.barrier_words import barrier_words
from engine.report.diff_report import Both, ClassDifference, TypesChange, WorkloadPods
from engine.scheduling.groups import PodClass

_Reasons = Mapping[str, frozenset[TypeAt]]


@frozen
class _Changed:
    """Of pods that are alike: the types that are gained and lost, by what decides, and how many there are."""

    gained: _Reasons
    lost: _Reasons
    types: Both[int]

    @property
    def kind(self) -> Hashable:
        """Who differs only in which of the types hold him is of one kind."""
        return tuple(sorted(self.gained)), tuple(sorted(self.lost)), bool(self.types.head)


class Workloads:
    """Who owns the pods of a snapshot: of a ReplicaSet's pods its Deployment, as far as the snapshot tells."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._pods = {pod.key: pod for pod in snapshot.pods}
        self._owners = {(each.kind, str(each.key)): each.owner for each in snapshot.workload.owners if each.owner}

    def name(self, key: PodKey) -> str:
        """``Deployment inference/llm``, or of which namespace a pod is that nobody owns."""
        owner = self._pods[key].owner
        if owner is None:
            return f"pods without an owner in {key.namespace}"
        above = self._owners.get((owner.kind, f"{key.namespace}/{owner.name}"))
        kind, _, name = above.partition("/") if above else (owner.kind, "", owner.name)
        return f"{kind} {key.namespace}/{name}"

    def counted(self, keys: Iterable[PodKey]) -> tuple[WorkloadPods, ...]:
        """The owners of these pods, who has most of them first."""
        counts = Counter(self.name(key) for key in keys)
        return tuple(
            WorkloadPods(name, counts[name]) for name in sorted(counts, key=lambda name: (-counts[name], name))
        )


def class_differences(
    base: Offered, head: Offered, pods: Iterable[Pod], workloads: Workloads
) -> tuple[ClassDifference, ...]:
    """Pods of which the types differ, those alike together; who loses most first."""
    alike: dict[tuple[int, int], list[PodKey]] = {}
    classes: dict[int, PodClass] = {}
    for pod in pods:
        before, after = base.class_of[pod.key], head.class_of[pod.key]
        classes[id(before)], classes[id(after)] = before, after
        alike.setdefault((id(before), id(after)), []).append(pod.key)
    kinds: dict[Hashable, list[tuple[_Changed, list[PodKey]]]] = {}
    for (before_id, after_id), keys in alike.items():
        found = _changed(base, head, classes[before_id], classes[after_id])
        if found is not None:
            kinds.setdefault(found.kind, []).append((found, keys))
    differences = [_together(each, workloads) for each in kinds.values()]
    return tuple(sorted(differences, key=_order))


def _together(kind: Sequence[tuple[_Changed, list[PodKey]]], workloads: Workloads) -> ClassDifference:
    every = [changed for changed, _ in kind]
    before, after = [each.types.base for each in every], [each.types.head for each in every]
    return ClassDifference(
        workloads.counted(key for _, keys in kind for key in keys),
        gained=_united(each.gained for each in every),
        lost=_united(each.lost for each in every),
        fewest=Both(min(before), min(after)),
        most=Both(max(before), max(after)),
    )


def _united(changes: Iterable[_Reasons]) -> tuple[TypesChange, ...]:
    types: dict[str, set[TypeAt]] = {}
    for each in changes:
        for because, found in each.items():
            types.setdefault(because, set()).update(found)
    return tuple(TypesChange(tuple(sorted(types[because])), because) for because in sorted(types))


def _changed(base: Offered, head: Offered, before: PodClass, after: PodClass) -> _Changed | None:
    old, new = base.types(before), head.types(after)
    if old.keys() == new.keys():
        return None
    lost = {each: pools for each, pools in old.items() if each not in new}
    gained = {each: pools for each, pools in new.items() if each not in old}
    return _Changed(_reasons(base, before, gained), _reasons(head, after, lost), Both(len(old), len(new)))


def _reasons(side: Offered, pod_class: PodClass, types: Mapping[TypeAt, tuple[str, ...]]) -> _Reasons:
    """Why the side does not let the class have these types, of which pools of the other side have them."""
    by_reason: dict[str, set[TypeAt]] = {}
    for type_at, pools in types.items():
        barriers = (side.barrier(pod_class, pool, type_at) for pool in pools)
        because = "; ".join(dict.fromkeys(barrier_words(each) for each in barriers if each is not None))
        by_reason.setdefault(because, set()).add(type_at)
    return {because: frozenset(found) for because, found in by_reason.items()}


def _order(difference: ClassDifference) -> tuple[int, int, str]:
    lost = sum(len(each.types) for each in difference.lost)
    return -(lost > 0), -difference.pods, difference.workloads[0].name
