"""What bench_steady watches: a fleet that was decided from the shipped policies, and its nodes and pods in a real API
server. Nobody plays the kubelets, so nothing changes but what the bench changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from attrs import evolve, frozen
from running_machines import running_instance

from engine.converge.store import FileStore
from engine.decide import decide
from engine.model import labels as keys
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.constraint import TaintEffect, Toleration
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.lane import lane_slice, stacks_of
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.model.pod import Placing, Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import CPU, NVIDIA_GPU, Resources
from engine.model.snapshot import CloudFacts, Snapshot
from engine.policy.launch_template import image_variant
from engine.reconcile.assembly import catalog_of
from engine.reconcile.workspace import Workspace
from engine.sandbox.control_plane import Plane
from engine.sandbox.plane_client import STRATEGIC_PATCH, PlaneClient

PROJECT = Path(__file__).resolve().parents[1]
ENVIRONMENT = "bench-steady"
NAMESPACE = "default"
# Two of the shipped GPU pools, and which part of the nodes is theirs.
_TIERS = {"core": 0.7, "batch": 0.3}
_DAEMONS = ("log-agent", "node-exporter", "nvidia-device-plugin", "csi-node")
_IMAGE = "registry.example.com/model:v1"
_LONG_SINCE = "2026-01-01T00:00:00Z"
_CLIENTS = 4
_AT_ONCE = 250


@frozen
class Fleet:
    """A published document whose machines all run."""

    document: DesiredDocument
    cloud: CloudFacts


def write_project(root: Path) -> Workspace:
    """A project with the shipped policies, and limits that let a thousand machines run."""
    (root / "stacks").mkdir(parents=True)
    shutil.copytree(PROJECT / "policies", root / "policies")
    shutil.copy(PROJECT / "Pulumi.yaml", root / "Pulumi.yaml")
    stack = yaml.safe_load((PROJECT / "stacks" / "Pulumi.sandbox-1000.yaml").read_text(encoding="utf-8"))
    config = stack["config"]
    config["nodewright:cluster"]["name"] = ENVIRONMENT
    config["nodewright:limits"] = {f"gpu-{tier}": {NVIDIA_GPU: "100000"} for tier in _TIERS}
    config["nodewright:caps"] = {"launches": 100_000, "removals": 100, "addedUsdPerHour": 1_000_000}
    config["nodewright:params"] = {
        "pool-dollars": {"usdPerHour": 1_000_000.0},
        "team-dollars": {"nobodyUsdPerHour": 1_000_000.0},
        "plan-size": {"launches": 100_000},
        "plan-cost": {"hourly": 1_000_000.0},
    }
    config["nodewright:sandbox"] = {"cluster": "real", "pods": 0}
    (root / "stacks" / f"Pulumi.{ENVIRONMENT}.yaml").write_text(yaml.safe_dump(stack), encoding="utf-8")
    return Workspace(root)


def decided_fleet(workspace: Workspace, nodes: int) -> Fleet:
    """A document of that many claims, decided for as many GPU pods, in the project's store as if it had converged."""
    environment = workspace.environment(ENVIRONMENT)
    policy, catalog = workspace.policy(environment), catalog_of(workspace, environment)
    store = FileStore(workspace.store_root(environment), environment.name)
    document, ledger = None, Ledger()
    images = _images(policy, catalog)
    cloud = CloudFacts(images=images)
    waiting = tuple(_waiting_pods(nodes))
    while waiting:
        snapshot = Snapshot(environment.name, _now(), waiting, cloud=cloud, document=document, ledger=ledger)
        plan = decide(snapshot, policy, catalog, environment)
        if not plan.launches:
            raise SystemExit(f"bench-steady: {len(waiting)} pods got no node: {plan.unplaced[:1]}")
        document = plan.document
        store.publish(document)
        launched = tuple(running_instance(number, each) for number, each in enumerate(document.claims))
        cloud = CloudFacts(instances=launched, images=images)
        ledger = evolve(plan.ledger, planned={})
        placed = {pod for launch in plan.launches for pod in launch.pods}
        waiting = tuple(pod for pod in waiting if pod.key not in placed)
    assert document is not None
    store.write_ledger(evolve(ledger, settled_version=document.version))
    for stack in stacks_of(document):
        store.write_outcome(_settled(document, stack, environment))
    return Fleet(document, cloud)


