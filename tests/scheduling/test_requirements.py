"""The requirement algebra (Karpenter's rows 1.1 to 1.7, with Kubernetes' meaning of an absent label)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import labels as keys
from engine.model.constraint import Operator, Requirement
from engine.scheduling.requirements import Requirements, ValueSet, canonical_labels, is_custom
from tests.builders import requirement

KEY = "example.com/team"
_VALUES = ("a", "b", "c", "1", "2", "3", "-4")


def admitted(operator: str, *values: str) -> ValueSet:
    return ValueSet.of(requirement(KEY, operator, *values))


_bounds = st.builds(
    lambda operator, bound: Requirement(KEY, operator, (str(bound),)),
    st.sampled_from((Operator.GT, Operator.LT, Operator.GTE, Operator.LTE)),
    st.integers(0, 4),
)
_sets = st.builds(
    lambda operator, values: Requirement(KEY, operator, tuple(values)),
    st.sampled_from((Operator.IN, Operator.NOT_IN)),
    st.lists(st.sampled_from(_VALUES), min_size=1, max_size=3),
)
_words = st.sampled_from((Requirement(KEY, Operator.EXISTS), Requirement(KEY, Operator.DOES_NOT_EXIST)))
_requirements = _bounds | _sets | _words


@given(_requirements, st.sampled_from((*_VALUES, None)))
def test_a_value_set_admits_what_its_requirement_admits(one: Requirement, value: str | None) -> None:
    assert ValueSet.of(one).admits(value) is one.admits(value)


@given(st.lists(_requirements, min_size=1, max_size=4), st.sampled_from((*_VALUES, None)))
def test_an_intersection_admits_what_all_admit(several: list[Requirement], value: str | None) -> None:
    shared = Requirements.of(several).sets[KEY]
    assert shared.admits(value) is all(each.admits(value) for each in several)


@given(st.lists(_requirements, min_size=1, max_size=4))
def test_the_least_value_is_one_that_is_admitted(several: list[Requirement]) -> None:
    shared = Requirements.of(several).sets[KEY]
    least = shared.least()
    assert least is None or shared.admits(least)
    if shared.is_empty:
        assert least is None


@given(st.lists(_requirements, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_an_intersection_changes_nothing(several: list[Requirement], random: Random) -> None:
    mixed = list(several)
    random.shuffle(mixed)
    assert Requirements.of(mixed) == Requirements.of(several)


@pytest.mark.parametrize(
    ("operators", "least"),
    [
        ([("In", "b", "a")], "a"),
        ([("Exists",)], "any"),
        ([("NotIn", "any")], "any-1"),
        ([("Gt", "4")], "5"),
        ([("Gte", "4"), ("NotIn", "4")], "5"),
        ([("Lt", "4")], "3"),
        ([("Gt", "2"), ("Lt", "4"), ("NotIn", "3")], None),
        ([("Gt", "4"), ("Lt", "2")], None),
        ([("DoesNotExist",)], None),
    ],
)
def test_a_label_that_is_left_to_choose_gets_the_least_value(
    operators: list[tuple[str, ...]], least: str | None
) -> None:
    shared = Requirements.of(requirement(KEY, *each) for each in operators).sets[KEY]
    assert shared.least() == least


def test_a_bound_that_is_no_integer_admits_nothing() -> None:
    assert admitted("Gt", "many").is_empty
    assert not admitted("Gt", "1").admits("many")


def test_min_values_of_an_intersection_is_the_greater() -> None:
    three = Requirement(KEY, Operator.EXISTS, min_values=3)
    five = Requirement(KEY, Operator.NOT_IN, ("a",), min_values=5)
    assert Requirements.of((five, three)).sets[KEY].min_values == 5


@pytest.mark.parametrize(
    ("pool", "pod", "conflict"),
    [
        (("In", "a", "b"), ("In", "b", "c"), None),
        (("In", "a"), ("In", "b"), KEY),
        (("In", "a"), ("NotIn", "a"), KEY),
        (("NotIn", "a"), ("NotIn", "b"), None),
        (("DoesNotExist",), ("NotIn", "b"), None),
        (("Exists",), ("DoesNotExist",), KEY),
        (("Gt", "5"), ("Lt", "5"), KEY),
        (("Gt", "5"), ("In", "7", "3"), None),
        (("Gte", "5"), ("Lte", "5"), None),
    ],
)
def test_two_sides_conflict_on_a_key_without_a_common_value(
    pool: tuple[str, ...], pod: tuple[str, ...], conflict: str | None
) -> None:
    offered = Requirements.of([requirement(KEY, *pool)])
    assert offered.conflict(Requirements.of([requirement(KEY, *pod)])) == conflict


def test_an_undefined_well_known_key_is_anything_for_a_new_node_and_denied_for_an_existing_one() -> None:
    wanted = Requirements.of([requirement(keys.ZONE, "In", "us-east-1a")])
    nothing_said = Requirements({})
    assert nothing_said.conflict(wanted, may_be_undefined=keys.WELL_KNOWN) is None
    assert nothing_said.conflict(wanted) == keys.ZONE
    custom = Requirements.of([requirement(KEY, "In", "a")])
    assert nothing_said.conflict(custom, may_be_undefined=keys.WELL_KNOWN) == KEY
    assert nothing_said.conflict(Requirements.of([requirement(KEY, "NotIn", "a")])) is None


def test_beta_keys_are_read_under_their_present_names() -> None:
    wanted = Requirements.of([requirement("failure-domain.beta.kubernetes.io/zone", "In", "us-east-1a")])
    assert wanted.admits({keys.ZONE: "us-east-1a"})
    assert wanted.admits({"failure-domain.beta.kubernetes.io/zone": "us-east-1a"})
    assert not wanted.admits({keys.ZONE: "us-east-1b"})
    assert canonical_labels({"beta.kubernetes.io/arch": "arm64", keys.ARCH: "amd64"}) == {keys.ARCH: "amd64"}


def test_a_pool_may_make_nodes_that_lack_only_its_custom_keys() -> None:
    pool = Requirements.of([requirement(KEY, "In", "a", "b"), requirement(keys.INSTANCE_GPU_COUNT, "Gt", "1")])
    assert pool.barring_key({keys.INSTANCE_GPU_COUNT: "4"}) is None
    assert pool.barring_key({keys.INSTANCE_GPU_COUNT: "1"}) == keys.INSTANCE_GPU_COUNT
    assert pool.barring_key({}) == keys.INSTANCE_GPU_COUNT
    assert pool.barring_key({keys.INSTANCE_GPU_COUNT: "4", KEY: "c"}) == KEY


def test_labels_are_requirements_of_one_value() -> None:
    node = Requirements.of_labels({KEY: "a"})
    assert node.conflict(Requirements.of([requirement(KEY, "In", "a", "b")])) is None
    assert node.conflict(Requirements.of([requirement(KEY, "Gt", "1")])) == KEY


@pytest.mark.parametrize(
    ("key", "custom"),
    [(KEY, True), ("team", True), (keys.ZONE, False), (keys.INSTANCE_GPU_NAME, False), ("karpenter.sh/x", False)],
)
def test_only_custom_keys_are_a_pools_to_choose(key: str, custom: bool) -> None:
    assert is_custom(key) is custom


@pytest.mark.parametrize(
    ("operators", "words"),
    [
        ([("In", "b", "a")], "a, b"),
        ([("In", *(str(number) for number in range(10)))], "0, 1, 2, 3, 4, 5, 6, 7 and 2 more"),
        ([("NotIn", "a")], "anything but a"),
        ([("Exists",)], "any value"),
        ([("Exists",), ("NotIn", "a")], "any value but a"),
        ([("Gt", "4"), ("Lt", "9")], "at least 5 and at most 8"),
        ([("DoesNotExist",)], "no such label"),
        ([("In", "a"), ("In", "b")], "nothing"),
    ],
)
def test_a_value_set_is_told_in_words(operators: list[tuple[str, ...]], words: str) -> None:
    assert str(Requirements.of(requirement(KEY, *each) for each in operators).sets[KEY]) == words
