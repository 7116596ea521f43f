"""Random small problems, with every constraint that the scheduler knows, and the world after a plan."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from attrs import evolve
from hypothesis import strategies as st

from engine.model import labels as keys
from engine.model.environment import Caps
from engine.model.ledger import Unavailable
from engine.model.money import UsdPerHour
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NOTHING, Resources
from engine.model.refusal import PoolNotReady
from engine.scheduling.daemons import daemon_overhead
from engine.scheduling.problem import ExistingNode, PoolState, Problem, Reservation, Solution
from tests.builders import (
    ANYTHING,
    G4AD_2XLARGE,
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    G6F_LARGE,
    M5_LARGE,
    NOON,
    PRICES,
    ZONES,
    daemon_set,
    existing,
    instance_type,
    minutes,
    node_pool,
    pod,
    pool_state,
    requirement,
    taint,
    toleration,
)

_TEAM = "example.com/team"
_ZONE_A, _ZONE_B = "us-east-1a", "us-east-1b"
_GPU_TAINT = taint("gpu", "true")
_SOFT_TAINT = taint("soft", effect="PreferNoSchedule")
_LIMITS: list[dict[str, str | int]] = [
    {},
    {},
    {"cpu": "16"},
    {"nvidia.com/gpu": 2},
    {"nodes": 2},
    {"memory": "64Gi", "nodes": 3},
]
_TYPES = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE, G4AD_2XLARGE, G6F_LARGE, M5_LARGE)

_M5_4XLARGE = instance_type("m5.4xlarge", vcpus=16, memory_gib=64, max_pods=234)

_selectors = st.sampled_from(
    [
        {},
        {},
        {keys.ZONE: _ZONE_A},
        {"failure-domain.beta.kubernetes.io/zone": _ZONE_B},
        {keys.CAPACITY_TYPE: keys.SPOT},
        {_TEAM: "a"},
        {_TEAM: "c"},
        {keys.HOSTNAME: "node-0"},
    ]
)
_affinities = st.sampled_from(
    [
        (),
        (),
        ((requirement(keys.ZONE, "NotIn", _ZONE_A),),),
        ((requirement(keys.INSTANCE_TYPE, "In", "g5.12xlarge"),), (requirement(_TEAM, "In", "b"),)),
        ((requirement(keys.INSTANCE_GPU_MEMORY, "Gt", "1000"),),),
        ((requirement(_TEAM, "DoesNotExist"),), ()),
        ((),),
    ]
)
_tolerations = st.sampled_from([(), (ANYTHING,), (toleration("gpu", "true"),), (toleration("soft"),)])


@st.composite
def pods(draw: st.DrawFn, name: str = "pod") -> Pod:
    return pod(
        name,
        cpu=draw(st.sampled_from(["0", "500m", "1", "3500m", "6"])),
        memory=draw(st.sampled_from(["1Gi", "7Gi", "13Gi"])),
        gpu=draw(st.sampled_from([None, None, 0, 1, 1, 2])),
        resources=draw(st.sampled_from([{}, {}, {}, {"amd.com/gpu": 1}])),
        selector=draw(_selectors),
        affinity=draw(_affinities),
        tolerations=draw(_tolerations),
        unsupported=draw(st.sampled_from([()] * 9 + [("podAntiAffinity",)])),
        priority=draw(st.sampled_from([0, 0, 0, 100])),
    )


@st.composite
def pools(draw: st.DrawFn, name: str) -> PoolState:
    team = draw(
        st.sampled_from(
            [
                (),
                (),
                (requirement(_TEAM, "In", "b", "a"),),
                (requirement(_TEAM, "Exists"),),
                (requirement(_TEAM, "NotIn", "a"),),
            ]
        )
    )
    static = draw(st.booleans()) and draw(st.booleans())
    limits: Mapping[str, str | int] = draw(st.sampled_from(_LIMITS))
    pool = node_pool(
        name,
        weight=draw(st.sampled_from([0, 0, 10])),
        requirements=team,
        taints=draw(st.sampled_from([(), (), (_GPU_TAINT,), (_SOFT_TAINT,)])),
        startup_taints=draw(st.sampled_from([(), (taint("starting"),)])),
        open_to_all_pods=draw(st.booleans()),
        replicas=draw(st.integers(0, 2)) if static else None,
        min_nodes=draw(st.sampled_from([0, 0, 1, 2])),
        limits=limits,
    )
    chosen = draw(st.lists(st.sampled_from(_TYPES), unique_by=lambda kind: kind.name, max_size=4))
    drawn = pool_state(pool, types=chosen, zones=(_ZONE_A, _ZONE_B), capacity_types=(keys.ON_DEMAND, keys.SPOT))
    options = tuple(
        evolve(
            each,
            is_available=is_available,
            refused=None if is_available else _REFUSED,
            usd_per_hour=each.usd_per_hour if draw(st.integers(0, 7)) else None,
        )
        for each in drawn.options
        for is_available in (draw(st.integers(0, 5)) > 0,)
    )
    return evolve(
        drawn,
        options=options,
        used=draw(st.sampled_from([NOTHING, Resources({"cpu": 4000, "nodes": 1, "nvidia.com/gpu": 1})])),
        nodes=draw(st.integers(0, 1)),
        not_ready=draw(st.sampled_from([None] * 6 + [PoolNotReady("its node class is unknown")])),
    )


_REFUSED = Unavailable(until=NOON + minutes(6), refusals=2, code="InsufficientInstanceCapacity")


@st.composite
def existing_nodes(draw: st.DrawFn, name: str) -> ExistingNode:
    node = existing(
        name,
        draw(st.sampled_from(_TYPES)),
        room={"cpu": draw(st.sampled_from(["0", "1", "4"])), "pods": draw(st.sampled_from([0, 1, 20]))},
        labels=draw(st.sampled_from([{}, {keys.HOSTNAME: name}, {_TEAM: "a"}, {keys.ZONE: _ZONE_B}])),
        taints=draw(st.sampled_from([(), (), (_GPU_TAINT,), (_SOFT_TAINT,)])),
        in_flight=draw(st.booleans()),
    )
    return evolve(node, is_empty=draw(st.booleans()))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    shapes = draw(st.lists(pods(), max_size=6))
    many = [
        evolve(shape, key=evolve(shape.key, name=f"{number}-{copy}"))
        for number, shape in enumerate(shapes)
        for copy in range(draw(st.sampled_from([1, 1, 2, 5])))
    ]
    states = tuple(draw(pools(f"pool-{number}")) for number in range(draw(st.integers(0, 3))))
    return Problem(
        pods=tuple(many),
        existing=tuple(draw(existing_nodes(f"node-{number}")) for number in range(draw(st.integers(0, 3)))),
        pools=states,
        daemon_sets=draw(
            st.sampled_from(
                [
                    (),
                    (daemon_set(),),
                    (
                        daemon_set("driver", cpu="500m", affinity=((requirement(_TEAM, "In", "a"),),)),
                        daemon_set("plain", tolerations=()),
                    ),
                ]
            )
        ),
        caps=draw(st.sampled_from([Caps(), Caps(), Caps(launches=2), Caps(added_usd_per_hour=UsdPerHour(3_000_000))])),
    )


def after(problem: Problem, solution: Solution) -> Problem:
    """The same pods, still pending, a moment later: what was planned is launching, pods are expected where they were
    planned, and caps are new."""
    states = {state.pool.name: state for state in problem.pools}
    in_flight = []
    for number, node in enumerate(solution.new_nodes):
        state = states[node.node_pool]
        added = node.option.capacity + Resources({"nodes": 1})
        states[node.node_pool] = evolve(state, used=state.used + added, nodes=state.nodes + 1)
        overhead = daemon_overhead(problem.daemon_sets, node.labels, state.pool.taints)
        in_flight.append(
            ExistingNode(
                node=None,
                claim=f"launched-{number}",
                labels=node.labels,
                taints=state.pool.taints,
                room=node.option.allocatable - overhead,
                is_accelerated=node.option.instance_type.is_accelerated,
            )
        )
    expected = [Reservation(each.pod, node=each.node, claim=each.claim) for each in solution.placements]
    expected += [
        Reservation(pod, node=None, claim=f"launched-{number}")
        for number, node in enumerate(solution.new_nodes)
        for pod in node.pods
    ]
    return evolve(
        problem,
        existing=(*problem.existing, *in_flight),
        pools=tuple(states.values()),
        reservations=tuple(expected),
    )


def burst(pods: int, classes: int, seed: int) -> Problem:
    """Many pods of mixed classes at once; a few nodes in use, three pools, all zones, two capacity types."""
    random = Random(seed)
    types = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE, M5_LARGE, _M5_4XLARGE)
    selectors = [{}, {}, {keys.ZONE: random.choice(list(ZONES))}, {keys.CAPACITY_TYPE: keys.SPOT}]
    shapes = [
        pod(
            cpu=random.choice(["500m", "1", "2", "4"]),
            memory=f"{random.choice([512, 2048, 4096, 7168]) + number}Mi",
            gpu=random.choice([None, None, 1, 1, 2, 4]),
            selector=random.choice(selectors),
            priority=random.choice([0, 0, 10]),
        )
        for number in range(classes)
    ]
    states = [
        pool_state(
            node_pool(name, weight=weight),
            types=types,
            zones=tuple(ZONES),
            capacity_types=(keys.ON_DEMAND, keys.SPOT),
            prices={**PRICES, "m5.4xlarge": "0.75"},
        )
        for name, weight in (("core", 10), ("elastic", 0), ("batch", 0))
    ]
    return Problem(
        pods=tuple(
            evolve(shapes[number % classes], key=PodKey("default", f"pod-{number:05}")) for number in range(pods)
        ),
        existing=tuple(
            existing(f"node-{number}", random.choice(types), room={"cpu": random.choice([0, 1, 3])})
            for number in range(pods // 40)
        ),
        pools=tuple(states),
        daemon_sets=(daemon_set("agent"), daemon_set("driver", cpu="250m")),
        caps=Caps(launches=100_000, added_usd_per_hour=UsdPerHour(10**12)),
    )
