"""One source of what we may do in a cluster: what is granted is what is read and done, and deploy/rbac.yaml says it."""

from __future__ import annotations

from pathlib import Path

import yaml
from attrs import evolve

from engine.converge.in_cluster_objects import cluster_objects
from engine.decide.add_ons import add_ons
from engine.model.cluster_access import OBSERVING
from engine.model.environment import InCluster
from engine.model.policy import Policy
from engine.observe.kinds import KINDS
from tests import builders

_RBAC = Path(__file__).parents[2] / "deploy" / "rbac.yaml"


def test_each_kind_that_is_read_may_be_listed_and_watched_and_no_other() -> None:
    granted = {
        (group, resource, name)
        for rule in OBSERVING
        for group in rule.api_groups
        for resource in rule.resources
        for name in rule.resource_names or ("",)
        if {"list", "watch"} <= set(rule.verbs)
    }
    assert granted == {(kind.group, kind.name, kind.only) for kind in KINDS}


def test_the_file_for_those_who_grant_by_hand_says_what_install_makes() -> None:
    environment = evolve(builders.environment("prod"), in_cluster=InCluster())
    objects = cluster_objects(add_ons(environment, Policy((), ())))
    written = list(yaml.safe_load_all(_RBAC.read_text(encoding="utf-8")))
    assert written == [one.manifest for one in objects]
