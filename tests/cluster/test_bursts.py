"""What 200 pods at once cost after the real kube-scheduler has bound them, against the least that is possible."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from engine.sandbox.control_plane import ControlPlane
from tests.cluster.bursts import Bill, bill, equal_pods, mixed_pods
from tests.cluster.promised_world import Stage

pytestmark = pytest.mark.cluster

BURSTS = {"burst-1": mixed_pods(1), "burst-2": mixed_pods(2), "burst-equal": equal_pods()}
MOST_OVER_OPTIMUM = 0.02
# On a busy machine a pod is sometimes tried while its node is closed, forgets it, and one node more is bought for it:
# some two per cent of a burst.
MOST_OVER_WITH_A_NODE_MORE = 0.04


@pytest.fixture(scope="module")
def bills(control_plane: ControlPlane) -> Mapping[str, Bill]:
    stage = Stage(control_plane.up())
    found = {name: bill(stage, name, asked) for name, asked in BURSTS.items()}
    for name, each in found.items():
        print(f"\n{name}: {each}")
    return found


@pytest.mark.parametrize("name", BURSTS)
def test_every_pod_of_a_burst_is_bound_for_one_node_more_than_planned_at_most(
    name: str, bills: Mapping[str, Bill]
) -> None:
    assert bills[name].waiting == 0
    assert bills[name].over_optimum <= MOST_OVER_WITH_A_NODE_MORE


def test_bursts_cost_hardly_more_than_they_must_once_they_are_bound(bills: Mapping[str, Bill]) -> None:
    """Real Karpenter ends 78 to 88 % above the optimum of such mixes, and at more than three times that of the last."""
    over = [each.over_optimum for each in bills.values()]
    assert sum(over) / len(over) <= MOST_OVER_OPTIMUM
