"""What stands in a policy and does nothing is told, at its place."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Diagnostic, Severity
from engine.policy.lint import lint
from tests.builders import catalog
from tests.policy.texts import CLASS, POOL, added, findings_of, policy_of, rules

ON_DEMAND = POOL.replace("[spot, on-demand]", "[on-demand]")


def caret(found: Diagnostic) -> str:
    return found.position.source_line[found.position.column - 1 :]


def annotated(text: str, annotation: str) -> str:
    return added(text, "metadata:", f"  annotations: {{{annotation}}}").text


def linted(text: str, node_class: str = CLASS) -> list[Diagnostic]:
    return list(lint(policy_of(text, node_class), catalog()))


def requiring(text: str, requirement: str) -> str:
    return added(text, "      requirements:", f"        - {{{requirement}}}").text


def test_our_annotations_on_the_template_are_told_with_where_they_belong() -> None:
    text = added(
        POOL, "    metadata:", '      annotations: {nodewright.dev/headroom: "nvidia.com/gpu=2", other: x}'
    ).text
    (found,) = findings_of(text, CLASS)
    assert (found.rule, found.severity) == ("no-effect", Severity.WARNING)
    assert caret(found).startswith("nodewright.dev/headroom")
    assert found.hint == "it belongs under the NodePool's own metadata.annotations"


def test_our_annotations_on_a_class_are_told() -> None:
    (found,) = findings_of(POOL, annotated(CLASS, "nodewright.dev/open-reservations: use, other: x"))
    assert (found.rule, found.severity) == ("no-effect", Severity.WARNING)
    assert found.message == "nodewright.dev/open-reservations does nothing on an EC2NodeClass"
    assert caret(found).startswith("nodewright.dev/open-reservations")


@pytest.mark.parametrize("key", ["nodewright.dev/expected-labels", "nodewright.dev/headroom"])
def test_an_empty_list_is_told(key: str) -> None:
    (found,) = findings_of(annotated(POOL, f'{key}: ""'), CLASS)
    assert (found.rule, found.message, found.position.line) == ("no-effect", f"{key} is empty", 4)


def test_a_policy_for_min_values_is_told_where_there_are_none() -> None:
    text = annotated(POOL, "nodewright.dev/min-values-policy: BestEffort")
    (found,) = findings_of(text, CLASS)
    assert found.message.endswith("is about minValues, and no requirement of the pool has any")
    assert caret(found).startswith("BestEffort")
    some = text.replace("values: [g5, g6]", "values: [g5, g6]\n          minValues: 2")
    assert rules(findings_of(some, CLASS)) == []


def test_may_start_nodes_on_a_pool_is_refused_with_where_it_belongs() -> None:
    (found,) = findings_of(annotated(POOL, 'nodewright.dev/may-start-nodes: "false"'), CLASS)
    assert (found.severity, found.hint) == (Severity.ERROR, "it belongs on a PriorityClass")


def test_headroom_above_the_pools_own_limit_is_told() -> None:
    text = annotated(POOL, 'nodewright.dev/headroom: "nvidia.com/gpu=9"')
    (found,) = [each for each in linted(text) if each.rule == "headroom-above-limit"]
    assert found.message == "gpu is to keep 9 nvidia.com/gpu spare, and its limit is 8"
    assert found.position.line == 4
    assert not [each for each in linted(text.replace("=9", "=8")) if each.rule == "headroom-above-limit"]


@pytest.mark.parametrize(
    "requirement",
    [
        "key: karpenter.k8s.aws/capacity-reservation-type, operator: In, values: [capacity-block]",
        "key: karpenter.k8s.aws/capacity-reservation-id, operator: In, values: [cr-0123456789abcdef0]",
        "key: karpenter.k8s.aws/capacity-reservation-id, operator: Exists",
    ],
)
def test_a_pool_that_needs_a_reservation_of_a_class_that_selects_none_is_told_that_it_never_launches(
    requirement: str,
) -> None:
    text = requiring(ON_DEMAND, requirement)
    (found,) = [each for each in linted(text) if each.rule == "nothing-matches"]
    assert found.message.startswith("gpu never launches: only nodes in reservations have capacity-reservation-")
    assert found.message.endswith("and the EC2NodeClass gpu-nodes selects no reservation")
    selecting = added(CLASS, "  role: gpu-node", "  capacityReservationSelectorTerms: [{tags: {team: search}}]").text
    assert not [each for each in linted(text, selecting) if each.rule == "nothing-matches"]


@pytest.mark.parametrize("operator", ["DoesNotExist", "NotIn, values: [cr-0123456789abcdef0]"])
def test_a_pool_that_shuns_reservations_needs_none(operator: str) -> None:
    text = requiring(ON_DEMAND, f"key: karpenter.k8s.aws/capacity-reservation-id, operator: {operator}")
    assert not [each for each in linted(text) if each.rule == "nothing-matches"]


@pytest.mark.parametrize(
    ("values", "rule"), [("[reserved]", "nothing-matches"), ("[on-demand, reserved]", "value-never-matches")]
)
def test_reserved_of_a_class_that_selects_none_is_told_as_that(values: str, rule: str) -> None:
    text = POOL.replace("[spot, on-demand]", values)
    (found,) = [each for each in linted(text) if each.rule == rule and "reserv" in each.message]
    assert found.message.endswith("the EC2NodeClass gpu-nodes selects no reservation")
    assert found.hint.startswith("give the EC2NodeClass capacityReservationSelectorTerms")
