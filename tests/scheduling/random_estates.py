"""Random small clusters after a burst: the nodes that were bought for some pods, of which a part has gone."""

from __future__ import annotations

from collections.abc import Mapping, Set
from random import Random

from attrs import evolve
from hypothesis import strategies as st

from engine.model import labels as keys
from engine.model.plan import Placement
from engine.model.pod import Pod, PodKey
from engine.model.quantity import NOTHING, NVIDIA_GPU
from engine.scheduling.estate import Estate
from engine.scheduling.problem import ExistingNode, Problem, Solution
from engine.scheduling.repacking import Repacking
from engine.scheduling.solve import solve
from tests.builders import (
    G5_2XLARGE,
    G5_12XLARGE,
    G5_XLARGE,
    M5_LARGE,
    PRICES,
    ZONES,
    daemon_set,
    instance_type,
    node_pool,
    pod,
    pool_state,
)
from tests.scheduling.problems import problems
from tests.scheduling.tied_pods import port, spread, term

_M5_4XLARGE = instance_type("m5.4xlarge", vcpus=16, memory_gib=64, max_pods=234)
_TIES: tuple[Mapping[str, object], ...] = (
    {},
    {},
    {"spreads": (spread(keys.ZONE),)},
    {"spreads": (spread(keys.HOSTNAME, 2),)},
    {"pod_anti_affinity": (term(keys.HOSTNAME),)},
    {"pod_affinity": (term(keys.ZONE),)},
    {"host_ports": (port(8080),)},
)


@st.composite
def scattered(draw: st.DrawFn, *, with_ties: bool = False) -> Estate:
    """Every node that was bought may go. It was bought of what was to be had then, which may be less than there is."""
    asked = draw(problems()) if draw(st.integers(0, 3)) == 0 else _roomy(Random(draw(st.integers(0, 10**9))))
    if with_ties:
        asked = evolve(asked, pods=_tied(draw, asked.pods))
    step = draw(st.sampled_from([1, 2, 3]))
    options = {state.pool.name: state.options for state in asked.pools}
    of_less = tuple(evolve(state, options=state.options[-1::-step]) for state in asked.pools)
    start = Estate.of(evolve(asked, pools=of_less), ())
    burst = start.after((), solve(start.problem))
    pools = tuple(evolve(state, options=options[state.pool.name]) for state in burst.problem.pools)
    burst = evolve(burst, problem=evolve(burst.problem, pools=pools), bought={}, moved={})
    running = [pod.key for node in burst.movable for pod in node.pods]
    parts = draw(st.sampled_from([2, 3, 5]))
    return thinned(burst, {pod for pod in running if draw(st.integers(1, parts)) == 1})


def _roomy(random: Random) -> Problem:
    """Nearly every pod finds a node: two pools, seldom a limit or a base, a few shapes with many copies."""
    types = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE, M5_LARGE, _M5_4XLARGE)
    prices = {**PRICES, "m5.4xlarge": "0.75"}
    states = []
    for number in range(random.randint(1, 2)):
        pool = node_pool(
            f"pool-{number}",
            open_to_all_pods=random.random() < 0.3,
            min_nodes=random.choice([0, 0, 0, 2]),
            limits=random.choice([{}, {}, {}, {"nodes": 12}, {NVIDIA_GPU: 14}]),
        )
        sold = random.choice([(keys.ON_DEMAND,), (keys.SPOT,), (keys.ON_DEMAND, keys.SPOT)])
        chosen = random.sample(types, random.randint(2, len(types)))
        zones = sorted(ZONES)[: random.randint(1, 3)]
        states.append(pool_state(pool, types=chosen, zones=zones, capacity_types=sold, prices=prices))
    shapes = [
        pod(
            cpu=random.choice(["250m", "500m", "1", "2", "3500m"]),
            memory=random.choice(["512Mi", "2Gi", "7Gi", "13Gi"]),
            gpu=random.choice([None, None, 1, 1, 2]),
            selector=random.choice([{}, {}, {}, {keys.ZONE: "us-east-1a"}]),
            priority=random.choice([0, 0, 0, 10]),
        )
        for _ in range(random.randint(1, 5))
    ]
    copies = (
        evolve(shape, key=evolve(shape.key, name=f"{number}-{copy}"))
        for number, shape in enumerate(shapes)
        for copy in range(random.choice([2, 5, 12]))
    )
    return Problem(tuple(copies), (), tuple(states), random.choice([(), (daemon_set(),)]))


def thinned(estate: Estate, left: Set[PodKey]) -> Estate:
    """Only these pods are left on its movable nodes."""
    on_node = {each.name: each.pods for each in estate.movable}

    def with_room(node: ExistingNode) -> ExistingNode:
        gone = [pod for pod in on_node.get((node.node, node.claim), ()) if pod.key not in left]
        freed = sum((pod.placing.requests for pod in gone), NOTHING)
        return evolve(node, room=node.room + freed) if gone else node

    return Estate(
        evolve(
            estate.problem,
            existing=tuple(map(with_room, estate.problem.existing)),
            standing=tuple(
                evolve(node, pods=tuple(pod for pod in node.pods if pod.key in left or pod.key not in moving))
                for moving in ({pod.key for pods in on_node.values() for pod in pods},)
                for node in estate.problem.standing
            ),
        ),
        tuple(evolve(node, pods=tuple(pod for pod in node.pods if pod.key in left)) for node in estate.movable),
    )


def answer_of(repacking: Repacking) -> Solution:
    """What is promised of all moves together, as the scheduler would say it."""
    placements: list[Placement] = [place for move in repacking.moves for place in move.placements]
    return Solution(tuple(placements), tuple(node for move in repacking.moves for node in move.new_nodes), ())


def after(estate: Estate, repacking: Repacking) -> Estate:
    """Once all moves are made."""
    going = [each for each in estate.movable if each.claim in repacking.going]
    return evolve(estate.after(going, answer_of(repacking)), bought={}, moved={})


def _tied(draw: st.DrawFn, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Copies of one pod are tied alike."""
    ties = {name: draw(st.sampled_from(_TIES)) for name in sorted({pod.key.name.split("-")[0] for pod in pods})}
    return tuple(
        evolve(pod, placing=evolve(pod.placing, **ties[pod.key.name.split("-")[0]]), labels={"app": "web"})
        for pod in pods
    )
