"""What ``diff`` says that a change of policy would do."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engine.model.fault import Fault
from engine.model.snapshot import CloudFacts
from engine.reconcile.diffing import Thresholds, difference
from engine.report.diff_report import Both, Change, EnvironmentDifference, MomentDifference, PolicyDifference
from engine.report.diff_report_markdown import diff_markdown
from engine.report.diff_report_text import render_difference
from engine.report.diff_report_words import (
    environment_sentence,
    headroom_change_words,
    moment_sentence,
    types_words,
    verdict_sentence,
)
from tests.builders import usd
from tests.engine.workspaces import REPOSITORY
from tests.reconcile.policy_repository import (
    MEMORY_RULE,
    POOL,
    SIZE_GUARDRAIL,
    STACK,
    TEAM_LIMIT,
    Repository,
    a_moment,
    replicas,
    repository,
)
from tests.report.golden_text import printed

# At no recorded moment has it anything to do.
HIGH_GUARDRAIL = SIZE_GUARDRAIL.replace("<= 2", "<= 99")
CONDITION = "  matchConditions: [{name: some, expression: plan.launchCount > 1}]\n"
NIGHTS = """\
apiVersion: nodewright.dev/v1alpha1
kind: Calendar
metadata: {name: nights}
spec:
  windows: [{name: nights, schedule: "0 22 * * *", duration: 8h}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Repository:
    """Four gold pods and two others wait; what is in Git has neither rule nor guardrail."""
    made = repository(tmp_path / "project")
    made.record(a_moment([*replicas(4, "llm", tier="gold", team="ml"), *replicas(2, "batch", team="ops")]))
    made.commit("begin")
    return made


def compared(project: Repository, base: str = "HEAD", head: str = ".") -> PolicyDifference:
    return difference(project.root, base, head)


def the_environment(found: PolicyDifference) -> EnvironmentDifference:
    [environment] = found.environments
    return environment


def the_moment(found: PolicyDifference) -> MomentDifference:
    [moment] = the_environment(found).moments
    return moment


def test_nothing_that_differs_is_said_to_have_no_effect(project: Repository) -> None:
    found = compared(project)

    assert not found.has_effect
    assert verdict_sentence(found) == (
        "No effect on test: policies and settings are the same; at 1 recorded moment the plan is the same."
    )


def test_a_class_without_images_in_the_snapshot_is_told_with_its_pools_since_nothing_can_differ_there(
    project: Repository,
) -> None:
    assert the_moment(compared(project)).note == ""
    project.record(a_moment(replicas(2), cloud=CloudFacts(images={"gpu": {}})))
    project.write({"policies/gpu.yaml": POOL.replace("[g6, g6e]", "[g6]")})
    moment = the_moment(compared(project))
    assert moment.launches == Both(0, 0)
    assert moment.note.startswith("the snapshot has no images of EC2NodeClass gpu, so gpu can launch nothing here")


def test_a_comment_has_no_effect_and_is_no_change_of_a_definition(project: Repository) -> None:
    project.write({"policies/gpu.yaml": f"# for GPUs\n{POOL}"})
    assert the_environment(compared(project)).definitions == ()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"stacks/Pulumi.test.yaml": STACK + "  nodewright:enforcement: {plan-size: warn}\n"}, "deny → warn"),
        ({"policies/rules/size.yaml": "# nothing\n"}, "is removed"),
        ({"policies/rules/size.yaml": HIGH_GUARDRAIL.replace("<= 99", "<= 98")}, "expression changes"),
        (
            {"policies/rules/size.yaml": HIGH_GUARDRAIL.replace("  blocks", f"{CONDITION}  blocks")},
            "matchConditions changes",
        ),
    ],
)
def test_a_rule_that_no_moment_shows_is_an_effect_all_the_same(
    project: Repository, files: dict[str, str], told: str
) -> None:
    project.write({"policies/rules/size.yaml": HIGH_GUARDRAIL})
    project.commit("guardrail")
    project.write(files)

    found = compared(project)

    assert found.has_effect
    assert not the_moment(found).has_effect
    sentence = verdict_sentence(found)
    assert sentence.startswith("No plan of the recorded moments changes, but rules do in test: Guardrail plan-size")
    assert told in sentence


