"""How a change of policy looks in a pull request, on a screen and to programs."""

from __future__ import annotations

import json
import re

from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.model.rule import Enforcement, LimitedResource, RuleKind
from engine.report.diff_report import (
    BlockedDifference,
    Both,
    CalendarChange,
    CeilingChange,
    Change,
    ClassDifference,
    DefinitionChange,
    EnvironmentDifference,
    ErrorsDifference,
    FindingChange,
    KeptDifference,
    LimitChange,
    MomentDifference,
    PartChange,
    PolicyDifference,
    PoolDifference,
    RemovalDifference,
    TypesChange,
    VerdictDifference,
    WorkloadPods,
)
from engine.report.diff_report_json import diff_json
from engine.report.diff_report_markdown import MOST_CHARACTERS, diff_markdown
from engine.report.diff_report_text import render_difference
from engine.report.diff_report_words import calendar_rows, environment_sentence, verdict_sentence
from engine.report.snapshot_words import PodCounts
from tests.builders import NOON, minutes, usd
from tests.report.golden_text import assert_golden, printed

HOSTILE = "x|`y`<img src=x onerror=alert(1)>@team [a](https://evil.example) **b** #12 \x1b[31m\n| new | row |"


def a_moment(**more: object) -> MomentDifference:
    """Three more nodes of one pool, one fewer of another, a machine that goes and pods that lose a type."""
    fields: dict[str, object] = {
        "environment": "prod",
        "snapshot": "policies/snapshots/monday.json",
        "note": "",
        "taken_at": NOON,
        "nodes": 12,
        "pods": PodCounts(300, 40, 72, 5),
        "launches": Both(2, 5),
        "removals": Both(0, 1),
        "usd_per_hour": Both(usd("100"), usd("112.34")),
        "pools": (
            PoolDifference("gpu-core", Both(4, 7), Both(16, 28), Both(usd("40"), usd("56.5"))),
            PoolDifference("gpu-batch", Both(8, 7), Both(8, 7), Both(usd("60"), usd("55.84"))),
            PoolDifference("general", Both(3, 3), Both(0, 0), Both(usd("1"), usd("1"))),
        ),
        "classes": (
            ClassDifference(
                (WorkloadPods("Deployment ml/llm", 200), WorkloadPods("Job ml/train", 10)),
                gained=(
                    TypesChange((("g6e.xlarge", "spot"),), "gpu-core requires karpenter.sh/capacity-type In spot"),
                ),
                lost=(TypesChange((("g5.12xlarge", "on-demand"),), "rule gold-memory bars it: gold needs 40 GiB"),),
                fewest=Both(3, 3),
                most=Both(4, 4),
            ),
        ),
        "blocked": (
            BlockedDifference((WorkloadPods("Job ml/train", 5),), ("gpu-core: limit nvidia.com/gpu 28 reached",), True),
        ),
        "removed": (
            RemovalDifference(
                "b-1", "gpu-batch", "g5.xlarge", usd("1.01"), "Empty", "gpu-batch: consolidateAfter 1m", True
            ),
        ),
        "kept": (
            KeptDifference("gpu-core", ("c-1", "c-2"), Both("runs 3 pods", "base capacity: the pool keeps 2 nodes")),
        ),
        "ceilings": (CeilingChange("team-gpus", "vision", LimitedResource.GPUS, Both(8, 4), 3),),
        "verdicts": (
            VerdictDifference("spend", RuleKind.GUARDRAIL, Enforcement.DENY, Both("holds", "blocks add: over 100")),
        ),
        "errors": (ErrorsDifference("gold-memory", Both(0, 2), "no such key: tier"),),
        **more,
    }
    return MomentDifference(**fields)  # type: ignore[arg-type]