def populate(plane: Plane, fleet: Fleet, pods_each: int) -> int:
    """Create the fleet's nodes, with that many running pods on each; how many pods that makes."""
    instance_of = {each.claim: each for each in fleet.cloud.instances}
    nodes = [_node(claim, instance_of[claim.name]) for claim in fleet.document.claims]
    daemon_sets = [_daemon_set(name) for name in _DAEMONS]
    _create_all(plane, [("/api/v1/nodes", each, None) for each in nodes])
    _create_all(plane, [(f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets", each, None) for each in daemon_sets])
    pods = [
        (f"/api/v1/namespaces/{NAMESPACE}/pods", _pod(node, number), ready(0))
        for node in nodes
        for number in range(pods_each)
    ]
    _create_all(plane, pods)
    return len(pods)


def pod_name(node: int, number: int) -> str:
    return f"pod-{node:05d}-{number}"


def ready(event: int) -> dict[str, Any]:
    """A status that says that the pod has run for long, and is ready since the ``event``-th second of the bench.

    So each event can be told apart by the value that it leads to.
    """
    since = datetime.fromtimestamp(event + 1_600_000_000, UTC).isoformat().replace("+00:00", "Z")
    running = {
        "name": "main",
        "ready": True,
        "restartCount": 0,
        "image": _IMAGE,
        "imageID": "",
    }
    return {
        "status": {
            "phase": "Running",
            "startTime": _LONG_SINCE,
            "podIP": "10.200.0.1",
            "podIPs": [{"ip": "10.200.0.1"}],
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": _LONG_SINCE},
                {"type": "Initialized", "status": "True", "lastTransitionTime": _LONG_SINCE},
                {"type": "ContainersReady", "status": "True", "lastTransitionTime": since},
                {"type": "Ready", "status": "True", "lastTransitionTime": since},
            ],
            "containerStatuses": [{**running, "state": {"running": {"startedAt": _LONG_SINCE}}}],
        }
    }


def event_of(ready_at: datetime | None) -> int:
    """The number that ``ready`` was given; 0 for none."""
    return 0 if ready_at is None else int(ready_at.timestamp()) - 1_600_000_000


def _now() -> datetime:
    return datetime.now(UTC)


def _images(policy: Policy, catalog: Catalog) -> Mapping[str, Mapping[str, str]]:
    variants = {image_variant(kind) for kind in catalog.instance_types}
    return {each.name: {variant: f"ami-{variant}" for variant in variants} for each in policy.node_classes}


def _waiting_pods(count: int) -> Iterator[Pod]:
    """Each fills the cheapest machine with one GPU, so it gets one of its own."""
    tiers = [tier for tier, part in _TIERS.items() for _ in range(round(count * part))]
    requests = Resources.parse({"cpu": "3", "memory": "10Gi", "pods": 1, NVIDIA_GPU: 1})
    for number, tier in enumerate(tiers):
        tolerations = (
            Toleration(key="workload-type", exists=False, value=tier, effect=TaintEffect.NO_SCHEDULE),
            Toleration(key=NVIDIA_GPU, exists=True, value="", effect=TaintEffect.NO_SCHEDULE),
        )
        placing = Placing(requests, node_selector={"workload-type": tier}, tolerations=tolerations)
        yield Pod(PodKey(NAMESPACE, f"wanted-{number:05d}"), placing, _now())


def _settled(document: DesiredDocument, stack: str, environment: Environment) -> Outcome:
    return Outcome(
        environment=environment.name,
        version=document.version,
        finished_at=_now(),
        is_settled=True,
        plan_hash=document.plan_hash,
        stack=stack,
        slice_digest=lane_slice(document, stack, environment.name),
    )


def _node(claim: Claim, instance: Instance) -> dict[str, Any]:
    amounts = {name: f"{amount}m" if name == CPU else str(amount) for name, amount in claim.allocatable.items()}
    healthy = ("MemoryPressure", "DiskPressure", "PIDPressure")
    beat = {"lastHeartbeatTime": _LONG_SINCE, "lastTransitionTime": _LONG_SINCE, "reason": "Kubelet", "message": ""}
    name = f"ip-{instance.id}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {**claim.labels, "kubernetes.io/hostname": name}
            | {keys.REGISTERED: "true", keys.INITIALIZED: "true"},
        },
        "spec": {
            "providerID": f"aws:///{instance.zone}/{instance.id}",
            "taints": [{"key": t.key, "value": t.value, "effect": t.effect.value} for t in claim.taints],
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                *({"type": kind, "status": "False", **beat} for kind in healthy),
                {"type": "Ready", "status": "True", **beat},
            ],
            "nodeInfo": dict.fromkeys(_NODE_INFO, "v1"),
            "images": [{"names": [f"registry.example.com/image-{n}:v1"], "sizeBytes": 10**8} for n in range(10)],
        },
    }