def test_a_rule_that_comes_and_a_window_that_changes_are_effects_though_no_moment_shows_them(
    project: Repository,
) -> None:
    project.write({"policies/rules/nights.yaml": NIGHTS})
    project.commit("nights")
    project.write(
        {"policies/rules/nights.yaml": NIGHTS.replace("8h", "9h"), "policies/rules/size.yaml": HIGH_GUARDRAIL}
    )

    found = compared(project)

    assert found.has_effect
    assert verdict_sentence(found) == (
        "No plan of the recorded moments changes, but rules do in test:"
        " Guardrail plan-size is added; window nights: duration changes."
    )


def test_messages_white_space_and_comments_of_a_rule_are_no_effect(project: Repository) -> None:
    project.write({"policies/rules/size.yaml": HIGH_GUARDRAIL})
    project.commit("guardrail")
    same = 'expression: "plan.launchCount   <= 99 // many"'
    spaced = HIGH_GUARDRAIL.replace("expression: plan.launchCount <= 99", same)
    project.write({"policies/rules/size.yaml": spaced.replace("too many", "far too many")})

    found = compared(project)

    assert not found.has_effect
    assert [part.name for part in the_environment(found).definitions[0].parts] == ["message"]
    assert "the files differ in words alone" in verdict_sentence(found)


def test_a_rule_takes_types_from_the_pods_that_it_is_about_and_is_named_for_it(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})

    found = compared(project)

    [changed] = the_moment(found).classes
    [lost] = changed.lost
    assert [(each.name, each.pods) for each in changed.workloads] == [("Deployment ml/llm", 4)]
    assert lost.types == (("g6.2xlarge", "on-demand"), ("g6.xlarge", "on-demand"))
    assert lost.because == "rule gold-memory bars it in gpu: gold pods need a large GPU"
    assert (changed.gained, changed.fewest, changed.most) == ((), Both(4, 2), Both(4, 2))
    [definition] = the_environment(found).definitions
    assert (definition.kind, definition.name, definition.change) == ("RequirementRule", "gold-memory", Change.ADDED)
    assert definition.place == "policies/rules/memory.yaml:3"


def test_the_bill_is_what_the_nodes_after_the_plan_cost(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})

    moment = the_moment(compared(project))
    [pool] = moment.pools

    # Four pods go from g6.xlarge at 0.80 to g6e.xlarge at 2.00; volumes cost the same.
    assert moment.more_usd_per_hour == usd("4.8")
    assert (pool.nodes, pool.gpus) == (Both(6, 6), Both(6, 6))
    assert pool.usd_per_hour.head - pool.usd_per_hour.base == usd("4.8")
    assert moment_sentence(moment) == (
        "The nodes of the plan stay the same in number; +$4.8000/h, about $3,504 a month;"
        " 4 pods lose g6.xlarge, g6.2xlarge on-demand."
    )


def test_a_pools_requirement_gives_and_takes_types_and_is_named_for_it(project: Repository) -> None:
    project.write({"policies/gpu.yaml": POOL.replace("[g6, g6e]", "[g6, g5]")})

    [changed] = the_moment(compared(project)).classes

    [lost], [gained] = changed.lost, changed.gained
    assert (changed.pods, lost.types[0], gained.types[0]) == (
        6,
        ("g6e.2xlarge", "on-demand"),
        ("g5.2xlarge", "on-demand"),
    )
    assert lost.because == "gpu requires karpenter.k8s.aws/instance-family In g6,g5"
    assert gained.because == "gpu requires karpenter.k8s.aws/instance-family In g6,g6e"


