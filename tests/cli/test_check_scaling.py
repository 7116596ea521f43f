"""``nodewright check`` with autoscalers: exit codes, JSON and the places of findings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.model.canonical import canonical_json
from engine.model.pod import Owner
from engine.model.workload import Autoscaler, ObjectKey, Workload, WorkloadOwner
from tests.builders import pod, snapshot, toleration
from tests.engine.workspaces import Project, project

WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm, namespace: inference}
spec:
  template:
    spec:
      containers:
        - name: main
          resources: {limits: {nvidia.com/gpu: 4}}
      tolerations: [{key: nvidia.com/gpu, operator: Exists}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llm, namespace: inference}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llm}
  maxReplicas: 3
"""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("scaling")) as made:
        yield made


def test_a_ceiling_that_no_limit_holds_is_a_warning_and_fails_a_strict_check(sandbox: Project, tmp_path: Path) -> None:
    file = tmp_path / "llm.yaml"
    file.write_text(WORKLOAD)

    shown = sandbox.nodewright("check", "sandbox", "--workloads", str(file), "-o", "json")
    strict = sandbox.nodewright("check", "sandbox", "--workloads", str(file), "--strict")

    (finding,) = [each for each in shown.json["findings"] if each["rule"] == "fake-scaling"]
    assert (shown.code, strict.code) == (0, 2), shown.words + strict.words
    assert (finding["severity"], finding["file"], finding["line"], finding["column"]) == ("warning", str(file), 17, 16)
    assert finding["message"] == (
        "Deployment inference/llm may scale to 3 replicas x 4 nvidia.com/gpu = 12; the only reachable pool inference"
        " (limit 8) holds 8: 1 replica can only ever be Pending"
    )
    assert "fake-scaling" in strict.stdout


def test_a_snapshots_autoscalers_are_held_against_the_limits(sandbox: Project, tmp_path: Path) -> None:
    key, file = ObjectKey("ml", "llm"), tmp_path / "seen.json"
    owner = WorkloadOwner("StatefulSet", key, 1)
    scaler = Autoscaler("ScaledObject", key, "StatefulSet/llm", 0, 9)
    replica = pod(gpu=1, namespace="ml", owner=Owner("StatefulSet", "llm"), tolerations=(toleration("nvidia.com/gpu"),))
    seen = snapshot(pods=[replica], workload=Workload(owners=(owner,), autoscalers=(scaler,)))
    file.write_bytes(canonical_json(seen))

    ran = sandbox.nodewright("check", "sandbox", "--snapshot", str(file), "-o", "json")

    (finding,) = [each for each in ran.json["findings"] if each["rule"] == "fake-scaling"]
    assert (ran.code, finding["file"]) == (0, str(file)), ran.words
    assert "holds 8: 1 replica" in finding["message"]


def test_a_file_that_is_no_manifest_fails_the_check(sandbox: Project, tmp_path: Path) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text("kind: [")

    ran = sandbox.nodewright("check", "sandbox", "--workloads", str(file), "-o", "json")

    assert ran.code == 2, ran.words
    assert [each["file"] for each in ran.json["findings"] if each["severity"] == "error"] == [str(file)]


@pytest.mark.parametrize("option", ["--snapshot", "--workloads"])
def test_a_path_that_is_not_there_ends_the_check_with_words(sandbox: Project, option: str) -> None:
    ran = sandbox.nodewright("check", "sandbox", option, "nowhere")

    assert ran.code == 1
    assert "nowhere" in ran.stderr
    assert "Traceback" not in ran.words
