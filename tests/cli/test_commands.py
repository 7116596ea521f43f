"""What the commands promise without converging: exit codes, messages, and that no Pulumi is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.workspaces import NODE_POOL, Project, project


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    with project(tmp_path_factory.mktemp("commands"), pods=10) as made:
        yield made


@pytest.fixture
def policy(sandbox: Project) -> Iterator[Path]:
    """The policy file of the sandbox, put back as it was afterwards."""
    file = sandbox.root / "policies" / "pools.yaml"
    yield file
    file.write_text(NODE_POOL)


@pytest.fixture
def stack(sandbox: Project) -> Iterator[Path]:
    file = sandbox.root / "stacks" / "Pulumi.sandbox.yaml"
    before = file.read_text()
    yield file
    file.write_text(before)


def test_plan_exits_2_while_changes_are_pending_and_gives_the_same_hash_again(sandbox: Project) -> None:
    first, second = (sandbox.nodewright("plan", "sandbox", "-o", "json") for _ in range(2))

    assert (first.code, second.code) == (2, 2), first.words
    assert first.json["hash"] == second.json["hash"]
    assert first.json["schema"] == "nodewright.dev/plan/v1"


def test_a_recorded_snapshot_gives_the_plan_of_the_world_that_it_was_taken_of(sandbox: Project, tmp_path: Path) -> None:
    recorded, redacted = tmp_path / "seen.json", tmp_path / "redacted.json"
    assert sandbox.nodewright("snapshot", "sandbox", "--file", str(recorded)).code == 0
    assert sandbox.nodewright("snapshot", "sandbox", "--redact", "--file", str(redacted)).code == 0

    live = sandbox.nodewright("plan", "sandbox", "-o", "json")
    replayed = sandbox.nodewright("plan", "sandbox", "-o", "json", "--snapshot", str(recorded))
    hidden = sandbox.nodewright("plan", "sandbox", "-o", "json", "--snapshot", str(redacted))

    assert replayed.json["hash"] == live.json["hash"]
    assert len(hidden.json["launches"]) == len(live.json["launches"])
    assert "llm-inference" not in redacted.read_text()


def test_a_snapshot_that_cannot_be_written_is_told_with_the_file_and_the_cause(
    sandbox: Project, tmp_path: Path
) -> None:
    ran = sandbox.nodewright("snapshot", "sandbox", "--file", str(tmp_path / "no" / "seen.json"))

    assert ran.code == 1
    assert "seen.json cannot be written: No such file or directory" in ran.words
    assert "fault in nodewright" not in ran.words


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "sandbox"],
        ["status", "sandbox"],
        ["check"],
        ["snapshot", "sandbox"],
        ["doctor"],
        ["replace", "x", "sandbox"],
    ],
)
def test_a_command_that_does_not_converge_never_imports_pulumi(sandbox: Project, arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from engine.cli.main import app\n"
        f"sys.argv = ['nodewright', '-C', {str(sandbox.root)!r}, *{arguments!r}]\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print('IMPORTED', sorted(name for name in sys.modules if name.split('.')[0].startswith('pulumi')))\n"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)

    assert ran.stdout.splitlines()[-1] == "IMPORTED []"


def test_check_exits_2_with_every_error_at_its_place(sandbox: Project, policy: Path) -> None:
    policy.write_text(
        NODE_POOL.replace("operator: In, values: [g6e]", "operator: Inn, values: [g6e]").replace('"8"', '"8x"')
    )

    ran = sandbox.nodewright("check", "-o", "json")

    assert ran.code == 2
    findings = [finding for finding in ran.json["findings"] if finding["severity"] == "error"]
    assert {(finding["rule"], finding["file"]) for finding in findings} == {
        ("unknown-operator", "policies/pools.yaml"),
        ("bad-quantity", "policies/pools.yaml"),
        # The larger sandbox sets parameters of rules that this project does not have.
        ("unknown-rule", "stacks/Pulumi.sandbox-1000.yaml"),
    }
    assert all(finding["line"] > 1 and finding["column"] > 1 for finding in findings)


BAD_POLICIES = {
    "broken YAML": "kind: [",
    "a tab": "kind:\tNodePool\n\tmetadata: {}",
    "no text at all": "\x00\x01",
    "an unknown kind": "apiVersion: karpenter.sh/v1\nkind: NodePond\nmetadata: {name: a}\n",
    "a list": "- 1\n- 2\n",
    "an alias bomb": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n",
    "a wrong unit": NODE_POOL.replace('nvidia.com/gpu: "8"', "memory: 16GB"),
    "a negative limit": NODE_POOL.replace('nvidia.com/gpu: "8"', 'cpu: "-1"'),
}


@pytest.mark.parametrize("content", BAD_POLICIES.values(), ids=BAD_POLICIES.keys())
def test_a_policy_file_that_does_not_load_holds_the_environment(sandbox: Project, policy: Path, content: str) -> None:
    policy.write_text(content)

    ran = sandbox.nodewright("plan", "sandbox")

    assert ran.code == 1
    assert "policies/pools.yaml:" in ran.stderr
    assert "Traceback" not in ran.words


BAD_STACKS = {
    "a key that is none of ours": ("nodewright:region:", "nodewright:regoin:"),
    "an impossible network": ("cidr: 10.0.0.0/16", "cidr: 10.0.0.0/99"),
    "a cap that is no number": ("launches: 250", "launches: many"),
    "a policy folder that is not there": ("nodewright:policies: [policies]", "nodewright:policies: [nowhere]"),
}


@pytest.mark.parametrize(("old", "new"), BAD_STACKS.values(), ids=BAD_STACKS.keys())
def test_a_stack_file_that_does_not_load_is_told_of(sandbox: Project, stack: Path, old: str, new: str) -> None:
    text = stack.read_text()
    assert old in text
    stack.write_text(text.replace(old, new))

    ran = sandbox.nodewright("plan", "sandbox")

    assert ran.code == 1
    assert "Traceback" not in ran.words
    assert "Pulumi.sandbox.yaml" in ran.stderr or "nowhere" in ran.stderr
    assert "→" in ran.stderr or "expected" in ran.stderr


def test_an_environment_that_is_not_there_names_those_that_are(sandbox: Project) -> None:
    ran = sandbox.nodewright("up", "prod", "--yes")

    assert ran.code == 1
    assert "there is no environment 'prod'" in ran.stderr
    assert "sandbox" in ran.stderr.split("→")[1]


def test_up_asks_and_with_nobody_to_ask_names_the_way_out(sandbox: Project) -> None:
    ran = sandbox.nodewright("up", "sandbox")

    assert ran.code == 1
    assert "nodewright up sandbox --yes" in ran.stderr
    assert not (sandbox.root / ".nodewright" / "sandbox" / "documents").exists()


@pytest.mark.parametrize("name", ["ledger.json", "pin.json"])
def test_a_damaged_memory_costs_nothing_but_time(sandbox: Project, name: str) -> None:
    file = sandbox.root / ".nodewright" / "sandbox" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{")

    ran = sandbox.nodewright("plan", "sandbox")

    assert ran.code == 2, ran.words
    assert "Traceback" not in ran.words


def test_a_damaged_document_is_never_taken_for_an_empty_one(sandbox: Project) -> None:
    documents = sandbox.root / ".nodewright" / "sandbox" / "documents"
    documents.mkdir(parents=True)
    (documents / "00000007.json").write_text(json.dumps({"environment": "sandbox"}))
    try:
        ran = sandbox.nodewright("plan", "sandbox")
    finally:
        (documents / "00000007.json").unlink()
        documents.rmdir()

    assert ran.code == 1
    assert "00000007.json" in ran.stderr


def test_an_endpoint_that_refuses_is_named_with_what_to_do(sandbox: Project) -> None:
    stack = sandbox.root / "stacks" / "Pulumi.elsewhere.yaml"
    text = (sandbox.root / "stacks" / "Pulumi.sandbox.yaml").read_text()
    body = text[: text.index("  nodewright:sandbox:")] + "  nodewright:endpoint: http://127.0.0.1:9\n"
    stack.write_text(body)
    try:
        ran = sandbox.nodewright("plan", "elsewhere")
    finally:
        stack.unlink()

    assert ran.code == 1
    assert "http://127.0.0.1:9" in ran.stderr
    assert "Traceback" not in ran.words


def test_a_real_account_without_the_official_plugin_is_refused_before_anything_is_read(sandbox: Project) -> None:
    stack = sandbox.root / "stacks" / "Pulumi.prod.yaml"
    text = (sandbox.root / "stacks" / "Pulumi.sandbox.yaml").read_text()
    stack.write_text(text[: text.index("  nodewright:sandbox:")])
    try:
        ran = sandbox.nodewright("up", "prod", "--yes", PULUMI_HOME=str(sandbox.root / "no-plugins"))
    finally:
        stack.unlink()

    assert ran.code == 1
    assert "needs Pulumi's official AWS plugin" in ran.stderr
    assert "pulumi plugin install resource aws" in ran.stderr


def test_a_live_catalog_asks_ec2_and_buys_the_same_as_the_shipped_one(sandbox: Project, stack: Path) -> None:
    shipped = sandbox.nodewright("plan", "sandbox", "-o", "json").json
    stack.write_text(stack.read_text().replace("  nodewright:caps:", "  nodewright:catalog: live\n  nodewright:caps:"))

    live = sandbox.nodewright("plan", "sandbox", "-o", "json")

    assert live.code == 2, live.words
    assert [each["instance_type"] for each in live.json["launches"]] == [
        each["instance_type"] for each in shipped["launches"]
    ]


def test_install_refuses_a_simulated_cluster_by_name_and_starts_nothing(sandbox: Project) -> None:
    done = sandbox.nodewright("install", "sandbox", "--yes")

    assert done.code == 1
    assert "environment sandbox is a sandbox with a simulated cluster" in done.words
    assert "nodewright:sandbox.cluster" in done.words
    assert not (sandbox.root / ".nodewright" / "sandbox" / "lanes").exists()
