"""A cluster that stands, pass after pass, as a loop sees it: what did not change is the very same value as before.

Nodes of 16 CPUs of one pool, ten pods on each: with all of the room used, so that no node's pods would cost less
elsewhere, or with a third of it, so that two in three nodes could go. Some of the nodes may have drifted: they are of
the pool as it was before.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from datetime import timedelta
from functools import cache

from attrs import evolve, frozen
from mix_pods import NAMESPACE, NOON, requests
from mix_world import FILES, World, filler, node_of, world
from running_machines import running_instance

from engine.decide import decide
from engine.model.ledger import Ledger
from engine.model.plan import Plan
from engine.model.pod import Owner, Placing, Pod, PodKey, PodPhase
from engine.policy.load import load_policy

PODS_EACH = 10
_TYPES = 100
# Millicores of the pods on a node: number i of ten has so many, and i times so many more.
FULL, THIRD = (1_500, 15), (400, 30)
_OWNERS = 100
_UP_FOR = timedelta(days=3)
_BETWEEN_PASSES = timedelta(seconds=10)


@frozen
class Standing:
    """``consolidation`` is the pool's policy, ``used`` what its pods ask for, ``drifted`` how many nodes of ``nodes``
    are to be replaced, ``budget`` how many may go at once. ``is_limited``: the pool may have no node more."""

    nodes: int
    consolidation: str = "WhenEmptyOrUnderutilized"
    used: tuple[int, int] = FULL
    drifted: int = 0
    budget: str = "10%"
    is_limited: bool = False

    def world(self) -> World:
        """All of the nodes are up for days."""
        empty = world(_TYPES)
        made = self._grown(self._with_policy(empty, "one", "0", "WhenEmpty", limit=0), self.drifted)
        made = self._grown(self._with_policy(made, "two", "0", "WhenEmpty", limit=0), self.nodes - self.drifted)
        limit = self.nodes if self.is_limited else 0
        # A first look finds that the nodes are up.
        ledger = decide(made.snapshot, made.policy, made.catalog, made.environment).ledger
        later = evolve(made.snapshot, ledger=ledger, taken_at=made.snapshot.taken_at + _UP_FOR)
        asked = evolve(made, snapshot=later)
        return self._with_policy(asked, "two", self.budget, self.consolidation, limit=limit)

    def _with_policy(self, there: World, stage: str, budget: str, consolidation: str, *, limit: int) -> World:
        disruption = f"consolidationPolicy: {consolidation}, consolidateAfter: 60s, budgets: [{{nodes: '{budget}'}}]"
        spec = [f"  disruption: {{{disruption}}}", *([f"  limits: {{nodes: {limit}}}"] if limit else [])]
        files = FILES.replace("spec:\n  template:\n", "\n".join(["spec:", *spec, "  template:\n"]), 1).replace(
            "    spec:\n", f"    metadata: {{labels: {{stage: {stage}}}}}\n    spec:\n", 1
        )
        return evolve(there, policy=load_policy([("bench.yaml", files.encode())], there.environment))

    def _grown(self, there: World, nodes: int) -> World:
        """With so many nodes more, in use."""
        if not nodes:
            return there
        first = len(there.snapshot.nodes)
        asked = there.with_pods([filler(first + number) for number in range(nodes)])
        plan = decide(asked.snapshot, asked.policy, asked.catalog, asked.environment)
        known = {each.name for each in there.snapshot.document.claims} if there.snapshot.document else set()
        claims = [each for each in plan.document.claims if each.name not in known]
        if len(claims) != nodes:
            raise SystemExit(f"bench: {len(claims)} nodes came of {nodes} pods that fill one each")
        instances = [running_instance(first + number, claim) for number, claim in enumerate(claims)]
        found = [node_of(claim, instance) for claim, instance in zip(claims, instances, strict=True)]
        pods = [pod for number, node in enumerate(found) for pod in self._pods_on(node.name, first + number)]
        grown = evolve(
            there.snapshot,
            pods=(*there.snapshot.pods, *pods),
            nodes=(*there.snapshot.nodes, *found),
            document=plan.document,
            cloud=evolve(there.snapshot.cloud, instances=(*there.snapshot.cloud.instances, *instances)),
            ledger=Ledger(settled_version=plan.document.version),
        )
        return evolve(there, snapshot=grown)

    def _pods_on(self, node: str, ordinal: int) -> Iterator[Pod]:
        least, more = self.used
        for number in range(PODS_EACH):
            owner = f"app-{ordinal % _OWNERS}-{number}"
            yield Pod(
                PodKey(NAMESPACE, f"{owner}-{ordinal:05d}"),
                _placing(least + more * number),
                NOON,
                phase=PodPhase.RUNNING,
                node_name=node,
                labels={"app": owner},
                owner=Owner("ReplicaSet", owner),
                started_at=NOON,
                ready_at=NOON,
            )


@cache
def _placing(millicores: int) -> Placing:
    """Equal ones share it, as pods that were read from one cluster do."""
    return Placing(requests(millicores, 512))


class Loop:
    """Decides again and again, each time on what the loop would see then: it keeps the ledger of the plan before, and
    all that did not change is the very same value."""

    def __init__(self, there: World) -> None:
        self._there, self._is_begun = there, False
        self._changes = 0

    def next_pass(self) -> Plan:
        there = self._there
        plan = decide(there.snapshot, there.policy, there.catalog, there.environment)
        later = evolve(there.snapshot, taken_at=there.snapshot.taken_at + _BETWEEN_PASSES, ledger=plan.ledger)
        self._there = evolve(there, snapshot=later)
        if not self._is_begun:
            # As a runner does after its first plan.
            gc.collect()
            gc.freeze()
            self._is_begun = True
        return plan

    def change_a_pod(self) -> None:
        """One that became ready anew: it is among the facts, and nothing follows from it."""
        self._changes += 1
        pods = list(self._there.snapshot.pods)
        at = self._changes * 7 % len(pods)
        pods[at] = evolve(pods[at], ready_at=NOON + timedelta(seconds=self._changes))
        self._there = evolve(self._there, snapshot=evolve(self._there.snapshot, pods=tuple(pods)))
