"""A burst that ends: of 200 pods that run seven in ten leave, and what is left is moved together pass by pass.

Pods are ReplicaSets' own, so whoever is evicted is made again under another name and bound by the real kube-scheduler,
which knows nothing of the plan but what it is told of nominations. Nodes are marked and pods evicted through the real
API, by the code that does so in a running environment. Only EC2 and the kubelets are played.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from attrs import define, evolve, field, frozen

from engine.model import labels as keys
from engine.model.eviction import EvictionStatus
from engine.model.money import total
from engine.model.plan import Plan, RemovalPhase
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.snapshot import Snapshot
from engine.reconcile.hands import chores_of, drain_now, nominate_and_register
from tests.cluster.api import eventually
from tests.cluster.bursts import Ask, burst, kinds_of, market, packed_anew, pod_of
from tests.cluster.promised_world import Stage, World, all_ready, clear, was_refused

LEAVE_PERCENT = 70
_CLASS = "class"
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_MOST_PASSES = 60
_POLL_SECONDS = 0.1
_LONG_AFTER = timedelta(days=1)


@frozen
class Pass:
    """What one pass did. ``out`` and ``base`` are nodes that serve nobody and all nodes, by pool, once it was done;
    ``homeless`` are pods that it left or made without a place. ``cpu_seconds`` deciding took."""

    is_idle: bool
    usd: float
    launched: int
    marked: int
    released: int
    evicted: int
    out: Mapping[str, int]
    base: Mapping[str, int]
    homeless: tuple[str, ...]
    cpu_seconds: float

    def beyond(self, budget_percent: int) -> list[str]:
        """Pools of which more nodes are out than a budget of that share lets be."""
        return [
            f"{pool}: {count} of {self.base[pool]} are out"
            for pool, count in self.out.items()
            if count > -(-self.base[pool] * budget_percent // 100)
        ]


@frozen
class Settled:
    """Dollars an hour ``before`` the pods left, at rest, and of the best packing known for those that stay, with its
    proven least. ``waiting`` pods are bound nowhere at the end; ``restless`` is what a pass a day later would do."""

    pods: int
    before: float
    usd: float
    best_known: float
    bound: float
    nodes_before: int
    nodes: int
    passes: tuple[Pass, ...]
    waiting: tuple[str, ...]
    restless: tuple[str, ...]
    seconds: float

    @property
    def over_best_known(self) -> float:
        return self.usd / self.best_known - 1

    @property
    def evicted(self) -> int:
        return sum(each.evicted for each in self.passes)


@define
class Leaving(World):
    """``asked`` are the classes of the pods, by the names of their ReplicaSets, and how many pods each has now."""

    asked: Mapping[str, Ask] = field(factory=dict)
    counts: Counter[str] = field(factory=Counter)
    is_up: bool = False

    @property
    def pods_wanted(self) -> int:
        return self.counts.total()

    def make_again(self, pods: Iterable[Mapping[str, Any]]) -> None:
        """The ReplicaSets do."""

    def close(self, node: dict[str, Any]) -> None:
        if self.is_up:
            super().close(node)
        else:
            node["spec"]["unschedulable"] = True

    def begin(self) -> None:
        """All pods are planned for, and run where the plan has them: kube-scheduler is not asked before that."""
        self.create()
        eventually(self.all_tried, "kube-scheduler has tried every pod", poll_seconds=_POLL_SECONDS)
        plan = self.decide(self.snapshot(self.stage.facts()))
        assert not plan.unplaced
        self.publish(plan)
        for launch in plan.launches:
            node = self.instances[launch.claim.name].private_dns_name
            for pod in launch.pods:
                self._bind(pod.name, node)
        eventually(self.all_run, "every pod runs", poll_seconds=_POLL_SECONDS)
        for instance in self.instances.values():
            self.stage.client.patch(f"/api/v1/nodes/{instance.private_dns_name}", {"spec": {"unschedulable": None}})
        self.is_up = True

    def let_leave(self, percent: int, seed: int) -> None:
        """So many of the pods leave for good, drawn from their classes and nodes."""
        there = sorted(self.own(self.stage.list("Pod")), key=lambda pod: (pod["spec"]["nodeName"], _class_of(pod)))
        leaving = random.Random(seed).sample(there, len(there) * percent // 100)
        for pod in leaving:
            self._patch("pods", pod["metadata"]["name"], {"metadata": {"annotations": {_DELETION_COST: "-1"}}})
        for name, gone in sorted(Counter(map(_class_of, leaving)).items()):
            self.counts[name] -= gone
            self._patch("replicasets", name, {"spec": {"replicas": self.counts[name]}}, "apps/v1")

    def all_tried(self) -> bool:
        pods = self.own(self.stage.list("Pod"))
        return len(pods) == self.pods_wanted and all(map(was_refused, pods))

    def all_run(self) -> bool:
        pods = self.own(self.stage.list("Pod"))
        return len(pods) == self.pods_wanted and all(map(_runs, pods))

    def is_still(self) -> bool:
        """Whether controllers and kube-scheduler have done what they can for now."""
        pods = self.own(self.stage.list("Pod"))
        return (
            len(pods) == self.pods_wanted
            and all(_runs(pod) or was_refused(pod) for pod in pods)
            and all_ready(self.stage)
        )

    def turn(self) -> Pass:
        """One pass, done."""
        snapshot = self.snapshot(self.stage.facts())
        began = time.process_time()
        plan = self.decide(snapshot)
        decided_in = time.process_time() - began
        self.publish(plan)
        ports, chores = self.stage.ports_of(self.namespaces), chores_of(plan, snapshot)
        nominate_and_register(ports, chores)
        answers = [answer for drain in chores.marks for answer in drain_now(ports, drain) or ()]
        out, base = self._standing()
        released = [each.record.claim for each in plan.removals if each.phase is RemovalPhase.RELEASE]
        self._terminate(released)
        return Pass(
            is_idle=plan.is_empty and not chores,
            usd=plan.usd_per_hour_after.micros / 1e6,
            launched=len(plan.launches),
            marked=len(chores.marks),
            released=len(released),
            evicted=sum(each.status is EvictionStatus.EVICTED for each in answers),
            out=out,
            base=base,
            homeless=tuple(_homeless(plan, snapshot)),
            cpu_seconds=decided_in,
        )

    def wanted_after(self, later: timedelta) -> tuple[str, ...]:
        """What a pass would do that much later, if nothing changed until then."""
        plan = self.decide(self.snapshot(self.stage.facts(), later))
        launches = (f"launch {each.claim.inputs.instance_type}" for each in plan.launches)
        return (*launches, *(f"{each.phase.value} {each.record.rule}" for each in plan.removals))

    def _standing(self) -> tuple[Counter[str], Counter[str]]:
        """Nodes that are marked, and all that are in nobody's place who still stands, by pool."""
        out: Counter[str] = Counter()
        base: Counter[str] = Counter()
        assert self.document is not None
        by_node = {one.private_dns_name: name for name, one in self.instances.items()}
        replaces = {claim.name: claim.replaces for claim in self.document.claims}
        for node in self.stage.facts().nodes:
            if node.name in by_node:
                pool = node.labels[keys.NODE_POOL]
                out[pool] += node.is_marked
                base[pool] += self.instances.keys().isdisjoint(replaces.get(by_node[node.name], ()))
        return out, base

    def _terminate(self, claims: Iterable[str]) -> None:
        for claim in claims:
            self.stage.client.delete(f"/api/v1/nodes/{self.instances.pop(claim).private_dns_name}")

    def _bind(self, pod: str, node: str) -> None:
        [namespace] = self.namespaces
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        self.stage.client.create(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", binding)

    def _patch(self, kind: str, name: str, body: object, group: str = "") -> None:
        root = f"/apis/{group}" if group else "/api/v1"
        [namespace] = self.namespaces
        self.stage.client.patch(f"{root}/namespaces/{namespace}/{kind}/{name}", body)


def settled(stage: Stage, name: str, asked: Iterable[Ask], seed: int, budget_percent: int) -> Settled:
    """Plays the burst, lets most of it leave, goes on until a pass finds nothing to do, and clears the cluster."""
    world = _world(stage, name, list(asked), f"{budget_percent}%")
    world.begin()
    assert world.document is not None
    bought = tuple(world.document.claims)
    world.let_leave(LEAVE_PERCENT, seed)
    eventually(world.all_run, "those that leave are gone", poll_seconds=_POLL_SECONDS)
    began, passes = time.monotonic(), []
    while len(passes) < _MOST_PASSES and not (passes and passes[-1].is_idle):
        passes.append(world.turn())
        eventually(world.is_still, "controllers and kube-scheduler are done", poll_seconds=_POLL_SECONDS)
    seconds = time.monotonic() - began
    waiting = world.waiting(stage.list("Pod"))
    restless = world.wanted_after(_LONG_AFTER)
    kept = tuple(world.document.claims)
    left = [ask for each, ask in world.asked.items() for _ in range(world.counts[each])]
    best = packed_anew(left, world.catalog, world.policy.node_classes[0], world.environment)
    clear(stage, [world])
    return Settled(
        pods=len(left),
        before=total(claim.usd_per_hour for claim in bought).micros / 1e6,
        usd=total(claim.usd_per_hour for claim in kept).micros / 1e6,
        best_known=best.cost_micros / 1e6,
        bound=best.lower_bound_micros / 1e6,
        nodes_before=len(bought),
        nodes=len(kept),
        passes=tuple(passes),
        waiting=tuple(waiting),
        restless=restless,
        seconds=seconds,
    )


def _world(stage: Stage, name: str, pods: list[Ask], budget: str) -> Leaving:
    where, sold = market()
    drawn = burst(name, pods, kinds_of(sold))
    asked = {f"{name}-{number:02d}": ask for number, ask in enumerate(sorted(set(pods)))}
    often = Counter(pods)
    counts = Counter({each: often[ask] for each, ask in asked.items()})
    sets = tuple(_replica_set(name, each, ask, counts[each]) for each, ask in asked.items())
    pools = tuple(_consolidated(pool, budget) for pool in drawn.pools)
    return Leaving(evolve(drawn, pools=pools, pods=(), first=sets), stage, where, sold, asked=asked, counts=counts)


def _consolidated(pool: dict[str, Any], budget: str) -> dict[str, Any]:
    """Nodes may go as soon as they like, as by Karpenter's own rules with consolidateAfter 0s."""
    disruption = {
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s",
        "budgets": [{"nodes": budget}],
    }
    metadata = {**pool["metadata"], "annotations": {keys.MIN_NODE_LIFE: "0s"}}
    return {**pool, "metadata": metadata, "spec": {**pool["spec"], "disruption": disruption}}


def _replica_set(run: str, name: str, ask: Ask, count: int) -> dict[str, Any]:
    pod = pod_of(run, 0, ask)
    labels = {**pod["metadata"]["labels"], _CLASS: name}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": run},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
        },
    }


def _class_of(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["labels"][_CLASS])


def _runs(pod: Mapping[str, Any]) -> bool:
    """Bound and ready, and not on its way out."""
    conditions = pod["status"].get("conditions") or []
    is_ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return is_ready and "deletionTimestamp" not in pod["metadata"]


def _homeless(plan: Plan, snapshot: Snapshot) -> Iterator[str]:
    """Pods that wait and that the plan has no place for, and those that it asks to leave with no place that is up."""
    yield from (str(each.pod) for each in plan.unplaced)
    going = {each.record.node for each in plan.removals}
    up = {node.name for node in snapshot.nodes if node.ready and not node.is_marked} - going
    for removal in plan.removals:
        if removal.phase is RemovalPhase.MARK and removal.record.reason in VOLUNTARY_REASONS:
            placed = {each.pod for each in removal.places if each.node in up}
            yield from (str(pod) for pod in removal.pods if pod not in placed)
