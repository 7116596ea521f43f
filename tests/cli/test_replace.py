"""What ``nodewright replace`` says, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from engine.cli.main import app
from engine.reconcile import assembly
from engine.reconcile.up import up
from tests.decide.world import World, policy
from tests.disruption.going_world import served, steady
from tests.reconcile.world_ports import Watcher, WorldPorts

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WorldPorts:
    made = WorldPorts(World(policy(steady()), [served("llm")]), tmp_path)
    up(made.ports, Watcher())
    monkeypatch.setattr(assembly, "assemble", lambda workspace, name: made.ports)
    return made


def replace(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["-C", str(REPOSITORY), "replace", *arguments])


def test_it_says_of_which_node_and_claim_what_happens_next_and_how_to_take_it_back(one: WorldPorts) -> None:
    [node], [claim] = one.world.nodes, [each.claim for each in one.world.running()]

    ran = replace(node, "sandbox")

    assert ran.exit_code == 0, ran.output
    first, outcome, back = ran.stdout.splitlines()
    assert first == f"{node} ({claim}): its replacement is asked for"
    assert outcome.startswith("It stays: goes once ")
    assert back.endswith(f"nodewright replace {node} sandbox --cancel takes it back.")
    assert one.world.nodes[node].replace_asked
    assert "was asked for already" in replace(claim, "sandbox").stdout


def test_cancelling_says_whether_there_was_anything_to_cancel(one: WorldPorts) -> None:
    [node] = one.world.nodes
    replace(node, "sandbox")
    assert replace(node, "sandbox", "--cancel").stdout == f"{node}: no replacement is asked for any more\n"
    assert not one.world.nodes[node].replace_asked
    assert replace(node, "sandbox", "--cancel").stdout == f"{node}: no replacement was asked for\n"


def test_a_name_that_nobody_has_exits_with_1_and_names_what_is_near(one: WorldPorts) -> None:
    [node] = one.world.nodes
    ran = replace(f"{node}x", "sandbox")
    assert ran.exit_code == 1
    assert f"did you mean {node}?" in ran.output
    assert not one.world.nodes[node].replace_asked


def test_where_several_environments_are_one_has_to_be_named(one: WorldPorts) -> None:
    ran = replace(min(one.world.nodes))
    assert ran.exit_code == 1
    assert "which environment is meant?" in ran.output


def test_programs_get_the_request_and_what_a_pass_would_do_about_the_node(one: WorldPorts) -> None:
    [node], [claim] = one.world.nodes, [each.claim for each in one.world.running()]

    first = json.loads(replace(node, "sandbox", "-o", "json").stdout)
    asked_at = f"{one.world.now:%Y-%m-%dT%H:%M:%SZ}"
    assert (first["schema"], first["environment"]) == ("nodewright.dev/replace/v1", "sandbox")
    assert (first["node"], first["claim"], first["asked_at"]) == (node, claim, asked_at)
    assert (first["is_asked"], first["was_asked"]) == (True, False)
    assert first["explained"]["code"] == "awaits-replacement"
    [cause] = first["explained"]["pending"]
    assert (cause["reason"], cause["since"]) == ("Drifted", asked_at)
    assert {each["node_pool"] for each in first["explained"]["budgets"]} == {"gpu"}

    again = json.loads(replace(node, "sandbox", "-o", "json").stdout)
    assert (again["is_asked"], again["was_asked"], again["asked_at"]) == (True, True, asked_at)

    back = json.loads(replace(node, "sandbox", "--cancel", "-o", "json").stdout)
    assert (back["is_asked"], back["was_asked"], back["asked_at"], back["explained"]) == (False, True, None, None)


def test_a_fault_is_words_and_no_json(one: WorldPorts) -> None:
    ran = replace("nobody", "sandbox", "-o", "json")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert "there is no node or machine 'nobody'" in ran.stderr


def test_the_command_is_documented() -> None:
    assert "| `replace NODE [ENV] [--cancel] [-o text\\|json]` |" in (REPOSITORY / "docs" / "commands.md").read_text()
