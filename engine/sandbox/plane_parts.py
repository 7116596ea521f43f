"""The parts of a control plane on loopback, in the order in which they start, with their flags."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping
from pathlib import Path

import yaml
from attrs import frozen

from engine.sandbox.credentials import Credentials

ETCD = "etcd"
API_SERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLERS = "kube-controller-manager"
KWOK = "kwok"
PARTS = (ETCD, API_SERVER, SCHEDULER, CONTROLLERS, KWOK)

# kwok is the kubelet of the nodes that carry this, and of no others.
KWOK_NODE = ("kwok.x-k8s.io/node", "fake")

# A node that carries this is not made Ready yet. (kwok takes hold of a node only when it appears, so its own annotation
# cannot come later.)
NOT_READY_YET = "sandbox.nodewright.dev/not-ready-yet"

# Only text in objects here: nothing is ever sent to these addresses.
_SERVICE_RANGE = "10.100.0.0/16"
_POD_RANGE = "10.200.0.0/16"
# Clients of a large cluster's plane are not held to the defaults either, and thousands of pods have to be made.
_BRISK = ("--kube-api-qps=500", "--kube-api-burst=1000")


@frozen
class Ports:
    """Ports of loopback, one for each listener."""

    api: int
    etcd: int
    etcd_peer: int
    kwok: int


@frozen
class Layout:
    """Where a plane keeps what its parts read and write."""

    folder: Path
    credentials: Credentials
    ports: Ports

    @property
    def parts_kubeconfig(self) -> Path:
        return self.folder / "parts.kubeconfig"

    @property
    def stages(self) -> Path:
        return self.folder / "stages.yaml"

    @property
    def data(self) -> Path:
        return self.folder / "etcd"

    def log(self, part: str) -> Path:
        return self.folder / f"{part}.log"


def free_ports() -> Ports:
    """Ports that nobody listens on now; somebody may be quicker at one of them."""
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(socket.socket()) for _ in range(4)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return Ports(*(listener.getsockname()[1] for listener in listeners))


def stages(shipped: bytes) -> bytes:
    """kwok's own stages, but for nodes that are not to be Ready yet."""
    documents = list(yaml.safe_load_all(shipped))
    for document in documents:
        if document["metadata"]["name"] == "node-initialize":
            awake = {"key": f'.metadata.annotations["{NOT_READY_YET}"]', "operator": "DoesNotExist"}
            document["spec"]["selector"]["matchExpressions"].append(awake)
    return yaml.safe_dump_all(documents, sort_keys=False).encode()


def arguments(part: str, layout: Layout, extra: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The arguments of the control-plane program that make it this part; ``extra`` flags come last, and so win."""
    flags = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        SCHEDULER: _scheduler,
        CONTROLLERS: _controllers,
        KWOK: _kwok,
    }[part](layout)
    return [part, *flags, *extra.get(part, ())]


def _etcd(layout: Layout) -> list[str]:
    client, peer = (f"http://127.0.0.1:{port}" for port in (layout.ports.etcd, layout.ports.etcd_peer))
    return [
        "--name=sandbox",
        f"--data-dir={layout.data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=sandbox={peer}",
        "--unsafe-no-fsync",
    ]


def _api_server(layout: Layout) -> list[str]:
    have, port = layout.credentials, layout.ports.api
    return [
        f"--etcd-servers=http://127.0.0.1:{layout.ports.etcd}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={have.serving_certificate}",
        f"--tls-private-key-file={have.serving_key}",
        f"--token-auth-file={have.tokens}",
        "--authorization-mode=RBAC",
        f"--service-account-issuer=https://127.0.0.1:{port}",
        f"--service-account-key-file={have.service_account_key}",
        f"--service-account-signing-key-file={have.service_account_key}",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        # A loopback address cannot be an endpoint of the kubernetes Service.
        "--endpoint-reconciler-type=none",
        # Else a pod is refused in a namespace until a controller has made the account `default` there.
        "--disable-admission-plugins=ServiceAccount",
        # Device plugins run privileged.
        "--allow-privileged=true",
        "--profiling=false",
    ]


def _scheduler(layout: Layout) -> list[str]:
    return [f"--kubeconfig={layout.parts_kubeconfig}", "--leader-elect=false", "--secure-port=0", *_BRISK]


def _controllers(layout: Layout) -> list[str]:
    return [
        f"--kubeconfig={layout.parts_kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={layout.credentials.service_account_key}",
        # The API server's own self-signed certificate would make a publisher of bundles fail over and over.
        f"--root-ca-file={layout.credentials.authority}",
        *_BRISK,
    ]


def _kwok(layout: Layout) -> list[str]:
    key, value = KWOK_NODE
    return [
        f"--kubeconfig={layout.parts_kubeconfig}",
        # Without stages it ends at once: flags alone do not bring its defaults.
        f"--config={layout.stages}",
        f"--manage-nodes-with-annotation-selector={key}={value}",
        "--manage-all-nodes=false",
        "--node-lease-duration-seconds=40",
        f"--cidr={_POD_RANGE}",
        # A node's port alone would make it listen on every interface.
        f"--server-address=127.0.0.1:{layout.ports.kwok}",
    ]
