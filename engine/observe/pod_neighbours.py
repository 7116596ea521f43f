"""What a pod asks of the pods around it: topology spread, and affinity to pods and against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model.constraint import LabelSelector, Operator, PodTerm, Requirement, TopologySpread
from engine.observe.affinity import PREFERRED, REQUIRED, weight
from engine.observe.json_fields import BrokenObject, Json, mapping, objects, shown, text, whole_number, words
from engine.observe.label_selector import in_one_order, label_selector

_IS_REQUIRED = {"DoNotSchedule": True, "ScheduleAnyway": False}
_HONORS = {"Honor": True, "Ignore": False}

Labels = Mapping[str, str]


def topology_spreads(spec: Json, labels: Labels) -> tuple[TopologySpread, ...]:
    """The topology spread constraints of a pod with these labels, in the order written; raises BrokenObject."""
    read = []
    for position, written in enumerate(objects(spec, "topologySpreadConstraints")):
        try:
            read.append(_spread(written, labels))
        except BrokenObject as error:
            raise BrokenObject(f"topologySpreadConstraints[{position}]: {error}") from None
    return tuple(read)


def required_pod_terms(spec: Json, affinity: str, namespace: str, labels: Labels) -> tuple[PodTerm, ...]:
    """The required terms under ``affinity``, podAffinity or podAntiAffinity. Raises BrokenObject.

    ``namespace`` and ``labels`` are the pod's own.
    """
    terms = objects(mapping(mapping(spec, "affinity"), affinity), REQUIRED)
    return tuple([_named_term(term, f"required {affinity}", namespace, labels, 0) for term in terms])


def preferred_pod_terms(spec: Json, affinity: str, namespace: str, labels: Labels) -> tuple[PodTerm, ...]:
    """As `required_pod_terms`, the preferred ones, with their weights."""
    terms, where = objects(mapping(mapping(spec, "affinity"), affinity), PREFERRED), f"preferred {affinity}"
    return tuple(
        [_named_term(mapping(term, "podAffinityTerm"), where, namespace, labels, weight(term, where)) for term in terms]
    )


def _spread(written: Json, labels: Labels) -> TopologySpread:
    max_skew, fewest_domains = whole_number(written, "maxSkew"), written.get("minDomains")
    if max_skew < 1:
        raise BrokenObject(f"maxSkew is {shown(written.get('maxSkew'))}, expected 1 or more")
    if fewest_domains is not None and whole_number(written, "minDomains") < 1:
        raise BrokenObject(f"minDomains is {shown(fewest_domains)}, expected 1 or more")
    selector = label_selector(written, "labelSelector")
    return TopologySpread(
        key=_topology_key(written),
        max_skew=max_skew,
        selector=_with_own(selector, Operator.IN, words(written, "matchLabelKeys"), labels),
        is_required=_one_of(_IS_REQUIRED, written, "whenUnsatisfiable"),
        min_domains=fewest_domains,
        honors_affinity=_one_of(_HONORS, written, "nodeAffinityPolicy", "Honor"),
        honors_taints=_one_of(_HONORS, written, "nodeTaintsPolicy", "Ignore"),
    )


def _named_term(term: Json, where: str, namespace: str, labels: Labels, preferred_by: int) -> PodTerm:
    try:
        return _pod_term(term, namespace, labels, preferred_by)
    except BrokenObject as error:
        raise BrokenObject(f"{where}: {error}") from None


def _pod_term(term: Json, namespace: str, labels: Labels, preferred_by: int) -> PodTerm:
    alike = _with_own(label_selector(term, "labelSelector"), Operator.IN, words(term, "matchLabelKeys"), labels)
    namespaces, selected = words(term, "namespaces"), label_selector(term, "namespaceSelector")
    if not namespaces and selected is None:
        namespaces = (namespace,)
    return PodTerm(
        key=_topology_key(term),
        selector=_with_own(alike, Operator.NOT_IN, words(term, "mismatchLabelKeys"), labels),
        namespaces=tuple(sorted(set(namespaces))),
        namespace_selector=selected,
        weight=preferred_by,
    )


def _with_own(selector: LabelSelector, operator: Operator, keys: Iterable[str], labels: Labels) -> LabelSelector:
    """The selector with the pod's own value under each of these keys that it has.

    A key that the selector names already is left: the API server has put it there, from the labels that the pod was
    made with, and lets nobody else name it in both places.
    """
    if selector is None:
        return None
    known = {required.key for required in selector}
    own = [Requirement(key, operator, (labels[key],)) for key in keys if key in labels and key not in known]
    return in_one_order((*selector, *own)) if own else selector


def _topology_key(holder: Json) -> str:
    key = text(holder, "topologyKey")
    if not key:
        raise BrokenObject("topologyKey is missing")
    return key


def _one_of(words_for: Mapping[str, bool], holder: Json, key: str, default: str = "") -> bool:
    written = text(holder, key) or default
    if written not in words_for:
        raise BrokenObject(f"{key} is {shown(written)}, expected {' or '.join(words_for)}")
    return words_for[written]
