"""minValues of a pool against pods that leave fewer values: wait, or take what there is and say so."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.plan import RelaxedMinValues
from engine.model.policy import NodePool
from engine.model.refusal import TooFewValues
from tests.builders import node_pool, requirement
from tests.decide.volume_values import A, B, bound, in_zones, planned, seen, small, storage, volume

ZONAL = node_pool(
    "zonal",
    requirements=[
        requirement(keys.INSTANCE_TYPE, "In", "m5.large"),
        evolve(requirement(keys.ZONE, "In", A, B), min_values=2),
    ],
)
LENIENT: NodePool = evolve(ZONAL, min_values_best_effort=True)
IN_A = seen(small("p", "data"), workload=storage(bound("data", "pv"), volume("pv", in_zones(A))))
FREE = seen(small("p"), workload=storage())


def test_a_strict_pool_keeps_a_pod_waiting_whose_volume_leaves_it_one_zone() -> None:
    plan = planned(IN_A, ZONAL)
    assert [told.refusal for told in plan.unplaced[0].refusals] == [TooFewValues(keys.ZONE, min_values=2, left=(A,))]
    assert not plan.launches


def test_a_lenient_pool_takes_the_one_zone_and_the_launch_says_so() -> None:
    (launch,) = planned(IN_A, LENIENT).launches
    assert launch.claim.inputs.zone == A
    assert launch.relaxed == (RelaxedMinValues(keys.ZONE, min_values=2, left=1),)


def test_nothing_is_relaxed_where_the_pods_leave_enough() -> None:
    for pool in (ZONAL, LENIENT):
        assert [launch.relaxed for launch in planned(FREE, pool).launches] == [()]
