"""Both CEL engines decide the recorded clusters alike, by the rules that are shipped."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from attrs import evolve

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.plan import Plan
from engine.model.snapshot import Snapshot
from engine.reconcile.assembly import catalog_of
from engine.reconcile.planning import read_snapshot
from engine.reconcile.workspace import Workspace

WORKSPACE = Workspace(Path(__file__).resolve().parents[2])
SNAPSHOTS = sorted((WORKSPACE.root / "policies" / "snapshots").glob("*.json"))
# Strict enough that every kind of rule has something to say.
PARAMS = {
    "pool-dollars": {"usdPerHour": 50.0},
    "team-dollars": {"nobodyUsdPerHour": 60.0},
    "plan-size": {"launches": 3},
}


def test_there_is_a_recorded_cluster() -> None:
    assert SNAPSHOTS


@pytest.mark.parametrize("file", SNAPSHOTS, ids=lambda file: file.stem)
@pytest.mark.parametrize("params", [{}, PARAMS], ids=["as shipped", "strict"])
@pytest.mark.parametrize("later", [timedelta(0), timedelta(hours=9)], ids=["then", "that night"])
def test_both_engines_give_one_plan(file: Path, params: dict[str, dict[str, float]], later: timedelta) -> None:
    environment = evolve(WORKSPACE.environment("sandbox"), params=params)
    catalog = catalog_of(WORKSPACE, environment)
    snapshot = _idle(read_snapshot(file), later)

    plans = [_plan(snapshot, catalog, environment_engine, params) for environment_engine in ("cel-expr", "cel-python")]

    by_engine = [evolve(plan, hash="", policy_digest="", document=plans[0].document) for plan in plans]
    assert by_engine[0] == by_engine[1]
    assert [claim.name for claim in plans[0].document.claims] == [claim.name for claim in plans[1].document.claims]


def test_the_budget_of_core_keeps_the_empty_node_by_day_and_lets_it_go_at_night() -> None:
    environment = WORKSPACE.environment("sandbox")
    catalog, snapshot = catalog_of(WORKSPACE, environment), read_snapshot(SNAPSHOTS[0])

    day, night = (
        _plan(_idle(snapshot, later), catalog, "cel-expr", {}) for later in (timedelta(0), timedelta(hours=9))
    )

    assert [removal.record.node_pool for removal in day.removals] == []
    assert [removal.record.node_pool for removal in night.removals] == ["gpu-core"]


def test_the_strict_rules_change_the_plan() -> None:
    environment = WORKSPACE.environment("sandbox")
    catalog, snapshot = catalog_of(WORKSPACE, environment), read_snapshot(SNAPSHOTS[0])

    as_shipped, strict = (_plan(snapshot, catalog, "cel-expr", params) for params in ({}, PARAMS))

    assert len(strict.launches) < len(as_shipped.launches)
    assert {verdict.rule for verdict in strict.verdicts} >= {"plan-size"}


def _plan(snapshot: Snapshot, catalog: Catalog, engine: str, params: dict[str, dict[str, float]]) -> Plan:
    environment = evolve(WORKSPACE.environment("sandbox"), params=params, cel_engine=engine)
    return decide(snapshot, WORKSPACE.policy(environment), catalog, environment)


def _idle(snapshot: Snapshot, later: timedelta) -> Snapshot:
    """The moment that is ``later``, with a node of core that has stood empty for an hour, so that budgets are asked."""
    node = next(node for node in snapshot.nodes if node.labels.get("workload-type") == "core")
    claim = next(each.claim for each in snapshot.cloud.instances if each.id == node.instance_id)
    taken_at = snapshot.taken_at + later
    return evolve(
        snapshot,
        taken_at=taken_at,
        pods=tuple(pod for pod in snapshot.pods if pod.node_name != node.name),
        ledger=evolve(snapshot.ledger, empty_since={claim: taken_at - timedelta(hours=1)}),
    )
