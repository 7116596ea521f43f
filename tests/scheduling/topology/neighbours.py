"""Small builders for pods that are tied to each other, and nodes that hold such pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from engine.model.constraint import (
    HostPort,
    LabelSelector,
    Operator,
    PodTerm,
    Requirement,
    Taint,
    Toleration,
    TopologySpread,
)
from engine.model.pod import Pod
from engine.scheduling.topology.neighbourhood import StandingNode
from tests.builders import pod

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


def matching(**labels: str) -> LabelSelector:
    """A selector of equal labels."""
    return tuple(Requirement(key, Operator.IN, (value,)) for key, value in sorted(labels.items()))


def spread(
    key: str,
    selector: LabelSelector,
    max_skew: int = 1,
    *,
    min_domains: int | None = None,
    honors_affinity: bool = True,
    honors_taints: bool = False,
    is_required: bool = True,
) -> TopologySpread:
    return TopologySpread(
        key=key,
        max_skew=max_skew,
        selector=selector,
        is_required=is_required,
        min_domains=min_domains,
        honors_affinity=honors_affinity,
        honors_taints=honors_taints,
    )


def term(key: str, selector: LabelSelector, *namespaces: str, of: LabelSelector = None) -> PodTerm:
    """A term over these namespaces and those that ``of`` selects; the default namespace where it names none."""
    named = namespaces or (() if of is not None else ("default",))
    return PodTerm(key=key, selector=selector, namespaces=named, namespace_selector=of)


def tied(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    spreads: Sequence[TopologySpread] = (),
    near: Sequence[PodTerm] = (),
    apart: Sequence[PodTerm] = (),
    ports: Sequence[HostPort] = (),
    selector: Mapping[str, str] | None = None,
    namespace: str = "default",
    tolerations: Sequence[Toleration] = (),
    deleting: bool = False,
) -> Pod:
    plain = pod(name, namespace=namespace, selector=selector, tolerations=tolerations)
    placing = evolve(
        plain.placing,
        spreads=tuple(spreads),
        pod_affinity=tuple(near),
        pod_anti_affinity=tuple(apart),
        host_ports=tuple(ports),
    )
    return evolve(plain, placing=placing, labels=dict(labels or {}), deleting=deleting)


def node(name: str, zone: str | None, *pods: Pod, taints: Sequence[Taint] = (), **labels: str) -> StandingNode:
    """A standing node with its hostname."""
    shown = {HOSTNAME: name, **({ZONE: zone} if zone is not None else {}), **labels}
    return StandingNode(name=name, labels=shown, taints=tuple(taints), pods=pods)
