"""From a Deployment that waits to an account with nothing in it, by `nodewright run`; only EC2 and kubelets are played.

EC2 is moto's, kubelets are kwok's. API server, scheduler, controllers, Pulumi, evictions and budgets are real.
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engine.actuate.drain import KubernetesDrainer
from engine.model import labels as keys
from engine.model.drain import Mark
from engine.model.reason import DisruptionReason
from engine.observe.api_server import ApiServer
from engine.sandbox.control_plane import Plane
from engine.sandbox.ec2 import Ec2Endpoint
from engine.sandbox.kubelets import Pace
from tests.cluster.api import Cluster, deployment, eventually
from tests.cluster.conftest import JoinMachines
from tests.cluster.live_project import (
    INSTANCE_TYPE,
    POD,
    LiveProject,
    bound_to,
    claim_of,
    ended,
    nodes_of,
    taints_of,
    tolerations,
    until_at_rest,
)

CONSOLIDATE_AFTER_SECONDS = 5.0
ALLOWED, REFUSED = "201", "429"
_EVICTIONS = re.compile(r'^apiserver_request_total\{([^}]*subresource="eviction"[^}]*)\} (\d+)', re.MULTILINE)
_CODE = re.compile(r'\bcode="(\d+)"')


@pytest.fixture
def live(plane: Plane, ec2: Any, ec2_endpoint: Ec2Endpoint, ec2_state: Path, tmp_path: Path) -> Iterator[LiveProject]:
    environment = f"live-{uuid.uuid4().hex[:6]}"
    after = f"{CONSOLIDATE_AFTER_SECONDS:.0f}s"
    made = LiveProject(tmp_path, environment, plane, ec2, ec2_state, ec2_endpoint.url, after, {"every": "1s"})
    with ended(made) as running:
        yield running


def test_a_deployment_is_bought_for_bound_scaled_down_drained_past_a_budget_and_leaves_nothing(
    live: LiveProject, cluster: Cluster, kubelets: JoinMachines
) -> None:
    kubelets(live.environment, Pace(register_seconds=0.5, device_plugin_seconds=0.5, poll_seconds=0.1))
    cluster.create(deployment("serve", 4, POD, tolerations=tolerations(live.environment)))
    eventually(lambda: len(waiting(cluster)) == 4, "kube-scheduler has no node for any of the pods")
    runner = live.start()

    # Bought, each for a pod, and nothing runs there before the engine has seen the node.
    planned = eventually(lambda: planned_for(live, 4), "a machine is planned for each pod")
    until_at_rest(live, machines=4)
    assert all(one["InstanceType"] == INSTANCE_TYPE for one in live.instances())
    assert all(keys.UNREGISTERED_TAINT in user_data(live, one["InstanceId"]) for one in live.instances())

    # Registered and initialized, as the pool promises.
    eventually(lambda: len(initialized(cluster, live)) == 4, "four nodes are initialized")
    eventually(
        lambda: all(taints_of(node) == {live.environment} for node in nodes_of(cluster, live.environment)),
        "the pool's taint is the only one",
    )
    for node in nodes_of(cluster, live.environment):
        assert node["metadata"]["labels"][keys.NODE_POOL] == "gpu"
        assert node["metadata"]["labels"][keys.REGISTERED] == "true"

    # Bound by kube-scheduler, one to each machine that was planned for one; pods that are alike may change places.
    pods = eventually(lambda: all_of(cluster.running("app=serve"), 4), "four pods run")
    bound = claims_under(live, cluster, pods)
    assert bound.keys() == planned.keys()
    assert sorted(bound.values()) == sorted(planned.values())
    assert sum(live.launched().values()) == 4

    # Scaled down: the machine that is empty leaves, and not before its time.
    cluster.scale("serve", 3)
    emptied_at = time.monotonic()
    gone = eventually(lambda: live.instances("terminated", "shutting-down"), "the emptied machine is terminated")
    assert time.monotonic() - emptied_at >= CONSOLIDATE_AFTER_SECONDS
    until_at_rest(live, machines=3)
    assert {claim_of(one) for one in gone}.isdisjoint(live.claims())
    eventually(
        lambda: bound_to(cluster.running("app=serve")) == node_names(cluster, live), "only nodes with a pod are left"
    )

    # A pod is on a node that leaves: its budget refuses once and again, nothing else gives way, and then it lets it go.
    cluster.budget("serve", {"app": "serve"}, maxUnavailable=0)
    before = evictions(live.plane)
    cluster.scale("serve", 2)
    eventually(lambda: len(cluster.list("Pod", "app=serve")) == 2, "two pods are left")
    first, second = bound_to(cluster.running("app=serve"))
    [held] = [pod["metadata"]["name"] for pod in cluster.list("Pod", "app=serve") if pod["spec"]["nodeName"] == first]
    mark = Mark(datetime.now(UTC), DisruptionReason.EMPTY)
    KubernetesDrainer(ApiServer(str(live.plane.kubeconfig))).mark(first, mark)
    (spare,) = set(node_names(cluster, live)) - {first, second}
    eventually(lambda: evictions(live.plane)[REFUSED] - before[REFUSED] >= 2, "two passes ask, and are refused")
    assert evictions(live.plane)[ALLOWED] == before[ALLOWED]
    assert bound_to(cluster.running("app=serve")) == [first, second]
    assert node_names(cluster, live) == sorted([first, second, spare])
    eventually(lambda: told_of(cluster, "FailedDraining") == {held}, "an event on the pod says what holds it")
    cluster.patch("PodDisruptionBudget", "serve", {"spec": {"maxUnavailable": 1}})
    eventually(lambda: bound_to(cluster.running("app=serve")) == sorted([second, spare]), "the pod runs elsewhere")
    assert evictions(live.plane)[ALLOWED] - before[ALLOWED] == 1
    eventually(lambda: node_names(cluster, live) == sorted([second, spare]), "the Node of the drained machine is gone")
    until_at_rest(live, machines=2)
    assert sum(live.launched().values()) == 4, "nothing was bought for the pod that moved"

    # All of it leaves.
    cluster.delete("Deployment", "serve")
    eventually(lambda: live.instances() == [], "every machine is terminated")
    eventually(lambda: nodes_of(cluster, live.environment) == [], "no Node is left")
    until_at_rest(live, machines=0)
    assert live.ids_in_state() == []
    eventually(lambda: holder(live) == "", "nobody holds the Lease")

    assert runner.stop() == 0, runner.words
    assert holder(live) == ""
    told = live.nodewright("status", live.environment, "-o", "json")
    assert told.code == 0, told.words
    standing = json.loads(told.stdout)
    assert (standing["nodes"], standing["problems"]) == ([], [])
    assert standing["last_outcome"]["is_settled"]
    [warned] = [line for line in runner.warnings if "until the whole cluster is seen" not in line]
    assert f"/{held} stays on node {first}, which is to leave: " in warned
    assert "The disruption budget serve needs 2 healthy pods" in warned
    assert f"/{held} does not hold node {first} any more" in runner.words


def told_of(cluster: Cluster, reason: str) -> set[str]:
    """The pods that events of the reason are about."""
    return {event["involvedObject"]["name"] for event in cluster.list("Event") if event["reason"] == reason}


def waiting(cluster: Cluster) -> list[str]:
    """Pods that kube-scheduler has found no node for."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.list("Pod")
        if any(
            one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable"
            for one in pod["status"].get("conditions") or []
        )
    ]


