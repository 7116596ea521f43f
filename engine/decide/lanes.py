"""Which Pulumi stack a new claim goes to, so that a launch never waits for an update that is under way.

The main lane, the environment's own stack, holds the foundation. The others, ``ENVIRONMENT.1`` and so on, hold claims
only, and boot them from launch templates that stand already.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from engine.decide.fleet import Fleet
from engine.model.environment import Environment
from engine.model.snapshot import Snapshot


class Lanes:
    """The lanes while one plan fills them."""

    def __init__(self, fleet: Fleet, snapshot: Snapshot, environment: Environment) -> None:
        self._main = environment.name
        self._most_claims = environment.lanes.claims
        further = tuple(f"{environment.name}.{number}" for number in range(1, environment.lanes.most + 1))
        self._idle = tuple(lane for lane in (self._main, *further) if lane not in snapshot.busy_stacks)
        self._held = Counter(each.claim.stack for each in fleet.sightings)
        self._fleet, self._snapshot = fleet, snapshot

    @cached_property
    def _standing(self) -> frozenset[str]:
        return _standing_templates(self._fleet, self._snapshot)

    @property
    def is_main_idle(self) -> bool:
        """Whether the foundation may change."""
        return self._main in self._idle

    def take(self, template: str) -> str:
        """The lane of one more claim: the first that is idle and not full, else the first that is idle.

        With all of them busy, or a template that has yet to be made, it is the main one, which then waits.
        """
        lane = self._main
        if template in self._standing and self._idle:
            free = (each for each in self._idle if self._held[each] < self._most_claims)
            lane = next(free, self._idle[0])
        self._held[lane] += 1
        return lane


def _standing_templates(fleet: Fleet, snapshot: Snapshot) -> frozenset[str]:
    """The published templates that stand for certain: all of a settled document, else those that booted something."""
    document, ledger = snapshot.document, snapshot.ledger
    if document is None:
        return frozenset()
    published = frozenset(template.name for template in document.foundation.launch_templates)
    if document.version <= ledger.settled_version:
        return published
    booted = (
        each.claim.inputs.launch_template
        for each in fleet.sightings
        if each.instance is not None or each.claim.name in ledger.instance_ids
    )
    return published.intersection(booted)
