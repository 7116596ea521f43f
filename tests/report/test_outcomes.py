"""What people read of a converge that ended, and of a destruction before it begins."""

from __future__ import annotations

import pytest
from attrs import evolve

from engine.model.environment import NetworkMode
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.report.outcome_report import outcome_line, render_destruction, render_outcome
from tests import builders
from tests.report import scenes
from tests.report.golden_text import assert_golden, printed


def test_an_outcome_names_what_was_refused_with_the_words_of_aws() -> None:
    assert_golden("outcome.txt", printed(render_outcome(scenes.outcome(), scenes.plan())))


def test_an_outcome_without_trouble_is_one_line() -> None:
    done = Outcome("sandbox", version=5, finished_at=scenes.NOON, is_settled=True)

    assert printed(render_outcome(done)) == "Outcome: nothing to change; version 5 is settled\n"
    assert "2 created, 1 adopted, 1 deleted" in outcome_line(scenes.outcome())


def interrupted_outcome() -> Outcome:
    """1,003 nodes: nearly all were left out, twelve failed by one fault that names each, one for another reason."""
    left_out = [ClaimOutcome(f"gpu-core-{n:05}", OutcomeStatus.SKIPPED) for n in range(700)]
    left_out += [ClaimOutcome(f"gpu-elastic-{n:05}", OutcomeStatus.SKIPPED) for n in range(290)]
    failed = [
        ClaimOutcome(
            f"gpu-core-{n:05}",
            OutcomeStatus.FAILED_OTHER,
            f"i-{n:017x}",
            "g5.xlarge/us-east-1a/spot",
            "UnauthorizedOperation",
            f"instance i-{n:017x} of gpu-core-{n:05} could not be tagged",
        )
        for n in range(1000, 1012)
    ]
    unknown = ClaimOutcome("gpu-batch-00001", OutcomeStatus.UNKNOWN, message="i-0123456789abcdef0 may run")
    return Outcome("sandbox", version=5, finished_at=scenes.NOON, claims=(*left_out, *failed, unknown))


def test_an_outcome_of_a_thousand_nodes_is_told_by_node_set_and_fault() -> None:
    text = printed(render_outcome(interrupted_outcome()))

    assert_golden("outcome-interrupted.txt", text)
    assert len(text.splitlines()) < 12


def test_what_met_several_nodes_names_no_instance_as_if_it_were_all() -> None:
    text = printed(render_outcome(interrupted_outcome()))

    assert "instance … of … could not be tagged" in text
    assert f"i-{1000:017x}" not in text
    assert "i-0123456789abcdef0 may run" in text


def test_faults_of_many_kinds_are_cut_short_with_a_count() -> None:
    failed = [ClaimOutcome(f"gpu-{n}", OutcomeStatus.FAILED_OTHER, message=f"fault {n}") for n in range(30)]

    text = printed(render_outcome(Outcome("sandbox", 5, scenes.NOON, tuple(failed))))

    assert "fault 7" in text
    assert "fault 8" not in text
    assert "and 22 nodes for 22 other reasons" in text


@pytest.mark.parametrize(
    ("mode", "roles", "queue", "words"),
    [
        (NetworkMode.OWNED, (), "", "The foundation goes too: the stack's network."),
        (NetworkMode.OWNED, ("a", "b"), "", "The foundation goes too: 2 roles and the stack's network."),
        (NetworkMode.EXISTING, ("a",), "", "The foundation goes too: 1 role."),
        (NetworkMode.EXISTING, ("a",), "told", "The foundation goes too: 1 role and the queue told."),
        (NetworkMode.EXISTING, (), "", ""),
    ],
)
def test_a_destruction_names_what_the_stack_owns_and_nothing_else(
    mode: NetworkMode, roles: tuple[str, ...], queue: str, words: str
) -> None:
    document = builders.document(builders.claim())
    foundation = evolve(document.foundation, network_mode=mode, roles=roles, interruption_queue=queue)
    document = evolve(document, foundation=foundation)

    text = printed(render_destruction("sandbox", document, ()))

    assert [line for line in text.splitlines() if "foundation" in line] == ([words] if words else [])


def test_what_a_destruction_takes_is_told_before_it_begins() -> None:
    seen = scenes.snapshot()

    text = printed(render_destruction("sandbox", seen.document, seen.cloud.instances))

    assert_golden("destruction.txt", text)
    assert "Nothing is published" in printed(render_destruction("sandbox", None, ()))
