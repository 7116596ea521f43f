"""The question put to the scheduler, and its answer. Both are values; decide.py makes one and reads the other."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import field, frozen

from engine.model.catalog import InstanceType, Offering
from engine.model.constraint import Taint
from engine.model.environment import Caps
from engine.model.ledger import Unavailable
from engine.model.money import FREE, UsdPerHour
from engine.model.packing_bound import PackingBound
from engine.model.plan import BaseShortfall, LimitUse, Placement, RelaxedMinValues, Unplaced
from engine.model.pod import DaemonSet, Pod, PodKey
from engine.model.policy import NodePool
from engine.model.quantity import Resources
from engine.model.refusal import BringUpsFailed, GuardrailBlocks, LostOffering, PoolClosed
from engine.model.workload import Namespace
from engine.policy.rules.ruling import Rulings
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.terms import Terms
from engine.scheduling.topology.neighbourhood import StandingNode


@frozen
class NodeOption:
    """One way for a pool to make a node: an offering that its own requirements permit, with the node it gives.

    ``capacity`` counts against limits, ``allocatable`` is for pods and daemons; ``usd_per_hour`` includes EBS and is
    None for an offering without a price, which is never bought. ``labels`` are the node's: type, zone, capacity type,
    pool and pool labels. ``is_available`` is the ledger's word. ``predicted_labels`` come to the node by themselves
    once it is up, so they are none of the claim's; of keys that ``labels`` have not.

    ``refused`` is what the ledger's word is for: the refusal that bars the option, or the last one, while it is on
    probation. Then no more than one launch is tried for each of the ``probes``, which other options may share.
    ``available`` is how many more machines a reservation takes, of all pools together, and ``places`` how many it takes
    in all; None and 0 where it is none.
    """

    instance_type: InstanceType
    offering: Offering
    capacity: Resources
    allocatable: Resources
    usd_per_hour: UsdPerHour | None
    labels: Mapping[str, str]
    is_available: bool = True
    refused: Unavailable | None = None
    probes: tuple[str, ...] = ()
    predicted_labels: Mapping[str, str] = field(factory=dict)
    available: int | None = None
    places: int = 0

    @property
    def labels_once_up(self) -> Mapping[str, str]:
        """All that pods can select the node by, once it is up."""
        return {**self.predicted_labels, **self.labels} if self.predicted_labels else self.labels


@frozen
class Replacing:
    """Launches are closed but for what takes the place of lost machines: within ``room`` of nodes and accelerators."""

    room: Resources
    refusal: GuardrailBlocks


@frozen
class PoolState:
    """A pool and what it has: ``used`` is the capacity of all that runs or is launching, ``nodes`` counted in it.

    ``limits`` are in force here (stack overrides applied). ``nodes`` is how many claims it keeps after this plan's
    removals. ``not_ready`` bars launches and says why; ``one_by_one`` bars all but the first of this plan, and
    ``replacing`` all but some. ``unsold``
    are the types that the pool permits, where ``options`` is empty because none of them is offered in its zones and
    capacity types. ``label_doubts`` are labels that its nodes were expected to get and did not, until that is tried
    again.
    """

    pool: NodePool
    limits: Resources
    used: Resources
    options: tuple[NodeOption, ...]
    nodes: int = 0
    not_ready: PoolClosed | None = None
    one_by_one: BringUpsFailed | None = None
    replacing: Replacing | None = None
    unsold: tuple[InstanceType, ...] = ()
    label_doubts: Mapping[str, datetime] = field(factory=dict)


@frozen
class ExistingNode:
    """A node, or a claim whose node has not registered, with the room that is left on it.

    ``room`` is allocatable less the requests of bound pods and of daemons still to come. Nodes that are not ours have
    no ``claim``; claims in flight have no ``node``. Nodes that are cordoned or leaving are not given at all.
    ``is_empty``: no pod but daemons runs there; a claim in flight is empty whatever is said. ``usd_per_hour`` is the
    claim's.
    """

    node: str | None
    claim: str | None
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    room: Resources
    is_accelerated: bool = False
    is_empty: bool = False
    usd_per_hour: UsdPerHour = FREE


@frozen
class Reservation:
    """A pod of the problem that is expected on an existing node already. It stays there, before anybody else is placed,
    if it may go there and fits, or if it ``holds_regardless_of_room``: others are leaving to make the room."""

    pod: PodKey
    node: str | None
    claim: str | None
    holds_regardless_of_room: bool = False


@frozen
class Problem:
    """``pods`` wait for a node. Order of any tuple here changes nothing in the solution.

    ``standing`` are all nodes of the cluster with the pods bound to them, also those that take no pods any more: pods
    that are tied to others mind them. ``rulings`` are what requirement rules say of the pods that wait, one object for
    equal ones; a pod that is missing has none. ``ceilings`` are those of limit rules, in the order of rules and groups.
    ``terms`` are of pods for which not every node is made.
    """

    pods: tuple[Pod, ...]
    existing: tuple[ExistingNode, ...]
    pools: tuple[PoolState, ...]
    daemon_sets: tuple[DaemonSet, ...] = ()
    caps: Caps = Caps()
    reservations: tuple[Reservation, ...] = ()
    rulings: Mapping[PodKey, Rulings] = field(factory=dict)
    ceilings: tuple[Ceiling, ...] = ()
    terms: Mapping[PodKey, Terms] = field(factory=dict)
    standing: tuple[StandingNode, ...] = ()
    namespaces: tuple[Namespace, ...] = ()


@frozen
class NewNode:
    """One node to launch, with the pods that it is for and the offerings that lost.

    ``for_base_capacity``: it would be launched without pods, too; pods may still be planned for it. ``labels`` are the
    node's: its option's, and a value for each custom key that the pool left open. They belong to the claim.
    ``gpus_wasted`` is how many of its GPUs those pods leave unused; ``spares`` are those to be kept free.
    """

    node_pool: str
    option: NodeOption
    pods: tuple[PodKey, ...]
    for_base_capacity: bool = False
    lost: tuple[LostOffering, ...] = ()
    next_best: tuple[str, ...] = ()
    gpus_wasted: int = 0
    spares: tuple[PodKey, ...] = ()
    labels: Mapping[str, str] = field(factory=dict)
    relaxed: tuple[RelaxedMinValues, ...] = ()


@frozen
class Solution:
    placements: tuple[Placement, ...]
    new_nodes: tuple[NewNode, ...]
    unplaced: tuple[Unplaced, ...]
    base_shortfalls: tuple[BaseShortfall, ...] = ()
    limits: tuple[LimitUse, ...] = ()
    packing: PackingBound | None = None
