"""The ports of one environment, built once: the embedded sandbox's, or a real cluster's and account's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from attrs import frozen

from engine.actuate.drain import Drainer, KubernetesDrainer
from engine.catalog.build import build_catalog
from engine.converge.store import FileStore
from engine.model.catalog import Catalog
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.snapshot import CloudFacts
from engine.observe.catalog_source import read_catalog_data
from engine.observe.cluster import ClusterFacts, ClusterReader, KubernetesCluster
from engine.observe.ec2 import Ec2Reader
from engine.reconcile import sandboxed
from engine.reconcile.ports import ClusterSource, Converging, Ports, Tell
from engine.reconcile.shell import Shell, shell_variables
from engine.reconcile.workspace import Workspace


def catalog_of(workspace: Workspace, environment: Environment) -> Catalog:
    """What the environment can buy, from the shipped data and its own price file."""
    return build_catalog(
        environment.region,
        environment.network.zones,
        read_catalog_data(),
        environment.pricing,
        workspace.price_file(environment),
    )


def assemble(workspace: Workspace, name: str) -> Ports:
    """Every port of the environment of that name. A sandbox's EC2 endpoint is started when it does not run.

    Raises Fault, InvalidInput.
    """
    environment = workspace.environment(name)
    policy = workspace.policy(environment)
    catalog = catalog_of(workspace, environment)
    cluster: ClusterSource
    drainer: Drainer
    if environment.sandbox is not None:
        environment, cluster, drainer = sandboxed.parts(workspace, environment, environment.sandbox)
    else:
        kubernetes = KubernetesCluster(environment.cluster.kubeconfig, environment.cluster.context)
        cluster, drainer = _Unprompted(kubernetes), KubernetesDrainer(kubernetes.api_server)
    return Ports(
        workspace=workspace,
        environment=environment,
        policy=policy,
        catalog=catalog,
        store=FileStore(workspace.store_root(environment), environment.name),
        cloud=Ec2Reader(environment.endpoint_url, environment.region),
        cluster=cluster,
        drainer=drainer,
        converger=lambda tell: _converger(workspace, environment, tell),
        now=lambda: datetime.now(UTC),
    )


def prepared_shell(workspace: Workspace, name: str, tell: Tell) -> Shell:
    """A shell in which ``pulumi up -s NAME`` works: the stack is created when its backend lacks it. Raises Fault."""
    ports = assemble(workspace, name)
    with ports.converger(tell) as converger:
        converger.ensure_stack()
    return shell_variables(workspace, ports.environment, os.environ, tell)


@frozen
class _Unprompted:
    """A real cluster knows its nodes by itself."""

    cluster: ClusterReader

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        return self.cluster.read()


@contextmanager
def _converger(workspace: Workspace, environment: Environment, tell: Tell) -> Iterator[Converging]:
    # Here, and only here, Pulumi is imported: a command that converges nothing never pays for it.
    from engine.converge.driver import Converger

    shell = shell_variables(workspace, environment, os.environ, tell)
    yield Converger(shell.toolchain, workspace.root, environment, {**os.environ, **shell.variables})
