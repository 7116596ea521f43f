"""Things that go wrong in a simulated world, and the reads that do not show all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from attrs import evolve

from engine.model import labels as keys
from engine.model.interruption import Interruption, InterruptionKind
from engine.model.ledger import Ledger
from engine.model.node import Instance, InstanceState
from engine.model.pod import Pod
from engine.model.snapshot import Snapshot
from engine.simulate.agenda import Agenda
from engine.simulate.cluster import SimulatedCluster
from engine.simulate.conditions import FaultKind, PlannedFault
from engine.simulate.ec2 import SimulatedEc2
from engine.simulate.kubelets import Kubelets

# Between EC2's notice and the end of a spot machine.
_NOTICE = timedelta(minutes=2)
_READS = (FaultKind.NO_NODES_READ, FaultKind.SOME_INSTANCES_READ, FaultKind.NO_PODS_READ, FaultKind.LEDGER_LOST)

# What EC2 says before it ends a machine so; None is nothing.
_ENDINGS: Mapping[FaultKind, InterruptionKind | None] = {
    FaultKind.INSTANCE_LOST: None,
    FaultKind.INTERRUPTED: InterruptionKind.SPOT,
    FaultKind.MAINTENANCE: InterruptionKind.MAINTENANCE,
}
_GPUS = "AcceleratedHardwareReady"
_MISLEADING = frozenset({*_READS, FaultKind.CLOCK_AHEAD, FaultKind.CLOCK_RIGHT})


class Faults:
    """``lost`` is told of pods that a node took with it, ``stirred`` of a message. ``ahead`` is by how much the clock
    of passes is wrong; ``misled`` counts bad reads and changes of that clock, ``struck`` all that found something to go
    wrong with."""

    def __init__(
        self,
        agenda: Agenda,
        ec2: SimulatedEc2,
        cluster: SimulatedCluster,
        kubelets: Kubelets,
        lost: Callable[[Sequence[Pod]], None],
        stirred: Callable[[], None],
    ) -> None:
        self._agenda, self._ec2, self._cluster, self._kubelets, self._lost = agenda, ec2, cluster, kubelets, lost
        self._stirred = stirred
        self._reads: list[FaultKind] = []
        self.ahead = timedelta()
        self.misled = 0
        self.struck: Counter[FaultKind] = Counter()
        self._messages: dict[str, Interruption] = {}

    def expect(self, faults: Sequence[PlannedFault]) -> None:
        for fault in faults:
            self._agenda.enter(fault.at, lambda coming=fault: self._strike(coming))  # type: ignore[misc]

    def seen_through(self, snapshot: Snapshot) -> Snapshot:
        """What a pass sees of the world: one bad read is of one pass."""
        snapshot = evolve(snapshot, interruptions=tuple(self._messages[key] for key in sorted(self._messages)))
        for kind in self._reads:
            self.struck[kind] += 1
            snapshot = _misread(snapshot, kind)
        self._reads.clear()
        return evolve(snapshot, taken_at=snapshot.taken_at + self.ahead) if self.ahead else snapshot

    def _strike(self, fault: PlannedFault) -> None:
        kind = fault.kind
        self.misled += kind in _MISLEADING
        if kind in _READS:
            self._reads.append(kind)
        elif kind is FaultKind.CLOCK_AHEAD:
            self.struck[kind] += 1
            self.ahead = fault.lasts
        elif kind is FaultKind.CLOCK_RIGHT:
            self.struck[kind] += 1
            self.ahead = timedelta()
        elif kind is FaultKind.PLUGIN_LATE:
            self._kubelets.delay_next_plugin(fault.lasts)
        elif kind in _ENDINGS:
            self._end_machine(fault)
        else:
            self._trouble_node(fault)

    def _end_machine(self, fault: PlannedFault) -> None:
        told, is_spot = _ENDINGS[fault.kind], fault.kind is FaultKind.INTERRUPTED
        running = [
            each
            for each in self._ec2.alive()
            if each.state is InstanceState.RUNNING and (not is_spot or each.capacity_type == keys.SPOT)
        ]
        instance = picked(running, fault.pick)
        if instance is None:
            return
        self.struck[fault.kind] += 1
        now = self._agenda.now
        ends = now + (_NOTICE if is_spot else fault.lasts if told is not None else timedelta())
        if told is not None:
            self._messages[instance.id] = Interruption(told, instance.id, now, ends)
            self._stirred()
        self._agenda.enter(ends, lambda: self._end(instance.id))

    def _end(self, instance_id: str) -> None:
        self._ec2.lose(instance_id)
        self._messages.pop(instance_id, None)

    def _trouble_node(self, fault: PlannedFault) -> None:
        with_nodes = [each for each in self._ec2.alive() if self._cluster.node(self._kubelets.node_of(each.id))]
        instance = picked(with_nodes, fault.pick)
        if instance is None:
            return
        self.struck[fault.kind] += 1
        name = self._kubelets.node_of(instance.id)
        if fault.kind is FaultKind.NODE_NOT_READY:
            self._kubelets.set_ready(name, is_ready=False)
            over = self._agenda.now + fault.lasts
            self._agenda.enter(over, lambda: self._kubelets.set_ready(name, is_ready=True))
        elif fault.kind is FaultKind.GPU_ILL:
            self._kubelets.report(name, _GPUS, is_well=False)
            over = self._agenda.now + fault.lasts
            self._agenda.enter(over, lambda: self._kubelets.report(name, _GPUS, is_well=True))
        elif fault.kind is FaultKind.PLUGIN_GONE:
            self._kubelets.drop_accelerators(name, fault.lasts)
        elif fault.kind is FaultKind.NODE_DELETED:
            claim = self._ec2.claim_of(instance.id)
            self._lost(self._cluster.remove_node(name))
            if claim is not None:
                self._kubelets.register_anew(claim, instance, fault.lasts)


def picked(those: Sequence[Instance], pick: float) -> Instance | None:
    """One of several by a number in [0, 1)."""
    return those[int(pick * len(those))] if those else None


def _misread(snapshot: Snapshot, kind: FaultKind) -> Snapshot:
    if kind is FaultKind.NO_NODES_READ:
        return evolve(snapshot, nodes=())
    if kind is FaultKind.NO_PODS_READ:
        return evolve(snapshot, pods=())
    if kind is FaultKind.LEDGER_LOST:
        # What has settled is read from outcomes again.
        return evolve(snapshot, ledger=Ledger(settled_version=snapshot.ledger.settled_version))
    every = snapshot.cloud.instances
    # What a list does not show is no proof; who is asked for by its id is told of all the same.
    return evolve(snapshot, cloud=evolve(snapshot.cloud, instances=every[: len(every) // 2], absent_claims=()))
