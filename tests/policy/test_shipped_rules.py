"""The rules that the project ships: tested by their own tests, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.policy.cel.engines import ENGINES
from engine.reconcile.policy_testing import Wanted, run_policy_tests
from engine.reconcile.workspace import Workspace

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("environment", ["sandbox", "sandbox-1000", "sandbox-real"])
def test_shipped_rules_pass_their_own_tests_on_both_engines_and_no_outcome_is_left_untested(
    engine: str, environment: str
) -> None:
    wanted = Wanted(environment=environment, engine=engine, threshold=100.0, needs_tests=True)

    ran = run_policy_tests(Workspace(PROJECT), wanted)

    assert [result.name for result in ran.results if not result.passes] == []
    assert ran.findings == ()
    assert ran.untested == ()
    assert len(ran.results) >= 37
    assert ran.passes
