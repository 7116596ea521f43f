"""Random companies, a few pods each, against a search through all ways to part them into nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from attrs import frozen

from engine.model import labels as keys
from engine.model.catalog import InstanceType
from engine.model.pod import Pod
from engine.model.quantity import Resources
from engine.scheduling.problem import PoolState, Problem, Solution
from engine.scheduling.solve import solve
from tests.builders import G5_2XLARGE, G5_12XLARGE, G5_XLARGE, M5_LARGE, PRICES, instance_type, node_pool, pool_state
from tests.builders import requirement as of
from tests.scheduling.tied_pods import term, tied

M5_4XLARGE = instance_type("m5.4xlarge", vcpus=16, memory_gib=64, max_pods=234)
GPU_TYPES, CPU_TYPES = (G5_XLARGE, G5_2XLARGE, G5_12XLARGE), (M5_LARGE, M5_4XLARGE)
SOLD = {**PRICES, "m5.4xlarge": "0.77"}
# Whom pods of an app must share a host with, if anybody.
NEAR: dict[str, tuple[tuple[str, ...], ...]] = {
    "web": ((), ()),
    "solo": ((), ("solo",)),
    "db": (("web",), ("web", "solo"), ()),
    "cache": (("db",), ("web",), ("web", "db"), ("solo",)),
}
SEEDS = range(150)
# A gang is put on its node before it is known who else could have been there.
DEARER = frozenset({94})


@frozen(eq=False)
class Asked:
    """A pod, its app and those of whom one must be on its host."""

    pod: Pod
    app: str
    near: tuple[str, ...]


def drawn(seed: int) -> list[Asked]:
    random = Random(f"company {seed}")
    asked: list[Asked] = []
    while len(asked) < 6:
        app = random.choice(sorted(NEAR))
        near = random.choice(NEAR[app])
        gpu = random.choice((0, 0, 1, 1, 2)) if not near else random.choice((0, 0, 0, 1))
        cpu = random.choice(("500m", "1", "2", "3", "5"))
        for _ in range(min(random.randint(1, 3), 6 - len(asked))):
            terms = [term(keys.HOSTNAME, (of("app", "In", *near),))] if near else []
            made = tied(f"pod-{len(asked)}", app, cpu=cpu, gpu=gpu, near=terms)
            asked.append(Asked(made, app, near))
    return asked


def pools() -> tuple[PoolState, PoolState]:
    return (
        pool_state(node_pool("gpu"), types=GPU_TYPES, prices=SOLD),
        pool_state(node_pool("cpu"), types=CPU_TYPES, prices=SOLD),
    )


POOLS = pools()
ROOM = {option.instance_type.name: option.allocatable for pool in POOLS for option in pool.options}


def planned(asked: Sequence[Asked]) -> Solution:
    return solve(Problem(pods=tuple(each.pod for each in asked), existing=(), pools=POOLS))


def groupings(asked: Sequence[Asked]) -> Iterator[list[list[Asked]]]:
    """Every way to put the pods into groups; the first group is that of the pods that get nothing."""
    if not asked:
        yield [[]]
        return
    for groups in groupings(asked[1:]):
        for at, group in enumerate(groups):
            yield [*groups[:at], [asked[0], *group], *groups[at + 1 :]]
        yield [*groups, [asked[0]]]


def cheapest_node(group: Sequence[Asked]) -> int | None:
    """What the cheapest node costs that takes them, in millionths of a dollar. Pods without GPUs ride on an
    accelerated one only with those whose host they must share."""
    with_gpus = [each for each in group if each.pod.placing.requests.accelerators()]
    if with_gpus and not all(each in with_gpus or _is_led(each, group) for each in group):
        return None
    needed = sum((each.pod.placing.requests for each in group), Resources({}))
    kinds: Sequence[InstanceType] = GPU_TYPES if with_gpus else CPU_TYPES
    return min(
        (round(float(SOLD[kind.name]) * 10**6) for kind in kinds if needed.fits_in(ROOM[kind.name])), default=None
    )


def _is_led(each: Asked, group: Sequence[Asked]) -> bool:
    return any(other.app in each.near and other.app not in other.near for other in group if other is not each)


def can_be_bound(group: Sequence[Asked], groups: Sequence[Sequence[Asked]]) -> bool:
    """Whether all of a node's pods can be bound there whoever else is bound first: one after another, each once one
    whom it needs is there; or, where it is one of those itself, because nobody of them is anywhere else."""
    there: list[Asked] = []
    waiting = list(group)
    while waiting:
        able = [each for each in waiting if not each.near or any(other.app in each.near for other in there)]
        if not able:
            elsewhere = {other.app for others in groups if others is not group for other in others}
            known = elsewhere.union(other.app for other in there)
            able = [each for each in waiting if each.app in each.near and known.isdisjoint(each.near)][:1]
        if not able:
            return False
        there += able
        waiting = [each for each in waiting if each not in able]
    return True


def best(asked: Sequence[Asked]) -> tuple[int, int]:
    """The fewest pods that get nothing, and the least that this costs."""
    found = []
    for left, *groups in groupings(asked):
        prices = [cheapest_node(group) for group in groups]
        if None not in prices and all(can_be_bound(group, groups) for group in groups):
            found.append((len(left), sum(price for price in prices if price is not None)))
    return min(found)


def test_no_pod_is_left_out_that_a_search_finds_a_host_for_and_the_nodes_cost_no_more() -> None:
    refused, dearer = {}, {}
    followers_placed = 0
    for seed in SEEDS:
        asked = drawn(seed)
        least, usd_micros = best(asked)
        solution = planned(asked)
        paid = sum(node.option.usd_per_hour.micros for node in solution.new_nodes if node.option.usd_per_hour)
        if len(solution.unplaced) > least:
            refused[seed] = (len(solution.unplaced), least)
        elif len(solution.unplaced) == least and paid > 1.02 * usd_micros:
            dearer[seed] = round(paid / usd_micros, 3)
        left = {told.pod for told in solution.unplaced}
        followers_placed += sum(bool(each.near) and each.pod.key not in left for each in asked)
    assert refused == {}
    assert dearer.keys() == DEARER
    assert followers_placed > len(SEEDS)


def test_what_is_planned_keeps_every_company_together() -> None:
    for seed in SEEDS:
        asked = {each.pod.key: each for each in drawn(seed)}
        groups = [[asked[pod] for pod in node.pods] for node in planned(list(asked.values())).new_nodes]
        assert all(can_be_bound(group, groups) for group in groups), seed
