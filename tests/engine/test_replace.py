"""``nodewright replace`` on the real engine: the new node first, then the old one's end; and a request taken back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.workspaces import Project, project

pytestmark = pytest.mark.engine


@pytest.fixture
def converged(tmp_path: Path, toolchain: object) -> Iterator[Project]:
    """One node, which runs the only pod."""
    with project(tmp_path) as made:
        made.scale(1)
        ran = made.up()
        assert ran.code == 0, ran.words
        yield made


def node_of(within: Project) -> dict[str, Any]:
    ran = within.nodewright("status", within.environment, "-o", "json")
    assert ran.code == 0, ran.words
    [node] = ran.json["nodes"]
    return dict(node)


def asked(within: Project, node: str, *arguments: str) -> dict[str, Any]:
    ran = within.nodewright("replace", node, within.environment, "-o", "json", *arguments)
    assert ran.code == 0, ran.words
    return dict(ran.json)


def history(within: Project) -> list[set[str]]:
    """The claims of each document that was published, oldest first."""
    files = sorted((within.root / ".nodewright" / within.environment / "documents").iterdir())
    documents = [json.loads(file.read_text()) for file in files]
    return [{claim["name"] for part in each["node_sets"] for claim in part["claims"]} for each in documents]


def test_a_request_is_taken_back_and_a_second_one_goes_new_node_first_and_ends(converged: Project) -> None:
    before, [machine] = node_of(converged), converged.instances()
    name, old = before["node"], before["claim"]

    # Asked for, and taken back: there is nothing to do.
    first = asked(converged, name)
    assert (first["claim"], first["is_asked"], first["explained"]["code"]) == (old, True, "awaits-replacement")
    assert asked(converged, name, "--cancel")["was_asked"]
    assert converged.nodewright("plan", converged.environment).code == 0

    # Asked for and left so: another machine, and then this one's end.
    asked(converged, old)
    ran = converged.up()
    assert ran.code == 0, ran.words
    [alone, both, after] = history(converged)
    [new] = both - alone
    assert (alone, both, after) == ({old}, {old, new}, {new})
    [left] = converged.instances()
    assert left["InstanceId"] != machine["InstanceId"]

    # The pod runs on the new node, and the request is over: nothing is left to do.
    then = node_of(converged)
    assert (then["claim"], then["pods"], then["state"]) == (new, 1, "ready")
    assert converged.nodewright("plan", converged.environment).code == 0
