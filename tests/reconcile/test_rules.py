"""Files that change under a running loop: what loads counts at once, what does not changes nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.policy import Policy
from engine.model.rule import Enforcement
from engine.reconcile.ports import Ports
from engine.reconcile.rules import Rules
from engine.reconcile.troubles import Troubles
from engine.reconcile.workspace import Workspace
from tests.builders import catalog
from tests.reconcile.loop_world import FakeTime, Listener
from tests.reconcile.loops import at_rest, loop_of

PROJECT = Path(__file__).parents[2]


class Project:
    """A copy of this project's files, and a loop's ports for its sandbox."""

    def __init__(self, folder: Path) -> None:
        for part in ("stacks", "policies"):
            shutil.copytree(PROJECT / part, folder / part)
        shutil.copy(PROJECT / "Pulumi.yaml", folder)
        self.workspace, self.time, self.heard = Workspace(folder), FakeTime(), Listener()
        self.stack_file = folder / "stacks" / "Pulumi.sandbox.yaml"
        self.policy_file = sorted((folder / "policies").rglob("*.yaml"))[0]
        self.catalogs = 0
        environment = self.workspace.environment("sandbox")
        built = loop_of(0, folder / "store").ports
        self.ports = evolve(built, environment=environment, policy=self.workspace.policy(environment))
        self.rules = Rules(self.workspace, lambda: self.time.seconds, self.make_catalog)
        self.troubles = Troubles(self.heard)
        self.look()

    def make_catalog(self, workspace: Workspace, environment: Environment) -> Catalog:
        self.catalogs += 1
        return catalog()

    def write(self, file: Path, content: str) -> None:
        file.write_text(content, encoding="utf-8")
        # A file system may not tell two writes of one moment apart.
        os.utime(file, (1_800_000_000 + self.time.seconds, 1_800_000_000 + self.time.seconds))

    def look(self) -> Ports:
        self.time.seconds += 2.0
        self.ports = self.rules.current(self.ports, self.troubles)
        return self.ports


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "project").mkdir()
    return Project(tmp_path / "project")


def test_files_that_stay_as_they_are_are_not_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    before = project.ports
    monkeypatch.setattr(Workspace, "policy", lambda *given: pytest.fail("it was read"))

    assert project.look() is before


def test_a_policy_that_changes_is_in_force_at_the_next_look(project: Project) -> None:
    before = project.ports.policy.digest
    added = project.policy_file.parent / "added.yaml"
    project.write(
        added,
        """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: added}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu-al2023}
      requirements: []
""",
    )

    assert "added" in {pool.name for pool in project.look().policy.node_pools}
    assert project.ports.policy.digest != before
    assert project.catalogs == 0, "what EC2 sells has not changed"


def test_a_policy_that_does_not_load_leaves_the_last_good_one_in_force_and_is_told_once(project: Project) -> None:
    before, good = project.ports.policy, project.policy_file.read_text(encoding="utf-8")
    project.write(project.policy_file, "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {oops: 1}\n")

    assert project.look().policy is before
    project.look()
    assert len(project.heard.warned) == 1
    assert project.policy_file.name in project.heard.warned[0]

    project.write(project.policy_file, good)
    assert project.look().policy.digest == before.digest
    assert project.heard.said == ["the policy and stack files load again"]


def test_a_policy_folder_that_is_gone_holds_the_last_good_policy(project: Project) -> None:
    before = project.ports.policy
    shutil.rmtree(project.workspace.root / "policies")

    assert project.look().policy is before
    assert len(project.heard.warned) == 1


@pytest.mark.parametrize("error", [Fault("EC2 cannot be asked"), TypeError("odd")])
def test_what_cannot_be_read_for_a_while_is_read_again_though_no_file_changes(
    project: Project, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    before, text = project.ports.policy, project.policy_file.read_text(encoding="utf-8")
    project.write(project.policy_file, text + "# changed\n")

    def fails(*given: object) -> Policy:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Workspace, "policy", fails)
        assert project.look().policy is before
        project.look()
    assert len(project.heard.warned) == 1
    assert str(error) in project.heard.warned[0]

    assert project.look().policy is not before
    assert project.ports.policy.digest == before.digest
    assert project.heard.said == ["the policy and stack files load again"]


def test_a_pause_in_the_stack_file_counts_at_once(project: Project) -> None:
    text = project.stack_file.read_text(encoding="utf-8")
    project.write(project.stack_file, text.replace("config:\n", 'config:\n  nodewright:paused: "audit"\n', 1))

    assert project.look().environment.paused == "audit"


RULE = """apiVersion: nodewright.dev/v1alpha1
kind: Guardrail
metadata: {name: spend}
spec:
  blocks: [add]
  params: {mostPerHour: {type: double, default: 500.0}}
  expression: cost.hourlyAfter <= params.mostPerHour
  message: the plan costs too much
