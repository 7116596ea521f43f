"""Counting what happens in a simulated run, pass by pass, into a `Run`."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from engine.model.money import UsdPerHour
from engine.model.outcome import OutcomeStatus
from engine.model.plan import LimitUse, Plan, RemovalPhase
from engine.model.quantity import ACCELERATORS
from engine.model.refusal import CeilingReached, GuardrailBlocks, RuleForbids
from engine.simulate.record import BudgetSeen, LimitSeen, RuleSeen, Run, Sample, Violation, Waits
from engine.simulate.world import Done, World

_SAMPLES = 600
_BY_RULES = (RuleForbids, CeilingReached, GuardrailBlocks)


class Recorder:
    """``length`` is how long the run is to be: so many samples are kept, whatever it is."""

    def __init__(self, world: World, length: timedelta) -> None:
        self._world, self._began = world, world.now
        self._apart = length / _SAMPLES
        self._samples: list[Sample] = []
        self._passes = 0
        self._usd_before = world.ec2.usd()
        self._gpu_hours = self._gpu_hours_used = 0.0
        self._latest: Sample | None = None
        self._launches: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._removals: Counter[str] = Counter()
        self._evictions: Counter[str] = Counter()
        self._refused_evictions = self._lost = 0
        self._first: list[float] = []
        self._again: list[float] = []
        self._budgets: dict[tuple[str, str], BudgetSeen] = {}
        self._limits: dict[tuple[str, ...], LimitSeen] = {}
        self._kept: Counter[str] = Counter()
        self._refusals: Counter[str] = Counter()
        self._refusing_rules: Counter[tuple[str, str]] = Counter()

    def note(self, plan: Plan, done: Done) -> None:
        """One pass, once it is applied."""
        self._passes += 1
        self._note_launches(plan, done)
        self._note_removals(plan, done)
        self._note_bindings()
        for use in plan.limits:
            self._note_limit(use)
        self._kept = Counter(kept.reason.code for kept in plan.kept)
        nearest = [each.refusals[0].refusal for each in plan.unplaced if each.refusals]
        self._refusals = Counter(each.code for each in nearest)
        self._refusing_rules = Counter((each.code, each.rule) for each in nearest if isinstance(each, _BY_RULES))
        if self._latest is None or self._world.now >= self._latest.at + self._apart:
            self._take_sample()

    def finished(self, name: str, violations: tuple[Violation, ...]) -> Run:
        """The whole of it."""
        self._note_bindings()
        self._take_sample()
        now = self._world.now
        return Run(
            name=name,
            began=self._began,
            ended=now,
            samples=tuple(self._samples),
            passes=self._passes,
            usd=self._world.ec2.usd() - self._usd_before,
            gpu_hours=self._gpu_hours,
            gpu_hours_used=self._gpu_hours_used,
            launches=dict(sorted(self._launches.items())),
            refused=dict(sorted(self._refused.items())),
            removals=dict(sorted(self._removals.items())),
            evictions=dict(sorted(self._evictions.items())),
            refused_evictions=self._refused_evictions,
            lost_pods=self._lost,
            jobs_done=self._world.jobs_done,
            work_lost=self._world.work_lost,
            waits=Waits(tuple(sorted(self._first)), tuple(sorted(self._again)), self._still_waiting(now)),
            budgets=tuple(self._budgets[key] for key in sorted(self._budgets)),
            limits=tuple(self._limits[key] for key in sorted(self._limits)),
            kept=dict(sorted(self._kept.items())),
            refusals=dict(sorted(self._refusals.items())),
            refusing_rules=tuple(RuleSeen(*of, pods) for of, pods in sorted(self._refusing_rules.items())),
            violations=violations,
        )

    def _note_launches(self, plan: Plan, done: Done) -> None:
        types = {launch.claim.name: launch.claim.inputs.instance_type for launch in plan.launches}
        for outcome in done.launches:
            if outcome.status is OutcomeStatus.CREATED:
                self._launches[types[outcome.claim]] += 1
            else:
                self._refused[outcome.code] += 1

    def _note_removals(self, plan: Plan, done: Done) -> None:
        for removal, answer in done.evictions:
            if answer.is_refused:
                self._refused_evictions += 1
            else:
                self._evictions[removal.record.reason.value] += 1
        if plan.paused:
            return
        for removal in plan.removals:
            record = removal.record
            if removal.phase is RemovalPhase.RELEASE:
                self._removals[record.reason.value] += 1
            elif record.budget is not None:
                key = (record.node_pool, record.budget.budget)
                known = self._budgets.get(key)
                use = record.budget
                is_more = known is None or use.used * known.allowed >= known.used * use.allowed
                most = use if is_more or known is None else known
                self._budgets[key] = BudgetSeen(
                    *key, most.used, most.allowed, most.base, (known.removals if known is not None else 0) + 1
                )

    def _note_bindings(self) -> None:
        found = self._world.bindings()
        for _, seconds, is_again in found.bound:
            (self._again if is_again else self._first).append(seconds)
        self._lost += sum(found.lost.values())

    def _note_limit(self, use: LimitUse) -> None:
        key = (use.node_pool, use.resource, use.rule, use.group)
        known, used = self._limits.get(key), use.used + use.planned
        if known is None or used >= known.used:
            self._limits[key] = LimitSeen(*key, use.limit, used)

    def _still_waiting(self, now: datetime) -> tuple[float, ...]:
        return tuple(sorted((now - pod.created_at).total_seconds() for pod in self._world.cluster.waiting))

    def _take_sample(self) -> None:
        sample = self._sample()
        if self._latest is not None:
            hours = (sample.at - self._latest.at).total_seconds() / 3600
            self._gpu_hours += self._latest.gpus * hours
            self._gpu_hours_used += self._latest.gpus_used * hours
        self._latest = sample
        self._samples.append(sample)

    def _sample(self) -> Sample:
        cluster, alive = self._world.cluster, self._world.ec2.alive()
        claims = [claim for each in alive if (claim := self._world.ec2.claim_of(each.id)) is not None]
        nodes, pods = cluster.nodes, cluster.pods
        bound = [pod for pod in pods if pod.node_name is not None and not pod.is_daemon]
        return Sample(
            at=self._world.now,
            usd_per_hour=UsdPerHour(sum(claim.usd_per_hour.micros for claim in claims)),
            machines=len(alive),
            nodes=len(nodes),
            going=sum(node.is_marked for node in nodes),
            gpus=sum(node.allocatable.amount(name) for node in nodes for name in ACCELERATORS),
            gpus_used=sum(pod.placing.requests.amount(name) for pod in bound for name in ACCELERATORS),
            running=len(bound),
            waiting=len(cluster.waiting),
        )
