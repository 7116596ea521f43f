"""What pods would rather have, and what they ask for that no new node has."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.constraint import PreferredNodeTerm, Requirement
from engine.model.pod import Pod
from engine.scheduling.preferences import ignored_terms, preferred_weight
from engine.scheduling.problem import Problem
from engine.scheduling.solve import solve
from tests.builders import pod, pool_state, requirement

ZONE_A = requirement(keys.ZONE, "In", "us-east-1a")
SPOT = requirement(keys.CAPACITY_TYPE, "In", "spot")
UNMANAGED = requirement(keys.NODE_POOL, "DoesNotExist")
OURS = {keys.NODE_POOL: "gpu", keys.ZONE: "us-east-1a", keys.CAPACITY_TYPE: "on-demand"}


def preferring(*terms: tuple[int, tuple[Requirement, ...]]) -> Pod:
    plain = pod(gpu=1)
    wanted = tuple(PreferredNodeTerm(weight, asked) for weight, asked in terms)
    return evolve(plain, placing=evolve(plain.placing, preferred_terms=wanted))


@pytest.mark.parametrize(
    ("terms", "weight"),
    [
        ((), 0),
        (((40, (ZONE_A,)), (7, (SPOT,))), 40),
        (((40, (ZONE_A,)), (7, (UNMANAGED,))), 40),
        (((40, (ZONE_A, SPOT)),), 0),
        (((40, ()),), 0),
        (((1, (ZONE_A,)), (2, (ZONE_A,))), 3),
        (((5, (requirement("failure-domain.beta.kubernetes.io/zone", "In", "us-east-1a"),)),), 5),
        (((5, (requirement("tier", "NotIn", "dev"),)),), 5),
    ],
)
def test_a_node_is_worth_the_weights_of_the_terms_that_it_meets(
    terms: tuple[tuple[int, tuple[Requirement, ...]], ...], weight: int
) -> None:
    assert preferred_weight(preferring(*terms).placing.preferred_terms, OURS) == weight


def test_a_preferred_node_of_no_pool_is_one_that_stands() -> None:
    wanted = preferring((9, (UNMANAGED,))).placing
    assert (
        preferred_weight(wanted.preferred_terms, {keys.ZONE: "us-east-1a"}),
        preferred_weight(wanted.preferred_terms, OURS),
    ) == (9, 0)


def test_a_pod_that_prefers_a_node_of_no_pool_gets_one_of_ours() -> None:
    solution = solve(Problem((preferring((100, (UNMANAGED,))),), (), (pool_state(),)))
    assert (len(solution.new_nodes), solution.unplaced) == (1, ())


BEYOND = [
    requirement("karpenter.sh/x", "In", "1"),
    requirement("karpenter.sh/x", "Exists"),
    requirement("karpenter.k8s.aws/instance-charm", "In", "1"),
    requirement(keys.HOSTNAME, "In", "node-1"),
]


@pytest.mark.parametrize("asked", BEYOND, ids=str)
def test_a_term_that_no_new_node_meets_is_told_and_the_others_hold(asked: Requirement) -> None:
    waiting = pod(gpu=1, affinity=[[SPOT, asked], [ZONE_A]])
    (told,) = ignored_terms(waiting.placing)
    assert str(told) == f"karpenter.sh/capacity-type In spot and {asked}: no new node has {asked.key}"
    solution = solve(Problem((waiting,), (), (pool_state(zones=("us-east-1a", "us-east-1b")),)))
    assert [node.option.offering.zone for node in solution.new_nodes] == ["us-east-1a"]


@pytest.mark.parametrize(
    "asked",
    [
        ZONE_A,
        requirement("karpenter.sh/x", "DoesNotExist"),
        requirement("karpenter.sh/x", "NotIn", "1"),
        requirement(keys.HOSTNAME, "NotIn", "node-1"),
        requirement(keys.NODE_CLASS, "In", "default"),
        requirement(keys.INITIALIZED, "In", "true"),
        requirement("team", "In", "search"),
    ],
    ids=str,
)
def test_a_term_that_a_new_node_can_meet_is_not_ignored(asked: Requirement) -> None:
    assert ignored_terms(pod(affinity=[[asked]]).placing) == ()
