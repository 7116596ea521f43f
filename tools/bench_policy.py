"""Measure requirement rules: 10,000 pods of 120 workloads, 60 instance types, 5 rules, nothing remembered.

Every pod has a label of its own, as many do in a real cluster. Measured is what a pass asks of the rules before it
places pods: all rulings from scratch, only the programs being compiled. The naive loop, each pod by each type by each
rule, is measured on some of the pods and extrapolated, and its answers must be the same.
Then once more with rules that each tell all workloads apart, which is the most that these can ask.
`make bench-policy`; results also go to .nodewright/bench/policy.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from engine.catalog.build import build_catalog
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.constraint import Toleration
from engine.model.environment import Cluster, Environment, Network, NetworkMode, Pricing
from engine.model.pod import Owner, Placing, Pod, PodKey, PodPhase
from engine.model.policy import Policy
from engine.model.quantity import Resources
from engine.model.snapshot import CloudFacts, Snapshot
from engine.observe.catalog_source import read_catalog_data
from engine.policy.cel.port import Bound, Program
from engine.policy.facts.schema import INSTANCE_TYPE, POD, params_record
from engine.policy.facts.values import params_facts, pod_facts
from engine.policy.load import load_policy
from engine.policy.rules import memo
from engine.policy.rules.compiled import Bundle, CompiledRule, bundle_of
from engine.policy.rules.eligibility import Eligibility
from engine.policy.rules.pass_facts import PoolMarket
from engine.policy.rules.ruling import TypeAt

PROJECT = Path(__file__).resolve().parents[1]
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
ZONES = {"us-east-1a": "use1-az1", "us-east-1b": "use1-az2"}
WORKLOADS, TYPES, TARGET_SECONDS = 120, 60, 0.3

FILES = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements: [{key: kubernetes.io/arch, operator: Exists}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: gpu}
spec:
  role: bench-nodes
  amiSelectorTerms: [{alias: al2023@latest}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: bench}}]
---
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: gpu-memory-by-tier}
spec:
  params: {gold: {type: int, default: 40}, silver: {type: int, default: 20}}
  require: |-
    pod.gpus == 0 || !("tier" in pod.labels)
      || instanceType.gpuMemoryGiB >= (pod.labels.tier == "gold" ? params.gold : params.silver)
  message: a tier's pods need GPUs of some size
---
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: gold-on-nvlink}
spec:
  match: {pods: {selector: {tier: gold}}}
  require: pod.gpus <= 1 || instanceType.nvlink || instanceType.gpuCount >= 4
  message: gold pods of several GPUs want them joined
---
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: no-gpu-without-request}
spec:
  require: pod.gpus > 0 || instanceType.gpuCount == 0
  message: a GPU node is for pods that ask for a GPU
---
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: spot-for-the-tolerant}
spec:
  require: |-
    instanceType.capacityType != "spot"
      || pod.tolerations.exists(t, t.key == "spot" && t.operator == "Exists")
  message: spot is for pods that tolerate it
---
apiVersion: nodewright.dev/v1alpha1
kind: RequirementRule
metadata: {name: likes-room-that-is-cheap}
spec:
  variables: [{name: cheap, expression: "instanceType.price < 1.0 ? 1.0 : 1.0 / instanceType.price"}]
  prefer: "instanceType.vcpus * 1000 < 2 * pod.cpuMillis ? 0.0 : variables.cheap"
  message: pods like twice their CPU, and what is cheap
"""


READS_APP = """[{name: of-an-app, expression: 'pod.labels.app != ""'}]"""


def catalog() -> Catalog:
    """Sixty instance types of the shipped list, at one capacity type each: every third of them on spot."""
    shipped = build_catalog("us-east-1", ZONES, read_catalog_data(), Pricing())
    prices = {(each.instance_type, each.capacity_type) for each in shipped.offerings if each.usd_per_hour is not None}
    sold = [each for each in shipped.instance_types if (each.name, keys.ON_DEMAND) in prices]
    wanted = {
        each.name: keys.SPOT if number % 3 == 0 and (each.name, keys.SPOT) in prices else keys.ON_DEMAND
        for number, each in enumerate(sold[:TYPES])
    }
    return evolve(
        shipped,
        instance_types=tuple(each for each in sold if each.name in wanted),
        offerings=tuple(each for each in shipped.offerings if wanted.get(each.instance_type) == each.capacity_type),
    )


def pods(count: int) -> tuple[Pod, ...]:
    """Of 120 workloads, whose pods share what they ask for, and each has a label that no other pod has."""
    return tuple(_pod(number % WORKLOADS, number) for number in range(count))


