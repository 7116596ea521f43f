"""What a pod asks of a node, as kube-scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.model.quantity import Resources
from engine.observe.kubernetes import decode_pods
from engine.observe.pod_requests import effective_requests
from tests.observe.kubernetes_objects import (
    container,
    pod_object,
)

GI = 2**30


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"containers": [container(cpu="500m", memory="1Gi", gpu="1"), container(cpu="250m")]},
            {"cpu": 750, "memory": GI, "nvidia.com/gpu": 1},
            id="containers add up",
        ),
        pytest.param(
            {"containers": [container(cpu="500m")], "initContainers": [container(cpu="2"), container(memory="4Gi")]},
            {"cpu": 2000, "memory": 4 * GI},
            id="init containers run one by one, so the largest of each counts",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="250m", restart="Always")]},
            {"cpu": 1250},
            id="a sidecar runs beside the containers",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="500m", restart="Always"), container(cpu="2")],
            },
            {"cpu": 2500},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="2"), container(cpu="500m", restart="Always")],
            },
            {"cpu": 2000},
            id="but not beside those after it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [
                    container(cpu="1", restart="Always"),
                    container(cpu="1"),
                    container(cpu="3", restart="Always"),
                ],
            },
            {"cpu": 5000},
            id="sidecars and containers together may be the peak",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "120Mi"}},
            {"cpu": 1250, "memory": 120 * 2**20},
            id="the runtime's overhead is added",
        ),
        pytest.param(
            {"containers": [container(cpu="1", limits={"cpu": "2", "nvidia.com/gpu": 1})]},
            {"cpu": 1000, "nvidia.com/gpu": 1},
            id="a limit fills a missing request only",
        ),
        pytest.param(
            {"containers": [container(cpu="0", gpu="0", limits={"cpu": "2"})]},
            {},
            id="zero is nothing, and is not filled from the limit",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1", gpu="1"), container(cpu="1")],
                "resources": {"requests": {"cpu": "3", "memory": "2Gi", "nvidia.com/gpu": "9"}},
            },
            {"cpu": 3000, "memory": 2 * GI, "nvidia.com/gpu": 1},
            id="requests of the whole pod replace the sum of cpu and memory",
        ),
        pytest.param({"containers": [{"name": "bare"}]}, {}, id="no requests at all"),
        pytest.param(
            {"containers": [container(cpu=1, memory=1e9)]}, {"cpu": 1000, "memory": 10**9}, id="numbers as numbers"
        ),
    ],
)
def test_effective_requests_are_what_kube_scheduler_counts(spec: dict[str, Any], expected: dict[str, int]) -> None:
    assert effective_requests(spec) == Resources({**expected, "pods": 1})


def test_a_resize_in_progress_counts_the_larger_of_old_and_new() -> None:
    raw = pod_object({"nodeName": "node-1", "containers": [container("main", cpu="1", memory="2Gi")]})
    raw["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}, "allocatedResources": {}}
        ],
    }

    ((pod,), _) = decode_pods([raw])

    assert pod.placing.requests == Resources({"cpu": 2000, "memory": 2 * GI, "pods": 1})
