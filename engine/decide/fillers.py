"""Pods of priority classes that may not start nodes: they fill what is there, and what is launched for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.model import labels as keys
from engine.model.pod import Pod, PodKey
from engine.model.workload import Workload
from engine.scheduling.terms import Terms


def filling_classes(workload: Workload) -> frozenset[str]:
    """The names of the priority classes whose annotation says so."""
    return frozenset(
        each.name for each in workload.priority_classes if each.annotations.get(keys.MAY_START_NODES) == "false"
    )


def terms_of(pods: Iterable[Pod], workload: Workload) -> Mapping[PodKey, Terms]:
    """The terms of those pods that only fill."""
    terms = {name: Terms(fills_only=name) for name in filling_classes(workload)}
    if not terms:
        return {}
    return {pod.key: terms[pod.priority_class] for pod in pods if pod.priority_class in terms}
