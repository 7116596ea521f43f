"""A pool with minValues keeps so many different nodes to choose from for all pods of a node together."""

from __future__ import annotations

from attrs import evolve

from engine.model import labels as keys
from engine.model.ledger import Ledger, Unavailable
from engine.model.plan import Plan
from engine.model.pod import Pod
from engine.model.policy import NodePool
from engine.model.refusal import OfferingsUnavailable, TooFewValues
from tests.builders import NOON, catalog, instance_type, minutes, node_pool, pod, requirement, usd
from tests.decide.reserving import SELECTING, ReservingWorld, reservation
from tests.decide.world import World, policy
from tests.scheduling.tied_pods import term, tied

A, B = "us-east-1a", "us-east-1b"
TYPES = tuple(instance_type(f"m{size}.x", vcpus=4 * size, memory_gib=16 * size) for size in (1, 2, 4))
# The largest is the cheapest for each pod that it holds, so only minValues keep it from being bought.
PRICES = {"m1.x": "0.20", "m2.x": "0.36", "m4.x": "0.60"}


def _pool(least: int, key: str = keys.INSTANCE_TYPE, *values: str, **more: object) -> NodePool:
    asked = requirement(key, "In", *values) if values else requirement(key, "Exists")
    return node_pool(requirements=[evolve(asked, min_values=least)], **more)  # type: ignore[arg-type]


def _world(pods: list[Pod], pool: NodePool) -> World:
    return World(policy(pool), pods, sold=catalog(TYPES, capacity_types=[keys.ON_DEMAND], prices=PRICES))


def _pods(count: int, **more: object) -> list[Pod]:
    return [pod(f"pod-{index:02}", cpu="1", **more) for index in range(count)]  # type: ignore[arg-type]


def _loads(plan: Plan) -> list[tuple[str, int]]:
    return sorted((launch.claim.inputs.instance_type, len(launch.pods)) for launch in plan.launches)


def test_a_node_takes_no_more_pods_than_enough_types_hold() -> None:
    # The kubelet keeps a little: 3, 7 and 15 pods of 1 CPU have room on the three types.
    assert _loads(_world(_pods(14), _pool(1)).decide()) == [("m4.x", 14)]
    assert _loads(_world(_pods(14), _pool(2)).decide()) == [("m2.x", 7), ("m2.x", 7)]
    assert _loads(_world(_pods(12), _pool(3)).decide()) == [("m1.x", 3)] * 4


def test_pods_of_different_kinds_on_one_node_are_counted_together() -> None:
    """Each class alone leaves two zones; on one node they would leave one."""
    here = _pods(1, affinity=[[requirement(keys.ZONE, "In", A, B)]])
    there = [evolve(pod("other", cpu="1", affinity=[[requirement(keys.ZONE, "In", B, "us-east-1c")]]))]
    together = _world([*here, *there], _pool(1, keys.ZONE)).decide()
    assert [len(launch.pods) for launch in together.launches] == [2]
    apart = _world([*here, *there], _pool(2, keys.ZONE)).decide()
    assert [len(launch.pods) for launch in apart.launches] == [1, 1]
    assert apart.unplaced == ()


def test_what_is_out_for_now_is_nothing_to_choose_from() -> None:
    world = _world(_pods(1), _pool(3))
    zones = catalog().zone_ids
    out = Unavailable(until=NOON + minutes(2), refusals=1, code="NoRoom")
    world.ledger = Ledger(unavailable={f"m4.x/{zone}/on-demand": out for zone in zones})
    plan = world.decide()
    assert plan.launches == ()
    assert [each.refusal for each in plan.unplaced[0].refusals] == [
        OfferingsUnavailable(3, NOON + minutes(2), 1, "NoRoom")
    ]


def test_a_pod_that_leaves_too_few_is_told_so() -> None:
    plan = _world(_pods(1, selector={keys.INSTANCE_TYPE: "m1.x"}), _pool(2)).decide()
    assert [each.refusal for each in plan.unplaced[0].refusals] == [
        TooFewValues(keys.INSTANCE_TYPE, min_values=2, left=("m1.x",))
    ]


def test_a_lenient_pool_is_relaxed_for_a_first_pod_and_no_further_for_those_that_join_it() -> None:
    """The first leaves two of three types, so nobody joins it who would leave one."""
    pool = _pool(3, min_values_best_effort=True)
    big = pod("big", cpu="5")
    plan = _world([big, *_pods(8)], pool).decide()
    of_big = next(launch for launch in plan.launches if big.key in launch.pods)
    assert (of_big.claim.inputs.instance_type, len(of_big.pods)) == ("m2.x", 3)
    assert [(each.key, each.min_values, each.left) for each in of_big.relaxed] == [(keys.INSTANCE_TYPE, 3, 2)]
    assert plan.unplaced == ()


def test_room_that_only_few_types_have_keeps_no_pods_from_a_reservation() -> None:
    """Of a larger node that costs nothing, packing fills what all others have too."""
    pool = _pool(3, min_values_best_effort=True)
    apart = [term(keys.HOSTNAME)]
    pods = [tied(f"web-{each}", cpu="1", apart=apart, priority=10) for each in range(2)] + [pod("large", cpu="9")]
    sold = catalog(TYPES, capacity_types=[keys.ON_DEMAND], prices=PRICES)
    there = [reservation("cr-2", 1, "m2.x"), reservation("cr-4", 1, "m4.x")]
    plan = ReservingWorld(policy(pool, node_classes=(SELECTING,)), pods, there, sold=sold).decide()
    bought = sorted((each.claim.inputs.capacity_reservation_id or "", len(each.pods)) for each in plan.launches)
    assert bought == [("", 1), ("cr-2", 1), ("cr-4", 1)]
    assert plan.usd_per_hour_after == usd("0.20")
