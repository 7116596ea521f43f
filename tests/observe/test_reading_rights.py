"""Least rights: what is read is what the engine asks to read, and nothing else."""

from __future__ import annotations

from engine.model.cluster_access import OBSERVING
from engine.observe.kinds import KINDS


def test_the_rights_to_observe_are_those_of_the_kinds_that_are_read() -> None:
    granted = {
        (group, name, only)
        for rule in OBSERVING
        for group in rule.api_groups
        for name in rule.resources
        for only in rule.resource_names or ("",)
        if {"list", "watch"} <= set(rule.verbs)
    }

    assert granted == {(kind.group, kind.name, kind.only) for kind in KINDS}
