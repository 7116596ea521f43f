"""Pods that are placed alike, and the order in which they are placed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

from attrs import evolve, frozen

from engine.model.constraint import HostPort, Operator, PreferredNodeTerm, Requirement, Taint, TaintEffect, Toleration
from engine.model.pod import Placing, Pod, PodKey
from engine.model.quantity import CPU, MEMORY, Resources
from engine.policy.rules.ruling import NO_RULINGS, Rulings
from engine.scheduling.ceilings import Ceiling, Share, shares_of_pods
from engine.scheduling.requirements import canonical_key
from engine.scheduling.terms import ANY_TERMS, Terms
from engine.scheduling.topology.coupling import Coupling

_BARRING = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


@frozen(eq=False)
class Demand:
    """What a pod demands of a node besides room. One object for equal demands, so caches go by identity.

    ``terms`` are ORed and hold the node selector each; ``()`` can never be met. ``keys`` are the labels that matter.
    ``own_terms`` are the terms without what the pod's volumes add: a spread counts the domains that those admit.
    ``preferred`` only says which of the nodes that will do are liked better.
    """

    terms: tuple[tuple[Requirement, ...], ...]
    tolerations: tuple[Toleration, ...]
    keys: frozenset[str]
    own_terms: tuple[tuple[Requirement, ...], ...] = ((),)
    preferred: tuple[PreferredNodeTerm, ...] = ()

    @classmethod
    def of(cls, placing: Placing) -> Demand:
        selector = tuple(
            Requirement(key=canonical_key(key), operator=Operator.IN, values=(value,))
            for key, value in sorted(placing.node_selector.items())
        )
        # An empty term matches no node (k8s.io/api core/v1, NodeSelectorTerm).
        alternatives = [term for term in placing.affinity_terms if term] if placing.affinity_terms else [()]
        own = tuple(selector + tuple(map(_canonical, term)) for term in alternatives)
        reached = [tuple(map(_canonical, term)) for term in placing.volume_terms if term]
        terms = tuple(term + where for term in own for where in reached) if placing.volume_terms else own
        keys = frozenset(requirement.key for term in (*own, *terms) for requirement in term)
        return cls(
            terms=terms,
            tolerations=placing.tolerations,
            keys=keys,
            own_terms=own,
            preferred=placing.preferred_terms,
        )

    @property
    def own(self) -> Demand:
        """What the pod demands by itself, its volumes apart."""
        return self if self.terms == self.own_terms else evolve(self, terms=self.own_terms)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels, under their present names, meets the selector and any of the terms."""
        return any(all(each.admits(labels.get(each.key)) for each in term) for term in self.terms)

    def barring_taint(self, taints: Iterable[Taint]) -> Taint | None:
        """The first taint, in text order, that keeps the pod away."""
        barring = [taint for taint in taints if taint.effect in _BARRING and not self._tolerates(taint)]
        return min(barring, key=str, default=None)

    def disliked_taints(self, taints: Iterable[Taint]) -> int:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        return sum(taint.effect is TaintEffect.PREFER_NO_SCHEDULE and not self._tolerates(taint) for taint in taints)

    def _tolerates(self, taint: Taint) -> bool:
        return any(toleration.tolerates(taint) for toleration in self.tolerations)


def _canonical(requirement: Requirement) -> Requirement:
    key = canonical_key(requirement.key)
    return requirement if key == requirement.key else evolve(requirement, key=key)


# A class's requests, and which demand and rulings it has; each of these is one object for equal ones.
Shape = tuple[Resources, int, int, Terms, tuple[HostPort, ...]]


@frozen(eq=False)
class PodClass:
    """Pods of equal placing and priority, for which rules rule alike, in name order.

    ``accelerators`` are the resources with more than zero; ``shares`` are their part in ceilings of groups of pods.
    ``coupling`` ties them to other pods; None where nothing does.
    """

    requests: Resources
    demand: Demand
    priority: int
    unsupported: tuple[str, ...]
    accelerators: tuple[str, ...]
    pods: tuple[PodKey, ...]
    rulings: Rulings = NO_RULINGS
    shares: tuple[Share, ...] = ()
    terms: Terms = ANY_TERMS
    coupling: Coupling | None = None

    @cached_property
    def shape(self) -> Shape:
        """What decides which nodes can be made for it: the same for classes that only their neighbours tell apart."""
        return self.requests, id(self.demand), id(self.rulings), self.terms, self.ports

    @property
    def is_tied(self) -> bool:
        """Whether other pods decide where its own may go."""
        return self.coupling is not None and not self.coupling.is_free

    @property
    def ports(self) -> tuple[HostPort, ...]:
        """The host ports that each of its pods takes."""
        return self.coupling.ports if self.coupling is not None else ()