def _pod(workload: int, number: int) -> Pod:
    name = f"workload-{workload}"
    return Pod(
        key=PodKey(f"team-{workload % 12}", f"{name}-{number}"),
        placing=_placing(workload),
        created_at=NOON,
        phase=PodPhase.PENDING,
        labels={
            "app": name,
            "tier": ("gold", "silver", "bronze")[workload % 3],
            "team": ("research", "serving", "data", "platform")[workload % 4],
            "apps.kubernetes.io/pod-index": str(number),
        },
        owner=Owner("ReplicaSet", name),
        priority=workload % 5 * 100,
    )


_PLACINGS: dict[int, Placing] = {}


def _placing(workload: int) -> Placing:
    if workload not in _PLACINGS:
        amounts = {"cpu": workload % 7 + 1, "memory": f"{workload % 9 + 1}Gi", "pods": 1}
        gpus = (0, 1, 1, 2, 4, 8)[workload % 6]
        borne = (Toleration("nvidia.com/gpu", exists=True), Toleration("spot", exists=True))
        _PLACINGS[workload] = Placing(
            requests=Resources.parse(amounts | ({"nvidia.com/gpu": gpus} if gpus else {})),
            tolerations=borne[: workload % 2 + 1],
        )
    return _PLACINGS[workload]


