"""Karpenter's rules over time, imitated as a decider of simulated worlds, for comparison.

New nodes: pods by CPU, then memory, largest first; each onto the claim of this batch with the fewest pods where any
type still holds all; else onto a new claim. A claim is bought as the cheapest type left.

Consolidation: candidates by price over reschedule cost, highest first; the longest prefix of 2 to 100 of them that can
go with at most one replacement, found by halving; else the first single node that can go, or be replaced by exactly one
cheaper. A replacement is up before its candidates are marked. Budgets bound what is under way. Nodes whose pods changed
within consolidateAfter are left alone.

Rule: kubernetes-sigs/karpenter, pkg/controllers/provisioning/scheduling and pkg/controllers/disruption. Everything else
(empty nodes, draining, losses) is this project's own. No daemonsets, no topology, no spot; at most one new command a
pass, where Karpenter's loop begins one each ten seconds at the most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from unittest.mock import patch

import numpy as np
from attrs import define, evolve, field

from engine.decide import decide, decision
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.environment import Environment
from engine.model.plan import Plan, Removal, RemovalPhase
from engine.model.pod import Pod, PodKey
from engine.model.policy import Policy
from engine.model.quantity import CPU, MEMORY, NVIDIA_GPU, PODS
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import NewNode, NodeOption, Problem, Solution
from engine.scheduling.within_waste import answered

_AXES = (CPU, MEMORY, NVIDIA_GPU, PODS)
_MOST_CANDIDATES = 100
Vector = np.ndarray


def vector(amounts: Mapping[str, int]) -> Vector:
    return np.array([amounts.get(name, 0) for name in _AXES], dtype=np.int64)


@define
class Candidate:
    """A node that may go."""

    claim: Claim
    node: str
    pods: list[Pod]

    @property
    def order(self) -> tuple[float, str]:
        return -self.claim.usd_per_hour.micros / (1 + len(self.pods)), self.claim.name


@define
class Command:
    """Nodes that go, and what takes their place: ``wanted`` until it has a claim."""

    claims: tuple[str, ...]
    wanted: NodeOption | None
    replacement: str = ""


@define
class KarpenterDay:
    """Remembers from pass to pass what is under way, as Karpenter's queue does."""

    consolidate_after: timedelta
    _commands: list[Command] = field(factory=list)
    _options: tuple[NodeOption, ...] = ()
    _pool: str = ""
    _seen: dict[str, tuple[frozenset[PodKey], datetime]] = field(factory=dict)

    def __call__(self, snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        with patch.object(decision, "answered", self._answered):
            plan = decide(snapshot, policy, catalog, environment)
        self._name_replacements(plan)
        wanted = {command.replacement for command in self._commands}
        # What is to take a node's place stands empty until that node's pods come.
        plan = evolve(plan, removals=tuple(each for each in plan.removals if each.record.claim not in wanted))
        nodes = {node.name: node for node in snapshot.nodes}
        standing = self._standing(snapshot)
        marks = self._finished(snapshot, standing)
        if not snapshot.waiting_pods:
            marks += self._begun(snapshot, standing, policy)
        known = {each.record.claim for each in plan.removals}
        removals = [
            Removal(_record(each, snapshot.taken_at), RemovalPhase.MARK, tuple(pod.key for pod in each.pods))
            for each in marks
            if each.claim.name not in known and each.node in nodes
        ]
        return evolve(plan, removals=(*plan.removals, *removals))

    def _answered(self, problem: Problem) -> Solution:
        """Our own answer on what is there; Karpenter's for the rest."""
        closed = tuple(evolve(state, options=()) for state in problem.pools)
        standing = answered(evolve(problem, pools=closed))
        placed = {each.pod for each in standing.placements}
        (state,) = problem.pools
        self._options, self._pool = _cheapest_by_type(state.options), state.pool.name
        new, unplaced = self._bought([pod for pod in problem.pods if pod.key not in placed])
        extra = [
            NewNode(self._pool, each.wanted, ()) for each in self._commands if each.wanted and not each.replacement
        ]
        left = tuple(each for each in standing.unplaced if each.pod in unplaced)
        return evolve(standing, new_nodes=(*new, *extra), unplaced=left)

    def _bought(self, pods: Sequence[Pod]) -> tuple[list[NewNode], set[PodKey]]:
        rooms = np.array([vector(each.allocatable) for each in self._options]).reshape(-1, len(_AXES))
        gpus = np.array([bool(each.instance_type.is_accelerated) for each in self._options], dtype=bool)
        taken: list[Vector] = []
        types: list[Vector] = []
        members: list[list[PodKey]] = []
        unplaced: set[PodKey] = set()
        for pod in sorted(pods, key=lambda each: (*(-vector(each.placing.requests)[:2]).tolist(), each.key)):
            asked = vector(pod.placing.requests)
            allowed = gpus == bool(asked[2])
            for at in sorted(range(len(taken)), key=lambda claim: len(members[claim])):
                left = types[at] & allowed & (rooms >= taken[at] + asked).all(axis=1)
                if left.any():
                    taken[at], types[at] = taken[at] + asked, left
                    members[at].append(pod.key)
                    break
            else:
                fitting = allowed & (rooms >= asked).all(axis=1)
                if not fitting.any():
                    unplaced.add(pod.key)
                    continue
                taken.append(asked)
                types.append(fitting)
                members.append([pod.key])
        # Options are in the order of prices.
        bought = [self._options[int(np.argmax(each))] for each in types]
        new = [NewNode(self._pool, option, tuple(sorted(of))) for option, of in zip(bought, members, strict=True)]
        return new, unplaced

    def _name_replacements(self, plan: Plan) -> None:
        """Launches for nobody are the replacements, in the order in which they were wanted."""
        made = [each.claim for each in plan.launches if not each.pods]
        for command in self._commands:
            if command.wanted is None or command.replacement:
                continue
            of = next((each for each in made if each.inputs.offering_key == command.wanted.offering.key), None)
            if of is not None:
                made.remove(of)
                command.replacement = of.name

    def _standing(self, snapshot: Snapshot) -> dict[str, Candidate]:
        """Machines that are up and not on their way out, by claim, with their pods."""
        claim_of = {each.id: each.claim for each in snapshot.cloud.instances if each.is_alive}
        claims = {claim.name: claim for claim in snapshot.document.claims} if snapshot.document is not None else {}
        on: dict[str, list[Pod]] = {}
        for pod in snapshot.pods:
            if pod.node_name is not None and not pod.is_daemon:
                on.setdefault(pod.node_name, []).append(pod)
        found = {}
        for node in snapshot.nodes:
            claim = claims.get(claim_of.get(node.instance_id, ""))
            if claim is None or not node.ready or node.is_marked:
                continue
            if node.allocatable.amount(NVIDIA_GPU) < claim.allocatable.amount(NVIDIA_GPU):
                continue
            found[claim.name] = Candidate(claim, node.name, on.get(node.name, []))
        return found

    def _finished(self, snapshot: Snapshot, standing: Mapping[str, Candidate]) -> list[Candidate]:
        """The candidates of commands whose replacement is up."""
        marks: list[Candidate] = []
        claims = {claim.name for claim in snapshot.document.claims} if snapshot.document is not None else set()
        for command in tuple(self._commands):
            gone = command.replacement and command.replacement not in claims
            if command.replacement in standing or gone:
                self._commands.remove(command)
                if not gone:
                    marks += [standing[name] for name in command.claims if name in standing]
        return marks

    def _begun(self, snapshot: Snapshot, standing: Mapping[str, Candidate], policy: Policy) -> list[Candidate]:
        """A new command, if there is one; its candidates where they may go at once."""
        now = snapshot.taken_at
        busy = {name for command in self._commands for name in (*command.claims, command.replacement)}
        quiet = []
        for name, each in sorted(standing.items()):
            keys = frozenset(pod.key for pod in each.pods)
            seen = self._seen.get(name)
            since = seen[1] if seen is not None and seen[0] == keys else now
            self._seen[name] = (keys, since)
            if name not in busy and each.pods and now - since >= self.consolidate_after:
                quiet.append(each)
        free = [each for name, each in sorted(standing.items()) if name not in busy]
        total, out = len(snapshot.nodes), sum(node.is_marked for node in snapshot.nodes) + len(busy)
        room = -(-total // 10) - out
        ordered = sorted(quiet, key=lambda each: each.order)[: min(_MOST_CANDIDATES, max(0, room))]
        found = self._several(ordered, free) or (self._single(sorted(quiet, key=lambda each: each.order), free, room))
        if found is None:
            return []
        going, option = found
        if option is None:
            return list(going)
        self._commands.append(Command(tuple(each.claim.name for each in going), option))
        return []

    def _several(
        self, ordered: Sequence[Candidate], free: Sequence[Candidate]
    ) -> tuple[Sequence[Candidate], NodeOption | None] | None:
        low, high, best = 2, len(ordered), None
        while low <= high:
            middle = (low + high) // 2
            fits, option = self._would_fit(ordered[:middle], free)
            if fits:
                best, low = (ordered[:middle], option), middle + 1
            else:
                high = middle - 1
        return best

    def _single(
        self, ordered: Sequence[Candidate], free: Sequence[Candidate], room: int
    ) -> tuple[Sequence[Candidate], NodeOption | None] | None:
        for each in ordered if room > 0 else ():
            fits, option = self._would_fit([each], free)
            if fits:
                return [each], option
        return None

    def _would_fit(self, going: Sequence[Candidate], free: Sequence[Candidate]) -> tuple[bool, NodeOption | None]:
        """Whether all pods fit on what else is there and at most one new node, and that costs less than they do."""
        leaving = {each.claim.name for each in going}
        stays = [each for each in free if each.claim.name not in leaving]
        used = [sum((vector(pod.placing.requests) for pod in each.pods), vector({})) for each in stays]
        rooms = np.array([vector(each.claim.allocatable) for each in stays]).reshape(-1, len(_AXES))
        rooms = rooms - np.array(used).reshape(-1, len(_AXES))
        gpus = np.array([NVIDIA_GPU in each.claim.allocatable for each in stays], dtype=bool)
        left, needs_gpus = vector({}), set()
        pods = [pod for each in going for pod in each.pods]
        for pod in sorted(pods, key=lambda each: (*(-vector(each.placing.requests)[:2]).tolist(), each.key)):
            asked = vector(pod.placing.requests)
            fitting = np.flatnonzero((rooms >= asked).all(axis=1) & (gpus == bool(asked[2]))) if len(stays) else ()
            if len(fitting):
                rooms[fitting[0]] -= asked
            else:
                left = left + asked
                needs_gpus.add(bool(asked[2]))
        if not needs_gpus:
            return True, None
        price = sum(each.claim.usd_per_hour.micros for each in going)
        for option in self._options:
            cheaper = option.usd_per_hour is not None and option.usd_per_hour.micros < price
            same_kind = needs_gpus == {bool(option.instance_type.is_accelerated)}
            if cheaper and same_kind and (vector(option.allocatable) >= left).all():
                return True, option
        return False, None


def _cheapest_by_type(options: Sequence[NodeOption]) -> tuple[NodeOption, ...]:
    """One for each instance type, the cheapest first."""
    found: dict[str, NodeOption] = {}
    priced = [each for each in options if each.usd_per_hour is not None and each.is_available]
    for each in sorted(priced, key=lambda one: (one.usd_per_hour.micros, one.offering.key)):  # type: ignore[union-attr]
        found.setdefault(each.instance_type.name, each)
    return tuple(found.values())


def _record(of: Candidate, now: datetime) -> RemovalRecord:
    return RemovalRecord(
        claim=of.claim.name,
        node_pool=of.claim.node_pool,
        reason=DisruptionReason.UNDERUTILIZED,
        rule="Karpenter's consolidation, imitated",
        since=now,
        usd_per_hour=of.claim.usd_per_hour,
        node=of.node,
        capacity=of.claim.capacity,
        stack=of.claim.stack,
    )
