"""What `install` shows: what would change, what became of it, and the same for programs."""

from __future__ import annotations

import json

from attrs import evolve

from engine.decide.add_ons import add_ons
from engine.model.environment import InCluster
from engine.model.in_cluster import ChangeKind, InstallOutcome, ObjectChange
from engine.model.policy import Policy
from engine.report.install_report import install_json, render_install, render_install_outcome
from tests import builders
from tests.builders import node_pool
from tests.report.golden_text import printed

WANTED = add_ons(
    evolve(builders.environment(), in_cluster=InCluster(namespace="nw")),
    Policy((node_pool(pre_pull=("llm:7",)),), ()),
)
CHANGES = (
    ObjectChange(ChangeKind.CREATE, "Namespace", "nw"),
    ObjectChange(ChangeKind.CREATE, "ServiceAccount", "nodewright"),
    ObjectChange(ChangeKind.UPDATE, "DaemonSet", "nodewright-pre-pull-gpu"),
)


def test_each_object_that_would_change_has_a_line_and_they_are_counted() -> None:
    lines = [line.split() for line in printed(render_install(WANTED, CHANGES)).splitlines() if line.strip()]
    assert lines[0] == ["In", "the", "cluster,", "namespace", "nw"]
    assert ["create", "Namespace", "nw"] in lines
    assert ["change", "DaemonSet", "nodewright-pre-pull-gpu"] in lines
    assert " ".join(lines[-1]) == "2 objects to create, 1 object to change"


def test_nothing_to_change_is_one_line() -> None:
    assert printed(render_install(WANTED, ())).strip() == "In the cluster: nothing to change in namespace nw"


def test_a_failure_is_told_in_the_api_servers_words_before_the_sum() -> None:
    told = printed(render_install_outcome(InstallOutcome(CHANGES[:1], ("DaemonSet x: admission webhook said no",))))
    assert told.index("DaemonSet x: admission webhook said no") < told.index("In the cluster: 1 object created")


def test_programs_are_told_the_changes_the_images_and_whether_all_is_settled() -> None:
    told = json.loads(install_json(WANTED, CHANGES[:1], InstallOutcome(CHANGES[:1])))
    assert told == {
        "schema": "nodewright.dev/install/v1",
        "environment": "test",
        "namespace": "nw",
        "pre_pull": {"gpu": ["llm:7"]},
        "changes": [{"change": "create", "kind": "Namespace", "name": "nw"}],
        "outcome": {
            "changes": [{"change": "create", "kind": "Namespace", "name": "nw"}],
            "failures": [],
            "was_interrupted": False,
            "is_settled": True,
        },
    }
    assert json.loads(install_json(WANTED, (), None))["outcome"] is None
