"""What must hold in every pass, held against the world as it is and not as the pass saw it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.model.environment import Environment
from engine.model.plan import Plan, RemovalPhase
from engine.model.policy import Policy
from engine.model.quantity import NODES, NOTHING, Resources, format_amount
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.snapshot import Snapshot
from engine.simulate.audited_budgets import budgets_exceeded
from engine.simulate.audited_holds import held_pods_asked
from engine.simulate.audited_idling import Idling
from engine.simulate.audited_places import pods_without_place
from engine.simulate.audited_rules import rules_exceeded, wanted_or_running
from engine.simulate.record import Violation
from engine.simulate.world import World

# Reasons for which no pod is left on the machine when it goes.
_LEAVES_EMPTY = frozenset({*VOLUNTARY_REASONS, DisruptionReason.NOT_INITIALIZED})


class Auditor:
    """Looks at each plan before it is applied. It knows the world, and nothing of how decisions are made."""

    def __init__(self, world: World, policy: Policy, environment: Environment) -> None:
        self._world, self._policy, self._environment = world, policy, environment
        self._names: set[str] = {claim.name for claim in world.document.claims} if world.document is not None else set()
        self._idling = Idling(world, policy)
        self.violations: list[Violation] = []

    def follow(self, policy: Policy) -> None:
        """From now on another policy holds."""
        self._policy = policy
        self._idling.follow(policy)

    def look(self, snapshot: Snapshot, plan: Plan) -> None:
        """Note what this plan should not do."""
        found = (
            *(("nothing-vanishes", what) for what in self._vanished(plan)),
            *(("names-once", what) for what in self._named_twice(plan)),
            *(("limits", what) for what in self._over_limits(plan)),
            *(("caps", what) for what in self._over_caps(plan)),
            *(("budgets", what) for what in budgets_exceeded(self._world, plan, self._policy)),
            *(("rules", what) for what in rules_exceeded(self._world, plan, self._policy)),
            *(("evicted-without-place", what) for what in pods_without_place(self._world, plan)),
            *(("held-pods", what) for what in held_pods_asked(self._world, plan, self._policy)),
            *(("released-with-pods", what) for what in self._released_with_pods(plan)),
            *(("machine-without-claim", what) for what in self._strays()),
            *(("answers", what) for what in _unanswered(snapshot, plan)),
            *(("idle-too-long", what) for what in self._idling.overdue(plan)),
        )
        self.violations += [Violation(self._world.now, rule, what) for rule, what in found]

    def _vanished(self, plan: Plan) -> Iterator[str]:
        """Desired = existing claims - released + launches."""
        before = {claim.name for claim in self._world.document.claims} if self._world.document is not None else set()
        released = {each.record.claim for each in plan.removals if each.phase is RemovalPhase.RELEASE}
        wanted = (before - released) | {each.claim.name for each in plan.launches}
        after = {claim.name for claim in plan.document.claims}
        for name in sorted(wanted - after):
            yield f"claim {name} left the document without a removal record"
        for name in sorted(after - wanted):
            yield f"claim {name} came into the document without a launch"
        recorded = {record.claim for record in plan.document.removals}
        for name in sorted(released - recorded):
            yield f"claim {name} is released and the document has no record of it"

    def _named_twice(self, plan: Plan) -> Iterator[str]:
        for launch in plan.launches:
            if launch.claim.name in self._names:
                yield f"claim name {launch.claim.name} is used again"
            self._names.add(launch.claim.name)

    def _over_limits(self, plan: Plan) -> Iterator[str]:
        launching = sorted({launch.claim.node_pool for launch in plan.launches})
        for name in launching:
            pool = self._policy.node_pool(name)
            if pool is None:
                yield f"pool {name} is in no file, and launches"
                continue
            limits = self._environment.pool_limits(name, pool.limits)
            used = self._used(name, plan)
            for resource, limit in limits.items():
                if used.amount(resource) > limit:
                    there, most = (format_amount(resource, each) for each in (used.amount(resource), limit))
                    yield f"pool {name}: {there} {resource} of {most}, machines that are leaving included"

    def _used(self, pool: str, plan: Plan) -> Resources:
        claims = wanted_or_running(self._world, plan, pool)
        return Resources({**sum((claim.capacity for claim in claims), NOTHING), NODES: len(claims)})

    def _over_caps(self, plan: Plan) -> Iterator[str]:
        caps = self._environment.caps
        if len(plan.launches) > caps.launches:
            yield f"{len(plan.launches)} launches in one pass, and {caps.launches} may be"
        # A node that is marked already is only emptied further.
        marks = sum(each.phase is RemovalPhase.MARK and not self._is_marked(each.record.node) for each in plan.removals)
        if marks > caps.removals:
            yield f"{marks} marks in one pass, and {caps.removals} may be"
        added = sum(launch.claim.usd_per_hour.micros for launch in plan.launches)
        if added > caps.added_usd_per_hour.micros:
            yield f"launches of {added / 1e6:.2f} $/h in one pass, and {caps.added_usd_per_hour} may be"

    def _is_marked(self, name: str | None) -> bool:
        node = self._world.cluster.node(name or "")
        return node is not None and node.is_marked

    def _released_with_pods(self, plan: Plan) -> Iterator[str]:
        nodes = self._world.nodes_by_claim()
        for removal in plan.removals:
            record = removal.record
            if removal.phase is not RemovalPhase.RELEASE or record.reason not in _LEAVES_EMPTY:
                continue
            there = self._world.cluster.workload_on(nodes.get(record.claim, ""))
            if there:
                pods = _listed(pod.key for pod in there)
                yield f"{record.claim} is released for {record.reason.value} with {pods} on it"

    def _strays(self) -> Iterator[str]:
        document = self._world.document
        known = {claim.name for claim in document.claims} if document is not None else set()
        known |= {record.claim for record in document.removals} if document is not None else set()
        for instance in self._world.ec2.alive():
            if instance.claim not in known:
                yield f"instance {instance.id} of claim {instance.claim!r} runs, and no document names it"


def _unanswered(snapshot: Snapshot, plan: Plan) -> Iterator[str]:
    """A reason for everything: each pod that waits has a place, a machine or a refusal; each claim stays or goes."""
    told = {each.pod for each in plan.placements} | {each.pod for each in plan.unplaced}
    told |= {pod for launch in plan.launches for pod in launch.pods}
    silent = [pod.key for pod in snapshot.waiting_pods if pod.key not in told]
    if silent:
        yield f"nothing is said of {_listed(silent)}"
    answered = {each.claim for each in plan.kept} | {each.record.claim for each in plan.removals}
    claims = {claim.name for claim in snapshot.document.claims} if snapshot.document is not None else set()
    if claims - answered:
        yield f"nothing is said of {_listed(claims - answered)}"


def _listed(objects: Iterable[object]) -> str:
    names = sorted(map(str, objects))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
