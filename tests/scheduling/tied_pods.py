"""Small values for tests of pods that are tied to others, to ports and to volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve

from engine.model.constraint import HostPort, LabelSelector, PodTerm, TopologySpread
from engine.model.pod import Pod
from tests.builders import pod, requirement

WEB: LabelSelector = (requirement("app", "In", "web"),)
ANY: LabelSelector = ()


def spread(
    key: str,
    max_skew: int = 1,
    selector: LabelSelector = WEB,
    *,
    min_domains: int | None = None,
    is_required: bool = True,
    honors_affinity: bool = True,
    honors_taints: bool = False,
) -> TopologySpread:
    return TopologySpread(key, max_skew, selector, is_required, min_domains, honors_affinity, honors_taints)


def term(
    key: str,
    selector: LabelSelector = WEB,
    *,
    namespaces: Iterable[str] = ("default",),
    namespace_selector: LabelSelector = None,
    weight: int = 0,
) -> PodTerm:
    return PodTerm(key, selector, tuple(namespaces), namespace_selector, weight)


def port(number: int, protocol: str = "TCP", ip: str = "") -> HostPort:
    return HostPort(number, protocol, ip)


def tied(
    name: str,
    app: str = "web",
    *,
    spreads: Iterable[TopologySpread] = (),
    near: Iterable[PodTerm] = (),
    apart: Iterable[PodTerm] = (),
    ports: Iterable[HostPort] = (),
    claims: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    deleting: bool = False,
    **more: object,
) -> Pod:
    """A pod of an app. ``near`` and ``apart`` are required terms; ``more`` is as of ``tests.builders.pod``."""
    plain = pod(name, **more)  # type: ignore[arg-type]
    placing = evolve(
        plain.placing,
        spreads=tuple(spreads),
        pod_affinity=tuple(near),
        pod_anti_affinity=tuple(apart),
        host_ports=tuple(ports),
        volume_claims=tuple(claims),
    )
    return evolve(plain, placing=placing, labels={"app": app, **(labels or {})}, deleting=deleting)