class CountingProgram:
    """Counts how many answers are worked out."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.source, self.result, self.reads = program.source, program.result, program.reads
        self.count = 0

    def evaluate(self, facts: Mapping[str, Bound]) -> Any:
        self.count += 1
        return self.program.evaluate(facts)

    def evaluate_each(self, facts: Mapping[str, Bound], variable: str, items: Sequence[Bound]) -> Any:
        self.count += len(items)
        return self.program.evaluate_each(facts, variable, items)

    def observe(self, facts: Mapping[str, Bound]) -> Any:
        return self.program.observe(facts)


@frozen(eq=False)
class Question:
    """Everything that is asked about."""

    policy: Policy
    bundle: Bundle
    catalog: Catalog
    environment: Environment
    snapshot: Snapshot
    market: PoolMarket

    def eligibility(self, bundle: Bundle | None = None) -> Eligibility:
        asked = bundle or self.bundle
        return Eligibility(asked, self.policy, self.catalog, self.environment, self.snapshot, [self.market])

    def took(self) -> tuple[float, float]:
        """Seconds by the clock and of the CPU for the rulings of all pods."""
        begin, worked = time.perf_counter(), time.thread_time()
        self.eligibility().rulings(self.snapshot.pods)
        return time.perf_counter() - begin, time.thread_time() - worked


def question(count: int, engine: str, *, reads_all: bool) -> Question:
    cluster = Cluster("bench", "https://127.0.0.1:6443", "dGVzdA==", "10.100.0.0/16")
    network = Network(mode=NetworkMode.EXISTING, zones=ZONES)
    environment = Environment(name="bench", region="us-east-1", cluster=cluster, network=network, cel_engine=engine)
    before, after = "message:", f"matchConditions: {READS_APP}\n  message:"
    files = FILES.replace(before, after) if reads_all else FILES
    policy = load_policy([("bench.yaml", files.encode())], environment)
    sold = catalog()
    types = tuple(sorted({(each.instance_type, each.capacity_type) for each in sold.offerings}))
    waiting = Snapshot("bench", NOON, pods=pods(count), nodes=(), daemon_sets=(), cloud=CloudFacts())
    market = PoolMarket(policy.node_pools[0], nodes=0, gpus=0, types=types)
    return Question(policy, bundle_of(policy), sold, environment, waiting, market)


def counted(asked: Question) -> tuple[int, int]:
    """How many kinds of pods there were to ask about, and how many answers were worked out."""
    programs: list[CountingProgram] = []

    def counting(rule: CompiledRule) -> CompiledRule:
        made = {part: CountingProgram(program) for part, program in rule.programs.items()}
        programs.extend(made.values())
        return evolve(rule, programs=made)

    rules = tuple(map(counting, asked.bundle.requirement_rules))
    memo.forget()
    eligibility = asked.eligibility(Bundle(asked.bundle.engine, rules, (), (), ()))
    eligibility.rulings(asked.snapshot.pods)
    memo.forget()
    return eligibility.class_count, sum(each.count for each in programs)


def naive(asked: Question, sample: Sequence[Pod]) -> tuple[float, dict[PodKey, frozenset[TypeAt]]]:
    """CPU seconds for the sample, and the types that each of its pods may not get."""
    engine, sold = asked.bundle.engine, memo.book_of(asked.bundle, "", asked.catalog, "naive").sold
    types = {each: engine.bind(INSTANCE_TYPE, sold[each].facts) for each in asked.market.types}
    params = {
        each.rule.name: engine.bind(params_record(each.rule.params), params_facts(each.rule.params))
        for each in asked.bundle.requirement_rules
    }
    barred: dict[PodKey, frozenset[TypeAt]] = {}
    begin = time.thread_time()
    for pod in sample:
        bound, noes = engine.bind(POD, pod_facts(pod, NOON)), set()
        for type_at, kind in types.items():
            for rule in asked.bundle.requirement_rules:
                program = rule.programs.get("require") or rule.programs["prefer"]
                if not rule.matches_pod(pod):
                    continue
                facts = {"pod": bound, "instanceType": kind, "params": params[rule.rule.name]}
                if rule.applies(facts) and program.evaluate(facts).value is not True and "require" in rule.programs:
                    noes.add(type_at)
        barred[pod.key] = frozenset(noes)
    return time.thread_time() - begin, barred


def measured(asked: Question, runs: int, naive_pods: int) -> dict[str, Any]:
    classes, evaluations = counted(asked)
    # A pass finds the loops over types compiled, too: they are a part of the programs.
    asked.took()
    cold = []
    for _ in range(runs):
        memo.forget()
        gc.collect()
        cold.append(asked.took())
    warm = [asked.took() for _ in range(runs)]
    waiting = asked.snapshot.pods
    sample = waiting[:: max(1, len(waiting) // naive_pods)][:naive_pods]
    took, barred = naive(asked, sample)
    rulings = asked.eligibility().rulings(sample)
    for key, noes in barred.items():
        if frozenset(rulings[key].ruling("gpu").barred) != noes:
            raise SystemExit(f"bench-policy: the naive loop says something else of {key}")
    naive_seconds = took / len(sample) * len(waiting)
    return {
        "pods": len(waiting),
        "types": len(asked.market.types),
        "rules": len(asked.bundle.requirement_rules),
        "classes": classes,
        "evaluations": evaluations,
        "cold_seconds": of_runs([each for each, _ in cold]),
        "cold_cpu_seconds": of_runs([each for _, each in cold]),
        "remembered_cpu_seconds": of_runs([each for _, each in warm]),
        "naive_cpu_seconds": round(naive_seconds, 1),
        "naive_extrapolated_from_pods": len(sample),
        "ratio_to_naive": round(naive_seconds / statistics.median(each for _, each in cold)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--naive-pods", type=int, default=60, help="how many pods the naive loop is measured on")
    parser.add_argument("--cel-engine", default="cel-expr")
    given = parser.parse_args()
    told: dict[str, Any] = {"engine": given.cel_engine, "load_average_before": round(os.getloadavg()[0], 2)}
    print(f"The engine is {given.cel_engine}; load average {told['load_average_before']}.")
    for name, reads_all in (("five rules", False), ("the same, each telling all workloads apart", True)):
        asked = question(given.pods, given.cel_engine, reads_all=reads_all)
        told[name] = measured(asked, given.runs, given.naive_pods)
        show(name, told[name])
    told["load_average_after"] = round(os.getloadavg()[0], 2)
    kept = PROJECT / ".nodewright" / "bench" / "policy.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def of_runs(seconds: Sequence[float]) -> dict[str, float]:
    return {"median": round(statistics.median(seconds), 4), "least": round(min(seconds), 4)}


def show(name: str, told: Mapping[str, Any]) -> None:
    cold, worked, warm = told["cold_seconds"], told["cold_cpu_seconds"], told["remembered_cpu_seconds"]
    print(f"{told['pods']:,} pods x {told['types']} types x {told['rules']} rules: {name}")
    print(f"  {told['classes']} classes of pods, {told['evaluations']:,} evaluations")
    print(f"  cold: {cold['median']:.3f} s median, {cold['least']:.3f} s least; target {TARGET_SECONDS} s")
    print(f"  of that CPU: {worked['median']:.3f} s median, {worked['least']:.3f} s least")
    print(f"  CPU with all answers remembered: {warm['median']:.3f} s median, {warm['least']:.3f} s least")
    print(
        f"  CPU of the naive loop: {told['naive_cpu_seconds']:.0f} s, extrapolated from"
        f" {told['naive_extrapolated_from_pods']} pods: {told['ratio_to_naive']:,} times as much"
    )


if __name__ == "__main__":
    main()
