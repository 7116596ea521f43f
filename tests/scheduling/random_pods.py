"""Random pods: those that want a node, with every constraint that the model has, and those that want none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import Requirement, Toleration
from engine.model.pod import Owner, Pod, PodPhase
from tests.builders import ANYTHING, NOON, ZONES, minutes, pod, requirement, toleration
from tests.scheduling.random_draw import Dice, Knobs

TEAM = "example.com/team"
TIER = "example.com/tier"
ZONE_A, ZONE_B, _ = sorted(ZONES)

_UNSUPPORTED = (
    "required pod affinity",
    "required pod anti-affinity",
    "topology spread (DoNotSchedule)",
    "host ports",
    "persistent volumes",
    "resource claims",
)
_SELECTORS: tuple[Mapping[str, str], ...] = (
    {keys.ZONE: ZONE_A},
    {"failure-domain.beta.kubernetes.io/zone": ZONE_B},
    {keys.CAPACITY_TYPE: keys.SPOT},
    {TEAM: "a"},
    {TIER: "gold"},
    {keys.NODE_POOL: "pool-0"},
    {keys.ARCH: "arm64"},
    {keys.HOSTNAME: "foreign-0"},
)
_AFFINITIES: tuple[Sequence[Sequence[Requirement]], ...] = (
    ((requirement(keys.ZONE, "NotIn", ZONE_A),),),
    ((requirement(keys.ZONE, "In", "nowhere"),), (requirement(keys.ZONE, "In", ZONE_B),)),
    ((requirement(keys.INSTANCE_CPU, "Gt", "4"),),),
    ((requirement(keys.INSTANCE_CPU, "Lt", "16"), requirement(keys.CAPACITY_TYPE, "Exists")),),
    ((requirement(keys.INSTANCE_MEMORY, "Gte", "32768"),), (requirement(TEAM, "In", "b"),)),
    ((requirement(keys.INSTANCE_MEMORY, "Lte", "16384"),),),
    ((requirement(TEAM, "DoesNotExist"),), ()),
    ((requirement(TEAM, "NotIn", "a"),),),
    ((requirement(TIER, "Gt", "2"),),),
    ((requirement(TIER, "Exists"),),),
    ((),),
)
_TOLERATIONS: tuple[Sequence[Toleration], ...] = (
    (),
    (ANYTHING,),
    (toleration("gpu", "true"),),
    (toleration("gpu", "other"), toleration("team", effect="NoSchedule")),
    (toleration("team", "a", "NoExecute"), toleration("gpu")),
)
_RESOURCES: tuple[Mapping[str, str | int], ...] = (
    {"amd.com/gpu": 1},
    {"ephemeral-storage": "12Gi"},
    {"ephemeral-storage": "90Gi"},
)
_NO_SELECTOR: Mapping[str, str] = {}
_NO_RESOURCES: Mapping[str, str | int] = {}
_NO_AFFINITY: Sequence[Sequence[Requirement]] = ()


def random_shape(name: str, dice: Dice, knobs: Knobs) -> Pod:
    """One pod that wants a node."""
    pick = dice.pick
    unsupported = (pick(_UNSUPPORTED),) if knobs.oddities and dice.one_in(20) else ()
    return pod(
        name,
        cpu=pick(["0", "250m", "1", "1900m", "3500m", "7"]),
        memory=pick(["256Mi", "1Gi", "7Gi", "13Gi"]),
        gpu=pick([None, None, None, None, 1, 1, 2]),
        resources=dice.maybe(_NO_RESOURCES, _RESOURCES),
        selector=dice.maybe(_NO_SELECTOR, _SELECTORS),
        affinity=dice.maybe(_NO_AFFINITY, _AFFINITIES),
        tolerations=pick(_TOLERATIONS),
        unsupported=unsupported,
        priority=pick([0, 0, 0, 100]),
        created=NOON - minutes(pick([0, 5])),
    )


def pods_that_want_nothing() -> tuple[Pod, ...]:
    """Held by a gate, going, finished, a daemonset's, and set on nodes of no pool."""
    return (
        evolve(pod("gated", gpu=1), scheduling_gated=True),
        evolve(pod("going", gpu=1), deleting=True),
        pod("done", phase=PodPhase.SUCCEEDED),
        pod("failed", phase=PodPhase.FAILED),
        pod("daemons", owner=Owner("DaemonSet", "daemon-0")),
        pod("elsewhere", affinity=((requirement(keys.NODE_POOL, "DoesNotExist"),),)),
    )
