"""A sandbox environment: EC2 by moto on loopback, and the cluster that its instances join, simulated or real."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from engine.converge.store import DocumentStore
from engine.model.document import DesiredDocument
from engine.model.environment import Cluster, ClusterKind, Environment, Sandbox
from engine.model.fault import Fault
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts, ObjectProblem
from engine.observe.cluster import ClusterFacts, decode_cluster
from engine.observe.ec2 import Ec2Reader
from engine.programs.cache import Tell, user_cache_dir
from engine.programs.go_program import CONTROL_PLANE, build_program, require_program
from engine.reconcile.ports import ClusterSource
from engine.reconcile.workspace import Workspace
from engine.sandbox.cluster import SimulatedCluster
from engine.sandbox.cluster_objects import machines_of, passed_over
from engine.sandbox.control_plane import ControlPlane, Plane
from engine.sandbox.ec2 import ec2_down, ec2_up
from engine.sandbox.interruptions import Kind, announce, interrupt, make_queue, stands
from engine.sandbox.kubelets import Pace
from engine.sandbox.kubelets_process import KubeletSettings, kubelets_down, kubelets_up
from engine.sandbox.manifests import read_manifests
from engine.sandbox.real_workload import create_once, real_objects, scale_inference
from engine.sandbox.workload import inference_pods, sandbox_objects

EC2, CLUSTER = "EC2", "the control plane"
# A machine takes a little while on the way into the cluster, so that what is in flight can be seen.
_REGISTER_SECONDS, _DEVICE_PLUGIN_SECONDS, _STARTUP_SECONDS = 2.0, 1.0, 2.0


def started(workspace: Workspace, environment: Environment, sandbox: Sandbox, policy: Policy) -> Environment:
    """The environment with the addresses of what serves it; all of that is started where it does not run.

    Raises Fault where the cluster is a real one and its control plane is not built, or does not start.
    """
    endpoint = ec2_up(ec2_folder(workspace, environment.name))
    environment = evolve(environment, endpoint_url=endpoint.url)
    if environment.interruption_queue and endpoint.fresh and not environment.owns_interruption_queue:
        make_queue(endpoint.url, environment.region, environment.interruption_queue)
    if sandbox.cluster is ClusterKind.SIMULATED:
        return environment
    plane = _plane(workspace, environment.name).up()
    startup_taints = {taint.key for pool in policy.node_pools for taint in pool.startup_taints}
    pace = Pace(
        register_seconds=_REGISTER_SECONDS,
        device_plugin_seconds=_DEVICE_PLUGIN_SECONDS,
        startup_seconds=_STARTUP_SECONDS,
        startup_taints=tuple(sorted(startup_taints)),
    )
    settings = KubeletSettings(endpoint.url, environment.region, environment.name, pace)
    kubelets_up(plane_folder(workspace, environment.name), settings)
    manifests = [workspace.root / file for file in sandbox.manifests]
    create_once(plane.client(), lambda: [*real_objects(sandbox.pods, sandbox.seed), *read_manifests(manifests)])
    return evolve(environment, cluster=_joined(environment, plane))


def simulated(
    workspace: Workspace, environment: Environment, sandbox: Sandbox, store: DocumentStore
) -> tuple[ClusterSource, SimulatedCluster]:
    """The simulated cluster of an environment that has one: to read, and to act on. ``store`` knows what is planned."""
    cluster = _simulation(workspace, environment.name, sandbox)
    return _Prompted(cluster, store, _passed_over(workspace, sandbox)), cluster


def up(workspace: Workspace, name: str, tell: Tell) -> Environment:
    """Start the sandbox's EC2 and cluster; a real one's control plane is built first where it is not. Raises Fault."""
    sandbox = _sandbox_of(workspace, name)
    if sandbox.cluster is ClusterKind.REAL:
        build_program(CONTROL_PLANE, *_places(workspace), tell)
    environment = workspace.environment(name)
    return started(workspace, environment, sandbox, workspace.policy(environment))


def ec2_folder(workspace: Workspace, name: str) -> Path:
    return workspace.root / ".nodewright" / name / "ec2"


def plane_folder(workspace: Workspace, name: str) -> Path:
    return workspace.root / ".nodewright" / name / "plane"


def plane_status(workspace: Workspace, name: str) -> Plane | None:
    """The real cluster of an environment, when it runs."""
    return _any_plane(workspace, name).status()


def down(workspace: Workspace, name: str) -> tuple[str, ...]:
    """Stop what serves the sandbox; what of it ran. Also when its stack file is gone already."""
    kubelets_down(plane_folder(workspace, name))
    plane_ran = _any_plane(workspace, name).down()
    ec2_ran = ec2_down(ec2_folder(workspace, name))
    return tuple(word for word, ran in ((EC2, ec2_ran), (CLUSTER, plane_ran)) if ran)


def reset(workspace: Workspace, name: str) -> None:
    """Stop what serves the sandbox and forget all of it: cluster, documents, Pulumi's state. Raises Fault."""
    _sandbox_of(workspace, name)
    down(workspace, name)
    shutil.rmtree(workspace.root / ".nodewright" / name, ignore_errors=True)


