"""What a node class says of capacity reservations, and a pool of those that are open."""

from __future__ import annotations

import pytest

from engine.model.diagnostic import Severity
from engine.model.money import FREE
from engine.model.reservation import CapacityReservation, MatchCriteria, OpenReservations, ReservationTerm
from engine.policy.lint import lint
from engine.policy.rules.types_at import sold_types
from tests import builders
from tests.policy.texts import CLASS, POOL, class_of, edited, findings_of, policy_of, rules

TERMS = """\
  capacityReservationSelectorTerms:
    - id: cr-0123456789abcdef0
    - {tags: {team: search, stage: "*"}, ownerID: "123456789012", instanceMatchCriteria: targeted}
  role:"""
G6 = builders.instance_type("g6.xlarge", vcpus=4, memory_gib=16, accelerators={"nvidia.com/gpu": 1}, gpu_name="l4")
SOLD = builders.catalog([builders.G5_XLARGE, G6], prices={**builders.PRICES, "g6.xlarge": "0.8"})
BLOCK = CapacityReservation(
    "cr-1", "p5.4xlarge", "us-east-1a", 4, 4, tags={"team": "search", "stage": "a"}, owner_id="123456789012"
)


def with_terms(terms: str) -> str:
    return edited(CLASS, "  role:", f"  capacityReservationSelectorTerms: {terms}\n  role:").text


def test_a_class_selects_reservations_by_id_or_by_all_that_a_term_says() -> None:
    assert class_of(edited(CLASS, "  role:", TERMS).text).capacity_reservation_selector_terms == (
        ReservationTerm(id="cr-0123456789abcdef0"),
        ReservationTerm(
            tags={"team": "search", "stage": "*"}, owner_id="123456789012", match_criteria=MatchCriteria.TARGETED
        ),
    )


def test_a_class_without_terms_selects_no_reservation() -> None:
    assert class_of(CLASS).capacity_reservation_selector_terms == ()


@pytest.mark.parametrize(
    ("term", "selects"),
    [
        (ReservationTerm(id="cr-1"), True),
        (ReservationTerm(id="cr-2"), False),
        (ReservationTerm(tags={"team": "search"}), True),
        (ReservationTerm(tags={"team": "*"}), True),
        (ReservationTerm(tags={"team": "ads"}), False),
        (ReservationTerm(tags={"owner": "*"}), False),
        (ReservationTerm(match_criteria=MatchCriteria.TARGETED), True),
        (ReservationTerm(match_criteria=MatchCriteria.OPEN), False),
        (ReservationTerm(tags={"team": "search"}, owner_id="210987654321"), False),
    ],
)
def test_all_that_a_term_says_has_to_hold(term: ReservationTerm, selects: bool) -> None:
    assert term.selects(BLOCK) is selects


@pytest.mark.parametrize(
    ("terms", "rule", "caret"),
    [
        ("[{id: eni-1}]", "bad-value", "eni-1"),
        ("[{id: cr-1, tags: {a: b}}]", "bad-selector", "{id"),
        ("[{ownerID: '123456789012'}]", "bad-selector", "{ownerID"),
        ("[{tags: {a: b}, ownerID: '12'}]", "bad-value", "'12'"),
        ("[{instanceMatchCriteria: opened}]", "unknown-value", "opened"),
        ("[{tags: {a: ''}}]", "bad-selector", "''"),
        ("[]", "missing-field", "capacityReservationSelectorTerms"),
    ],
)
def test_a_wrong_term_is_an_error_with_the_caret_on_it(terms: str, rule: str, caret: str) -> None:
    (found,) = findings_of(POOL, with_terms(terms))
    assert (found.rule, found.severity) == (rule, Severity.ERROR)
    assert found.position.source_line[found.position.column - 1 :].startswith(caret)


@pytest.mark.parametrize(
    ("annotation", "meant"),
    [("", OpenReservations.LEAVE), ("use", OpenReservations.USE), ("leave", OpenReservations.LEAVE)],
)
def test_a_pool_leaves_open_reservations_alone_unless_it_says_use(annotation: str, meant: OpenReservations) -> None:
    written = f"\n  annotations: {{nodewright.dev/open-reservations: {annotation}}}" if annotation else ""
    (pool,) = policy_of(edited(POOL, "  name: gpu\n", f"  name: gpu{written}\n").text, CLASS).node_pools
    assert pool.open_reservations is meant


def test_another_word_on_open_reservations_is_an_error() -> None:
    text = edited(POOL, "  name: gpu\n", "  name: gpu\n  annotations: {nodewright.dev/open-reservations: maybe}\n").text
    assert [found.rule for found in findings_of(text, CLASS)] == ["bad-annotation"]


@pytest.mark.parametrize("key", ["capacity-reservation-id", "capacity-reservation-type"])
def test_a_pool_may_require_a_reservation_of_its_nodes(key: str) -> None:
    required = f"- key: karpenter.k8s.aws/{key}\n          operator: Exists\n        - key: karpenter.sh/capacity-type"
    assert findings_of(edited(POOL, "- key: karpenter.sh/capacity-type", required).text, CLASS) == ()


def test_a_pool_of_reserved_capacity_alone_is_no_contradiction() -> None:
    text = edited(POOL, "values: [spot, on-demand]", "values: [reserved]").text
    told = rules(lint(policy_of(text, with_terms("[{id: cr-1}]")), SOLD))
    assert not {"nothing-matches", "value-never-matches", "no-price"} & set(told)


def test_a_reservation_that_a_pool_names_is_not_looked_for_in_the_catalog() -> None:
    key = "karpenter.k8s.aws/capacity-reservation-id"
    named = f"- key: {key}\n          operator: In\n          values: [cr-1]\n        - key: karpenter.sh/capacity-type"
    text = edited(POOL, "- key: karpenter.sh/capacity-type", named).text
    told = rules(lint(policy_of(text, with_terms("[{id: cr-1}]")), SOLD))
    assert not {"nothing-matches", "value-never-matches"} & set(told)


def test_requirement_rules_are_asked_about_reserved_types_at_no_price() -> None:
    sold = sold_types(builders.catalog(capacity_types=["on-demand"]))[("p5.48xlarge", "reserved")]
    assert (sold.usd_per_hour, sold.zones) == (FREE, tuple(builders.ZONES))
