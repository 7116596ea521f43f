"""Autoscalers and their targets read from snapshots and manifests, and what is said where they cannot be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.decide.scale_ceilings import ScaledWorkload
from engine.model.canonical import canonical_json
from engine.model.diagnostic import Severity
from engine.model.fault import Fault
from engine.model.pod import Owner
from engine.model.policy import Policy
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.snapshot import Snapshot
from engine.model.workload import Autoscaler, ObjectKey, Workload, WorkloadOwner
from engine.reconcile.redaction import redacted
from engine.reconcile.scale_checking import ScaleSources, Scaling, read_scaling
from tests.builders import NOON, catalog, environment, minutes, node_class, pod, snapshot
from tests.decide.scaled import limited, overriding

Object = dict[str, Any]


def target(kind: str = "Deployment", name: str = "llm", *, gpu: int = 1, namespace: str | None = "ml") -> Object:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "main", "resources": {"limits": {NVIDIA_GPU: gpu, "cpu": 8}}}]}
            }
        },
    }


def hpa(spec: Mapping[str, Any], of: Mapping[str, Any] | None = None, namespace: str | None = "ml") -> Object:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "llm-scaler", **({"namespace": namespace} if namespace else {})},
        "spec": {"scaleTargetRef": of or {"kind": "Deployment", "name": "llm"}, **spec},
    }


def scaled_object(spec: Mapping[str, Any], of: Mapping[str, Any] | None = None) -> Object:
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "llm-scaler", "namespace": "ml"},
        "spec": {"scaleTargetRef": of or {"name": "llm"}, **spec},
    }


def read(folder: Path, *objects: object, recorded: Snapshot | None = None) -> Scaling:
    """What is read of one file with these documents, and of a recorded snapshot."""
    file, seen = folder / "workloads.yaml", folder / "seen.json"
    file.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    if recorded is not None:
        seen.write_bytes(canonical_json(recorded))
    return read_scaling(ScaleSources(seen if recorded is not None else None, (file,)))


def the_one(scaling: Scaling) -> ScaledWorkload:
    assert scaling.findings == ()
    (found,) = scaling.workloads
    return found


def rules(scaling: Scaling) -> list[str]:
    return [finding.rule for finding in scaling.findings]


@pytest.mark.parametrize(
    ("autoscaler", "numbers"),
    [
        (hpa({"maxReplicas": 40}), (1, 40)),
        (hpa({"minReplicas": 0, "maxReplicas": 40}), (0, 40)),
        ({**hpa({"minReplicas": 3, "maxReplicas": 40}), "apiVersion": "autoscaling/v1"}, (3, 40)),
        (scaled_object({}), (0, 100)),
        (scaled_object({"minReplicaCount": 2, "maxReplicaCount": 7}), (2, 7)),
        (scaled_object({"idleReplicaCount": 0, "minReplicaCount": 2, "maxReplicaCount": 7}), (0, 7)),
        (scaled_object({"idleReplicaCount": 1, "minReplicaCount": 2}), (1, 100)),
    ],
)
def test_an_autoscalers_numbers_are_what_kubernetes_and_keda_make_of_them(
    tmp_path: Path, autoscaler: Object, numbers: tuple[int, int]
) -> None:
    found = the_one(read(tmp_path, target(gpu=4), autoscaler))

    assert (found.min_replicas, found.max_replicas) == numbers
    assert found.pod.requests == Resources({"cpu": 8000, NVIDIA_GPU: 4, "pods": 1})
    assert (str(found), found.scaled_by) == ("Deployment ml/llm", autoscaler["kind"])


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "StatefulSet"])
def test_each_kind_that_scales_by_pods_is_found_by_its_own_name(tmp_path: Path, kind: str) -> None:
    scaling = read(tmp_path, target(kind), hpa({"maxReplicas": 4}, {"kind": kind, "name": "llm"}))

    assert the_one(scaling).kind == kind


def test_a_ceiling_is_told_at_its_line_and_column(tmp_path: Path) -> None:
    found = the_one(read(tmp_path, target(), hpa({"maxReplicas": 4})))

    assert found.position.file == str(tmp_path / "workloads.yaml")
    assert found.position.source_line[found.position.column - 1 :] == "4"
    assert found.position.source_line.strip() == "maxReplicas: 4"


def test_objects_without_a_namespace_meet_in_the_default_one(tmp_path: Path) -> None:
    scaling = read(tmp_path, target(namespace=None), hpa({"maxReplicas": 4}, namespace="default"))

    assert the_one(scaling).key == ObjectKey("default", "llm")


def test_folders_lists_and_daemonsets_are_read_and_other_kinds_passed_over(tmp_path: Path) -> None:
    below = tmp_path / "apps" / "llm"
    below.mkdir(parents=True)
    daemon = target("DaemonSet", "driver")
    others = [{"apiVersion": "v1", "kind": "Service", "metadata": {}}, {"apiVersion": "x/v1", "kind": "Deployment"}]
    (below / "a.yaml").write_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [target(), daemon, *others]})
    )
    (below / "b.yml").write_text(yaml.safe_dump(hpa({"maxReplicas": 4})))
    (below / "notes.txt").write_text("kind: [")

    scaling = read_scaling(ScaleSources(workloads=(tmp_path,)))

    assert the_one(scaling).max_replicas == 4
    assert [each.name for each in scaling.daemon_sets] == ["driver"]


@pytest.mark.parametrize(
    ("objects", "said"),
    [
        ([hpa({"maxReplicas": 4})], "Deployment ml/llm, which is not among what was read"),
        ([target(name="other"), hpa({"maxReplicas": 4})], "not among what was read"),
        ([target(namespace="dev"), hpa({"maxReplicas": 4})], "not among what was read"),
        ([target(), hpa({"maxReplicas": 4}, {"kind": "Rollout", "name": "llm"})], "what a replica of a Rollout is"),
        ([target("Job"), scaled_object({}, {"kind": "Job", "name": "llm"})], "what a replica of a Job is"),
    ],
)
def test_an_autoscaler_whose_target_is_not_known_is_told_with_the_target(
    tmp_path: Path, objects: list[Object], said: str
) -> None:
    scaling = read(tmp_path, *objects)

    assert scaling.workloads == ()
    assert rules(scaling) == ["autoscaler-without-target"]
    assert said in scaling.findings[0].message
    assert scaling.findings[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("autoscaler", "said"),
    [
        (hpa({"maxReplicas": -3}), "a number beyond"),
        (hpa({"maxReplicas": 2**31}), "a number beyond"),
        (hpa({"maxReplicas": 10**40}), "a number beyond"),
        (hpa({"minReplicas": -1, "maxReplicas": 3}), "a number beyond"),
        (hpa({}), "scales nothing"),
        (hpa({"minReplicas": 9, "maxReplicas": 3}), "at least 9 replicas and at most 3"),
        (scaled_object({"idleReplicaCount": -1}), "a number beyond"),
        (scaled_object({"minReplicaCount": 101}), "at least 101 replicas and at most 100"),
    ],
)
def test_numbers_that_cannot_be_are_told_and_never_multiplied(tmp_path: Path, autoscaler: Object, said: str) -> None:
    scaling = read(tmp_path, target(), autoscaler)

    assert scaling.workloads == ()
    assert rules(scaling) == ["bad-replicas"]
    assert said in scaling.findings[0].message


@pytest.mark.parametrize(
    ("objects", "rule", "line"),
    [
        ([["a", "list"]], "not-a-manifest", "- a"),
        (["just words"], "not-a-manifest", "just words"),
        ([{"kind": "Deployment"}], "not-a-manifest", "kind: Deployment"),
        ([{"apiVersion": "v1", "kind": "List", "items": [3]}], "not-a-manifest", "- 3"),
        ([hpa({"maxReplicas": "many"})], "unreadable-object", "maxReplicas: many"),
        ([hpa({"maxReplicas": 3.5})], "unreadable-object", "maxReplicas: 3.5"),
        ([hpa({"maxReplicas": 3}, {"kind": "Deployment"})], "unreadable-object", "kind: Deployment"),
        ([{**hpa({}), "spec": ["maxReplicas"]}], "unreadable-object", "- maxReplicas"),
        ([{**hpa({}), "metadata": None}], "unreadable-object", "metadata: null"),
        ([{**target(), "spec": {"template": {}}}], "unreadable-object", "template: {}"),
        ([target(gpu=-1)], "unreadable-object", "name: llm"),
        ([{**target("DaemonSet"), "spec": None}], "unreadable-object", "spec: null"),
    ],
)
def test_what_is_no_readable_manifest_is_an_error_at_its_place(
    tmp_path: Path, objects: list[object], rule: str, line: str
) -> None:
    scaling = read(tmp_path, *objects)

    assert rules(scaling) == [rule]
    assert scaling.findings[0].severity is Severity.ERROR
    assert scaling.findings[0].position.source_line.strip() == line


@pytest.mark.parametrize(
    "content", [b"kind: [", b"\x00\x01", b"\xff\xfe", b"a: &a [*a]", b"{{ .Values.x }}", b"a:\tb\n\tc"]
)
def test_a_file_that_is_no_yaml_is_an_error_of_that_file(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "broken.yaml"
    file.write_bytes(content)

    scaling = read_scaling(ScaleSources(workloads=(file,)))

    assert [finding.severity for finding in scaling.findings] == [Severity.ERROR]
    assert scaling.findings[0].position.file == str(file)


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.yaml").write_text("\n---\n")

    assert read_scaling(ScaleSources(workloads=(tmp_path,))) == Scaling()


@pytest.mark.parametrize("sources", [ScaleSources(workloads=(Path("nowhere"),)), ScaleSources(Path("nowhere.json"))])
def test_a_path_that_is_not_there_is_a_fault(sources: ScaleSources) -> None:
    with pytest.raises(Fault, match="nowhere"):
        read_scaling(sources)


def recorded(*autoscalers: Autoscaler, replicas: int = 1) -> Snapshot:
    """A Deployment of two ReplicaSets, the newer with four GPUs a pod, and another without any pod."""
    llm, old, new, rests = (ObjectKey("ml", name) for name in ("llm", "llm-1", "llm-2", "rests"))
    owners = (
        WorkloadOwner("Deployment", llm, replicas),
        WorkloadOwner("Deployment", rests),
        WorkloadOwner("ReplicaSet", old, 0, "Deployment/llm"),
        WorkloadOwner("ReplicaSet", new, replicas, "Deployment/llm"),
    )
    pods = (
        pod("llm-1-a", gpu=1, namespace="ml", owner=Owner("ReplicaSet", "llm-1"), created=NOON - minutes(9)),
        pod("llm-2-a", gpu=4, namespace="ml", owner=Owner("ReplicaSet", "llm-2")),
        pod("llm-2-z", gpu=8, namespace="ml", owner=Owner("ReplicaSet", "llm-2"), unsupported=("unreadable: cpu",)),
        pod("alone", gpu=8, namespace="ml"),
    )
    return snapshot(pods=pods, workload=Workload(owners=owners, autoscalers=autoscalers))


def scaler(name: str = "llm", kind: str = "HorizontalPodAutoscaler", most: int = 40, least: int = 1) -> Autoscaler:
    return Autoscaler(kind, ObjectKey("ml", f"{name}-{kind}"), f"Deployment/{name}", least, most)


def test_a_snapshots_workload_has_the_pods_of_its_newest_replicas(tmp_path: Path) -> None:
    for seen in (recorded(scaler()), redacted(recorded(scaler()))):
        found = the_one(read(tmp_path, recorded=seen))

        assert found.pod.requests.amount(NVIDIA_GPU) == 4
        assert found.max_replicas == 40
        assert (found.position.file, found.position.line) == (str(tmp_path / "seen.json"), 1)


def test_a_workload_without_a_pod_in_the_snapshot_is_unknown_until_its_manifest_is_named(tmp_path: Path) -> None:
    seen = recorded(scaler("rests"))

    alone = read(tmp_path, recorded=seen)
    with_manifest = read(tmp_path, target(name="rests", gpu=2), recorded=seen)

    assert (alone.workloads, rules(alone)) == ((), ["scaled-pods-unknown"])
    assert the_one(with_manifest).pod.requests.amount(NVIDIA_GPU) == 2


def test_a_manifest_goes_before_the_same_object_of_the_snapshot(tmp_path: Path) -> None:
    changed = hpa({"maxReplicas": 7})
    changed["metadata"]["name"] = "llm-HorizontalPodAutoscaler"

    found = the_one(read(tmp_path, target(gpu=2), changed, recorded=recorded(scaler())))

    assert (found.max_replicas, found.pod.requests.amount(NVIDIA_GPU)) == (7, 2)


def test_kedas_own_autoscaler_does_not_count_beside_its_scaled_object(tmp_path: Path) -> None:
    seen = recorded(scaler(kind="ScaledObject", most=30, least=0), scaler(most=30, least=1))

    found = the_one(read(tmp_path, recorded=seen))

    assert (found.scaled_by, found.min_replicas, found.max_replicas) == ("ScaledObject", 0, 30)


def test_of_two_autoscalers_of_one_workload_the_wider_numbers_count(tmp_path: Path) -> None:
    second = Autoscaler("HorizontalPodAutoscaler", ObjectKey("ml", "b"), "Deployment/llm", 5, 20)

    found = the_one(read(tmp_path, recorded=recorded(scaler(most=30, least=2), second)))

    assert (found.min_replicas, found.max_replicas) == (5, 30)


def test_owners_that_own_each_other_do_not_hang_the_reading(tmp_path: Path) -> None:
    owners = (
        WorkloadOwner("ReplicaSet", ObjectKey("ml", "a"), 1, "ReplicaSet/b"),
        WorkloadOwner("ReplicaSet", ObjectKey("ml", "b"), 1, "ReplicaSet/a"),
    )
    scales = Autoscaler("HorizontalPodAutoscaler", ObjectKey("ml", "a"), "ReplicaSet/b", 1, 2)
    pods = [pod("x", gpu=3, namespace="ml", owner=Owner("ReplicaSet", "a"))]

    seen = snapshot(pods=pods, workload=Workload(owners=owners, autoscalers=(scales,)))

    assert the_one(read(tmp_path, recorded=seen)).pod.requests.amount(NVIDIA_GPU) == 3


def test_findings_name_the_environment_only_where_several_are_checked(tmp_path: Path) -> None:
    scaling = read(tmp_path, target(), hpa({"maxReplicas": 9}))
    policy = Policy((limited("gpu", {NVIDIA_GPU: 4}),), (node_class(),))
    stack = overriding({"gpu": {NVIDIA_GPU: 8}})

    (of_one,) = scaling.judged(policy, catalog(), environment(), named=False)
    (of_several,) = scaling.judged(policy, catalog(), stack, named=True)

    assert of_one.message.endswith("gpu (limit 4) holds 4: 5 replicas can only ever be Pending")
    assert of_several.message.endswith("gpu (limit 8) holds 8: 1 replica can only ever be Pending (in test)")


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
_JSON = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_whatever_a_manifest_holds_the_check_ends_with_findings(tmp_path: Path, data: st.DataObject) -> None:
    """One part of a good pair of manifests becomes anything at all."""
    pair: list[Any] = [target(), data.draw(st.sampled_from([hpa({"maxReplicas": 9}), scaled_object({})]))]
    holder: Any = pair
    while True:
        key = data.draw(st.sampled_from(list(holder) if isinstance(holder, dict) else list(range(len(holder)))))
        if not isinstance(holder[key], dict | list) or not holder[key] or data.draw(st.booleans()):
            break
        holder = holder[key]
    holder[key] = data.draw(_JSON)

    scaling = read(tmp_path, *pair)
    policy = Policy((limited("gpu", {NVIDIA_GPU: 4}, min_nodes=1),), (node_class(),))

    for finding in (*scaling.findings, *scaling.judged(policy, catalog(), environment(), named=False)):
        assert finding.rule
        assert finding.position.file
