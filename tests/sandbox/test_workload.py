"""The sandbox's pods: real in their sizes, the same for the same seed, and enough to be refused some."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from engine.sandbox.workload import daemon_sets, draw_pods, inference_pods, sandbox_objects, workload_classes


def asked(pod: dict[str, Any], resource: str) -> str | None:
    (container,) = pod["spec"]["containers"]
    amount: str | None = container["resources"]["requests"].get(resource)
    return amount


def gpus_by_tier(objects: list[dict[str, Any]]) -> Counter[str]:
    gpus: Counter[str] = Counter()
    for each in objects:
        if each["kind"] == "Pod":
            gpus[each["spec"].get("nodeSelector", {}).get("workload-type", "")] += int(
                asked(each, "nvidia.com/gpu") or 0
            )
    return gpus


def test_the_table_keeps_the_traces_counts() -> None:
    classes = workload_classes()
    assert sum(each.pods for each in classes) == 8152
    by_gpus: Counter[int] = Counter()
    for each in classes:
        by_gpus[each.gpus] += each.pods
    assert by_gpus == {0: 1088, 1: 6989, 2: 16, 4: 15, 8: 44}
    assert sum(each.pods for each in classes if each.is_batch) == 3398


def test_the_same_seed_draws_the_same_pods_and_another_seed_others() -> None:
    assert draw_pods(50, seed=3) == draw_pods(50, seed=3)
    assert draw_pods(50, seed=3) != draw_pods(50, seed=4)


def test_a_longer_draw_begins_with_the_shorter() -> None:
    assert draw_pods(200, seed=1)[:40] == draw_pods(40, seed=1)


def test_pods_have_names_and_uids_of_their_own() -> None:
    objects = sandbox_objects(1000, seed=1)
    assert len({each["metadata"]["name"] for each in objects}) == len(objects) == 1002
    assert len({each["metadata"]["uid"] for each in objects}) == len(objects)
    assert all(len(each["metadata"]["name"]) <= 63 for each in objects)


def test_a_gpu_pod_is_tied_to_its_tier_and_tolerates_its_taints() -> None:
    for pod in draw_pods(300, seed=1):
        spec = pod["spec"]
        if asked(pod, "nvidia.com/gpu"):
            tier = spec["nodeSelector"]["workload-type"]
            assert tier in ("core", "elastic", "batch")
            assert spec["tolerations"] == [
                {"key": "workload-type", "operator": "Equal", "value": tier, "effect": "NoSchedule"},
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            ]
            assert spec["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": asked(pod, "nvidia.com/gpu")}
        else:
            assert "nodeSelector" not in spec
            assert "tolerations" not in spec


def test_a_drawn_pod_is_pending_and_its_replica_sets() -> None:
    created = datetime(2026, 11, 30, 12, tzinfo=UTC)
    for pod in draw_pods(20, seed=1, created_at=created):
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
        assert pod["metadata"]["name"].startswith(owner["name"])
        assert pod["metadata"]["creationTimestamp"] == "2026-11-30T12:00:00Z"
        assert pod["status"]["phase"] == "Pending"
        assert "nodeName" not in pod["spec"]


def test_the_default_sandbox_wants_a_little_more_than_its_pools_may_hold() -> None:
    gpus = gpus_by_tier(sandbox_objects(200, seed=1))
    assert 50 < gpus["core"] <= 60
    assert 0 < gpus["elastic"] <= 100
    assert gpus["batch"] > 0
    assert gpus[""] == 0


def test_a_tenth_of_the_pods_is_the_inference_deployment() -> None:
    objects = sandbox_objects(200, seed=1)
    kinds = Counter(each["kind"] for each in objects)
    assert kinds == {"Pod": 200, "DaemonSet": 2}
    assert gpus_by_tier(objects)["online-inference"] == 20


def test_an_inference_pod_asks_as_its_manifest_does() -> None:
    (pod,) = inference_pods(1)
    assert pod["spec"] == {
        "nodeSelector": {"workload-type": "online-inference", "accelerator": "nvidia-l40s"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "containers": [
            {
                "name": "server",
                "image": "registry.example.com/llm-inference:v1.0.0",
                "resources": {
                    "requests": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                    "limits": {"nvidia.com/gpu": "1"},
                },
            }
        ],
    }


def test_daemons_run_on_tainted_nodes_and_the_device_plugin_only_beside_gpus() -> None:
    plugin, agent = (each["spec"]["template"]["spec"] for each in daemon_sets())
    assert plugin["tolerations"] == agent["tolerations"] == [{"operator": "Exists"}]
    assert "affinity" in plugin
    assert "affinity" not in agent


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_tiny_sandbox_has_as_many_pods_as_it_was_asked_for(count: int) -> None:
    assert sum(each["kind"] == "Pod" for each in sandbox_objects(count, seed=1)) == count
