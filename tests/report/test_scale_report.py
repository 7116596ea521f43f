"""Ceilings that cannot be held, in words."""

from __future__ import annotations

from engine.decide.scale_ceilings import CeilingFinding, ScaledWorkload
from engine.model import labels as keys
from engine.model.diagnostic import Position, Severity
from engine.report.diagnostics_report import render_diagnostics
from engine.report.scale_report import scale_diagnostics
from tests.builders import node_pool, pod, requirement, taint, toleration
from tests.decide.scaled import judged, limited, scaled
from tests.report.golden_text import assert_golden, printed

CORE = {"tier": "core"}
GPU = "nvidia.com/gpu"


def told(*findings: CeilingFinding) -> list[str]:
    return [finding.message for finding in scale_diagnostics(findings)]


def every_finding() -> tuple[CeilingFinding, ...]:
    """Three pools, one of GPUs for the core tier, and workloads that ask too much of them in each way."""
    at = Position("policies/core.yaml", 5, 3, "  name: gpu-core")
    pools = (
        limited("gpu-core", {GPU: 16}, labels=CORE, min_nodes=1, position=at),
        limited("gpu-elastic", {GPU: 64}),
        node_pool(
            "general",
            requirements=(requirement(keys.INSTANCE_TYPE, "In", "m5.large"),),
            limits={"cpu": "8", "memory": "64Gi"},
            taints=(taint("cpu-only"),),
        ),
    )
    workloads: list[ScaledWorkload] = [
        scaled("llm", 40, pod(cpu="8", gpu=4)),
        scaled("embed", 16, pod(gpu=1, selector=CORE), least=5, kind="StatefulSet"),
        scaled("rank", 12, pod(gpu=1, selector=CORE), least=1, by="ScaledObject"),
        scaled("web", 9, pod(cpu="1500m", memory="1Gi", tolerations=(toleration("cpu-only"),))),
        scaled("train", 3, pod(gpu=8)),
    ]
    return judged(workloads, *pools)


def test_each_finding_says_its_numbers_and_what_to_do() -> None:
    diagnostics = scale_diagnostics(every_finding())

    assert {each.severity for each in diagnostics} == {Severity.WARNING}
    assert {each.rule for each in diagnostics} == {
        "fake-scaling",
        "fake-scaling-together",
        "base-below-min-replicas",
        "no-pool-admits",
    }
    assert_golden("scale-ceilings.txt", printed(render_diagnostics(diagnostics, ["prod"])))


def test_one_reachable_pool_and_one_replica_are_told_in_the_singular() -> None:
    found = judged([scaled("llm", 17)], limited("gpu-core", {GPU: 16}))

    assert told(*found) == [
        "Deployment ml/llm may scale to 17 replicas x 1 nvidia.com/gpu = 17; the only reachable pool gpu-core"
        " (limit 16) holds 16: 1 replica can only ever be Pending"
    ]


def test_pools_that_different_limits_close_are_told_with_the_replicas_of_each() -> None:
    found = judged([scaled("llm", 99)], limited("core", {GPU: 16}), limited("elastic", {"nodes": 3}))

    assert told(*found) == [
        "Deployment ml/llm may scale to 99 replicas; reachable pools core (limit 16 nvidia.com/gpu: 16 replicas) and"
        " elastic (limit 3 nodes: 12 replicas) hold 28: 71 replicas can only ever be Pending"
    ]


def test_the_hint_names_the_autoscalers_own_field_and_the_number_that_would_do() -> None:
    (of_hpa,) = scale_diagnostics(judged([scaled("llm", 17)], limited("core", {GPU: 16})))
    (of_none,) = scale_diagnostics(judged([scaled("llm", 17)], limited("core", {GPU: 3})))
    (of_keda,) = scale_diagnostics(judged([scaled("llm", 17, by="ScaledObject")], limited("core", {GPU: 16})))

    assert of_hpa.hint.endswith("or lower maxReplicas to 16")
    assert of_keda.hint.endswith("or lower maxReplicaCount to 16")
    assert of_none.hint == "raise a pool's limits, in its file or in nodewright:limits"


def test_a_pool_of_fixed_size_is_told_to_change_its_replicas() -> None:
    found = judged([scaled("llm", 8, least=5)], limited("static", replicas=1))

    hints = {each.rule: each.hint for each in scale_diagnostics(found)}

    assert hints["base-below-min-replicas"] == "set spec.replicas to 2, or lower minReplicas"


def test_many_pools_that_do_not_admit_the_pods_are_told_in_part() -> None:
    pools = [limited(f"pool-{number}", taints=(taint("closed"),)) for number in range(9)]

    (message,) = told(*judged([scaled("llm", 4)], *pools))

    assert message.count("the pod does not tolerate") == 6
    assert message.endswith("; and 3 further pools")
