"""What rules are told of pods, types, nodes and plans: every field of the schema, in its unit, and no other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from attrs import evolve

from engine.catalog.build import build_catalog
from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.environment import Pricing
from engine.model.pod import Owner
from engine.model.policy import Disruption
from engine.model.quantity import Resources
from engine.observe.catalog_source import read_catalog_data
from engine.policy.cel.types import Record
from engine.policy.facts.schema import CLUSTER, COST, INSTANCE_TYPE, NODE, NODE_POOL, PLAN, POD, params_record
from engine.policy.facts.values import (
    Facts,
    cluster_facts,
    cost_facts,
    gpu_count,
    instance_type_facts,
    node_facts,
    node_pool_facts,
    params_facts,
    plan_facts,
    pod_facts,
    window_facts,
)
from tests import builders
from tests.builders import G5_12XLARGE, G5_XLARGE, NOON, minutes, node_pool, pod, toleration, usd
from tests.decide.world import World, policy
from tests.policy.facts.conforming import misfits

SHIPPED = {each.name: each for each in build_catalog("us-east-1", {}, read_catalog_data(), Pricing()).instance_types}
LLM = evolve(
    pod("llm-0", gpu=2, cpu="1500m", memory="8Gi", tolerations=[toleration("gpu")], owner=Owner("ReplicaSet", "llm")),
    labels={"tier": "gold"},
)
AGENT = evolve(pod("agent", cpu="100m", owner=Owner("DaemonSet", "agent"), priority=2_000_001_000), node_name="node-1")
PARAMS = {"minMem": 80, "share": 0.5, "team": "ml", "strict": True}


def bound(name: str, **more: object) -> builders.Pod:
    return pod(name, gpu=1, node="node-1", **more)  # type: ignore[arg-type]


def type_facts(kind: InstanceType, *zones: str) -> Facts:
    return instance_type_facts(kind, keys.ON_DEMAND, usd("1.006"), zones or ("us-east-1a",))


def node_told(*pods: builders.Pod, do_not_disrupt: bool = False) -> Facts:
    node = builders.node("node-1", created=NOON, do_not_disrupt=do_not_disrupt)
    return node_facts(builders.claim(), node, pods, NOON + minutes(90))


def lively_plan() -> tuple[World, Facts]:
    """A world of two idle nodes and a new pod for two GPUs, and its plan: marks on both, and a launch."""
    pool = node_pool(disruption=Disruption(consolidate_after=minutes(0), budgets=()))
    one = World(policy(pool), [pod(f"llm-{number}", gpu=1) for number in range(2)])
    one.turn()
    one.finish(list(one.pods.values()))
    one.pods[LLM.key] = evolve(LLM, created_at=one.now)
    return one, plan_facts(one.decide(), [each.name for each in one.policy.node_pools])


SAMPLES: dict[str, tuple[Record, Callable[[], Facts]]] = {
    "pod": (POD, lambda: pod_facts(LLM, NOON)),
    "pod without anything": (POD, lambda: pod_facts(pod(), NOON)),
    "bound pod": (POD, lambda: pod_facts(bound("llm-1"), NOON)),
    "GPU type": (INSTANCE_TYPE, lambda: type_facts(SHIPPED["p5.48xlarge"])),
    "plain type": (INSTANCE_TYPE, lambda: type_facts(SHIPPED["m5.large"])),
    "pool": (NODE_POOL, lambda: node_pool_facts(node_pool(labels={"a": "b"}), 3, 12)),
    "node": (NODE, lambda: node_told(bound("llm-1"), AGENT)),
    "claim in flight": (NODE, lambda: node_facts(builders.claim(), None, (), NOON)),
    "plan": (PLAN, lambda: lively_plan()[1]),
    "cost": (COST, lambda: cost_facts(lively_plan()[0].decide())),
    "cluster": (CLUSTER, lambda: cluster_facts(builders.environment(), builders.snapshot(pods=[LLM]))),
    "params": (params_record(PARAMS), lambda: params_facts(PARAMS)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_field_is_filled_with_a_value_of_its_type_and_there_is_no_other(name: str) -> None:
    record, facts = SAMPLES[name]
    assert list(misfits(record, facts())) == []


# --- pods


def test_a_pods_amounts_are_in_base_units() -> None:
    facts = pod_facts(LLM, NOON)
    assert (facts["gpus"], facts["cpuMillis"], facts["memoryBytes"]) == (2, 1500, 8 * 2**30)
    assert facts["requests"] == {"cpu": 1500, "memory": 8 * 2**30, "nvidia.com/gpu": 2, "pods": 1}
    assert (facts["ownerKind"], facts["ownerName"], facts["labels"]) == ("ReplicaSet", "llm", {"tier": "gold"})
    assert facts["tolerations"] == [{"key": "gpu", "operator": "Exists", "value": "", "effect": ""}]


def test_a_pod_waits_from_its_creation_until_it_is_bound() -> None:
    assert pod_facts(LLM, NOON + minutes(7))["waiting"] == minutes(7)
    assert pod_facts(bound("llm-1"), NOON + minutes(7))["waiting"] == timedelta(0)
    assert pod_facts(bound("llm-1"), NOON)["bound"] is True


def test_a_pod_from_the_future_has_not_waited_less_than_nothing() -> None:
    assert pod_facts(LLM, NOON - minutes(1))["waiting"] == timedelta(0)


@pytest.mark.parametrize(
    ("asked", "gpus"),
    [
        ({}, 0),
        ({"nvidia.com/gpu": 4}, 4),
        ({"amd.com/gpu": 1}, 1),
        ({"habana.ai/gaudi": 8}, 8),
        ({"aws.amazon.com/neuroncore": 2}, 2),
        ({"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32}, 16),
        ({"vpc.amazonaws.com/efa": 4}, 0),
    ],
)
def test_accelerators_of_all_makers_count_and_neuron_cores_only_by_themselves(asked: dict[str, int], gpus: int) -> None:
    assert gpu_count(Resources(asked)) == gpus


# --- instance types


@pytest.mark.parametrize(
    ("name", "gpu", "count", "memory_gib", "nvlink"),
    [
        ("g5.xlarge", "a10g", 1, 22, False),
        ("g5.48xlarge", "a10g", 8, 22, False),
        ("g6e.12xlarge", "l40s", 4, 44, False),
        ("g7e.48xlarge", "rtx-pro-server-6000", 8, 96, False),
        ("p3.2xlarge", "v100", 1, 16, False),
        ("p3.8xlarge", "v100", 4, 16, True),
        ("p4d.24xlarge", "a100", 8, 40, True),
        ("p5.4xlarge", "h100", 1, 80, False),
        ("p5.48xlarge", "h100", 8, 80, True),
        ("p6-b300.48xlarge", "b300", 8, 268, True),
        ("g6f.large", "l4", 0, 2, False),
        ("trn1.32xlarge", "trainium", 16, 32, False),
        ("m5.large", "", 0, 0, False),
    ],
)
def test_a_types_gpus_are_told_by_name_count_memory_of_one_and_nvlink(
    name: str, gpu: str, count: int, memory_gib: int, nvlink: bool
) -> None:
    facts = type_facts(SHIPPED[name])
    assert (facts["gpuName"], facts["gpuCount"], facts["gpuMemoryGiB"]) == (gpu, count, memory_gib)
    assert facts["nvlink"] is nvlink


def test_names_of_every_shipped_type_are_in_lower_case_as_the_lint_of_rules_supposes() -> None:
    named = [instance_type_facts(each, keys.SPOT, usd("1"), ["us-east-1a"]) for each in SHIPPED.values()]
    texts = {str(facts[field]) for facts in named for field in ("name", "family", "size", "gpuName")}
    assert {text for text in texts if text != text.lower()} == set()
    assert {"h100", "g6e", "12xlarge"} <= texts


def test_a_type_is_told_at_one_capacity_type_with_its_price_in_dollars() -> None:
    facts = instance_type_facts(SHIPPED["p5.48xlarge"], keys.SPOT, usd("19.4933"), ["us-east-1c", "us-east-1a"])
    assert (facts["capacityType"], facts["price"], facts["zones"]) == ("spot", 19.4933, ["us-east-1a", "us-east-1c"])
    assert (facts["family"], facts["size"], facts["efa"], facts["arch"]) == ("p5", "48xlarge", True, "amd64")


# --- nodes


def test_a_node_tells_its_workload_without_the_pods_of_daemon_sets() -> None:
    facts = node_told(bound("llm-2"), AGENT, bound("llm-1"))
    assert [each["name"] for each in facts["pods"]] == ["llm-1", "llm-2"]  # type: ignore[index, union-attr]
    assert (facts["empty"], facts["gpusUsed"], facts["gpus"], facts["age"]) == (False, 2, 1, minutes(90))


def test_a_node_with_daemon_sets_pods_alone_is_empty() -> None:
    facts = node_told(AGENT)
    assert (facts["empty"], facts["pods"]) == (True, [])


def test_a_node_is_not_to_be_disrupted_for_its_own_sake_nor_for_any_pods() -> None:
    assert node_told(bound("llm-1"))["doNotDisrupt"] is False
    assert node_told(bound("llm-1"), do_not_disrupt=True)["doNotDisrupt"] is True
    assert node_told(evolve(AGENT, do_not_disrupt=True))["doNotDisrupt"] is True


def test_a_claim_without_a_node_goes_by_its_own_name_and_age() -> None:
    facts = node_facts(builders.claim("gpu-00007", created=NOON), None, (), NOON + minutes(3))
    assert (facts["name"], facts["age"], facts["usdPerHour"]) == ("gpu-00007", minutes(3), 1.0)


# --- plans


def test_a_plan_counts_what_stays_once_launches_and_removals_are_done() -> None:
    one, facts = lively_plan()
    assert (facts["launchCount"], facts["removalCount"], facts["unplaced"]) == (1, 2, 0)
    assert facts["pools"] == [{"name": "gpu", "before": 2, "after": 1, "gpusBefore": 2, "gpusAfter": 4}]

    one.turn(minutes(0))
    released = one.decide()
    assert plan_facts(released, ["gpu", "idle"])["pools"] == [
        {"name": "gpu", "before": 3, "after": 1, "gpusBefore": 6, "gpusAfter": 4},
        {"name": "idle", "before": 0, "after": 0, "gpusBefore": 0, "gpusAfter": 0},
    ]


def test_a_plans_cost_is_in_dollars_and_what_is_drained_is_still_paid_for() -> None:
    one, _ = lively_plan()
    plan = one.decide()
    added = plan.launches[0].claim.usd_per_hour.micros / 10**6
    assert cost_facts(plan) == {"hourlyBefore": 0.8, "hourlyAfter": 0.8 + added, "hourlyAdded": added}


def test_launches_and_removals_are_told_one_by_one() -> None:
    one, facts = lively_plan()
    (launched,) = one.decide().launches
    (told,) = facts["launches"]  # type: ignore[misc]
    assert told == {
        "nodePool": "gpu",
        "instanceType": G5_12XLARGE.name,
        "zone": launched.claim.inputs.zone,
        "capacityType": "spot",
        "usdPerHour": 2.28,
        "gpus": 4,
        "pods": 1,
    }
    assert {each["reason"] for each in facts["removals"]} == {"Empty"}  # type: ignore[index, union-attr]


# --- the cluster


def test_a_cluster_counts_all_its_nodes_and_what_waits() -> None:
    nodes = [builders.node("node-1", G5_XLARGE), builders.node("node-2", G5_12XLARGE)]
    facts = cluster_facts(builders.environment("prod"), builders.snapshot(pods=[LLM, bound("llm-1")], nodes=nodes))
    assert facts == {
        "environment": "prod",
        "region": "us-east-1",
        "nodes": 2,
        "gpus": 5,
        "pendingPods": 1,
        "pendingGpus": 2,
    }


def test_windows_are_told_by_name() -> None:
    assert window_facts({"business": True}) == {"business": True}
