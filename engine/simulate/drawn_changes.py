"""What people change in drawn policies while worlds run: much of it makes machines drift, the rest must not."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

from engine.simulate.drawn_policies import BUDGETS, FAMILIES

Object = dict[str, Any]


def changed(objects: list[Object], chance: Random, number: int) -> list[Object]:
    """The same files after a change of one kind; ``number`` tells it from others of its kind."""
    after = deepcopy(objects)
    chance.choice(_KINDS)(after, chance, number)
    return after


def _relabel(objects: list[Object], chance: Random, number: int) -> None:
    """Every machine of one pool has drifted."""
    pool = chance.choice(_pools(objects))
    pool["spec"]["template"]["metadata"] = {"labels": {"drawn.example.com/round": str(number)}}


def _retag(objects: list[Object], chance: Random, number: int) -> None:
    """Every machine of every pool has."""
    for each in objects:
        if each["kind"] == "EC2NodeClass":
            each["spec"]["tags"] = {"round": str(number)}


def _drop_a_family(objects: list[Object], chance: Random, number: int) -> None:
    """Some machines of one pool have drifted, and what takes their place costs more or less."""
    gone = chance.choice(FAMILIES)
    _require(chance.choice(_pools(objects)), "instance-family", [each for each in FAMILIES if each != gone])


def _sell_otherwise(objects: list[Object], chance: Random, number: int) -> None:
    capacity = chance.choice((["on-demand"], ["spot", "on-demand"], ["spot"]))
    _require(chance.choice(_pools(objects)), "capacity-type", capacity)


def _limit(objects: list[Object], chance: Random, number: int) -> None:
    """Nothing has drifted; there may be more machines than may be."""
    chance.choice(_pools(objects))["spec"]["limits"] = {"nvidia.com/gpu": str(chance.choice((2, 4, 8, 40)))}


def _budget(objects: list[Object], chance: Random, number: int) -> None:
    chance.choice(_pools(objects))["spec"]["disruption"]["budgets"] = chance.choice(BUDGETS)


def _wait_otherwise(objects: list[Object], chance: Random, number: int) -> None:
    disruption = chance.choice(_pools(objects))["spec"]["disruption"]
    disruption["consolidateAfter"] = chance.choice(("0s", "5m", "30m", "Never"))
    disruption["consolidationPolicy"] = chance.choice(("WhenEmpty", "WhenEmptyOrUnderutilized"))


def _expire(objects: list[Object], chance: Random, number: int) -> None:
    """Machines that are older than that have expired all at once."""
    spec = chance.choice(_pools(objects))["spec"]["template"]["spec"]
    spec["expireAfter"] = chance.choice(("1h", "6h", "Never"))


def _annotate(objects: list[Object], chance: Random, number: int) -> None:
    annotations = chance.choice(_pools(objects))["metadata"]["annotations"]
    key, value = chance.choice((("surge", "0"), ("surge", "1"), ("rollout-canary", "0"), ("min-nodes", "2")))
    annotations[f"nodewright.dev/{key}"] = value


def _drop_a_pool(objects: list[Object], chance: Random, number: int) -> None:
    """Its machines are in no file any more; the last pool stays."""
    pools = _pools(objects)
    if len(pools) > 1:
        objects.remove(chance.choice(pools))


_KINDS: tuple[Callable[[list[Object], Random, int], None], ...] = (
    _relabel,
    _relabel,
    _retag,
    _retag,
    _drop_a_family,
    _sell_otherwise,
    _limit,
    _budget,
    _wait_otherwise,
    _expire,
    _annotate,
    _drop_a_pool,
)


def _pools(objects: list[Object]) -> list[Object]:
    return [each for each in objects if each["kind"] == "NodePool"]


def _require(pool: Object, what: str, values: list[str]) -> None:
    for each in pool["spec"]["template"]["spec"]["requirements"]:
        if each["key"].endswith(f"/{what}"):
            each["values"] = values