def a_difference(moment: MomentDifference | None = None, **more: object) -> PolicyDifference:
    environment = EnvironmentDifference(
        "prod",
        definitions=(
            DefinitionChange(
                "RequirementRule",
                "gold-memory",
                Change.CHANGED,
                "policies/rules/gold.yaml:3",
                (PartChange("require", Both("instanceType.gpuMemoryGiB >= 24", "instanceType.gpuMemoryGiB >= 40")),),
            ),
            DefinitionChange(
                "LimitRule",
                "team-gpus",
                Change.CHANGED,
                "policies/rules/teams.yaml:3",
                (
                    PartChange("params.gpus", Both("8", "4"), "stacks/Pulumi.prod.yaml:40"),
                    PartChange("message", Both("the team has its GPUs", "ask for a share")),
                ),
            ),
            DefinitionChange("NodePool", "gpu-old", Change.REMOVED, "policies/old.yaml:1"),
        ),
        limits=(LimitChange("gpu-core", "nvidia.com/gpu", Both(16, 28)),),
        calendar=(
            CalendarChange("gpu-core", "Empty, Drifted", NOON, NOON + minutes(300), Both("no limit", "0 at once")),
        ),
        moments=(moment or a_moment(),),
    )
    finding = Diagnostic(Severity.WARNING, "unused-param", "nothing reads minMem", Position("policies/a.yaml", 3, 1))
    fields: dict[str, object] = {"findings": (FindingChange(finding, is_new=True),), **more}
    return PolicyDifference(Both("main (0123456789ab)", "HEAD (ba9876543210)"), (environment,), **fields)  # type: ignore[arg-type]


def test_the_markdown_says_what_happens_to_cluster_and_bill() -> None:
    assert_golden("diff.md", diff_markdown(a_difference(over=("+$12.34/h is more than the $10.00/h that may pass",))))


def test_the_screen_says_the_same() -> None:
    assert_golden("diff.txt", printed(render_difference(a_difference())))


def test_nothing_that_differs_is_said_in_the_first_lines() -> None:
    same = a_moment(
        launches=Both(0, 0),
        removals=Both(0, 0),
        usd_per_hour=Both(usd("1"), usd("1")),
        **dict.fromkeys(("pools", "classes", "blocked", "removed", "kept", "ceilings", "verdicts", "errors"), ()),
    )
    environment = EnvironmentDifference("prod", moments=(same,))
    markdown = diff_markdown(PolicyDifference(Both("a", "b"), (environment,)))
    assert "No effect on prod" in markdown.splitlines()[2]
    assert (
        "**No effect at that moment: the same plan, the same instance types for every pod, the same reasons.**"
        in markdown
    )


def test_names_from_outside_are_no_markdown_no_html_no_link_and_no_mention() -> None:
    hostile = a_moment(
        classes=(
            ClassDifference(
                (WorkloadPods(HOSTILE, 1),),
                (),
                (TypesChange((("g5.xlarge", "spot"),), HOSTILE),),
                Both(1, 0),
                Both(1, 0),
            ),
        ),
        blocked=(BlockedDifference((WorkloadPods(HOSTILE, 1),), (HOSTILE,), True),),
        kept=(KeptDifference(HOSTILE, (HOSTILE,), Both(HOSTILE, HOSTILE)),),
        verdicts=(VerdictDifference(HOSTILE, RuleKind.GUARDRAIL, Enforcement.DENY, Both("", HOSTILE)),),
    )
    markdown = diff_markdown(a_difference(hostile))

    assert set(re.findall(r"</?([a-z]+)", markdown)) <= {"details", "summary", "br", "code"}
    assert not re.search(r"[@\x1b]|https://|\]\(|(?<!&)#\d", markdown)
    # In a table, a name makes neither a cell nor a row of its own.
    tables = [line for line in markdown.splitlines() if line.startswith("|")]
    widths = [len(line.split("|")) for line in tables if "x&#124;" in line]
    assert widths
    assert set(widths) <= {5, 6}


def test_the_comment_is_never_longer_than_may_be_and_says_what_was_left_out() -> None:
    blocked = tuple(
        BlockedDifference((WorkloadPods(f"Job ml/train-{number}", 5),), ("x" * 2_000,) * 3, bool(number % 2))
        for number in range(500)
    )
    whole = a_difference(a_moment(blocked=blocked))
    every = PolicyDifference(whole.sides, whole.environments * 20, whole.findings)

    markdown = diff_markdown(every)

    assert len(markdown) <= MOST_CHARACTERS
    assert "did not fit into a comment of 65,536 characters" in markdown
    assert markdown.count("<details") == markdown.count("</details>")
    # What it does is there of every environment, whatever gives way.
    assert markdown.count("**HEAD launches 3 more nodes") == len(every.environments)


