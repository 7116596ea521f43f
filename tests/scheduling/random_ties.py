"""Ties, put on the pods of a random cluster: spread, affinity, host ports, volumes, preferences, priority classes.

The ties have dice of their own, so that a cluster without them is the same whether or not others have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import (
    HostPort,
    LabelSelector,
    PodTerm,
    PreferredNodeTerm,
    Requirement,
    TopologySpread,
)
from engine.model.ledger import Ledger
from engine.model.pod import DaemonSet, Pod, PodKey
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.model.workload import Namespace, PriorityClass
from tests.builders import requirement
from tests.scheduling.random_draw import Dice, Knobs
from tests.scheduling.random_pods import TEAM, TIER, ZONE_A, ZONE_B
from tests.scheduling.random_volumes import Disks

_APPS = ("web", "db", "cache")
# Whom pods of an app must share a host with, where companies are drawn.
_FOLLOWED: Mapping[str, tuple[tuple[str, ...], ...]] = {"db": (("web",),), "cache": (("web",), ("db",), ("web", "db"))}
_NAMESPACES = (
    Namespace("default", {"kubernetes.io/metadata.name": "default", "env": "prod"}),
    Namespace("other", {"kubernetes.io/metadata.name": "other", "env": "prod"}),
    Namespace("third", {"kubernetes.io/metadata.name": "third"}),
)
_NAMESPACE_SELECTORS: tuple[LabelSelector, ...] = (
    (requirement("env", "In", "prod"),),
    (requirement("env", "DoesNotExist"),),
    (),
)
_SPREAD_KEYS = (keys.ZONE, keys.ZONE, keys.HOSTNAME, keys.HOSTNAME, keys.CAPACITY_TYPE, TEAM, TIER)
_TERM_KEYS = (keys.ZONE, keys.HOSTNAME, keys.HOSTNAME, keys.CAPACITY_TYPE, TEAM)
_PORTS = (HostPort(80), HostPort(80, ip="10.0.0.1"), HostPort(80, "UDP"), HostPort(9100), HostPort(80, ip="10.0.0.2"))
_TERMS: tuple[tuple[Requirement, ...], ...] = (
    (requirement(keys.INSTANCE_CPU, "Gt", "4"),),
    (requirement(keys.INSTANCE_CPU, "Lt", "8"), requirement(keys.ZONE, "NotIn", ZONE_B)),
    (requirement(keys.INSTANCE_MEMORY, "Gte", "16384"), requirement(keys.CAPACITY_TYPE, "In", keys.SPOT)),
    (requirement(keys.INSTANCE_GPU_COUNT, "Lte", "1"),),
    (requirement(TEAM, "In", "a", "b"),),
    (requirement(keys.ZONE, "In", ZONE_A), requirement(keys.ARCH, "Exists")),
    (requirement(keys.INSTANCE_CPU, "Gt", "many"),),
)
_CLASSES = (
    PriorityClass("batch", value=-5, pre_empts=False),
    PriorityClass("urgent", value=1000),
)
_MIN_VALUES = tuple(
    evolve(requirement(key, "Exists"), min_values=least)
    for key, least in ((keys.INSTANCE_TYPE, 2), (keys.ZONE, 2), (keys.INSTANCE_FAMILY, 3))
)


class Ties:
    """Puts ties on one cluster."""

    def __init__(self, seed: int, knobs: Knobs) -> None:
        random = Random(f"ties of {seed}")
        self._dice = Dice(random, strictness=random.choice([1, 2, 4]))
        self._knobs = knobs

    def snapshot(self, seen: Snapshot) -> Snapshot:
        """The snapshot with its pods tied. Pods of one shape get the same ties."""
        disks = Disks(self._dice, seen)
        shapes: dict[str, list[Pod]] = {}
        for pod in seen.pods:
            name = pod.key.name.rpartition("-")[0] if pod.key.name.startswith("pod-") else pod.key.name
            shapes.setdefault(name, []).append(pod)
        tied: dict[PodKey, Pod] = {}
        for alike in shapes.values():
            # Pods of daemonsets and of nodes have no ties; nor have those that nothing is to be planned for.
            others = alike[0].is_daemon or not (alike[0].node_name or alike[0].is_waiting)
            made = alike if others else self._tied(alike, disks)
            tied.update(zip((pod.key for pod in alike), made, strict=True))
        workload = evolve(
            disks.workload(seen.workload),
            namespaces=_NAMESPACES,
            priority_classes=_CLASSES if self._knobs.preferences else (),
        )
        return evolve(
            seen,
            pods=tuple(tied[pod.key] for pod in seen.pods),
            daemon_sets=self._daemon_sets(seen.daemon_sets),
            ledger=_renamed(seen.ledger, {str(old): pod.key for old, pod in tied.items()}),
            workload=workload,
        )

    def policy(self, rules: Policy) -> Policy:
        """Some pools ask for minValues."""
        if not self._knobs.min_values:
            return rules
        pools = tuple(
            evolve(
                pool,
                requirements=(*pool.requirements, self._dice.pick(_MIN_VALUES)),
                min_values_best_effort=self._dice.one_in(3),
            )
            if self._dice.one_in(2)
            else pool
            for pool in rules.node_pools
        )
        return evolve(rules, node_pools=pools)

    def _tied(self, alike: list[Pod], disks: Disks) -> list[Pod]:
        dice, knobs, first = self._dice, self._knobs, alike[0]
        namespace = "default" if knobs.companies else dice.pick(("default", "default", "other", "third"))
        labels = {"app": dice.pick(_APPS), **dice.pick(({}, {"version": "2"}))}
        is_bound = first.node_name is not None
        placing = first.placing
        if knobs.spreads and not is_bound and dice.one_in(2):
            drawn = [self._spread(labels) for _ in range(dice.upto(3, least=1))]
            # Kubernetes takes no two of one key and kind.
            once = {(each.key, each.is_required): each for each in drawn}
            placing = evolve(placing, spreads=tuple(once.values()))
        if knobs.affinity and dice.one_in(3):
            placing = evolve(placing, pod_anti_affinity=self._terms(namespace, labels))
        if knobs.affinity and not is_bound and dice.one_in(4):
            placing = evolve(placing, pod_affinity=self._terms(namespace, labels))
        if knobs.companies and not is_bound and labels["app"] in _FOLLOWED:
            led_by = (requirement("app", "In", *dice.pick(_FOLLOWED[labels["app"]])),)
            placing = evolve(placing, pod_affinity=(PodTerm(keys.HOSTNAME, led_by, (namespace,), None),))
        if knobs.host_ports and dice.one_in(3):
            placing = evolve(placing, host_ports=tuple(sorted(dice.some(_PORTS, 1, 2))))
        if knobs.preferences and not is_bound and dice.one_in(2):
            placing = evolve(
                placing,
                affinity_terms=tuple(dice.some(_TERMS, 2, 3)) if dice.one_in(2) else placing.affinity_terms,
                preferred_terms=tuple(PreferredNodeTerm(dice.upto(100, 1), term) for term in dice.some(_TERMS, 0, 2)),
                preferred_pod_affinity=self._wishes(namespace, labels),
                preferred_pod_anti_affinity=self._wishes(namespace, labels),
            )
        pods = [evolve(pod, key=evolve(pod.key, namespace=namespace), labels=labels) for pod in alike]
        pods = [evolve(pod, placing=placing) for pod in pods]
        if knobs.preferences and not is_bound and dice.one_in(3):
            chosen = dice.pick(_CLASSES)
            pods = [evolve(pod, priority_class=chosen.name, priority=chosen.value) for pod in pods]
        if knobs.volumes and dice.one_in(2):
            pods = disks.mounted(pods)
        return pods

    def _spread(self, labels: dict[str, str]) -> TopologySpread:
        dice = self._dice
        return TopologySpread(
            key=dice.pick(_SPREAD_KEYS),
            max_skew=dice.pick((1, 1, 2)),
            selector=self._selector(labels),
            is_required=not dice.one_in(6),
            min_domains=dice.pick((None, None, 2, 3)),
            honors_affinity=not dice.one_in(4),
            honors_taints=dice.one_in(3),
        )

    def _terms(self, namespace: str, labels: dict[str, str]) -> tuple[PodTerm, ...]:
        return tuple(self._term(namespace, labels) for _ in range(self._dice.pick((1, 1, 2))))

    def _wishes(self, namespace: str, labels: dict[str, str]) -> tuple[PodTerm, ...]:
        wishes = self._dice.pick((0, 0, 1, 2))
        return tuple(evolve(self._term(namespace, labels), weight=self._dice.upto(100, 1)) for _ in range(wishes))

    def _term(self, namespace: str, labels: dict[str, str]) -> PodTerm:
        dice = self._dice
        named: tuple[str, ...] = (namespace,)
        selector: LabelSelector = None
        if dice.one_in(4):
            named, selector = dice.pick(((), ("other",))), dice.pick(_NAMESPACE_SELECTORS)
        return PodTerm(dice.pick(_TERM_KEYS), self._selector(labels), named, selector)

    def _selector(self, labels: dict[str, str]) -> LabelSelector:
        """Mostly its own app."""
        own = (requirement("app", "In", labels["app"]),)
        others: tuple[LabelSelector, ...] = (
            (requirement("app", "In", self._dice.pick(_APPS)),),
            (requirement("app", "Exists"), requirement("version", "DoesNotExist")),
            (requirement("app", "NotIn", "web"),),
            (*own, requirement("version", "In", "2")),
            (),
            None,
        )
        return self._dice.pick(others) if self._dice.one_in(3) else own

    def _daemon_sets(self, daemon_sets: Iterable[DaemonSet]) -> tuple[DaemonSet, ...]:
        exporters = self._knobs.host_ports and self._dice.one_in(3)
        return tuple(
            evolve(each, placing=evolve(each.placing, host_ports=(HostPort(9100),)))
            if exporters and number == 0
            else each
            for number, each in enumerate(daemon_sets)
        )


def _renamed(ledger: Ledger, names: dict[str, PodKey]) -> Ledger:
    return evolve(ledger, planned={str(names[old]): claim for old, claim in ledger.planned.items()})