def planned_for(live: LiveProject, count: int) -> dict[str, str]:
    """The claim that each pod is planned for, by the pod's name, once it is so for all."""
    planned = live.store.ledger().ledger.planned
    return {pod.partition("/")[2]: claim for pod, claim in planned.items()} if len(planned) == count else {}


def claims_under(live: LiveProject, cluster: Cluster, pods: list[dict[str, Any]]) -> dict[str, str]:
    """The claim of the machine that each pod is bound to, by the pod's name."""
    machine = {one["InstanceId"]: claim_of(one) for one in live.instances()}
    claim = {
        node["metadata"]["name"]: machine[node["spec"]["providerID"].rpartition("/")[2]]
        for node in nodes_of(cluster, live.environment)
    }
    return {pod["metadata"]["name"]: claim[pod["spec"]["nodeName"]] for pod in pods}


def initialized(cluster: Cluster, live: LiveProject) -> list[dict[str, Any]]:
    found = nodes_of(cluster, live.environment)
    return [node for node in found if node["metadata"]["labels"].get(keys.INITIALIZED) == "true"]


def node_names(cluster: Cluster, live: LiveProject) -> list[str]:
    return sorted(node["metadata"]["name"] for node in nodes_of(cluster, live.environment))


def all_of(found: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    return found if len(found) == count else []


def user_data(live: LiveProject, instance_id: str) -> str:
    answer = live.ec2.describe_instance_attribute(InstanceId=instance_id, Attribute="userData")
    return base64.b64decode(answer["UserData"]["Value"]).decode()


def evictions(plane: Plane) -> Counter[str]:
    """How often the API server was asked for an eviction since it started, by the status that it answered with."""
    asked = urllib.request.Request(f"{plane.endpoint}/metrics", headers={"Authorization": f"Bearer {plane.token}"})
    context = ssl.create_default_context(cafile=str(plane.authority_file))
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with urllib.request.build_opener(*handlers).open(asked, timeout=10) as answer:
        told = answer.read().decode()
    found: Counter[str] = Counter()
    for labels, count in _EVICTIONS.findall(told):
        code = _CODE.search(labels)
        found[code.group(1) if code else ""] += int(float(count))
    return found


def holder(live: LiveProject) -> str:
    """Who holds the environment's Lease."""
    system = Cluster(live.plane, "kube-system")
    lease = system.get("Lease", f"nodewright-{live.environment}") or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")
