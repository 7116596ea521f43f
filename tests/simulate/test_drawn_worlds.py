"""Worlds drawn by chance, with faults: nothing happens in them that must never happen, and each comes to rest.

`tools/simulate_hours.py` plays the same for thousands of simulated hours.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from engine.catalog.build import build_catalog
from engine.model.catalog import Catalog
from engine.model.environment import Pricing
from engine.model.quantity import NVIDIA_GPU
from engine.model.rule import RuleKind
from engine.observe.catalog_source import read_catalog_data
from engine.simulate.conditions import FaultKind
from engine.simulate.drawn_policies import small_catalog
from engine.simulate.drawn_worlds import REGION, ZONES, draw, play


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return small_catalog(build_catalog(REGION, ZONES, read_catalog_data(), Pricing()))


@pytest.mark.parametrize("seed", [2, 3, 5, 6])
def test_a_drawn_world_breaks_no_rule_and_comes_to_rest(seed: int, catalog: Catalog) -> None:
    run = play(draw(seed, 12, catalog))
    assert run.violations == ()
    assert run.launches


def test_a_seed_is_a_world(catalog: Catalog) -> None:
    assert play(draw(9, 6, catalog)) == play(draw(9, 6, catalog))
    assert draw(9, 6, catalog).tasks != draw(10, 6, catalog).tasks


def test_every_kind_of_fault_is_drawn(catalog: Catalog) -> None:
    drawn = {fault.kind for seed in range(12) for fault in draw(seed, 24, catalog).conditions.faults}
    assert drawn == set(FaultKind)


def test_policies_change_in_every_way_and_images_are_renewed(catalog: Catalog) -> None:
    worlds = [draw(seed, 48, catalog) for seed in range(40)]
    pools = [
        (before, after)
        for each in worlds
        for earlier, later in pairwise((each.policy, *(change.policy for change in each.changes)))
        for before in earlier.node_pools
        if (after := later.node_pool(before.name)) is not None
    ]
    for what in ("labels", "requirements", "limits", "disruption", "expire_after", "upkeep", "base_nodes"):
        assert any(getattr(before, what) != getattr(after, what) for before, after in pools), what
    assert any(
        len(change.policy.node_pools) < len(each.policy.node_pools) for each in worlds for change in each.changes
    )
    assert any(change.policy.node_classes != each.policy.node_classes for each in worlds for change in each.changes)
    assert any(each.conditions.new_images for each in worlds)
    assert {len(each.disruption_budgets) for each in worlds} == {0, 1, 4}


def test_policies_are_drawn_with_every_knob_that_disruption_has(catalog: Catalog) -> None:
    pools = [pool for seed in range(40) for pool in draw(seed, 1, catalog).policy.node_pools]
    assert {pool.upkeep.surge for pool in pools} == {None, 0, 1}
    assert {pool.upkeep.canaries for pool in pools} == {0, 1, 2}
    assert {pool.termination_grace_period for pool in pools} == {None, timedelta(minutes=10), timedelta(hours=2)}
    assert {pool.limits.amount(NVIDIA_GPU) for pool in pools} == {4, 8, 16, 40}
    kinds = {rule.kind for seed in range(40) for rule in draw(seed, 1, catalog).policy.rules}
    assert kinds == {RuleKind.DISRUPTION_BUDGET, RuleKind.LIMIT_RULE}
