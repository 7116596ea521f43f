"""Which pods wait for a node that could be ours."""

from __future__ import annotations

import pytest

from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement
from tests.builders import pod

_NO_POOL = Requirement(keys.NODE_POOL, Operator.DOES_NOT_EXIST)
_ZONE = Requirement("topology.kubernetes.io/zone", Operator.IN, ("a",))


@pytest.mark.parametrize(
    ("affinity", "waits_for_us"),
    [
        ((), True),
        (((_ZONE,),), True),
        (((_NO_POOL,),), False),
        (((_NO_POOL, _ZONE), (_NO_POOL,)), False),
        (((_NO_POOL,), (_ZONE,)), True),
    ],
)
def test_a_pod_that_every_term_keeps_off_all_pools_waits_for_the_scheduler_and_not_for_us(
    affinity: tuple[tuple[Requirement, ...], ...], waits_for_us: bool
) -> None:
    asked = pod(affinity=affinity)

    assert asked.is_to_be_bound
    assert asked.is_waiting is waits_for_us


def test_the_installed_runner_before_it_runs_is_nobodys_blocked_workload() -> None:
    assert not pod(affinity=((_NO_POOL,),), unsupported=("persistent volumes",)).is_waiting
