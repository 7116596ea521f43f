"""What is counted: pods that some selectors match, or that hold an anti-affinity term, by domains of a topology key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from attrs import field, frozen

from engine.model.constraint import LabelSelector, Operator, PodTerm, Taint
from engine.model.workload import Namespace
from engine.scheduling.groups import Demand


@frozen
class Look:
    """Which pods a term looks at: of ``namespaces`` (sorted) or of a selected namespace, with labels as selected."""

    namespaces: tuple[str, ...]
    namespace_selector: LabelSelector
    selector: LabelSelector

    @classmethod
    def of(cls, term: PodTerm) -> Look:
        return cls(tuple(sorted(set(term.namespaces))), term.namespace_selector, term.selector)

    def first_equality(self) -> tuple[str, tuple[str, ...]] | None:
        """A label that a pod must have, with the values that will do, where the selector names one."""
        for each in self.selector or ():
            if each.operator is Operator.IN:
                return each.key, each.values
        return None


@frozen(eq=False)
class NodeFilter:
    """The nodes that a pod's spread constraints count on: those with all ``keys`` (an empty value is none), and, as the
    node inclusion policies say, those that the pod's node affinity and tolerations admit. One object for equal ones."""

    keys: tuple[str, ...]
    affinity: Demand | None
    tolerations: Demand | None
    order: str

    def admits(self, labels: Mapping[str, str], taints: Iterable[Taint]) -> bool:
        """Whether such a node is counted on."""
        if not all(labels.get(key) for key in self.keys):
            return False
        if self.affinity is not None and not self.affinity.admits(labels):
            return False
        return self.tolerations is None or self.tolerations.barring_taint(taints) is None

    def may_admit(self, labels: Mapping[str, str]) -> bool:
        """Whether a node of which only these labels are known may be counted on; others are taken to be as wished."""
        if any(labels.get(key) == "" for key in self.keys):
            return False
        terms = self.affinity.terms if self.affinity is not None else ((),)
        return any(all(each.admits(labels[each.key]) for each in term if each.key in labels) for term in terms)


class Role(str, Enum):
    """SPREAD counts pods that match and are not going; MATCH all that match; HOLDER those that hold the term."""

    SPREAD = "spread"
    MATCH = "match"
    HOLDER = "holder"


@frozen
class Counter:
    """A pod matches when all ``looks`` see it. ``subject`` is one of the terms that ask for it, to be named."""

    role: Role
    key: str
    looks: tuple[Look, ...]
    node_filter: NodeFilter | None = None
    subject: PodTerm | None = field(default=None, eq=False)

    @property
    def order(self) -> tuple[str, ...]:
        """From content only, different for different counters."""
        return self.role.value, self.key, repr(self.looks), self.node_filter.order if self.node_filter else ""


class Sight:
    """Which of many counters' looks see a pod, by its namespace and labels; asked once for each such pair."""

    def __init__(self, counters: Sequence[Counter], namespaces: Iterable[Namespace]) -> None:
        self._counters = counters
        self._labels_of = {namespace.name: namespace.labels for namespace in namespaces}
        self._seen: dict[tuple[tuple[str, ...], LabelSelector, str], bool] = {}
        self._by_label: dict[tuple[str, str], list[int]] = {}
        self._others: list[int] = []
        for number, counter in enumerate(counters):
            equality = counter.looks[0].first_equality()
            if equality is None:
                self._others.append(number)
            else:
                key, values = equality
                for value in sorted(set(values)):
                    self._by_label.setdefault((key, value), []).append(number)

    def seen_by(self, namespace: str, labels: Mapping[str, str]) -> tuple[int, ...]:
        """The numbers of the counters that match such a pod, ascending."""
        candidates = list(self._others)
        for pair in labels.items():
            candidates += self._by_label.get(pair, ())
        return tuple(number for number in sorted(candidates) if self._all_see(number, namespace, labels))

    def _all_see(self, number: int, namespace: str, labels: Mapping[str, str]) -> bool:
        looks = self._counters[number].looks
        return all(selects(look.selector, labels) and self._reaches(look, namespace) for look in looks)

    def _reaches(self, look: Look, namespace: str) -> bool:
        asked = (look.namespaces, look.namespace_selector, namespace)
        if asked not in self._seen:
            labels = self._labels_of.get(namespace, {})
            self._seen[asked] = namespace in look.namespaces or selects(look.namespace_selector, labels)
        return self._seen[asked]


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether a label selector selects these labels: None selects nothing, an empty one everything."""
    return selector is not None and all(each.admits(labels.get(each.key)) for each in selector)
