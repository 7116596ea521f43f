"""What a NodePool's annotations say of how its nodes are replaced: what is taken and what is not."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from attrs import evolve

from engine.model import labels
from engine.model.diagnostic import Diagnostic, Severity
from engine.model.money import UsdPerHour
from engine.model.upkeep import Upkeep
from tests.policy.texts import CLASS, POOL, added, findings_of, policy_of


def annotated(annotation: str, value: str) -> str:
    return added(POOL, "metadata:", f"  annotations: {{{annotation}: '{value}'}}").text


def upkeep_with(annotation: str, value: str) -> Upkeep:
    return policy_of(annotated(annotation, value), CLASS).node_pools[0].upkeep


def refused(annotation: str, value: str) -> Diagnostic:
    [found] = [each for each in findings_of(annotated(annotation, value), CLASS) if each.rule == "bad-annotation"]
    assert found.position.line == 4, "it is told where it stands"
    return found


def test_a_pool_that_says_nothing_has_the_plain_settings() -> None:
    assert policy_of(POOL, CLASS).node_pools[0].upkeep == Upkeep()


@pytest.mark.parametrize(
    ("annotation", "written", "field", "value"),
    [
        (labels.SURGE, "0", "surge", 0),
        (labels.SURGE, "1", "surge", 1),
        (labels.ROLLOUT_CANARY, "0", "canaries", 0),
        (labels.ROLLOUT_CANARY, "1000", "canaries", 1000),
        (labels.ROLLOUT_SOAK, "1h30m", "soak", timedelta(minutes=90)),
        (labels.MIN_SPOT_SAVING, "20%", "spot_share", Decimal("0.2")),
        (labels.REPAID_WITHIN, "2h", "repaid_within", timedelta(hours=2)),
        (labels.MIN_NODE_LIFE, "0s", "node_life", timedelta(0)),
        (labels.WARM_UP, "5m", "warm_up", timedelta(minutes=5)),
        (labels.RETURN_TO_PREFERRED, "true", "returns", True),
        (labels.QUIET_DESTINATIONS, "true", "quiet_destinations", True),
    ],
)
def test_what_a_pool_says_is_taken(annotation: str, written: str, field: str, value: object) -> None:
    assert upkeep_with(annotation, written) == evolve(Upkeep(), **{field: value})


@pytest.mark.parametrize(
    ("written", "amount", "share"),
    [("0.05", "0.05", "0"), ("10%", "0", "0.1"), ("0.05,10%", "0.05", "0.1"), ("12.5% , 1", "1", "0.125")],
)
def test_a_least_saving_is_an_amount_a_share_or_both(written: str, amount: str, share: str) -> None:
    found = upkeep_with(labels.MIN_SAVING, written)
    assert (found.least_saving, found.least_share) == (UsdPerHour.parse(amount), Decimal(share))


@pytest.mark.parametrize(
    ("annotation", "written"),
    [
        (labels.SURGE, "2"),
        (labels.SURGE, ""),
        (labels.ROLLOUT_CANARY, "-1"),
        (labels.ROLLOUT_CANARY, "1001"),
        (labels.ROLLOUT_CANARY, "all"),
        (labels.ROLLOUT_SOAK, "ten minutes"),
        (labels.ROLLOUT_SOAK, "169h"),
        (labels.MIN_SAVING, "lots"),
        (labels.MIN_SAVING, "1,2"),
        (labels.MIN_SAVING, "101%"),
        (labels.MIN_SPOT_SAVING, "0.2"),
        (labels.WARM_UP, "25h"),
        (labels.RETURN_TO_PREFERRED, "yes"),
        (labels.QUIET_DESTINATIONS, "True"),
    ],
)
def test_what_no_pool_can_mean_is_told(annotation: str, written: str) -> None:
    found = refused(annotation, written)
    assert annotation in found.message
    assert found.hint


def written(line: str) -> list[Diagnostic]:
    """What is found where the annotations of a pool are this one line, not quoted."""
    return list(findings_of(added(POOL, "metadata:", f"  annotations:\n    {line}").text, CLASS))


SPANS = (labels.ROLLOUT_SOAK, labels.REPAID_WITHIN, labels.MIN_NODE_LIFE, labels.WARM_UP, labels.LAUNCH_DEADLINE)


@pytest.mark.parametrize("annotation", SPANS)
@pytest.mark.parametrize(
    ("text", "wrong", "hint"),
    [
        ("10", ", which has no unit;", 'write "10m" for minutes, "10s" for seconds or "10h" for hours'),
        ("1.5", ", which has no unit;", 'write "1.5m" for minutes, "1.5s" for seconds or "1.5h" for hours'),
        ("-10m", ", which is less than nothing;", 'write hours, minutes and seconds, such as "10m" or "1h30m"'),
        ("2d", ", and days are no unit;", 'write hours: "48h"'),
        ("721h", ", which is too long;", 'write hours, minutes and seconds, such as "10m" or "1h30m"'),
        ("10min", ";", 'write hours, minutes and seconds, such as "10m" or "1h30m"'),
    ],
)
def test_a_duration_is_told_where_it_stands_with_what_is_wrong_and_the_form(
    annotation: str, text: str, wrong: str, hint: str
) -> None:
    [found] = written(f"{annotation}: {text}")
    assert (found.rule, found.hint) == ("bad-annotation", hint)
    assert found.message.startswith(f"{annotation} is {text!r}{wrong} it is a duration of at ")
    assert (found.position.file, found.position.line, found.position.column) == ("f0.yaml", 5, len(annotation) + 7)


def test_a_time_that_may_not_be_nothing_says_so() -> None:
    [found] = written(f"{labels.LAUNCH_DEADLINE}: 0s")
    assert found.message.endswith(" is '0s', which is too short; it is a duration of at least 1s and at most 24h")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (f"{labels.SURGE}: -1", "it says whether another node is there before one goes"),
        (f"{labels.ROLLOUT_CANARY}: 50%", "it is how many nodes a change is tried on first"),
        (f"{labels.MIN_SAVING}: -0.05", "it is what a move must save"),
        (f"{labels.MIN_SPOT_SAVING}: -15%", "it is a share of the price of what goes"),
        (f"{labels.RETURN_TO_PREFERRED}: 1", "it is a yes or a no"),
        (f"{labels.QUIET_DESTINATIONS}: on", "it is a yes or a no"),
        (f"{labels.ON_REBALANCE}: true", "it says what becomes of a machine that EC2 may soon take"),
        (f"{labels.UNHEALTHY_LIMIT}: -2", "it is a number of nodes, or a share of them"),
    ],
)
def test_what_is_no_number_no_amount_and_no_word_is_told_where_it_stands(line: str, says: str) -> None:
    [found] = written(line)
    annotation = line.partition(": ")[0]
    assert says in found.message
    assert (found.position.line, found.position.column) == (5, len(annotation) + 7)
    assert found.hint.startswith("write ")


@pytest.mark.parametrize(
    ("number", "percentage"), [("0.15", "15%"), ("15", "15%"), ("0.125", "12.5%"), ("900", "100%")]
)
def test_a_share_without_a_sign_is_told_as_the_percentage_that_it_most_likely_is(number: str, percentage: str) -> None:
    assert refused(labels.MIN_SPOT_SAVING, number).hint == f'write "{percentage}"'


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("rollout-soack", "did you mean nodewright.dev/rollout-soak?"),
        ("warmup", "did you mean nodewright.dev/warm-up?"),
        ("Surge", "did you mean nodewright.dev/surge?"),
        ("rebalance", "did you mean nodewright.dev/on-rebalance?"),
        ("consolidate-after", "it is a field of the NodePool: spec.disruption.consolidateAfter"),
        ("termination-grace-period", "it is a field of the NodePool: spec.template.spec.terminationGracePeriod"),
        ("replace", "it belongs on a Node, and nodewright replace writes it there"),
        ("tier", ""),
    ],
)
def test_a_name_that_is_none_of_ours_is_refused_with_what_was_most_likely_meant(name: str, hint: str) -> None:
    [found] = written(f"nodewright.dev/{name}: x")
    assert (found.rule, found.severity, found.hint) == ("unknown-annotation", Severity.ERROR, hint)
    assert (found.position.line, found.position.column) == (5, 5)


def test_a_name_of_ours_below_a_domain_that_is_nearly_ours_is_warned_of() -> None:
    [found] = written("nodewrigth.dev/surge: '0'")
    assert (found.severity, found.hint) == (Severity.WARNING, "did you mean nodewright.dev/surge?")
    assert written("example.com/surge: '0'") == []
    assert written("nodewrigth.dev/tier: gold") == []