def test_programs_get_the_schema_the_sums_and_every_part() -> None:
    report = json.loads(diff_json(a_difference()))
    [environment] = report["environments"]
    [moment] = environment["moments"]
    assert (report["schema"], report["has_effect"], report["is_invalid"]) == ("nodewright.dev/diff/v1", True, False)
    assert (report["more_usd_per_hour"], report["more_removals"]) == ("12.340000", 1)
    assert (moment["launches"], moment["more_gpus"]) == ({"base": 2, "head": 5}, 11)
    counts = [moment[each] for each in ("pods", "waiting", "daemon_pods", "other_pods")]
    assert counts == [300, 40, 72, 5]
    assert moment["classes"][0]["lost"][0]["types"] == [["g5.12xlarge", "on-demand"]]
    assert (moment["classes"][0]["pods"], moment["blocked"][0]["pods"]) == (210, 5)
    assert environment["limits"] == [
        {"node_pool": "gpu-core", "resource": "nvidia.com/gpu", "limit": {"base": 16, "head": 28}}
    ]
    assert environment["definitions"][0]["parts"][0]["text"]["head"] == "instanceType.gpuMemoryGiB >= 40"
    assert report["findings"][0]["finding"]["rule"] == "unused-param"


def test_intervals_that_change_alike_are_one_row_with_their_sum() -> None:
    fewer, day = Both("2 at once", "0 at once"), minutes(24 * 60)
    changes = [
        CalendarChange("core", "Empty", NOON + day * n, NOON + day * n + minutes(90), fewer) for n in (1, 0, 3)
    ] + [CalendarChange("core", "Empty", NOON - minutes(60), NOON, Both("2 at once", "1 at once"))]

    first, second = calendar_rows(changes)

    assert (first.allowed, first.lasts) == (fewer, minutes(270))
    assert first.when == ("Mon 12:00 to 13:30", "Tue 12:00 to 13:30", "Thu 12:00 to 13:30")
    assert second.when == ("Mon 11:00 to 12:00",)


def test_a_pool_with_many_changes_hides_no_other_pool_in_the_sentence() -> None:
    changes = [
        CalendarChange("core", "Empty", NOON + minutes(60 * n), NOON + minutes(60 * n + 30), Both("1", f"{n}"))
        for n in range(2, 6)
    ] + [CalendarChange("elastic", "Empty", NOON, NOON + minutes(20), Both("1 at once", "2 at once"))]

    told = environment_sentence(EnvironmentDifference("test", calendar=tuple(changes)))

    assert "elastic: 1 at once → 2 at once for 20m; " in told
    assert told.endswith("; and 2 more.")


def test_a_rule_that_goes_or_only_warns_is_told_up_front_though_no_moment_shows_it() -> None:
    definitions = (
        DefinitionChange(
            "Guardrail", "plan-cost", Change.CHANGED, "", (PartChange("enforcement", Both("deny", "warn")),)
        ),
        DefinitionChange("LimitRule", "team-gpus", Change.REMOVED),
        DefinitionChange("NodePool", "gpu-old", Change.REMOVED),
        DefinitionChange("Guardrail", "plan-size", Change.CHANGED, "", (PartChange("message", Both("a", "b")),)),
    )
    found = EnvironmentDifference("test", definitions=definitions)
    assert environment_sentence(found) == "Guardrail plan-cost: deny → warn. LimitRule team-gpus is removed."
    assert found.has_effect
    assert verdict_sentence(PolicyDifference(Both("a", "b"), (found,))) == (
        "No plan was compared, but rules change in test: Guardrail plan-cost: deny → warn; LimitRule team-gpus is"
        " removed; NodePool gpu-old is removed."
    )
