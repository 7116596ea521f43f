"""Workloads that scale, and what is found of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from engine.decide.scale_ceilings import CeilingFinding, ScaledWorkload, judge_ceilings
from engine.model.environment import Environment
from engine.model.pod import DaemonSet, Pod
from engine.model.policy import NodePool, Policy
from engine.model.quantity import Resources
from engine.model.workload import ObjectKey
from tests.builders import SOMEWHERE, catalog, environment, node_class, node_pool, pod, requirement

Found = TypeVar("Found", bound=CeilingFinding)

BIG_NODES = (requirement("node.kubernetes.io/instance-type", "In", "g5.12xlarge"),)


def scaled(
    name: str,
    most: int,
    template: Pod | None = None,
    *,
    least: int = 0,
    kind: str = "Deployment",
    by: str = "HorizontalPodAutoscaler",
) -> ScaledWorkload:
    """A workload in the namespace ``ml``; each of its pods asks for one GPU unless the template says otherwise."""
    asked = template if template is not None else pod(gpu=1)
    return ScaledWorkload(kind, ObjectKey("ml", name), by, least, most, asked.placing, SOMEWHERE)


def limited(name: str, limits: Mapping[str, str | int] | None = None, **more: object) -> NodePool:
    """A pool of four-GPU nodes (48 cpu, 192Gi) with these limits."""
    return node_pool(name, limits=limits, **{"requirements": BIG_NODES, **more})  # type: ignore[arg-type]


def overriding(limits: Mapping[str, Mapping[str, str | int]]) -> Environment:
    """An environment whose stack file lays these limits over those of the pools."""
    return environment(limits={name: Resources.parse(each) for name, each in limits.items()})


def judged(
    workloads: Iterable[ScaledWorkload],
    *pools: NodePool,
    stack: Environment | None = None,
    daemon_sets: Iterable[DaemonSet] = (),
) -> tuple[CeilingFinding, ...]:
    policy = Policy(node_pools=pools, node_classes=(node_class(),))
    return judge_ceilings(workloads, policy, catalog(), stack or environment(), daemon_sets)


def only(kind: type[Found], findings: Iterable[CeilingFinding]) -> Found:
    """The one finding of that kind."""
    (found,) = [each for each in findings if isinstance(each, kind)]
    return found
