"""Installing an environment's add-ons in its cluster, and removing them: look, decide, show, converge."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Protocol
from urllib.parse import quote

from attrs import frozen

from engine.decide.add_ons import add_ons
from engine.model import labels as keys
from engine.model.canonical import digest
from engine.model.environment import ClusterKind, Environment
from engine.model.fault import Fault
from engine.model.in_cluster import AddOns, InstallOutcome, ObjectChange, StandingAddOns
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.observe.api_server import ApiServer, message_of
from engine.observe.cluster import KubernetesCluster
from engine.reconcile.ports import OnEvent, Tell
from engine.reconcile.shell import shell_variables
from engine.reconcile.workspace import Workspace

_OK, _NOT_FOUND = 200, 404
# Kubernetes' own; an environment may live in one, and never owns it.
_NOT_OURS = ("default", "kube-")


class AddOnStack(Protocol):
    """The Pulumi stack of the add-ons. `standing` starts no plugin."""

    def standing(self) -> StandingAddOns: ...

    def preview(self, add_ons: AddOns) -> tuple[ObjectChange, ...]: ...

    def apply(self, add_ons: AddOns, on_event: OnEvent) -> InstallOutcome: ...

    def remove(self, on_event: OnEvent) -> InstallOutcome: ...


class Server(Protocol):
    """The API server, as far as installing asks it."""

    def ask(self, method: str, path: str) -> tuple[int, bytes]: ...


@frozen
class Installation:
    """The parts, built once for an environment. `workload` reads nodes and pods; it is asked only for pre-pulling."""

    environment: Environment
    policy: Policy
    server: Server
    stack: AddOnStack
    workload: Callable[[], tuple[Iterable[Pod], Iterable[Node]]]


@frozen
class Proposed:
    """What is to be installed, and what that changes."""

    add_ons: AddOns
    changes: tuple[ObjectChange, ...]


def installation(workspace: Workspace, name: str, tell: Tell) -> Installation:
    """The parts for a named environment. Raises Fault: no such environment, a simulated cluster, no plugin, no CLI."""
    declared = workspace.environment(name)
    refuse_simulated(declared)
    policy = workspace.policy(declared)
    environment = _reached(workspace, declared, policy)
    cluster = KubernetesCluster(environment.cluster.kubeconfig, environment.cluster.context)

    def workload() -> tuple[Iterable[Pod], Iterable[Node]]:
        seen = cluster.read()
        return seen.pods, seen.nodes

    return Installation(
        environment=environment,
        policy=policy,
        server=ApiServer(environment.cluster.kubeconfig, environment.cluster.context),
        stack=_stack(workspace, environment, tell),
        workload=workload,
    )


def refuse_simulated(environment: Environment) -> None:
    """Raises Fault for a sandbox whose cluster is a simulation: there is no API server to install anything on."""
    if is_simulated(environment):
        raise Fault(
            f"environment {environment.name} is a sandbox with a simulated cluster: it has no API server to install on",
            (
                f"set nodewright:sandbox.cluster to real in stacks/Pulumi.{environment.name}.yaml",
                f"then nodewright sandbox reset {environment.name}, and run this again",
            ),
        )


def is_simulated(environment: Environment) -> bool:
    """Whether its cluster is a sandbox's simulation, which has no API server."""
    return environment.sandbox is not None and environment.sandbox.cluster is ClusterKind.SIMULATED


def propose(parts: Installation) -> Proposed:
    """Look at the cluster and say what an install would change. Changes nothing. Raises Fault."""
    wanted = wanted_add_ons(parts)
    return Proposed(wanted, parts.stack.preview(wanted))


def propose_if_new(parts: Installation) -> Proposed:
    """As `propose`, but where the same was installed last nothing is compared: it costs no plugin."""
    wanted = wanted_add_ons(parts)
    if parts.stack.standing().digest == digest(wanted):
        return Proposed(wanted, ())
    return Proposed(wanted, parts.stack.preview(wanted))


def wanted_add_ons(parts: Installation) -> AddOns:
    """What is to stand. Raises Fault when the API server does not answer or refuses."""
    asked = parts.environment.in_cluster
    standing = parts.stack.standing()
    owns = _owns_namespace(parts, asked.namespace, standing) if asked else False
    pods, nodes = parts.workload() if asked and asked.pre_pull else ((), ())
    return add_ons(
        parts.environment,
        parts.policy,
        pods=pods,
        nodes=nodes,
        standing_images=standing.images,
        owns_namespace=owns,
    )


def install(parts: Installation, proposed: Proposed, on_progress: OnEvent) -> InstallOutcome:
    """Do it. Raises Fault when it could not begin."""
    return parts.stack.apply(proposed.add_ons, on_progress)


def remove(parts: Installation, on_progress: OnEvent) -> InstallOutcome:
    """Take all of it down; nothing to do where nothing was installed. Raises Fault when it could not begin."""
    if parts.stack.standing().is_empty:
        return InstallOutcome()
    _require_answer(parts.server)
    return parts.stack.remove(on_progress)


def _owns_namespace(parts: Installation, namespace: str, standing: StandingAddOns) -> bool:
    """Whether the namespace is made, and once deleted, by the environment: not when somebody else made it before."""
    status, body = parts.server.ask("GET", f"/api/v1/namespaces/{quote(namespace, safe='')}")
    if status not in (_OK, _NOT_FOUND):
        raise Fault(
            f"the Kubernetes API server answered {status} when asked for namespace {namespace}: {message_of(body)}",
            "who installs must be able to make namespaces, cluster roles and workloads: use an administrator's context",
        )
    if namespace.startswith(_NOT_OURS):
        return False
    if standing.owns_namespace or status == _NOT_FOUND:
        return True
    return bool(_labels(body).get(keys.TAG_ENVIRONMENT) == parts.environment.name)


def _require_answer(server: Server) -> None:
    status, body = server.ask("GET", "/version")
    if status != _OK:
        raise Fault(f"the Kubernetes API server answered {status} when asked for its version: {message_of(body)}")


def _labels(body: bytes) -> dict[str, str]:
    try:
        return dict(json.loads(body)["metadata"].get("labels") or {})
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _reached(workspace: Workspace, environment: Environment, policy: Policy) -> Environment:
    """The environment with the kubeconfig that reaches its cluster: a sandbox's control plane writes its own."""
    if environment.sandbox is None:
        return environment
    from engine.reconcile import sandboxed

    return sandboxed.started(workspace, environment, environment.sandbox, policy)


def _stack(workspace: Workspace, environment: Environment, tell: Tell) -> AddOnStack:
    # Here Pulumi is imported; a command that only refuses never pays for it.
    from engine.converge.in_cluster import InClusterStack
    from engine.converge.in_cluster_plugin import kubernetes_plugin

    plugin = kubernetes_plugin(os.environ, workspace.root / "tools")
    shell = shell_variables(workspace, environment, os.environ, tell, needs_aws=False)
    path = os.pathsep.join([str(plugin.parent), shell.variables["PATH"]])
    variables = {**os.environ, **shell.variables, "PATH": path}
    return InClusterStack(shell.toolchain.pulumi, workspace.root, environment, variables)