"""


def test_what_the_stack_file_says_of_rules_counts_at_once(project: Project) -> None:
    project.write(project.policy_file.parent / "spend.yaml", RULE)
    (rule,) = (each for each in project.look().policy.rules if each.name == "spend")
    assert (rule.params, rule.enforcement) == ({"mostPerHour": 500.0}, Enforcement.DENY)
    said = "  nodewright:params: {spend: {mostPerHour: 9}}\n  nodewright:enforcement: {spend: warn}\n"
    text = project.stack_file.read_text(encoding="utf-8")
    project.write(project.stack_file, text.replace("config:\n", f"config:\n{said}  nodewright:celEngine: cel-python\n"))

    policy = project.look().policy
    (rule,) = (each for each in policy.rules if each.name == "spend")
    assert (rule.params, rule.enforcement) == ({"mostPerHour": 9.0}, Enforcement.WARN)
    assert policy.cel_engine == "cel-python"
    assert project.heard.warned == []


def test_a_rule_that_does_not_load_leaves_the_last_good_ones_in_force(project: Project) -> None:
    file = project.policy_file.parent / "spend.yaml"
    project.write(file, RULE)
    before = project.look().policy
    project.write(file, RULE.replace("hourlyAfter", "hourlyafter"))

    assert project.look().policy is before
    assert "spend.yaml:7:20: error cel-unknown-name" in project.heard.warned[0]


def test_a_key_that_is_built_in_counts_from_the_next_start_on(project: Project) -> None:
    text = project.stack_file.read_text(encoding="utf-8")
    project.write(project.stack_file, text.replace("config:\n", "config:\n  nodewright:store: elsewhere\n", 1))

    assert project.look().environment.store == ".nodewright"
    assert any("nodewright:store" in line for line in project.heard.warned)


def test_a_quiet_loop_reads_a_changed_file_within_three_seconds(tmp_path: Path) -> None:
    loop = at_rest(0, tmp_path)
    begins_at = loop.time.seconds
    (tmp_path / "policies").mkdir()
    (tmp_path / "stacks").mkdir()
    stack_file = tmp_path / "stacks" / "Pulumi.test.yaml"
    read: list[tuple[float, bool]] = []

    def refresh(ports: Ports, troubles: Troubles) -> Ports:
        read.append((loop.time.seconds - begins_at, stack_file.exists()))
        return ports

    loop.time.at(begins_at + 20.5, lambda: stack_file.write_text("config: {}"))
    loop.run(until=begins_at + 55.0, refresh=refresh)

    [seen] = [at for at, is_there in read if is_there]
    assert 20.5 < seen <= 23.5


def test_a_file_that_changes_while_the_first_policy_is_read_is_read_again(project: Project) -> None:
    rules = Rules(project.workspace, lambda: project.time.seconds, project.make_catalog)
    rules.about_to_read(project.ports.environment)
    project.write(project.policy_file.parent / "spend.yaml", RULE)

    assert "spend" in {rule.name for rule in rules.current(project.ports, project.troubles).policy.rules}


def test_files_that_stay_as_they_were_before_the_first_reading_are_not_read_again(project: Project) -> None:
    before = project.ports
    rules = Rules(project.workspace, lambda: project.time.seconds, project.make_catalog)
    rules.about_to_read(before.environment)

    assert rules.current(before, project.troubles) is before
