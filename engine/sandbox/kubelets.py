"""What joins the sandbox's EC2 to a real control plane: kubelets that register, and the cloud's node controller.

A machine that runs registers a Node with the labels and taints that its user data tells its kubelet, and with what its
instance type can hold. From then on kwok keeps the node alive. Once the machine is terminated, its Node is deleted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field, frozen

from engine.model import labels as keys
from engine.model.quantity import Resources
from engine.sandbox.cluster_objects import quantities, registered_node
from engine.sandbox.machines_seen import MachinesSeen, SandboxMachine
from engine.sandbox.plane_client import MERGE_PATCH, PlaneClient, PlaneRefused, PlaneUnreachable
from engine.sandbox.plane_parts import KWOK_NODE, NOT_READY_YET

# On a Node: which sandbox environment its machine is of, so that two on one plane leave each other's nodes alone.
OWNER = "sandbox.nodewright.dev/environment"
_NODES = "/api/v1/nodes"
_CONFLICT, _GONE = 409, 404
# A large fleet takes EC2's stand-in long to list, and whoever measures something wants the cores for that.
_REST_FOR_LISTING, _LONGEST_REST_SECONDS = 10, 15.0


@frozen
class Pace:
    """How fast machines come up, in seconds: until the kubelet registers, until it is Ready after that, until the
    device plugin advertises accelerators, until the daemons that startup taints wait for remove ``startup_taints``.

    ``missing_accelerators`` are never advertised: a broken device.
    """

    register_seconds: float = 0.0
    ready_seconds: float = 0.0
    device_plugin_seconds: float = 0.0
    startup_seconds: float = 0.0
    startup_taints: tuple[str, ...] = ()
    missing_accelerators: int = 0
    poll_seconds: float = 0.5


@define
class _Node:
    """A Node that we made, and what is still to happen to it. Times are of the monotonic clock."""

    name: str
    registered_at: float
    accelerators: Resources = field(factory=Resources)
    waits_for_ready: bool = False
    waits_for_devices: bool = False
    waits_for_daemons: bool = False
    is_stopped: bool = False


class Kubelets:
    """The kubelets of one environment's machines. ``ec2`` is a boto3 client, ``connect`` opens a way to the plane.

    ``step`` brings the cluster to what EC2 says now; ``start`` does so in a thread, every ``pace.poll_seconds``.
    """

    def __init__(
        self,
        ec2: Any,
        connect: Callable[[], PlaneClient],
        environment: str,
        pace: Pace = Pace(),
        *,
        monotonic: Callable[[], float] = time.monotonic,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.pace = pace
        self._seen = MachinesSeen(ec2, environment)
        self._connect = connect
        self._environment = environment
        self._monotonic = monotonic
        self._tell = tell
        self._client: PlaneClient | None = None
        self._nodes: dict[str, _Node] | None = None
        self._running_since: dict[str, float] = {}
        self._next_listing_at = monotonic()
        self._awaited: set[str] = set()
        self._never_join: set[str] = set()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="kubelets", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """No machine registers any more; the nodes that there are stay."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        self._hang_up()

    def run(self) -> None:
        """``step`` until ``stop``."""
        self._run()

    def step(self) -> None:
        """One look at all machines, and what follows from it. Raises what EC2's client or the plane's raises."""
        began = self._monotonic()
        machines = {machine.instance_id: machine for machine in self._seen.all()}
        ended = self._monotonic()
        self._next_listing_at = ended + min(_REST_FOR_LISTING * (ended - began), _LONGEST_REST_SECONDS)
        if self._nodes is None:
            self._nodes = dict(self._found_nodes())
        for instance_id in [known for known in self._nodes if known not in machines]:
            self._delete(self._nodes[instance_id])
            del self._nodes[instance_id]
        self._running_since = {known: since for known, since in self._running_since.items() if known in machines}
        self._awaited = {known for known in self._awaited if known in machines}
        self._advance_all(machines, self._nodes)

    def step_booting(self) -> None:
        """As `step`, of the machines alone that boot: between two looks at all, which a large fleet makes slow."""
        machines = {machine.instance_id: machine for machine in self._seen.booting(self._awaited)}
        if self._nodes is not None:
            self._advance_all(machines, self._nodes)
            for instance_id, node in self._nodes.items():
                if instance_id not in machines:
                    self._settle(node, self._monotonic())

    def _advance_all(self, machines: Mapping[str, SandboxMachine], nodes: dict[str, _Node]) -> None:
        self._awaited |= machines.keys() - nodes.keys() - self._never_join
        for machine in sorted(machines.values(), key=lambda each: each.instance_id):
            try:
                self._advance(machine, nodes)
            except (ValueError, KeyError) as error:
                # User data or a type that makes no kubelet: that machine never joins, the others do.
                if machine.instance_id not in self._never_join:
                    self._never_join.add(machine.instance_id)
                    self._tell(f"{machine.instance_id} does not join: {type(error).__name__} {error}")
        self._awaited -= nodes.keys() | self._never_join

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._monotonic() >= self._next_listing_at:
                    self.step()
                else:
                    self.step_booting()
            except (PlaneUnreachable, PlaneRefused) as error:
                # The plane may be starting again, with another port or token.
                self._hang_up()
                self._tell(str(error))
            except Exception as error:
                # Whatever EC2's client raises: a machine that is not seen for a while is not gone.
                self._tell(f"{type(error).__name__}: {error}")
            self._stopping.wait(self.pace.poll_seconds)

    def _advance(self, machine: SandboxMachine, nodes: dict[str, _Node]) -> None:
        now = self._monotonic()
        node = nodes.get(machine.instance_id)
        if machine.state == "running":
            since = self._running_since.setdefault(machine.instance_id, now)
            if node is None:
                if now - since >= self.pace.register_seconds:
                    nodes[machine.instance_id] = self._register(machine)
            elif node.is_stopped:
                # It boots anew; its Node is made again, since kwok takes none up that it has let go of.
                self._delete(node)
                del nodes[machine.instance_id]
            else:
                self._settle(node, now)
        elif node is not None and machine.state in ("stopping", "stopped") and not node.is_stopped:
            # kwok lets go of it, so its lease runs out: a machine that nobody hears of.
            self._drop_annotation(node, KWOK_NODE[0])
            node.is_stopped = True

    def _register(self, machine: SandboxMachine) -> _Node:
        boot = self._seen.first_boot(machine)
        shape = self._seen.shape(machine, boot)
        promised = Resources({name: shape.capacity.amount(name) for name in shape.capacity.accelerators()})
        accelerators = Resources(
            {name: max(0, amount - self.pace.missing_accelerators) for name, amount in promised.items()}
        )
        waits_for_devices = bool(promised) and self.pace.device_plugin_seconds > 0
        # A device plugin that has not spoken yet: kubelet does not know the resource at all.
        at_first = {} if waits_for_devices else dict(accelerators)
        node = registered_node(
            machine.private_dns_name or machine.instance_id,
            f"aws:///{machine.zone}/{machine.instance_id}",
            {**boot.labels, **self._seen.labels(machine)},
            boot.taints,
            _with(shape.capacity, promised, at_first),
            _with(shape.allocatable, promised, at_first),
        )
        waits_for_ready = self.pace.ready_seconds > 0
        node["metadata"]["annotations"] = {OWNER: self._environment, KWOK_NODE[0]: KWOK_NODE[1]}
        if waits_for_ready:
            node["metadata"]["annotations"][NOT_READY_YET] = "true"
            node["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "KubeletNotReady"}]
        name = self._create(node, machine)
        self._tell(f"{machine.instance_id} registered as {name}")
        return _Node(
            name=name,
            registered_at=self._monotonic(),
            accelerators=accelerators,
            waits_for_ready=waits_for_ready,
            waits_for_devices=waits_for_devices,
            waits_for_daemons=any(taint.key in self.pace.startup_taints for taint in boot.taints),
        )

    def _create(self, node: dict[str, Any], machine: SandboxMachine) -> str:
        """The Node's name: EC2's stand-in gives a private name twice now and then; the machine's own id is unique."""
        for name in (node["metadata"]["name"], machine.instance_id):
            node["metadata"]["name"] = node["metadata"]["labels"][keys.HOSTNAME] = name
            try:
                self._plane().create(_NODES, node)
            except PlaneRefused as refused:
                if refused.status != _CONFLICT:
                    raise
                there = self._plane().get(f"{_NODES}/{name}")
                if (there.get("spec") or {}).get("providerID") != node["spec"]["providerID"]:
                    continue
            return name
        raise PlaneRefused(f"a Node for {machine.instance_id}", _CONFLICT, {"message": "both names are taken"})

    def _settle(self, node: _Node, now: float) -> None:
        age = now - node.registered_at
        if node.waits_for_ready and age >= self.pace.ready_seconds:
            self._drop_annotation(node, NOT_READY_YET)
            node.waits_for_ready = False
        if node.waits_for_devices and age >= self.pace.device_plugin_seconds:
            advertised = quantities(node.accelerators)
            status = {"status": {"capacity": advertised, "allocatable": advertised}}
            self._patch(f"{_NODES}/{node.name}/status", status)
            node.waits_for_devices = False
        if node.waits_for_daemons and age >= self.pace.startup_seconds:
            self._remove_startup_taints(node)
            node.waits_for_daemons = False

    def _remove_startup_taints(self, node: _Node) -> None:
        try:
            there = self._plane().get(f"{_NODES}/{node.name}")
        except PlaneRefused as refused:
            if refused.status == _GONE:
                return
            raise
        taints = (there.get("spec") or {}).get("taints") or []
        left = [taint for taint in taints if taint["key"] not in self.pace.startup_taints]
        # With the version that was read: taints are one list, and others write it too.
        version = {"resourceVersion": there["metadata"]["resourceVersion"]}
        self._patch(f"{_NODES}/{node.name}", {"metadata": version, "spec": {"taints": left}})

    def _drop_annotation(self, node: _Node, key: str) -> None:
        self._patch(f"{_NODES}/{node.name}", {"metadata": {"annotations": {key: None}}})

    def _patch(self, path: str, body: object) -> None:
        try:
            self._plane().patch(path, body, MERGE_PATCH)
        except PlaneRefused as refused:
            # Somebody deleted the Node: its kubelet would go on in vain.
            if refused.status != _GONE:
                raise

    def _delete(self, node: _Node) -> None:
        try:
            self._plane().delete(f"{_NODES}/{node.name}")
        except PlaneRefused as refused:
            if refused.status != _GONE:
                raise
        self._tell(f"{node.name} has no machine any more, its Node is deleted")

    def _found_nodes(self) -> Iterator[tuple[str, _Node]]:
        """Nodes that kubelets of this environment registered in an earlier run; whatever they waited for is over."""
        for node in self._plane().get(_NODES).get("items") or []:
            annotations = node["metadata"].get("annotations") or {}
            if annotations.get(OWNER) == self._environment:
                instance_id = str(node["spec"].get("providerID", "")).rpartition("/")[2]
                yield instance_id, _Node(node["metadata"]["name"], self._monotonic())

    def _plane(self) -> PlaneClient:
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def _with(amounts: Resources, promised: Iterable[str], advertised: Mapping[str, int]) -> Resources:
    others = {name: amount for name, amount in amounts.items() if name not in set(promised)}
    return Resources({**others, **advertised})