_NODE_INFO = (
    "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
    "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
)  # fmt: skip


def _pod(node: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The first takes the GPU, the next ones are daemons', the rest small ones of ReplicaSets."""
    on, taints = node["metadata"]["name"], node["spec"]["taints"]
    ordinal = int(on.removeprefix("ip-i-"), 16)
    requests = {"cpu": "20m", "memory": "32Mi"}
    limits = {}
    if number == 0:
        kind, owner = "ReplicaSet", f"model-{ordinal % 100}"
        requests, limits = {"cpu": "3", "memory": "10Gi", NVIDIA_GPU: "1"}, {NVIDIA_GPU: "1"}
    elif number <= len(_DAEMONS):
        kind, owner = "DaemonSet", _DAEMONS[number - 1]
    else:
        kind, owner = "ReplicaSet", f"app-{ordinal % 100}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(ordinal, number),
            "namespace": NAMESPACE,
            "labels": {"app": owner, "pod-template-hash": "6d5f7c9b8", "team": f"team-{ordinal % 7}"},
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "0123456789abcdef" * 4},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
            ],
        },
        "spec": {
            "nodeName": on,
            "tolerations": [{"key": t["key"], "operator": "Exists"} for t in taints] + [{"operator": "Exists"}],
            "volumes": [{"name": "config", "configMap": {"name": owner}}, {"name": "cache", "emptyDir": {}}],
            "containers": [_container(requests, limits)],
        },
    }


def _container(requests: Mapping[str, str], limits: Mapping[str, str]) -> dict[str, Any]:
    return {
        "name": "main",
        "image": _IMAGE,
        "args": ["serve", "--port=8080", "--log-format=json"],
        "env": [{"name": f"SETTING_{n}", "value": f"value-{n}"} for n in range(8)],
        "ports": [{"name": "http", "containerPort": 8080}],
        "resources": {"requests": dict(requests), "limits": dict(limits)},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/config"}, {"name": "cache", "mountPath": "/cache"}],
    }


def _daemon_set(name: str) -> dict[str, Any]:
    container = _container({"cpu": "20m", "memory": "32Mi"}, {})
    spec = {"tolerations": [{"operator": "Exists"}], "containers": [container | {"volumeMounts": []}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
    }


# A collection's path, an object to create there, and the status that it then gets.
_Work = tuple[str, dict[str, Any], dict[str, Any] | None]


def _create_all(plane: Plane, work: Sequence[_Work]) -> None:
    pieces = [work[begin : begin + _AT_ONCE] for begin in range(0, len(work), _AT_ONCE)]
    with ProcessPoolExecutor(_CLIENTS) as pool:
        for _ in pool.map(_create, [plane] * len(pieces), pieces):
            pass


def _create(plane: Plane, work: Sequence[_Work]) -> None:
    client: PlaneClient = plane.client()
    for path, manifest, status in work:
        client.create(path, manifest)
        if status is not None:
            client.patch(f"{path}/{manifest['metadata']['name']}/status", status, STRATEGIC_PATCH)
    client.close()