def scale(workspace: Workspace, name: str, replicas: int) -> tuple[int, int]:
    """Set the inference deployment's pods; how many there were and are. Raises Fault."""
    sandbox = _sandbox_of(workspace, name)
    if sandbox.cluster is ClusterKind.REAL:
        environment = workspace.environment(name)
        started(workspace, environment, sandbox, workspace.policy(environment))
        return scale_inference(_plane(workspace, name).up().client(), replicas), replicas
    cluster = _simulation(workspace, name, sandbox)
    app: str = inference_pods(1)[0]["metadata"]["labels"]["app"]
    before = sum(pod["metadata"].get("labels", {}).get("app") == app for pod in cluster.read().pods)
    if replicas < before:
        cluster.remove_pods({"app": app}, keep=replicas)
    else:
        cluster.add_objects(_new_replicas(cluster, replicas - before))
    return before, replicas


def interrupted(workspace: Workspace, name: str, claim: str, kind: Kind) -> str:
    """Have the sandbox's AWS interrupt the machine of a claim, or of that instance id; the instance's id. Raises Fault
    where the environment names no queue, or there is no such machine."""
    sandbox, environment = _sandbox_of(workspace, name), workspace.environment(name)
    queue = environment.interruption_queue
    if not queue:
        raise Fault(
            f"environment {name} names no queue, so nobody would hear of it",
            f"write nodewright:interruptionQueue: interruptions in stacks/Pulumi.{name}.yaml",
        )
    environment = started(workspace, environment, sandbox, workspace.policy(environment))
    endpoint, region = environment.endpoint_url or "", environment.region
    if not environment.owns_interruption_queue:
        make_queue(endpoint, region, queue)
    elif not stands(endpoint, region, queue):
        raise Fault(
            f"environment {name} has not made its queue yet, so nobody would hear of it", f"nodewright up {name}"
        )
    found = [claim] if claim.startswith("i-") else _instances_of(environment, claim)
    if not found:
        raise Fault(
            f"environment {name} has no machine of claim {claim} that runs", f"nodewright status {name} names them"
        )
    say = announce if environment.owns_interruption_queue else interrupt
    say(endpoint, region, queue, kind, found[0], datetime.now(UTC))
    return found[0]


def _instances_of(environment: Environment, claim: str) -> list[str]:
    read = Ec2Reader(environment.endpoint_url, environment.region).read_claims(environment, [claim])
    return [each.id for each in read if each.is_alive]


@frozen
class _Prompted:
    """A simulated cluster that is brought to where the machines let it come before it is read.

    ``passed_over`` are objects of its manifests that it does not hold.
    """

    cluster: SimulatedCluster
    store: DocumentStore
    passed_over: tuple[ObjectProblem, ...] = ()

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        self.cluster.advance(machines_of(cloud.instances, document), self.store.ledger().ledger.planned)
        objects = self.cluster.read()
        facts = decode_cluster(objects.pods, objects.nodes, objects.daemon_sets)
        return evolve(facts, problems=(*facts.problems, *self.passed_over))


def _passed_over(workspace: Workspace, sandbox: Sandbox) -> tuple[ObjectProblem, ...]:
    try:
        return tuple(passed_over(read_manifests(workspace.root / file for file in sandbox.manifests)))
    except Fault:
        # A cluster that was made of the files needs them no more, and one yet to be made tells it itself.
        return ()


def _plane(workspace: Workspace, name: str) -> ControlPlane:
    return ControlPlane(require_program(CONTROL_PLANE, *_places(workspace)), plane_folder(workspace, name))


def _any_plane(workspace: Workspace, name: str) -> ControlPlane:
    """To look at or to stop: nothing is started, so it does not matter by which program."""
    return ControlPlane(Path(CONTROL_PLANE.file), plane_folder(workspace, name))


def _places(workspace: Workspace) -> tuple[str, Path, Path]:
    """Where a program is looked for: PATH, the user's cache, the pinned modules."""
    return os.environ.get("PATH", os.defpath), user_cache_dir(os.environ), workspace.root / "tools"


def _joined(environment: Environment, plane: Plane) -> Cluster:
    """The stack file's cluster at the address that its nodes and we find it at."""
    return evolve(
        environment.cluster,
        endpoint=plane.endpoint,
        certificate_authority=plane.certificate_authority,
        kubeconfig=str(plane.kubeconfig),
        context=None,
    )


def _simulation(workspace: Workspace, name: str, sandbox: Sandbox) -> SimulatedCluster:
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
