"""EC2's answers are asked for again when they are old, and at once when something has changed; never while asking."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.ledger import Ledger
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts
from engine.reconcile.cloud_cache import CloudCache
from engine.reconcile.host import Host, Work
from tests.builders import node_pool
from tests.decide.world import World, policy
from tests.reconcile.world_ports import WorldPorts


class Ec2(WorldPorts):
    """Counts how often all of it is asked for."""

    asked = 0

    def read(
        self, environment: Environment, rules: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        self.asked += 1
        return CloudFacts()


def at_once(name: str, work: Work) -> None:
    work()


def test_what_has_changed_is_asked_for_at_once_on_a_clock_that_never_stands(tmp_path: Path) -> None:
    ticks = count(1)
    ec2 = Ec2(World(policy(node_pool())), tmp_path)
    ports = ec2.ports
    cache = CloudCache(Host(monotonic=lambda: next(ticks) / 1e6, start=at_once), lambda: None)
    cache.facts(ports, None, Ledger())
    cache.keep_fresh(ports, None, Ledger())
    assert ec2.asked == 1, "what is fresh is not asked for again"
    for expected in (2, 3):
        cache.expire()
        cache.keep_fresh(ports, None, Ledger())
        assert ec2.asked == expected
