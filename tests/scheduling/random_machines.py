"""Random machines: claims in every state of their lives, and nodes that are not ours, with pods bound to them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from attrs import evolve

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.ledger import Milestones
from engine.model.node import Instance, InstanceState, Node
from engine.model.outcome import ClaimOutcome, OutcomeStatus
from engine.model.pod import DaemonSet, Owner, Pod, PodPhase
from engine.model.policy import NodePool
from engine.model.quantity import NVIDIA_GPU, Resources
from engine.model.reason import DisruptionReason
from tests.builders import M5_LARGE, NOON, PRICES, TYPES, claim, minutes, node, pod, taint
from tests.scheduling.random_draw import Dice, Knobs
from tests.scheduling.random_pods import TEAM, TIER

GPU_TAINT, TEAM_TAINT = taint("gpu", "true"), taint("team", "a", "NoExecute")
SOFT_TAINT, STARTING = taint("soft", effect="PreferNoSchedule"), taint("starting")
_AGENT = taint("agent.example/init")
_NOT_READY = taint("node.kubernetes.io/not-ready")
_UNINITIALIZED = taint("node.cloudprovider.kubernetes.io/uninitialized", "true")
_READINESS = taint("readiness.k8s.io/network")
_CORDON = taint(keys.UNSCHEDULABLE_TAINT)


class Machines:
    """All that stands, is launching or is going, as it gathers."""

    def __init__(
        self,
        dice: Dice,
        knobs: Knobs,
        pools: Sequence[NodePool],
        types: Sequence[InstanceType],
        zones: Sequence[str],
        daemon_sets: Sequence[DaemonSet],
    ) -> None:
        self._dice, self._knobs = dice, knobs
        self._pools, self._types, self._zones = pools, types, zones
        self._standing_types = [kind for kind in types if kind in TYPES] or [M5_LARGE]
        self._daemon_sets = daemon_sets
        self.claims: list[Claim] = []
        self.records: list[RemovalRecord] = []
        self.nodes: list[Node] = []
        self.instances: list[Instance] = []
        self.pods: list[Pod] = []
        self.absent: list[str] = []
        self.outcomes: list[ClaimOutcome] = []
        self.ids: dict[str, str] = {}
        self.milestones: dict[str, Milestones] = {}

    def add_machine(self, number: int) -> None:
        """One claim, in a state of its life."""
        pool, kind = self._dice.pick(self._pools), self._dice.pick(self._standing_types)
        capacity_type = self._dice.pick([keys.ON_DEMAND, keys.SPOT])
        made = claim(
            f"{pool.name}-{number:05}",
            kind,
            pool=pool,
            zone=self._dice.pick(self._zones),
            capacity_type=capacity_type,
            price=PRICES[kind.name],
            created=NOON - minutes(self._dice.pick([1, 10, 60])),
        )
        if self._dice.one_in(4) and any(each.key == TEAM for each in pool.requirements):
            made = evolve(made, labels={**made.labels, TEAM: self._dice.pick("ab")})
        states = [self._in_use, self._in_use, self._in_use]
        if self._knobs.troubles:
            states += [self._asked, self._launched, self._coming, self._coming, self._in_trouble, self._closed]
            states += [self._lost, self._leaving, self._doubled]
        self._dice.pick(states)(made, kind)

    def _asked(self, made: Claim, kind: InstanceType) -> None:
        self.claims.append(made)
        if self._dice.one_in(2):
            self.milestones[made.name] = Milestones(asked_at=made.created_at)

    def _launched(self, made: Claim, kind: InstanceType) -> None:
        self.claims.append(made)
        self._instance(made, InstanceState.PENDING)

    def _coming(self, made: Claim, kind: InstanceType) -> None:
        """Registered, and not whole: taints of start-up, an agent's, a device plugin that is not there yet."""
        self.claims.append(made)
        shown = self._node(made, kind, self._instance(made))
        taints = self._dice.some((_NOT_READY, _UNINITIALIZED, STARTING, _AGENT, _READINESS), 0, 3)
        amounts = {
            name: amount for name, amount in shown.allocatable.items() if name != NVIDIA_GPU or self._dice.one_in(2)
        }
        is_held = self._dice.one_in(3)
        labels = {**shown.labels, keys.HELD: "true"} if is_held else shown.labels
        if is_held:
            taints = [*taints, _CORDON]
        self._show(
            evolve(
                shown,
                labels=labels,
                unschedulable=is_held,
                ready=self._dice.one_in(2),
                allocatable=Resources(amounts),
                taints=tuple(dict.fromkeys((*(made.taints if self._dice.one_in(2) else ()), *taints))),
            )
        )
        self.milestones[made.name] = Milestones(asked_at=made.created_at, launched_at=made.created_at)

    def _doubled(self, made: Claim, kind: InstanceType) -> None:
        """Registered anew under another name; the old Node is still shown."""
        self._in_use(made, kind)
        fresh, old = self.nodes[-1], self.nodes[-1]
        old = evolve(old, name=f"old-{old.name}", ready=self._dice.one_in(2), created_at=old.created_at - minutes(5))
        self.nodes[-1:] = [fresh, old]
        self._bind(old)

    def _in_use(self, made: Claim, kind: InstanceType) -> None:
        self.claims.append(made)
        shown = self._node(made, kind, self._instance(made))
        self._up(made, self._dice.pick([minutes(1), minutes(50)]))
        self._show(shown)
        self._bind(shown, is_daemon=True)
        for _ in range(self._dice.upto(3)):
            self._bind(shown)

    def _in_trouble(self, made: Claim, kind: InstanceType) -> None:
        """Up once: its accelerators are gone, it is not ready, or somebody tainted it since."""
        self.claims.append(made)
        shown = self._node(made, kind, self._instance(made))
        self._up(made, self._dice.pick([minutes(2), minutes(50)]))
        trouble = self._dice.upto(3)
        if trouble == 0:
            amounts = Resources({**shown.allocatable, NVIDIA_GPU: 0}) if kind.accelerators else shown.allocatable
            shown = evolve(shown, allocatable=amounts)
            since = NOON - minutes(self._dice.pick([1, 30]))
            self.milestones[made.name] = evolve(self.milestones[made.name], accelerators_short_since=since)
        elif trouble == 1:
            shown = evolve(shown, ready=False, taints=(*shown.taints, _NOT_READY))
        elif trouble == 2:
            shown = evolve(shown, taints=(*shown.taints, self._dice.pick([_AGENT, STARTING, _READINESS])))
        else:
            self.milestones.pop(made.name)
        self._show(shown)
        self._bind(shown)

    def _closed(self, made: Claim, kind: InstanceType) -> None:
        self.claims.append(made)
        shown = self._node(made, kind, self._instance(made))
        self._up(made, minutes(50))
        how = self._dice.upto(2)
        if how == 0:
            shown = evolve(shown, unschedulable=True, taints=(*shown.taints, _CORDON))
        elif how == 1:
            shown = evolve(shown, unschedulable=True, taints=(*shown.taints, taint(keys.DISRUPTED_TAINT)))
        else:
            shown = evolve(shown, deleting=True)
        self._show(shown)

    def _lost(self, made: Claim, kind: InstanceType) -> None:
        self.claims.append(made)
        how = self._dice.upto(2)
        if how == 0:
            self._show(self._node(made, kind, self._instance(made, InstanceState.TERMINATED)))
        elif how == 1:
            self.absent.append(made.name)
        else:
            status = self._dice.pick([OutcomeStatus.FAILED_CAPACITY, OutcomeStatus.FAILED_OTHER])
            self.outcomes.append(ClaimOutcome(made.name, status, code="InsufficientInstanceCapacity"))

    def _leaving(self, made: Claim, kind: InstanceType) -> None:
        state = self._dice.pick([None, InstanceState.RUNNING, InstanceState.SHUTTING_DOWN, InstanceState.TERMINATED])
        shown = self._node(made, kind, self._instance(made, state)) if state is not None else None
        if shown is not None and self._dice.one_in(2):
            self._show(shown)
        self.records.append(
            RemovalRecord(
                claim=made.name,
                node_pool=made.node_pool,
                reason=DisruptionReason.EMPTY,
                rule=f"{made.node_pool}: empty",
                since=NOON - minutes(5),
                usd_per_hour=made.usd_per_hour,
                capacity=made.capacity,
            )
        )

    def add_foreign_node(self, number: int) -> None:
        kind = self._dice.pick(self._types)
        labels = self._dice.pick(
            [
                {},
                {keys.NODE_POOL: self._pools[0].name},
                {TEAM: "a"},
                {TIER: self._dice.pick(("3", "1_0"))},
                {"beta.kubernetes.io/arch": kind.arch},
            ]
        )
        troubles = self._knobs.troubles
        shown = node(
            f"foreign-{number}",
            kind,
            instance_id=f"i-foreign-{number}",
            zone=self._dice.pick(self._zones),
            labels={keys.HOSTNAME: f"foreign-{number}", **labels},
            taints=self._dice.pick([(), (), (GPU_TAINT,), (SOFT_TAINT,)]),
            ready=not (troubles and self._dice.one_in(5)),
            unschedulable=troubles and self._dice.one_in(6),
        )
        self._show(shown)
        for _ in range(self._dice.upto(2)):
            self._bind(shown)

    def _instance(self, made: Claim, state: InstanceState = InstanceState.RUNNING) -> str:
        identity = f"i-{made.name}"
        self.instances.append(
            Instance(
                id=identity,
                claim=made.name,
                state=state,
                instance_type=made.inputs.instance_type,
                zone=made.inputs.zone,
                capacity_type=made.inputs.capacity_type,
                launched_at=made.created_at,
            )
        )
        if self._dice.one_in(2):
            self.ids[made.name] = identity
        return identity

    def _node(self, made: Claim, kind: InstanceType, identity: str) -> Node:
        name = f"node-{made.name}"
        shown = node(
            name,
            kind,
            instance_id=identity,
            zone=made.inputs.zone,
            labels={**made.labels, keys.HOSTNAME: name, keys.REGISTERED: "true"},
            taints=made.taints,
            created=made.created_at,
        )
        return evolve(shown, allocatable=made.allocatable)

    def _show(self, shown: Node) -> None:
        self.nodes.append(shown)

    def _up(self, made: Claim, since: timedelta) -> None:
        self.milestones[made.name] = Milestones(
            asked_at=made.created_at,
            launched_at=made.created_at,
            registered_at=made.created_at,
            initialized_at=NOON - since,
        )

    def _bind(self, shown: Node, is_daemon: bool = False) -> None:
        number = len(self.pods)
        if is_daemon:
            for each in self._daemon_sets[: self._dice.upto(len(self._daemon_sets))]:
                owner = Owner("DaemonSet", each.name)
                bound = pod(f"{each.name}-{len(self.pods)}", node=shown.name, owner=owner)
                self.pods.append(evolve(bound, placing=each.placing))
            return
        phase = self._dice.pick([PodPhase.RUNNING, PodPhase.RUNNING, PodPhase.PENDING, PodPhase.SUCCEEDED])
        gpus = shown.allocatable.amount(NVIDIA_GPU)
        self.pods.append(
            evolve(
                pod(
                    f"bound-{number}",
                    cpu=self._dice.pick(["250m", "1", "3"]),
                    memory=self._dice.pick(["1Gi", "4Gi"]),
                    gpu=1 if gpus and self._dice.one_in(3) else None,
                    node=shown.name,
                    phase=phase,
                    priority=self._dice.pick([0, -10]),
                ),
                deleting=self._dice.one_in(8),
            )
        )
