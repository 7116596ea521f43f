"""Karpenter's own API, its definitions in a real API server, against what we say of the same objects.

Every object gets the same verdict from both, but for the differences that docs/leniencies.md lists one by one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from attrs import frozen

from engine.sandbox.control_plane import ControlPlane
from tests.cluster.api import Cluster, eventually
from tests.cluster.conftest import PROJECT
from tests.cluster.karpenter_crds import CLASS, FOLDER, POOL, Demand, definition, demands
from tests.cluster.karpenter_differences import LENIENCIES, STRICTNESSES, differences
from tests.cluster.karpenter_objects_generated import Generated, generated
from tests.cluster.karpenter_verdicts import KarpentersApi, Ours, Theirs, ours
from tests.cluster.karpenter_violations import OF_CHANGES

SEED, MIXTURES = 5, 200
DEFINITIONS = "CustomResourceDefinition"
ROW = re.compile(r"\| `([a-z0-9-]+)` \|.*\| (?:`([a-z0-9-]+)`)? *\|")


@frozen
class Judged:
    """An object, and both verdicts."""

    made: Generated
    theirs: Theirs
    ours: Ours

    @property
    def unlisted(self) -> list[str]:
        return [each for each in differences(self.theirs, self.ours) if each.startswith("UNLISTED")]


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Iterator[KarpentersApi]:
    """Karpenter's definitions in the API server, for the time of this module."""
    if not FOLDER.is_dir():
        pytest.skip(f"NOT RUN: KARPENTER'S DEFINITIONS ARE NOT AT HAND; there is no folder {FOLDER}")
    plane = control_plane.up()
    cluster = Cluster(plane, "default")
    names = []
    for kind in (POOL, CLASS):
        made = cluster.create(definition(kind))
        names.append(made["metadata"]["name"])
    for name in names:
        eventually(partial(_is_served, cluster, name), f"{name} is served")
    yield KarpentersApi(plane)
    for name in names:
        cluster.delete(DEFINITIONS, name)
    for name in names:
        eventually(partial(_is_gone, cluster, name), f"{name} is gone")


def _is_served(cluster: Cluster, name: str) -> bool:
    found = cluster.get(DEFINITIONS, name) or {}
    conditions: list[dict[str, Any]] = found.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _is_gone(cluster: Cluster, name: str) -> bool:
    return cluster.get(DEFINITIONS, name) is None


@pytest.fixture(scope="module")
def judged(api: KarpentersApi) -> list[Judged]:
    objects = generated(SEED, MIXTURES)
    return [Judged(made, api(made.item["kind"], made.item), ours(made.item)) for made in objects]


def test_what_karpenters_api_accepts_and_refuses_we_do_too_but_for_the_listed_differences(judged: list[Judged]) -> None:
    verdicts = Counter((each.theirs.accepts, each.ours.accepts) for each in judged)
    named = Counter(name for each in judged for name in set(differences(each.theirs, each.ours)))
    print(
        f"\n{len(judged)} objects: {verdicts[True, True]} accepted by both, {verdicts[False, False]} refused by both,"
    )
    print(f"{verdicts[False, True]} read leniently, {verdicts[True, False]} refused by us alone:")
    print("\n".join(f"{count:5} {name}" for name, count in sorted(named.items())))
    assert [(each.made.what, each.unlisted) for each in judged if each.unlisted] == []
    assert len(judged) >= 500
    assert verdicts[True, True] >= 200
    assert verdicts[False, False] >= 300


def test_every_listed_difference_is_seen(judged: list[Judged]) -> None:
    """An entry that explains nothing any more would hide a mistake to come."""
    named = {name for each in judged for name in differences(each.theirs, each.ours)}
    assert sorted({*LENIENCIES, *STRICTNESSES} - named) == []


def test_every_demand_of_the_definitions_is_broken_by_an_object_that_karpenters_api_refuses(
    judged: list[Judged],
) -> None:
    refused = {each.made.breaks for each in judged if not each.theirs.accepts}
    unbroken = [demand for kind in (POOL, CLASS) for demand in demands(kind) if demand not in refused]
    assert sorted(demand.value for demand in unbroken) == sorted(OF_CHANGES)


def test_every_cel_validation_of_the_definitions_is_the_cause_of_a_refusal(judged: list[Judged]) -> None:
    for each in judged:
        if each.made.breaks is not None and each.made.breaks.keyword == "rule":
            assert any(_is_of_rule(cause, each.made.breaks) for cause in each.theirs.causes), each


def _is_of_rule(cause: str, rule: Demand) -> bool:
    place = "".join(r"\[\d+\]" if step == "[]" else rf"\.{step}" for step in rule.path).removeprefix(r"\.")
    return bool(re.match(rf"{place}: ", cause)) and rule.value in cause


def test_the_docs_list_every_difference_with_its_finding() -> None:
    told = (PROJECT / "docs" / "leniencies.md").read_text()
    lenient, _, strict = told.partition("## Refused, although Karpenter's API accepts it")
    for text, known in ((lenient, LENIENCIES), (strict, STRICTNESSES)):
        rows = {match[1]: match[2] or "" for match in map(ROW.fullmatch, text.splitlines()) if match}
        assert rows == {name: each.finding for name, each in known.items()}
