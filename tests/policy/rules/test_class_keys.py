"""Pods are told apart by exactly what rules read."""

from __future__ import annotations

from itertools import product

import pytest
from attrs import evolve

from engine.model.constraint import Toleration
from engine.model.pod import Owner, Pod
from engine.policy.facts.values import POD_FIELDS, pod_facts
from engine.policy.rules.class_keys import PodSorter, ReadPath, pod_values, read_paths, values_at
from tests.builders import NOON, minutes, pod

PODS = [
    evolve(pod(name, gpu=gpus, tolerations=borne, namespace=space, owner=owner), labels=labels, created_at=NOON - since)
    for name, gpus, borne, space, owner, labels, since in product(
        ("a", "b"),
        (1, 2),
        ((), (Toleration("spot", exists=True),)),
        ("one", "two"),
        (None, Owner("Job", "j")),
        ({}, {"tier": "gold"}, {"tier": "gold", "app.kubernetes.io/name": "llm"}, {"tier": ""}),
        (minutes(0), minutes(1)),
    )
]
READS = (
    "pod.name",
    "pod.gpus",
    "pod.labels.tier",
    "pod.labels.app.kubernetes.io/name",
    "pod.labels.*",
    "pod.tolerations.*",
    "pod.requests.nvidia.com/gpu",
    "pod.requests.*",
    "pod.nodeSelector.x",
    "pod.ownerKind",
    "pod.namespace",
    "pod.waiting",
    "pod.*",
)


@pytest.mark.parametrize(
    ("path", "read"),
    [
        ("pod.gpus", ReadPath("pod", "gpus")),
        ("pod.labels.app.kubernetes.io/name", ReadPath("pod", "labels", "app.kubernetes.io/name")),
        ("pod.labels.*", ReadPath("pod", "labels")),
        ("pod.*", ReadPath("pod")),
        ("now", ReadPath("now")),
    ],
)
def test_a_path_is_a_variable_a_field_and_a_key_that_may_hold_dots(path: str, read: ReadPath) -> None:
    assert ReadPath.of(path) == read


@pytest.mark.parametrize("reads", [(), *((each,) for each in READS), READS[:4], READS[4:9]])
def test_a_sorter_tells_pods_apart_exactly_where_the_values_that_are_read_differ(reads: tuple[str, ...]) -> None:
    paths = read_paths(reads)
    sorter = PodSorter(paths, NOON)
    by_key = [sorter.key(each) for each in PODS]
    by_values = [pod_values(paths, each, NOON) for each in PODS]
    assert len(set(by_key)) == len(set(by_values)) == len(set(zip(by_key, by_values, strict=True)))
    assert len(set(by_key)) > (0 if not reads or reads == ("pod.nodeSelector.x",) else 1)


def test_pods_that_share_what_they_ask_for_and_those_that_have_it_apart_get_one_key() -> None:
    first = pod("a", gpu=1)
    shared, apart = evolve(first), pod("a", gpu=1)
    assert first.placing is shared.placing
    assert first.placing is not apart.placing
    sorter = PodSorter(read_paths(["pod.gpus"]), NOON)
    assert sorter.key(first) == sorter.key(shared) == sorter.key(apart)


@pytest.mark.parametrize("field", sorted(POD_FIELDS))
def test_each_field_of_a_pod_can_be_read_for_a_key(field: str) -> None:
    one: Pod = PODS[0]
    (value,) = pod_values([ReadPath("pod", field)], one, NOON)
    assert hash(value) == hash(pod_values([ReadPath("pod", field)], evolve(one), NOON)[0])


def test_values_of_other_variables_are_read_from_their_facts() -> None:
    facts = pod_facts(evolve(PODS[0], labels={"a": "1"}), NOON)
    paths = [ReadPath("pod", "gpus"), ReadPath("pod", "labels", "a"), ReadPath("pod", "labels", "b")]
    gpus, there, missing = values_at(paths, facts)
    assert (gpus, there) == (1, "1")
    assert missing not in ("", None)