def by_name(pod: PodKey) -> tuple[str, str]:
    """The order of pods, for sorting many."""
    return pod.namespace, pod.name


_Key = tuple[object, ...]


def pod_classes(
    pods: Iterable[Pod],
    rulings: Mapping[PodKey, Rulings] | None = None,
    coupling_of: Callable[[PodKey], Coupling | None] | None = None,
) -> tuple[PodClass, ...]:
    """Pods grouped, in the order of placing: priority, then what is scarce: accelerators, cpu, memory; then content.

    ``rulings`` that are equal must be one object, and couplings; a pod may have none of either.
    """
    known: dict[int, _Key] = {}
    ruled = {id(each): each for each in rulings.values()} if rulings else {}
    members: dict[tuple[_Key, int, int, Coupling | None], list[Pod]] = {}
    for pod in pods:
        placing = pod.placing
        # Pods of one owner often share one value; hashing it once is what makes thousands of them cheap.
        key = known.get(id(placing)) or known.setdefault(id(placing), _content(placing))
        ruling = id(rulings.get(pod.key, NO_RULINGS)) if rulings else 0
        coupling = coupling_of(pod.key) if coupling_of is not None else None
        members.setdefault((key, pod.priority, ruling, coupling), []).append(pod)
    demands: dict[_Key, Demand] = {}
    # One object for equal ones: thousands of classes are looked up by what they ask for.
    bundles: dict[Resources, Resources] = {}
    classes = []
    for (key, priority, ruling, coupling), alike in members.items():
        placing = alike[0].placing
        asked = _demanded(placing)
        demand = demands.get(asked) or demands.setdefault(asked, Demand.of(placing))
        formed = PodClass(
            requests=bundles.setdefault(placing.requests, placing.requests),
            demand=demand,
            priority=priority,
            unsupported=placing.unsupported,
            accelerators=placing.requests.accelerators(),
            pods=tuple(sorted((pod.key for pod in alike), key=by_name)),
            rulings=ruled.get(ruling, NO_RULINGS),
            coupling=coupling,
        )
        classes.append((_order(formed, key), formed))
    return tuple(formed for _, formed in sorted(classes, key=lambda pair: pair[0]))


def sharing(classes: Sequence[PodClass], ceilings: Sequence[Ceiling]) -> Sequence[PodClass]:
    """The classes, in their order, each parted by the groups of pods that its pods are in."""
    shares = shares_of_pods(ceilings)
    if not shares:
        return classes
    parted: list[PodClass] = []
    for pod_class in classes:
        alike: dict[tuple[Share, ...], list[PodKey]] = {}
        for pod in pod_class.pods:
            alike.setdefault(shares.get(pod, ()), []).append(pod)
        parted += [evolve(pod_class, pods=tuple(pods), shares=share) for share, pods in alike.items()]
    return parted


def on_terms(classes: Sequence[PodClass], terms: Mapping[PodKey, Terms]) -> Sequence[PodClass]:
    """The classes, in their order, each parted by its pods' terms; those that start no nodes come last, since they have
    what all others leave."""
    if not terms:
        return classes
    parted: list[PodClass] = []
    for pod_class in classes:
        alike: dict[Terms, list[PodKey]] = {}
        for pod in pod_class.pods:
            alike.setdefault(terms.get(pod, ANY_TERMS), []).append(pod)
        parted += [evolve(pod_class, pods=tuple(alike[own]), terms=own) for own in sorted(alike, key=_terms_order)]
    return sorted(parted, key=lambda each: bool(each.terms.fills_only))


def _terms_order(terms: Terms) -> tuple[object, ...]:
    return terms.order


def _content(placing: Placing) -> _Key:
    return placing.requests, *_demanded(placing), placing.unsupported


def _demanded(placing: Placing) -> _Key:
    """What a demand is made of."""
    selector = tuple(sorted(placing.node_selector.items()))
    return selector, placing.affinity_terms, placing.volume_terms, placing.tolerations, placing.preferred_terms


def _order(formed: PodClass, key: _Key) -> tuple[int, int, int, int, str, str, int]:
    requests = formed.requests
    scarce = sum(requests.amount(resource) for resource in formed.accelerators)
    size = -requests.amount(CPU), -requests.amount(MEMORY)
    coupled = formed.coupling.number if formed.coupling is not None else -1
    return (-formed.priority, -scarce, *size, repr(key), formed.rulings.order, coupled)
