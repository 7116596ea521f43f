"""Worlds drawn by chance, with faults: nothing happens in them that must never happen, and each comes to rest.

`tools/simulate_hours.py` plays the same for thousands of simulated hours.
"""

from __future__ import annotations

import pytest

from engine.catalog.build import build_catalog
from engine.model.catalog import Catalog
from engine.model.environment import Pricing
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
