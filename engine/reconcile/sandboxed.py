"""The ports of a sandbox environment: EC2 by moto on loopback, and a simulated cluster that its instances join."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from engine.model.document import DesiredDocument
from engine.model.environment import Environment, Sandbox
from engine.model.fault import Fault
from engine.model.snapshot import CloudFacts
from engine.observe.cluster import ClusterFacts, decode_cluster
from engine.reconcile.ports import ClusterSource
from engine.reconcile.workspace import Workspace
from engine.sandbox.cluster import SimulatedCluster
from engine.sandbox.cluster_objects import machines_of
from engine.sandbox.ec2 import ec2_down, ec2_up
from engine.sandbox.manifests import read_manifests
from engine.sandbox.workload import inference_pods, sandbox_objects


def parts(
    workspace: Workspace, environment: Environment, sandbox: Sandbox
) -> tuple[Environment, ClusterSource, SimulatedCluster]:
    """The environment with its endpoint filled in, started when it does not run; its cluster to read, and to act on."""
    endpoint = ec2_up(ec2_folder(workspace, environment.name))
    cluster = _cluster(workspace, environment.name, sandbox)
    return evolve(environment, endpoint_url=endpoint.url), _Prompted(cluster), cluster


def ec2_folder(workspace: Workspace, name: str) -> Path:
    return workspace.root / ".nodewright" / name / "ec2"


def down(workspace: Workspace, name: str) -> bool:
    """Stop the sandbox's EC2; whether it ran. Also when its stack file is gone already."""
    return ec2_down(ec2_folder(workspace, name))


def reset(workspace: Workspace, name: str) -> None:
    """Stop the sandbox's EC2 and forget all of it: cluster, documents, Pulumi's state. Raises Fault."""
    _sandbox_of(workspace, name)
    down(workspace, name)
    shutil.rmtree(workspace.root / ".nodewright" / name, ignore_errors=True)


def scale(workspace: Workspace, name: str, replicas: int) -> tuple[int, int]:
    """Set the inference deployment's pods; how many there were and are. Raises Fault."""
    cluster = _cluster(workspace, name, _sandbox_of(workspace, name))
    app: str = inference_pods(1)[0]["metadata"]["labels"]["app"]
    before = sum(pod["metadata"].get("labels", {}).get("app") == app for pod in cluster.read().pods)
    if replicas < before:
        cluster.remove_pods({"app": app}, keep=replicas)
    else:
        cluster.add_objects(_new_replicas(cluster, replicas - before))
    return before, replicas


@frozen
class _Prompted:
    """A simulated cluster that is brought to where the machines let it come before it is read."""

    cluster: SimulatedCluster

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        self.cluster.advance(machines_of(cloud.instances, document))
        objects = self.cluster.read()
        return decode_cluster(objects.pods, objects.nodes, objects.daemon_sets)


def _cluster(workspace: Workspace, name: str, sandbox: Sandbox) -> SimulatedCluster:
    manifests = [workspace.root / file for file in sandbox.manifests]
    return SimulatedCluster(
        workspace.root / ".nodewright" / name / "cluster",
        decode_cluster,
        lambda: [
            *sandbox_objects(sandbox.pods, sandbox.seed, created_at=datetime.now(UTC)),
            *read_manifests(manifests),
        ],
    )


def _new_replicas(cluster: SimulatedCluster, wanted: int) -> list[dict[str, Any]]:
    """That many pods of the deployment whose names are not taken."""
    taken = {pod["metadata"]["name"] for pod in cluster.read().pods}
    candidates = inference_pods(len(taken) + wanted, datetime.now(UTC))
    return [pod for pod in candidates if pod["metadata"]["name"] not in taken][:wanted]


def _sandbox_of(workspace: Workspace, name: str) -> Sandbox:
    sandbox = workspace.environment(name).sandbox
    if sandbox is None:
        raise Fault(f"environment {name} is no sandbox: its stack file has no nodewright:sandbox", "name a sandbox")
    return sandbox
