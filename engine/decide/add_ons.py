"""What to install in the cluster: the runner, what it may do, and which images the nodes of each pool keep.

It is decided here, and not where policy is read, because which images a pool needs follows from the pods that run on it
or could: that takes the scheduling room's algebra. Like every decision it is made from values alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping

from engine.decide.pre_pull import NOTHING_STANDS, pre_pulls
from engine.model.canonical import digest
from engine.model.cluster_access import ACTING, LEASE_NAMESPACE, OBSERVING, writing_lease
from engine.model.environment import Environment, InCluster, RunnerKind
from engine.model.fault import Fault
from engine.model.in_cluster import METRICS_PORT, AddOns, Runner, Volume
from engine.model.node import Node
from engine.model.pod import Pod
from engine.model.policy import Policy

SERVICE_ACCOUNT = "nodewright"
# Where the runner's image holds the project: the folder of Pulumi.yaml, stacks/ and policies/.
PROJECT_FOLDER = "/nodewright"
_STATE_FOLDER = ".nodewright"
# For what the CLI and Python write in passing; the container's own file system is read-only.
_SCRATCH = ("/tmp", "/home/nodewright")
_LONGEST_NAME = 63
_DIGEST_DIGITS = 6


def add_ons(
    environment: Environment,
    policy: Policy,
    *,
    pods: Iterable[Pod] = (),
    nodes: Iterable[Node] = (),
    standing_images: Mapping[str, tuple[str, ...]] = NOTHING_STANDS,
    owns_namespace: bool = True,
) -> AddOns:
    """All that `nodewright:inCluster` asks for.

    `pods` and `nodes` are the cluster's, `standing_images` what each pool's DaemonSet pulls today: an image that was
    chosen once stays while there is room. Raises Fault when the environment asks for nothing, or for a runner without
    an image.
    """
    asked = environment.in_cluster
    if asked is None:
        raise Fault(
            f"environment {environment.name} installs nothing in its cluster",
            f"add nodewright:inCluster to stacks/Pulumi.{environment.name}.yaml, see docs/install.md",
        )
    name = kubernetes_name(f"nodewright-{environment.name}")
    return AddOns(
        environment=environment.name,
        namespace=asked.namespace,
        owns_namespace=owns_namespace,
        service_account=SERVICE_ACCOUNT,
        cluster_wide_name=name,
        cluster_rules=(*OBSERVING, *ACTING),
        lease_namespace=LEASE_NAMESPACE,
        lease_rules=writing_lease(name),
        runner=_runner(environment, asked),
        pre_pulls=pre_pulls(asked, policy, pods, nodes, standing_images),
    )


def kubernetes_name(text: str) -> str:
    """A name that Kubernetes takes: the text itself where that is one, else what is left of it and a digest of it."""
    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    if name == text and len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _DIGEST_DIGITS - 1].rstrip('-')}-{digest(text)[:_DIGEST_DIGITS]}"


def _runner(environment: Environment, asked: InCluster) -> Runner | None:
    if asked.runner is RunnerKind.NONE:
        return None
    if not asked.image:
        raise Fault(
            f"environment {environment.name}: nodewright:inCluster.runner is {asked.runner.value}, and it has no image",
            "set nodewright:inCluster.image to an image that holds nodewright and this project, see docs/install.md",
        )
    is_job = asked.runner is RunnerKind.CRON_JOB
    how = ("--once",) if is_job else ("--metrics-address", f"0.0.0.0:{METRICS_PORT}")
    kept = _kept_folders(environment)
    state = posixpath.join(PROJECT_FOLDER, _STATE_FOLDER)
    return Runner(
        image=asked.image,
        arguments=("--project", PROJECT_FOLDER, "run", environment.name, *how),
        schedule=asked.schedule if is_job else None,
        volumes=tuple(Volume(path, path.strip("/")) for path in kept),
        scratch=(*_SCRATCH, *(() if any(_is_within(state, path) for path in kept) else (state,))),
    )


def _kept_folders(environment: Environment) -> tuple[str, ...]:
    """Where the documents and Pulumi's state lie, as far as that is in files; none inside another."""
    folders = {posixpath.normpath(posixpath.join(PROJECT_FOLDER, environment.store))}
    if environment.backend is not None and environment.backend.startswith("file:///"):
        folders.add(posixpath.normpath(environment.backend.removeprefix("file://")))
    return tuple(
        folder
        for folder in sorted(folders)
        if not any(other != folder and _is_within(folder, other) for other in folders)
    )


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