def test_a_lower_limit_blocks_pods_with_the_reason(project: Repository) -> None:
    project.write({"policies/gpu.yaml": POOL.replace('"8"', '"4"')})

    found = compared(project)
    moment = the_moment(found)

    [limit] = the_environment(found).limits
    [blocked] = moment.blocked
    assert (limit.node_pool, limit.resource, limit.limit) == ("gpu", "nvidia.com/gpu", Both(8, 4))
    assert (blocked.is_new, blocked.pods, moment.launches) == (True, 2, Both(6, 4))
    assert blocked.reasons == ("gpu: limit nvidia.com/gpu 4 reached (0 used, 4 planned, needs 1)",)
    assert "HEAD launches 2 fewer nodes (-2 GPUs after the plan)" in moment_sentence(moment)
    assert "2 pods are blocked that were not" in moment_sentence(moment)


def test_headroom_that_changes_is_told_with_how_much_of_it_is_free(project: Repository) -> None:
    annotated = "metadata: {name: gpu, annotations: {nodewright.dev/headroom: nvidia.com/gpu=1}}"
    project.write({"policies/gpu.yaml": POOL.replace("metadata: {name: gpu}", annotated)})

    found = compared(project)

    assert [headroom_change_words(each) for each in the_moment(found).headroom] == [
        "gpu: 0 of 0 → 1 of 1 nvidia.com/gpu free"
    ]
    assert "gpu: 0 of 0 → 1 of 1 nvidia.com/gpu free" in printed(render_difference(found))
    assert "gpu: 0 of 0 → 1 of 1 nvidia.com/gpu free" in diff_markdown(found)


def test_a_guardrails_verdict_and_a_ceiling_that_change_are_told(project: Repository) -> None:
    project.write({"policies/rules/limit.yaml": TEAM_LIMIT})
    project.commit("limit")
    project.write({"policies/rules/limit.yaml": TEAM_LIMIT.replace('"3"', '"1"')})
    project.write({"policies/rules/size.yaml": SIZE_GUARDRAIL.replace("<= 2", "<= 1")})

    moment = the_moment(compared(project))

    assert [(each.group, each.limit) for each in moment.ceilings] == [("ml", Both(3, 1)), ("ops", Both(3, 1))]
    [verdict] = moment.verdicts
    assert (verdict.rule, verdict.said) == ("plan-size", Both("", "blocks add: too many nodes at once"))
    assert moment.launches.head == 0


def test_at_another_time_a_rule_of_nights_shows_what_it_does_and_the_moment_says_that_it_was_moved(
    project: Repository,
) -> None:
    of_nights = SIZE_GUARDRAIL.replace("plan.launchCount <= 2", "plan.launchCount <= 2 || !windows.nights")
    project.write({"policies/rules/nights.yaml": NIGHTS, "policies/rules/size.yaml": of_nights})
    night, noon = datetime(2026, 12, 1, 2, tzinfo=UTC), datetime(2026, 12, 1, 12, tzinfo=UTC)

    [recorded] = the_environment(compared(project)).moments
    [moved, later] = the_environment(difference(project.root, "HEAD", ".", at=[night, noon])).moments

    assert (recorded.launches, recorded.note) == (Both(6, 6), "")
    assert (moved.launches, moved.taken_at) == (Both(6, 0), night)
    assert (later.launches, later.taken_at) == (Both(6, 6), noon)
    assert moved.note == (
        "decided as if the snapshot were taken at Tue 2026-12-01 02:00 UTC; it was at Mon 2026-11-30 12:00 UTC"
    )


def test_a_budget_that_changes_is_told_as_intervals_of_the_week(project: Repository) -> None:
    budgets = 'budgets: [{nodes: 20%}, {nodes: "0", schedule: "0 9 * * 1", duration: 8h}]'
    project.write({"policies/gpu.yaml": POOL.replace("budgets: [{nodes: 20%}]", budgets)})

    changes = the_environment(compared(project)).calendar

    # 2026-11-30 is a Monday, and the moment is its noon.
    assert [(f"{each.start:%a %H:%M}", f"{each.end:%a %H:%M}") for each in changes] == [
        ("Mon 12:00", "Mon 17:00"),
        ("Mon 09:00", "Mon 12:00"),
    ]
    assert {each.allowed for each in changes} == {Both("2 at once", "0 at once")}
    assert "Empty" in changes[0].reason


