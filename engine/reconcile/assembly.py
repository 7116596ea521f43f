"""The ports of one environment, built once: the embedded sandbox's, or a real cluster's and account's."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from attrs import frozen

from engine.actuate.api_server import ApiConnection
from engine.actuate.drain import Drainer, KubernetesDrainer
from engine.actuate.lease import KubernetesLease
from engine.actuate.nominate import BindsByItself, KubernetesNominator, Nominator
from engine.actuate.registration import KubernetesRegistrar, Registrar
from engine.catalog.build import build_catalog
from engine.catalog.data import CatalogData
from engine.converge.store import DocumentStore, FileStore
from engine.decide.add_ons import kubernetes_name
from engine.model.catalog import Catalog
from engine.model.cluster_access import LEASE_NAMESPACE
from engine.model.document import DesiredDocument
from engine.model.environment import CatalogSource, ClusterKind, Environment
from engine.model.snapshot import CloudFacts
from engine.observe.api_server import ApiServer
from engine.observe.aws_client import aws_client
from engine.observe.catalog_source import read_catalog_data
from engine.observe.cluster import ClusterFacts, ClusterReader, KubernetesCluster
from engine.observe.ec2 import Ec2Reader
from engine.observe.ec2_foundation import Ec2FoundationFinder
from engine.observe.interruptions import InterruptionQueue
from engine.observe.live_cluster import LiveCluster
from engine.reconcile import sandboxed
from engine.reconcile.following import Polled, Watched
from engine.reconcile.one_writer import BothLeases, StoreLease
from engine.reconcile.ports import ClusterSource, ConvergingSession, LiveSource, PassLease, Ports, Tell
from engine.reconcile.settledness import unsettled_lanes
from engine.reconcile.shell import Shell, shell_variables
from engine.reconcile.workspace import Workspace


def catalog_of(workspace: Workspace, environment: Environment) -> Catalog:
    """What the environment can buy, from the shipped data and its own price file; asks nobody."""
    return _catalog(workspace, environment, read_catalog_data())


def _catalog(workspace: Workspace, environment: Environment, data: CatalogData) -> Catalog:
    prices = workspace.price_file(environment)
    return build_catalog(environment.region, environment.network.zones, data, environment.pricing, prices)


def catalog_now(workspace: Workspace, environment: Environment) -> Catalog:
    """The catalog, with EC2's own answers where the environment wants them; a note says why they are missing."""
    shipped = read_catalog_data()
    if environment.catalog is CatalogSource.SHIPPED:
        return _catalog(workspace, environment, shipped)
    from engine.observe.live_catalog import live_or_shipped

    ec2 = aws_client("ec2", environment.endpoint_url, environment.region)
    also = {named.partition("/")[0] for named in environment.pricing.overrides}
    return _catalog(
        workspace, environment, live_or_shipped(shipped, ec2, environment.region, environment.network.zones, also)
    )


def assemble(workspace: Workspace, name: str) -> Ports:
    """Every port of the environment of that name. A sandbox's EC2 endpoint is started when it does not run.

    Raises Fault, InvalidInput.
    """
    environment = workspace.environment(name)
    policy = workspace.policy(environment)
    store = FileStore(workspace.store_root(environment), environment.name)
    sandbox = environment.sandbox
    if sandbox is not None:
        environment = sandboxed.started(workspace, environment, sandbox, policy)
    if sandbox is not None and sandbox.cluster is ClusterKind.SIMULATED:
        cluster, simulated = sandboxed.simulated(workspace, environment, sandbox, store)
        ways = _Ways(cluster, simulated, simulated, BindsByItself(), StoreLease(store), lambda: Polled(cluster))
    else:
        ways = _kubernetes(environment, store)
    return Ports(
        workspace=workspace,
        environment=environment,
        policy=policy,
        catalog=catalog_now(workspace, environment),
        store=store,
        cloud=Ec2Reader(environment.endpoint_url, environment.region),
        cluster=ways.cluster,
        drainer=ways.drainer,
        registrar=ways.registrar,
        nominator=ways.nominator,
        lease=ways.lease,
        session=lambda tell: _session(workspace, environment, tell),
        live=ways.live,
        api_server=ways.api_server,
        now=lambda: datetime.now(UTC),
        interruptions=_interruptions(environment, store),
    )


def _interruptions(environment: Environment, store: DocumentStore) -> InterruptionQueue | None:
    queue = environment.interruption_queue
    if not queue:
        return None
    is_making = (lambda: _is_making(queue, store)) if environment.owns_interruption_queue else None
    return InterruptionQueue(environment.endpoint_url, environment.region, queue, is_making=is_making)


def _is_making(queue: str, store: DocumentStore) -> bool:
    """Whether the queue is yet to be declared, or its stack yet to be converged."""
    document = store.document()
    if document is None or document.foundation.interruption_queue != queue:
        return True
    return document.environment in unsettled_lanes(document, store.outcomes())


@frozen
class _Ways:
    """How a cluster is reached: read, acted on, held and followed."""

    cluster: ClusterSource
    drainer: Drainer
    registrar: Registrar
    nominator: Nominator
    lease: PassLease
    live: Callable[[], LiveSource]
    api_server: ApiConnection | None = None


def _kubernetes(environment: Environment, store: DocumentStore) -> _Ways:
    where = environment.cluster
    read = KubernetesCluster(where.kubeconfig, where.context)
    api_server = read.api_server
    return _Ways(
        cluster=_Unprompted(read),
        drainer=KubernetesDrainer(api_server),
        registrar=KubernetesRegistrar(api_server),
        nominator=KubernetesNominator(api_server),
        lease=BothLeases(StoreLease(store), _cluster_lease(environment, api_server)),
        # Connections of its own: streams that stay open must not keep an eviction waiting.
        live=lambda: Watched(LiveCluster(ApiServer(where.kubeconfig, where.context))),
        api_server=api_server,
    )


def prepared_shell(workspace: Workspace, name: str, tell: Tell) -> Shell:
    """A shell in which ``pulumi up -s NAME`` works: the stack is created when its backend lacks it. Raises Fault."""
    ports = assemble(workspace, name)
    with ports.session(tell) as session:
        session.lane(name).ensure_stack()
    return shell_variables(workspace, ports.environment, os.environ, tell)


@frozen
class _Unprompted:
    """A real cluster knows its nodes by itself."""

    cluster: ClusterReader

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> ClusterFacts:
        return self.cluster.read()


def _cluster_lease(environment: Environment, api_server: ApiConnection) -> KubernetesLease:
    # Told to whoever finds it held, and never that of another process.
    holder = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    return KubernetesLease(api_server, LEASE_NAMESPACE, kubernetes_name(f"nodewright-{environment.name}"), holder)


@contextmanager
def _session(workspace: Workspace, environment: Environment, tell: Tell) -> Iterator[ConvergingSession]:
    # Here, and only here, Pulumi is imported: a command that converges nothing never pays for it.
    from engine.converge.session import Session

    shell = shell_variables(workspace, environment, os.environ, tell)
    finder = Ec2FoundationFinder(environment.endpoint_url, environment.region)
    variables = {**os.environ, **shell.variables}
    with Session(shell.toolchain, workspace.root, environment, variables, finder) as session:
        yield session
