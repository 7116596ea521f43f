"""Daemonsets take their part of each node first (case 22)."""

from __future__ import annotations

import pytest

from engine.model import labels as keys
from engine.model.pod import DaemonSet
from engine.model.quantity import Resources
from engine.scheduling.daemons import daemon_overhead
from engine.scheduling.problem import Problem
from engine.scheduling.solve import solve
from tests.builders import (
    ANYTHING,
    G5_2XLARGE,
    G5_XLARGE,
    daemon_set,
    node_pool,
    option,
    pod,
    pool_state,
    requirement,
    taint,
    toleration,
)

GPU = taint("gpu", "true")
_ORED = ((requirement("disk", "In", "ssd"),), (requirement(keys.INSTANCE_FAMILY, "In", "g5"),))


@pytest.mark.parametrize(
    "daemon",
    [
        daemon_set("tolerates-all", cpu="500m", tolerations=(ANYTHING,)),
        daemon_set("second-term-matches", cpu="500m", affinity=_ORED),
        daemon_set("waits-for-registration", cpu="500m", selector={keys.REGISTERED: "true"}),
        daemon_set("waits-for-initialization", cpu="500m", selector={keys.INITIALIZED: "true"}),
        daemon_set("tolerates-the-taint", cpu="500m", tolerations=(toleration("gpu", "true"),)),
    ],
    ids=lambda daemon: daemon.name,
)
def test_a_daemon_that_will_run_there_makes_the_next_bigger_type_be_chosen(daemon: DaemonSet) -> None:
    pool = node_pool(taints=[GPU], startup_taints=[taint("starting")])
    options = [option(G5_XLARGE, pool=pool, allocatable={"cpu": "3900m"}), option(G5_2XLARGE, pool=pool)]
    waiting = pod(cpu="3500m", gpu=1, tolerations=[toleration("gpu")])

    def chosen(*daemons: DaemonSet) -> str:
        problem = Problem((waiting,), (), (pool_state(pool, options),), daemon_sets=daemons)
        return solve(problem).new_nodes[0].option.instance_type.name

    assert chosen() == "g5.xlarge"
    assert chosen(daemon) == "g5.2xlarge"


@pytest.mark.parametrize(
    "daemon",
    [
        daemon_set(tolerations=()),
        daemon_set(selector={keys.ZONE: "us-east-1b"}),
        daemon_set(affinity=((requirement("disk", "Exists"),),)),
    ],
)
def test_a_daemon_that_cannot_run_there_takes_nothing(daemon: DaemonSet) -> None:
    assert daemon_overhead([daemon], {keys.ZONE: "us-east-1a"}, [GPU]) == Resources()


def test_a_soft_taint_keeps_no_daemon_away() -> None:
    daemon = daemon_set(tolerations=())
    assert daemon_overhead([daemon], {}, [taint("gpu", effect="PreferNoSchedule")]) == daemon.placing.requests


def test_daemons_add_up() -> None:
    several = [daemon_set("a", cpu="100m", memory="1Gi"), daemon_set("b", cpu="250m", memory="1Gi")]
    assert daemon_overhead(several, {}, []) == Resources.parse({"cpu": "350m", "memory": "2Gi", "pods": 2})


def test_a_daemon_of_one_custom_value_counts_on_nodes_that_get_it() -> None:
    team = "example.com/team"
    pool = node_pool(requirements=[requirement(team, "In", "a", "b")])
    driver = daemon_set(cpu="1", selector={team: "b"})

    def type_for(value: str) -> str:
        waiting = pod(cpu="4", gpu=1, selector={team: value})
        problem = Problem((waiting,), (), (pool_state(pool),), daemon_sets=(driver,))
        return solve(problem).new_nodes[0].option.instance_type.name

    assert (type_for("a"), type_for("b")) == ("g5.xlarge", "g5.2xlarge")