def test_a_parameter_of_the_stack_file_counts_as_the_rules(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})
    project.commit("rule")
    project.write({"stacks/Pulumi.test.yaml": STACK + "  nodewright:params: {gold-memory: {minMem: 10}}\n"})

    found = compared(project)

    [definition] = the_environment(found).definitions
    [part] = definition.parts
    line = STACK.count("\n") + 1
    assert (definition.name, part.name, part.text) == ("gold-memory", "params.minMem", Both("40", "10"))
    assert definition.place == part.place == f"stacks/Pulumi.test.yaml:{line}"
    told = f"RequirementRule gold-memory: minMem 40 → 10 (stacks/Pulumi.test.yaml:{line})."
    assert environment_sentence(the_environment(found)) == told
    assert [each.because for each in the_moment(found).classes[0].gained] == [
        "rule gold-memory bars it in gpu: gold pods need a large GPU"
    ]


def test_a_parameter_that_the_stack_file_no_longer_sets_is_told_with_where_it_did_and_the_rules_own_as_its(
    project: Repository,
) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})
    project.write({"stacks/Pulumi.test.yaml": STACK + "  nodewright:params: {gold-memory: {minMem: 10}}\n"})
    project.commit("rule")
    project.write({"stacks/Pulumi.test.yaml": STACK})
    [unset] = the_environment(compared(project)).definitions
    project.commit("unset")
    project.write({"policies/rules/memory.yaml": MEMORY_RULE.replace("default: 40", "default: 50")})
    [own] = the_environment(compared(project)).definitions

    assert unset.parts[0].place == f"stacks/Pulumi.test.yaml:{STACK.count(chr(10)) + 1} of BASE"
    assert (own.parts[0].text, own.parts[0].place, own.place) == (Both("40", "50"), "", "policies/rules/memory.yaml:3")


def test_a_policy_that_does_not_load_is_shown_with_its_findings(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE.replace("gpuMemoryGiB", "gpuMemory")})

    found = compared(project)

    assert found.is_invalid
    [finding] = the_environment(found).invalid.head
    assert finding.position.file == "policies/rules/memory.yaml"
    assert "does not load in test" in verdict_sentence(found)


def test_two_commits_are_compared_whatever_lies_in_the_working_tree(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})
    project.commit("rule")
    project.write({"policies/gpu.yaml": "no policy at all"})

    found = compared(project, "HEAD~1", "HEAD")

    assert the_moment(found).more_usd_per_hour == usd("4.8")
    assert found.sides.base.startswith("HEAD~1 (")


def test_folders_are_compared_as_revisions_are(project: Repository, tmp_path: Path) -> None:
    other = repository(tmp_path / "other", memory=MEMORY_RULE)

    found = difference(project.root, str(project.root), str(other.root))

    assert the_moment(found).more_usd_per_hour == usd("4.8")


def test_attributes_in_a_revision_hide_no_file_from_the_comparison(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE, ".gitattributes": "policies/rules export-ignore\n"})
    project.commit("hidden")
    assert compared(project, "HEAD~1", "HEAD").has_effect


@pytest.mark.parametrize(
    "name", ["--upload-pack=touch /tmp/x", "-v", "a b", "x\x00y", "", "no-such-branch", "HEAD:policies"]
)
def test_a_name_that_is_no_revision_is_refused_by_its_name(project: Repository, name: str) -> None:
    with pytest.raises(Fault, match="revision"):
        compared(project, name)


def test_a_link_in_a_revision_is_refused_and_not_followed(project: Repository) -> None:
    (project.root / "policies" / "linked.yaml").symlink_to("/etc/hostname")
    project.commit("link")
    with pytest.raises(Fault, match=r"policies/linked\.yaml is a symbolic link"):
        compared(project, "HEAD", "HEAD")


@pytest.mark.parametrize("path", ["/etc", "../elsewhere", "policies/../../elsewhere"])
def test_a_revision_does_not_choose_what_of_the_machine_is_read(project: Repository, path: str) -> None:
    project.write({"stacks/Pulumi.test.yaml": f"{STACK}  nodewright:policies: [policies, {path}]\n"})
    project.commit("out")
    with pytest.raises(Fault, match="which leads out of the project"):
        compared(project, "HEAD~1", "HEAD")


