"""The kubelets of a simulated cluster: a node registers, is ready, and has its accelerators; one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from random import Random

from attrs import evolve

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.constraint import Taint, TaintEffect
from engine.model.node import HEALTH_CONDITIONS, READY, Instance, Node, NodeCondition
from engine.model.quantity import Resources
from engine.simulate.agenda import Agenda
from engine.simulate.cluster import SimulatedCluster
from engine.simulate.conditions import Latencies

_NOT_READY = Taint("node.kubernetes.io/not-ready", "", TaintEffect.NO_SCHEDULE)


class Kubelets:
    """``changed`` is told whenever a node is another than before; ``runs`` whether an instance does. ``late_plugins``
    counts machines whose accelerators came late because somebody asked for it."""

    def __init__(
        self,
        agenda: Agenda,
        latencies: Latencies,
        chance: Random,
        cluster: SimulatedCluster,
        runs: Callable[[str], bool],
        changed: Callable[[], None],
    ) -> None:
        self._agenda, self._latencies, self._chance, self._cluster = agenda, latencies, chance, cluster
        self._runs, self._changed = runs, changed
        self._names: dict[str, str] = {}
        self._late: list[timedelta] = []
        self.late_plugins = 0

    def know(self, instance_id: str, node_name: str) -> None:
        """A node that was there before."""
        self._names[instance_id] = node_name

    def node_of(self, instance_id: str) -> str:
        """The name of a machine's node; empty where it has none yet."""
        return self._names.get(instance_id, "")

    def names(self) -> Mapping[str, str]:
        """Node names by instance id."""
        return self._names

    def delay_next_plugin(self, by: timedelta) -> None:
        """The next machine's accelerators come so much later."""
        self._late.append(by)

    def boot(self, claim: Claim, instance: Instance) -> None:
        """A machine runs: its node will come."""
        self._after(self._latencies.register.drawn(self._chance), lambda: self._register(claim, instance))

    def forget(self, instance_id: str) -> str:
        """A machine is gone: the name that its node had."""
        return self._names.pop(instance_id, "")

    def set_ready(self, name: str, *, is_ready: bool) -> None:
        node = self._cluster.node(name)
        if node is None or node.ready is is_ready:
            return
        taints = tuple(taint for taint in node.taints if taint != _NOT_READY)
        self._put(evolve(node, ready=is_ready, taints=taints if is_ready else (*taints, _NOT_READY)))
        self.report(name, READY, is_well=is_ready)

    def report(self, name: str, condition: str, *, is_well: bool) -> None:
        """One of a node's conditions becomes true, or false."""
        node = self._cluster.node(name)
        if node is not None:
            said = NodeCondition(condition, "True" if is_well else "False", self._agenda.now)
            every = {each.type: each for each in node.conditions} | {condition: said}
            self._put(evolve(node, conditions=tuple(every[each] for each in HEALTH_CONDITIONS if each in every)))

    def drop_accelerators(self, name: str, lasting: timedelta) -> None:
        """A node's device plugin is gone for a while."""
        node = self._cluster.node(name)
        if node is None or not node.allocatable.accelerators():
            return
        full = node.allocatable
        self._put(evolve(node, allocatable=without_accelerators(full)))
        self._after(lasting, lambda: self._advertise(name, full))

    def register_anew(self, claim: Claim, instance: Instance, after: timedelta) -> None:
        """A Node was deleted, and its kubelet makes it again."""
        self._after(after, lambda: self._register(claim, instance))

    def _register(self, claim: Claim, instance: Instance) -> None:
        if not self._runs(instance.id):
            return
        name = f"node-{claim.name}"
        self._names[instance.id] = name
        self._put(
            Node(
                name=name,
                allocatable=without_accelerators(claim.allocatable),
                created_at=self._agenda.now,
                provider_id=f"aws:///{instance.zone}/{instance.id}",
                labels={**claim.labels, keys.HOSTNAME: name, keys.REGISTERED: "true"},
                taints=(*claim.taints, *claim.startup_taints, _NOT_READY),
                ready=False,
            )
        )
        ready = self._latencies.ready.drawn(self._chance)
        plugin = ready + self._latencies.plugin.drawn(self._chance)
        if self._late and claim.allocatable.accelerators():
            plugin += self._late.pop(0)
            self.late_plugins += 1
        self._after(ready, lambda: self._come_up(name, claim))
        self._after(plugin, lambda: self._advertise(name, claim.allocatable))

    def _come_up(self, name: str, claim: Claim) -> None:
        node = self._cluster.node(name)
        if node is not None:
            taints = tuple(each for each in node.taints if each != _NOT_READY and each not in claim.startup_taints)
            self._put(evolve(node, ready=True, taints=taints))

    def _advertise(self, name: str, full: Resources) -> None:
        node = self._cluster.node(name)
        if node is not None and node.allocatable != full:
            self._put(evolve(node, allocatable=full))

    def _put(self, node: Node) -> None:
        self._cluster.put_node(node)
        self._changed()

    def _after(self, wait: timedelta, happening: Callable[[], None]) -> None:
        self._agenda.enter(self._agenda.now + wait, happening)


def without_accelerators(amounts: Resources) -> Resources:
    """What a node advertises before its device plugin does."""
    devices = frozenset(amounts.accelerators())
    return Resources({name: amount for name, amount in amounts.items() if name not in devices})
