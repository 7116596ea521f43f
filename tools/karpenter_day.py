"""Karpenter's rules over time, imitated as a decider of simulated worlds, for comparison.

New nodes: pods by CPU, then memory, largest first; each onto the claim of this batch with the fewest pods where any
type still holds all; else onto a new claim. A claim is bought as the cheapest type left.

Consolidation: candidates by price over reschedule cost, highest first; the longest prefix of 2 to 100 of them that can
go with at most one cheaper replacement, found by halving; else the first single node that can go so. Where a set's
replacement could be of a type that one of the set is, it must cost less than that one. A replacement is up before its
candidates are marked. Pods that wait and have room keep it, and the nodes that they wait for are no candidates. Budgets
bound for each pool what is under way. Nodes whose pods changed within consolidateAfter are left alone. One command for
each ten seconds of Karpenter's loop and fifteen of its validation.

Rule: kubernetes-sigs/karpenter, pkg/controllers/provisioning/scheduling and pkg/controllers/disruption. Everything else
(what is placed on nodes that are there, empty nodes, draining, losses) is this project's own. No daemonsets, no
topology, no spot. Unlike Karpenter's, candidates are not closed to new pods while their replacement comes up, and a
command is not computed anew after fifteen seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from unittest.mock import patch

import numpy as np
from attrs import define, evolve, field, frozen

from engine.decide import decide, decision
from engine.decide.guarding import Closed
from engine.decide.question import Seen
from engine.model import labels as keys
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
_APART = timedelta(seconds=25)
Vector = np.ndarray


def _large_first(pod: Pod) -> tuple[int, int]:
    return -pod.placing.requests.amount(CPU), -pod.placing.requests.amount(MEMORY)


def vector(amounts: Mapping[str, int]) -> Vector:
    return np.array([amounts.get(name, 0) for name in _AXES], dtype=np.int64)


@define
class Candidate:
    """A node that may go."""

    claim: Claim
    node: str
    pods: list[Pod]

    @property
    def room(self) -> Vector:
        """What its pods leave."""
        left = vector(self.claim.allocatable)
        for pod in self.pods:
            left = left - vector(pod.placing.requests)
        return left

    @property
    def order(self) -> tuple[float, str]:
        return -self.claim.usd_per_hour.micros / (1 + len(self.pods)), self.claim.name


@frozen
class Fit:
    """Where pods can go: ``there`` on what is up, by claim, and the rest on the new node, if there is one."""

    option: NodeOption | None
    there: tuple[tuple[str, Pod], ...]


@define
class Command:
    """Nodes that go once what takes their place is up. ``fit`` says what that is; it has a claim later."""

    claims: tuple[str, ...]
    fit: Fit
    replacement: str = ""

    @property
    def wanted(self) -> NodeOption | None:
        return self.fit.option


_Found = tuple[Sequence[Candidate], Fit]


@define
class KarpenterDay:
    """Remembers from pass to pass what is under way, as Karpenter's queue does. Without ``consolidate_after`` nothing
    in use goes."""

    consolidate_after: timedelta | None
    _commands: list[Command] = field(factory=list)
    _options: tuple[NodeOption, ...] = ()
    _of_pool: dict[str, tuple[NodeOption, ...]] = field(factory=dict)
    _seen: dict[str, tuple[frozenset[PodKey], datetime]] = field(factory=dict)
    _asked_at: datetime | None = None

    def __call__(self, snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
        with patch.object(decision, "answer_to", self._answer):
            plan = decide(snapshot, policy, catalog, environment)
        self._name_replacements(plan)
        wanted = {command.replacement for command in self._commands}
        # What is to take a node's place stands empty until that node's pods come.
        plan = evolve(plan, removals=tuple(each for each in plan.removals if each.record.claim not in wanted))
        standing = self._standing(snapshot)
        marks = self._finished(plan, standing)
        going = {each.record.claim for each in plan.removals}
        # Those whose pods are stopped now are looked at again once these have found a place.
        staying = {name: each for name, each in standing.items() if name not in going}
        begun = [] if marks else self._begun(snapshot, staying, plan)
        removals = [
            Removal(_record(each, snapshot.taken_at), RemovalPhase.MARK, tuple(pod.key for pod in each.pods))
            for each in (*marks, *begun)
        ]
        return evolve(plan, removals=(*plan.removals, *removals))

    def _answer(self, seen: Seen, problem: Problem, closed: Closed) -> Solution:
        """Our own answer on what is there; Karpenter's for the rest. What is to go soon takes nobody."""
        going = {name for command in self._commands for name in command.claims}
        existing = tuple(each for each in problem.existing if each.claim not in going)
        full = tuple(evolve(state, options=()) for state in problem.pools)
        standing = answered(evolve(problem, pools=full, existing=existing))
        placed = {each.pod for each in standing.placements}
        # A pool that nobody asks for is asked without options.
        self._of_pool |= {state.pool.name: state.options for state in problem.pools if state.options}
        self._options = _cheapest_by_type([option for every in self._of_pool.values() for option in every])
        new, unplaced = self._bought([pod for pod in problem.pods if pod.key not in placed])
        extra = [_new(each.wanted, ()) for each in self._commands if each.wanted and not each.replacement]
        left = tuple(each for each in standing.unplaced if each.pod in unplaced)
        return evolve(standing, new_nodes=(*new, *extra), unplaced=left)

    def _bought(self, pods: Sequence[Pod]) -> tuple[list[NewNode], set[PodKey]]:
        rooms = np.array([vector(each.allocatable) for each in self._options]).reshape(-1, len(_AXES))
        gpus = np.array([bool(each.instance_type.is_accelerated) for each in self._options], dtype=bool)
        taken: list[Vector] = []
        types: list[Vector] = []
        members: list[list[PodKey]] = []
        unplaced: set[PodKey] = set()
        for pod in sorted(pods, key=lambda each: (*_large_first(each), each.key)):
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
        return [_new(option, of) for option, of in zip(bought, members, strict=True)], unplaced

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

    def _finished(self, plan: Plan, standing: Mapping[str, Candidate]) -> list[Candidate]:
        """The candidates of commands whose replacement is up."""
        marks: list[Candidate] = []
        claims = {claim.name for claim in plan.document.claims}
        for command in tuple(self._commands):
            gone = command.replacement and command.replacement not in claims
            if command.replacement in standing or gone:
                self._commands.remove(command)
                if not gone:
                    marks += [standing[name] for name in command.claims if name in standing]
        return marks

    def _begun(self, snapshot: Snapshot, standing: Mapping[str, Candidate], plan: Plan) -> list[Candidate]:
        """New commands, as many as there was time for; the candidates of those that may go at once."""
        now = snapshot.taken_at
        times = 1 if self._asked_at is None else max(1, (now - self._asked_at) // _APART)
        self._asked_at = now
        quiet = self._quiet(standing, now)
        planned = self._planned(snapshot, standing, plan)
        room = _budgets(snapshot, plan, self._commands)
        taken = {name for command in self._commands for name in (*command.claims, command.replacement)}
        going: list[Candidate] = []
        for _ in range(times):
            free = [_with(each, planned.get(name, ())) for name, each in sorted(standing.items()) if name not in taken]
            ordered = sorted(
                (each for each in free if each.claim.name in quiet and each.claim.name not in planned),
                key=lambda each: each.order,
            )
            found = self._several(_within(ordered, room)[:_MOST_CANDIDATES], free) or self._single(ordered, free, room)
            if found is None:
                break
            chosen, fit = found
            claims = tuple(each.claim.name for each in chosen)
            taken.update(claims)
            for name, pod in fit.there:
                planned.setdefault(name, []).append(pod)
            for each in chosen:
                room[each.claim.node_pool] -= 1
            if fit.option is None:
                going += chosen
            else:
                self._commands.append(Command(claims, fit))
        return going

    def _planned(self, snapshot: Snapshot, standing: Mapping[str, Candidate], plan: Plan) -> dict[str, list[Pod]]:
        """Pods that are to come to what is up, by claim: those that wait, and those of commands under way."""
        names = {each.node: name for name, each in standing.items()}
        pods = {pod.key: pod for pod in snapshot.waiting_pods}
        planned: dict[str, list[Pod]] = {}
        for place in plan.placements:
            planned.setdefault(names.get(place.node or "", place.claim or ""), []).append(pods[place.pod])
        for command in self._commands:
            for name, pod in command.fit.there:
                planned.setdefault(name, []).append(pod)
        return planned

    def _quiet(self, standing: Mapping[str, Candidate], now: datetime) -> set[str]:
        """The claims of nodes with pods that have not changed for long enough."""
        quiet: set[str] = set()
        if self.consolidate_after is None:
            return quiet
        for name, each in standing.items():
            keys = frozenset(pod.key for pod in each.pods)
            seen = self._seen.get(name)
            since = seen[1] if seen is not None and seen[0] == keys else now
            self._seen[name] = (keys, since)
            if each.pods and now - since >= self.consolidate_after:
                quiet.add(name)
        return quiet

    def _several(self, ordered: Sequence[Candidate], free: Sequence[Candidate]) -> _Found | None:
        low, high, best = 2, len(ordered), None
        while low <= high:
            middle = (low + high) // 2
            fit = self._would_fit(ordered[:middle], free)
            if fit is not None:
                best, low = (ordered[:middle], fit), middle + 1
            else:
                high = middle - 1
        return best

    def _single(
        self, ordered: Sequence[Candidate], free: Sequence[Candidate], room: Mapping[str, int]
    ) -> _Found | None:
        for each in ordered:
            if room.get(each.claim.node_pool, 0) > 0:
                fit = self._would_fit([each], free)
                if fit is not None:
                    return [each], fit
        return None

    def _would_fit(self, going: Sequence[Candidate], free: Sequence[Candidate]) -> Fit | None:
        """Where all pods go, on what else is there and at most one new node that costs less than they do."""
        leaving = {each.claim.name for each in going}
        stays = [each for each in free if each.claim.name not in leaving]
        rooms = np.array([each.room for each in stays]).reshape(-1, len(_AXES))
        gpus = np.array([NVIDIA_GPU in each.claim.allocatable for each in stays], dtype=bool)
        left, needs_gpus = vector({}), set()
        there: list[tuple[str, Pod]] = []
        pods = [pod for each in going for pod in each.pods]
        for pod in sorted(pods, key=lambda each: (*_large_first(each), each.key)):
            asked = vector(pod.placing.requests)
            fits = (rooms >= asked).all(axis=1) & (gpus == bool(asked[2]))
            if fits.any():
                at = int(fits.argmax())
                rooms[at] -= asked
                there.append((stays[at].claim.name, pod))
            else:
                left = left + asked
                needs_gpus.add(bool(asked[2]))
        if not needs_gpus:
            return Fit(None, tuple(there))
        price = sum(each.claim.usd_per_hour.micros for each in going)
        large = [
            option
            for option in self._options
            if needs_gpus == {bool(option.instance_type.is_accelerated)} and (vector(option.allocatable) >= left).all()
        ]
        if len(going) > 1:
            types = {each.claim.inputs.instance_type for each in going}
            price = min([price, *(_micros(option) for option in large if option.instance_type.name in types)])
        return next((Fit(option, tuple(there)) for option in large if _micros(option) < price), None)


def _new(option: NodeOption, pods: Sequence[PodKey]) -> NewNode:
    return NewNode(option.labels[keys.NODE_POOL], option, tuple(sorted(pods)))


def _with(candidate: Candidate, planned: Sequence[Pod]) -> Candidate:
    """With the pods that wait for it."""
    return evolve(candidate, pods=[*candidate.pods, *planned]) if planned else candidate


def _within(ordered: Sequence[Candidate], room: Mapping[str, int]) -> list[Candidate]:
    """As many of each pool as its budget has room for."""
    left = dict(room)
    found = []
    for each in ordered:
        if left.get(each.claim.node_pool, 0) > 0:
            left[each.claim.node_pool] -= 1
            found.append(each)
    return found


def _budgets(snapshot: Snapshot, plan: Plan, commands: Sequence[Command]) -> dict[str, int]:
    """How many more nodes of each pool may go: a tenth of those that are up, rounded up, less what goes already."""
    up: Counter[str] = Counter()
    out: Counter[str] = Counter()
    pools = {claim.name: claim.node_pool for claim in plan.document.claims}
    for node in snapshot.nodes:
        pool = node.labels.get(keys.NODE_POOL, "")
        up[pool] += 1
        out[pool] += node.is_marked or not node.ready
    out.update(pools[name] for command in commands for name in command.claims if name in pools)
    out.update(each.record.node_pool for each in plan.removals if each.phase is RemovalPhase.MARK)
    return {pool: -(-count // 10) - out[pool] for pool, count in up.items()}


def _cheapest_by_type(options: Sequence[NodeOption]) -> tuple[NodeOption, ...]:
    """One for each instance type, the cheapest first."""
    found: dict[str, NodeOption] = {}
    priced = [each for each in options if each.usd_per_hour is not None and each.is_available]
    for each in sorted(priced, key=lambda one: (_micros(one), one.offering.key)):
        found.setdefault(each.instance_type.name, each)
    return tuple(found.values())


def _micros(option: NodeOption) -> int:
    assert option.usd_per_hour is not None
    return option.usd_per_hour.micros


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