def test_a_project_below_the_repositorys_root_is_compared(tmp_path: Path) -> None:
    above = Repository(tmp_path / "above")
    above.root.mkdir()
    above.git("init", "--quiet")
    below = repository(above.root / "cluster")
    shutil.rmtree(below.root / ".git")
    below.record(a_moment(replicas(4, tier="gold")))
    above.commit("begin")
    below.write({"policies/rules/memory.yaml": MEMORY_RULE})
    above.commit("rule")

    found = compared(below, "HEAD~1", "HEAD")

    assert the_moment(found).more_usd_per_hour == usd("4.8")


def test_an_environment_that_only_one_side_has_is_an_effect_and_told(project: Repository) -> None:
    project.write({"stacks/Pulumi.prod.yaml": STACK})

    prod, test = compared(project).environments

    assert (prod.change, prod.has_effect, test.has_effect) == (Change.ADDED, True, False)
    assert "only . has this environment" in prod.notes[0]


def test_without_a_snapshot_no_plan_is_compared_and_that_is_said(tmp_path: Path) -> None:
    project = repository(tmp_path / "bare")
    project.commit("begin")
    assert the_environment(compared(project)).notes == ("no snapshot of test is recorded, so no plans are compared",)


def test_a_sandbox_without_a_snapshot_is_compared_on_the_pods_that_it_makes_up(tmp_path: Path) -> None:
    project = repository(tmp_path / "sandbox")
    project.write({"stacks/Pulumi.test.yaml": STACK + "  nodewright:sandbox: {pods: 12, seed: 1}\n"})
    project.commit("begin")

    moment = the_moment(compared(project))

    assert (moment.snapshot, moment.pods.waiting) == ("generated pods", 12)
    assert "no snapshot is recorded, so these are the 12 pods that the sandbox makes up" in moment.note


def test_findings_of_check_that_are_new_are_told_and_moved_ones_are_not(project: Repository) -> None:
    unread = MEMORY_RULE.replace("params.minMem", "40")
    project.write({"policies/rules/memory.yaml": unread})
    project.commit("rule")
    moved = compared(project, "HEAD", ".")
    project.write({"policies/rules/memory.yaml": f"\n\n{unread}"})

    assert moved.findings == compared(project).findings == ()
    [new] = compared(project, "HEAD~1").findings
    assert (new.is_new, new.finding.rule) == (True, "unused-param")


def test_thresholds_are_passed_by_the_most_that_any_moment_adds(project: Repository) -> None:
    project.write({"policies/rules/memory.yaml": MEMORY_RULE})

    below = difference(project.root, "HEAD", ".", thresholds=Thresholds.parse(["more-cost=4.80", "more-removals=0"]))
    above = difference(project.root, "HEAD", ".", thresholds=Thresholds.parse(["more-cost=4.79"]))

    assert below.over == ()
    assert above.over == ("+$4.8000/h is more than the $4.7900/h that --fail-on more-cost lets pass",)


@pytest.mark.parametrize("text", ["more-cost=-1", "more-cost=x", "more-removals=-1", "more-removals=1.5", "cost=1", ""])
def test_a_threshold_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(Fault, match="--fail-on"):
        Thresholds.parse([text])


def test_types_are_told_by_family_the_smallest_first() -> None:
    types = [("g5.12xlarge", "spot"), ("g5.2xlarge", "spot"), ("g5.xlarge", "on-demand"), ("g5.xlarge", "spot")]
    assert types_words(types) == "g5.xlarge on-demand and spot; g5.2xlarge, g5.12xlarge spot"
    assert types_words(types, shown=1) == "g5.xlarge on-demand and spot and 2 more types"


def test_the_shipped_policies_differ_from_themselves_in_nothing() -> None:
    shipped = str(REPOSITORY)

    found = difference(REPOSITORY, shipped, shipped, ["sandbox"])

    assert not found.has_effect
    assert (found.findings, the_environment(found).definitions) == ((), ())
    assert the_moment(found).pods.pods > 0
