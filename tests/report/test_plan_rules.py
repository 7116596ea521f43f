"""Rules that have something to say of a plan are told in it, with their counts."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from engine.model.plan import Verdict, VerdictOutcome
from engine.model.rule import ActionClass, Enforcement, RuleKind
from engine.report.json_report import plan_json
from engine.report.plan_report import plan_line
from engine.report.plan_rules import rules_section, verdict_words
from tests.builders import node_pool
from tests.decide.world import World, policy

WARNS = Verdict(
    "gold-floor",
    RuleKind.REQUIREMENT_RULE,
    Enforcement.WARN,
    VerdictOutcome.VIOLATED,
    message="gold wants large GPUs",
    pods=210,
    types=14,
)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (WARNS, "would keep 210 pods from 14 types: gold wants large GPUs"),
        (
            evolve(
                WARNS, enforcement=Enforcement.DENY, outcome=VerdictOutcome.ERROR, error="no such key", pods=1, types=1
            ),
            "keeps 1 pod from 1 type: it could not be evaluated: no such key",
        ),
        (
            Verdict(
                "spend",
                RuleKind.GUARDRAIL,
                Enforcement.DENY,
                VerdictOutcome.VIOLATED,
                message="too dear",
                blocked=(ActionClass.ADD, ActionClass.REMOVE),
            ),
            "blocks launches and removals by choice: too dear",
        ),
        (Verdict("size", RuleKind.GUARDRAIL, Enforcement.WARN, VerdictOutcome.VIOLATED, message="large"), "large"),
    ],
)
def test_a_verdict_is_told_by_what_it_did_or_would_do(verdict: Verdict, words: str) -> None:
    assert verdict_words(verdict) == words


def test_rules_that_hold_are_not_told_and_without_others_there_is_no_section() -> None:
    plan = World(policy(node_pool())).decide()
    holds = evolve(WARNS, outcome=VerdictOutcome.HOLDS)
    assert list(rules_section(evolve(plan, verdicts=(holds,)))) == []
    assert len(list(rules_section(evolve(plan, verdicts=(holds, WARNS))))) == 2


def test_one_line_and_the_json_tell_which_rules_block_and_warn() -> None:
    blocks = Verdict(
        "spend",
        RuleKind.GUARDRAIL,
        Enforcement.DENY,
        VerdictOutcome.VIOLATED,
        message="too dear",
        blocked=(ActionClass.ADD,),
    )
    plan = evolve(World(policy(node_pool())).decide(), verdicts=(WARNS, blocks, evolve(blocks, rule="size")))
    assert "2 rules block, 1 rule warns" in plan_line(plan)
    told = json.loads(plan_json(plan))["verdicts"][1]
    assert (told["rule"], told["outcome"], told["blocked"], told["words"]) == (
        "spend",
        "violated",
        ["add"],
        "blocks launches: too dear",
    )
