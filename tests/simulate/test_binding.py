"""Pods of a simulated cluster go where they were planned, as nominated ones do in a real cluster."""

from __future__ import annotations

from attrs import evolve

from engine.model.node import Node
from engine.model.quantity import Resources
from engine.simulate.binding import bind_pods
from tests.builders import node, pod


def of_cpus(name: str, cpus: int) -> Node:
    return evolve(node(name), allocatable=Resources({"cpu": cpus * 1000, "pods": 10}))


def test_a_pod_goes_to_the_node_that_it_is_nominated_to_however_full_others_are() -> None:
    tight, roomy = of_cpus("tight", 4), of_cpus("roomy", 16)
    waiting = pod("one", cpu="2", memory="0", gpu=None)
    assert bind_pods([waiting], [tight, roomy])[0] == {waiting.key: "tight"}
    assert bind_pods([waiting], [tight, roomy], {str(waiting.key): "roomy"})[0] == {waiting.key: "roomy"}


def test_an_older_pod_keeps_off_the_room_of_a_nominated_one() -> None:
    only = of_cpus("only", 2)
    older, newer = pod("a-older", cpu="2", memory="0", gpu=None), pod("b-newer", cpu="2", memory="0", gpu=None)
    bound, unbound = bind_pods([older, newer], [only], {str(newer.key): "only"})
    assert (bound, set(unbound)) == ({newer.key: "only"}, {older.key})


def test_a_nomination_to_a_node_without_room_is_no_more_than_a_wish() -> None:
    small, large = of_cpus("small", 1), of_cpus("large", 4)
    waiting = pod("one", cpu="2", memory="0", gpu=None)
    assert bind_pods([waiting], [small, large], {str(waiting.key): "small"})[0] == {waiting.key: "large"}
