"""Passes as Prometheus metrics: pulled over HTTP from a loop, written to a file by a run that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Lock
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, start_http_server, write_to_textfile
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric as CollectedMetric

from engine.disruption.budget_rules import BudgetRules
from engine.model.claim import Claim
from engine.model.document import RemovalRecord
from engine.model.fault import Fault
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import Launch, Plan, RemovalPhase
from engine.model.pod import PodKey
from engine.model.policy import Policy
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot
from engine.report import metric_table as table
from engine.report.gauges import Samples, gauges_of, idle_gpus
from engine.report.metric_table import ENVIRONMENT, METRICS, Metric, MetricType
from engine.report.milestones import pool_of, reached_since
from engine.report.summary import PassPhase, PassReport, PassResult

# What ``errors_total`` may count.
ERROR_KINDS = ("insufficient-capacity", "launch-failed", "outcome-unknown", "foundation", "pass", "not-synced", "event")
_OUTCOME_KINDS = {
    OutcomeStatus.FAILED_CAPACITY: "insufficient-capacity",
    OutcomeStatus.FAILED_OTHER: "launch-failed",
    OutcomeStatus.UNKNOWN: "outcome-unknown",
}
# A launch that was refused leaves no machine to terminate.
_MACHINES_GONE = tuple(reason for reason in DisruptionReason if reason is not DisruptionReason.LAUNCH_REFUSED)
_BEGAN = "_created"
# Gauges take longer than all the rest; between two looks only a scrape has them made.
_LOOKS_EVERY_SECONDS = 5
_MOST_UNREAD = 24
_ACTED = (PassResult.CONVERGED, PassResult.UNDER_WAY, PassResult.REFUSED, PassResult.INTERRUPTED)
_REACTIONS = (PassPhase.DECIDED, PassPhase.PUBLISHED, PassPhase.PULUMI, PassPhase.CALLED)

RulesOf = Callable[[Policy, Snapshot], BudgetRules | None]


class PassMetrics:
    """Told of passes, in any thread; knows nothing beyond what it is told.

    ``policy`` gives the policy of now, for budgets and pauses of pools; ``rules`` its disruption budgets as a snapshot
    has them.
    """

    def __init__(
        self, environment: str, policy: Callable[[], Policy] | None = None, rules: RulesOf | None = None
    ) -> None:
        self.registry = CollectorRegistry()
        self._own = CollectorRegistry()
        self.environment = environment
        self._policy = policy
        self._rules = rules
        self._lock = Lock()
        self._samples: Samples = {}
        self._is_synced = False
        self._counters = {each: self._counter(each) for each in METRICS if each.kind is MetricType.COUNTER}
        self._histograms = {each: self._histogram(each) for each in METRICS if each.kind is MetricType.HISTOGRAM}
        self._seen_at: datetime | None = None
        self._unread: list[tuple[Snapshot, Plan]] = []
        self._claims: dict[str, Claim] = {}
        self._launches: dict[str, Launch] = {}
        self._records: dict[str, RemovalRecord] = {}
        self._decided: Plan | None = None
        self._waited: set[PodKey] = set()
        self._reacting: dict[PodKey, datetime] = {}
        # When the pods of a launch were made, until it is known when the machine was called for.
        self._asked_at: dict[str, tuple[datetime, ...]] = {}
        self._counted: set[tuple[object, ...]] = set()
        self.registry.register(_Families(self, self._own))
        for kind in ERROR_KINDS:
            self._counters[table.ERRORS].labels(environment, kind)

    def pass_begins(self, pass_id: str) -> None:
        """Nothing is known of a pass yet."""

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        """A pass has seen the cluster whole and made its plan."""
        with self._lock:
            self._keep_for_a_look(snapshot, plan)
            self._is_synced, self._decided = True, plan
            self._learn(snapshot, plan)
            self._observe_milestones(snapshot, plan)
            self._observe_pods(snapshot, plan)
            self._count_differences(plan)
            if {PassPhase.SEEN.value, PassPhase.DECIDED.value} <= set(report.seconds):
                took = report.seconds[PassPhase.DECIDED.value] - report.seconds[PassPhase.SEEN.value]
                self._observe(table.SCHEDULING, (), took)

    def converged(self, outcome: Outcome) -> None:
        """A lane has been converged, or as much of it as could be."""
        with self._lock:
            for one in outcome.claims:
                self._count_outcome(one)
            if outcome.foundation_failures:
                self._count(table.ERRORS, ("foundation",), len(outcome.foundation_failures))

    def pass_ended(self, report: PassReport) -> None:
        """A pass is over, however it ended."""
        with self._lock:
            self._observe(table.PASS, (report.result.label,), report.total_seconds)
            if report.result is PassResult.NOT_SYNCED:
                self._is_synced = False
                self._count(table.ERRORS, ("not-synced",))
            elif report.result is PassResult.FAILED:
                self._count(table.ERRORS, ("pass",))
            if self._decided is not None and self._decided.hash == report.plan_hash and report.result in _ACTED:
                self._count_decisions(self._decided)
                self._observe_reaction(self._decided, report)
            self._reacting = {}

    def event_failed(self, count: int = 1) -> None:
        """Events that no API server took."""
        self._count(table.ERRORS, ("event",), count)

    def gauges(self) -> Samples:
        """What stands, as of the last plan."""
        with self._lock:
            self._look()
            return {**self._samples, table.SYNCED: {(): float(self._is_synced)}}

    def _counter(self, of: Metric) -> Counter:
        return Counter(of.name, of.meaning, (ENVIRONMENT, *of.labels), registry=self._own)

    def _histogram(self, of: Metric) -> Histogram:
        return Histogram(of.name, of.meaning, (ENVIRONMENT, *of.labels), registry=self._own, buckets=of.buckets)

    def _count(self, of: Metric, labels: tuple[str, ...], by: float = 1) -> None:
        self._counters[of].labels(self.environment, *labels).inc(by)

    def _count_once(self, of: Metric, labels: tuple[str, ...], about: object) -> None:
        """Count what is decided again by each pass until it is done only the first time."""
        if (of.name, *labels, about) not in self._counted:
            self._counted.add((of.name, *labels, about))
            self._count(of, labels)

    def _observe(self, of: Metric, labels: tuple[str, ...], seconds: float) -> None:
        self._histograms[of].labels(self.environment, *labels).observe(max(seconds, 0.0))

    def _keep_for_a_look(self, snapshot: Snapshot, plan: Plan) -> None:
        """Gauges are work for who scrapes them, not for a pass: it keeps its facts, one of a few seconds, and of fewer
        where nobody has scraped for long."""
        unread = self._unread
        if len(unread) > 1 and (snapshot.taken_at - unread[-2][0].taken_at).total_seconds() < _LOOKS_EVERY_SECONDS:
            unread.pop()
        if len(unread) >= _MOST_UNREAD:
            del unread[1::2]
        unread.append((snapshot, plan))

    def _look(self) -> None:
        """Take the gauges of what is unread. What was idle at one look was so until the next."""
        for snapshot, plan in self._unread:
            self._integrate_idle(snapshot.taken_at)
            policy = self._policy() if self._policy is not None else None
            rules = self._rules(policy, snapshot) if self._rules is not None and policy is not None else None
            self._samples = gauges_of(snapshot, plan, policy, rules)
        self._unread = []

    def _integrate_idle(self, now: datetime) -> None:
        if self._seen_at is not None and now > self._seen_at:
            for pool, idle in idle_gpus(self._samples).items():
                self._count(table.IDLE_GPU_SECONDS, (pool,), idle * (now - self._seen_at).total_seconds())
        self._seen_at = now

    def _learn(self, snapshot: Snapshot, plan: Plan) -> None:
        """Who the claims are that outcomes name; only of what is desired, leaving or planned."""
        documents = [plan.document, *([snapshot.document] if snapshot.document is not None else [])]
        self._records = {record.claim: record for document in documents for record in document.removals}
        desired = {claim.name: claim for document in documents for claim in document.claims}
        leaving = {name: claim for name, claim in self._claims.items() if name in self._records}
        self._claims = {**leaving, **desired}
        # A launch keeps its reason until its claim is gone.
        launches = {**self._launches, **{launch.claim.name: launch for launch in plan.launches}}
        self._launches = {name: launch for name, launch in launches.items() if name in self._claims}
        self._asked_at = {name: made for name, made in self._asked_at.items() if name in self._claims}
        about = {*self._claims, *self._records, *(each.pod for each in plan.binding_differences)}
        self._counted = {counted for counted in self._counted if counted[-1] in about}

    def _observe_milestones(self, snapshot: Snapshot, plan: Plan) -> None:
        for name, stage, took in reached_since(snapshot.ledger, plan.ledger, self._claims):
            if ("milestone", stage, name) not in self._counted:
                self._counted.add(("milestone", stage, name))
                self._observe(table.MILESTONE, (pool_of(name, self._claims), stage.value), took.total_seconds())
        for name in [name for name in self._asked_at if name in plan.ledger.milestones]:
            launched_at = plan.ledger.milestones[name].launched_at
            if launched_at is not None:
                for created_at in self._asked_at.pop(name):
                    self._observe(table.REACTION, (PassPhase.CALLED.value,), (launched_at - created_at).total_seconds())

    def _observe_pods(self, snapshot: Snapshot, plan: Plan) -> None:
        waiting = {pod.key: pod.created_at for pod in snapshot.waiting_pods}
        still: set[PodKey] = set()
        for pod in snapshot.pods if self._waited else ():
            if pod.key not in self._waited:
                continue
            if pod.ready_at is None:
                still.add(pod.key)
            else:
                self._observe(table.STARTUP, (), (pod.ready_at - pod.created_at).total_seconds())
        self._waited = still | set(waiting)
        self._reacting = {pod: waiting[pod] for launch in plan.launches for pod in launch.pods if pod in waiting}

    def _observe_reaction(self, plan: Plan, report: PassReport) -> None:
        for phase in _REACTIONS:
            if phase.value in report.seconds:
                for created_at in self._reacting.values():
                    waited = (report.started_at - created_at).total_seconds()
                    self._observe(table.REACTION, (phase.value,), waited + report.seconds[phase.value])
        if PassPhase.CALLED.value not in report.seconds:
            # A lane is under way: EC2's own launch time will tell.
            for launch in plan.launches:
                made = tuple(self._reacting[pod] for pod in launch.pods if pod in self._reacting)
                self._asked_at[launch.claim.name] = made

    def _count_differences(self, plan: Plan) -> None:
        for difference in plan.binding_differences:
            self._count_once(table.DIFFERENCES, (), difference.pod)

    def _count_decisions(self, plan: Plan) -> None:
        for launch in plan.launches:
            self._count_once(table.DECISIONS, ("launch", launch.reason.value), launch.claim.name)
        for removal in plan.removals:
            decision = "drain" if removal.phase is RemovalPhase.MARK else "release"
            self._count_once(table.DECISIONS, (decision, removal.record.reason.value), removal.record.claim)

    def _count_outcome(self, one: ClaimOutcome) -> None:
        if one.status in _OUTCOME_KINDS:
            self._count(table.ERRORS, (_OUTCOME_KINDS[one.status],))
        claim, record = self._claims.get(one.claim), self._records.get(one.claim)
        told = one.offering.split("/")[2:3]
        capacity_type = told[0] if told else (claim.inputs.capacity_type if claim is not None else "")
        if one.status in (OutcomeStatus.CREATED, OutcomeStatus.ADOPTED) and claim is not None:
            launch = self._launches.get(one.claim)
            # A launch of a runner before this one is carried on with: why it was decided is not known any more.
            reason = launch.reason.value if launch is not None else "CarriedOn"
            self._count_once(table.CREATED, (claim.node_pool, capacity_type, reason), one.claim)
        elif one.status is OutcomeStatus.DELETED and record is not None and record.reason in _MACHINES_GONE:
            self._count_once(table.TERMINATED, (record.node_pool, capacity_type, record.reason.value), one.claim)


class _Families:
    """All that is scraped. The gauges of one moment come together: a scrape never sees half of a pass."""

    def __init__(self, of: PassMetrics, counted: CollectorRegistry) -> None:
        self._of, self._counted = of, counted

    def collect(self) -> Iterable[CollectedMetric]:
        # First of all, since looking at what stands counts idle GPUs.
        samples = self._of.gauges()
        for family in self._counted.collect():
            # The client adds when each series began: as many series again, that nobody asks for.
            family.samples = [sample for sample in family.samples if not sample.name.endswith(_BEGAN)]
            yield family
        for metric in METRICS:
            if metric.kind is MetricType.GAUGE:
                yield self._family(metric, samples.get(metric, {}))

    def _family(self, metric: Metric, values: Mapping[tuple[str, ...], float]) -> GaugeMetricFamily:
        family = GaugeMetricFamily(metric.name, metric.meaning, labels=(ENVIRONMENT, *metric.labels))
        for labels, value in sorted(values.items()):
            family.add_metric((self._of.environment, *labels), value)
        return family


class MetricsServer:
    """Answers scrapes at ``/metrics`` in a thread of its own, until it is closed."""

    def __init__(self, server: WSGIServer, address: str) -> None:
        self._server = server
        self.address = address

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def serve(metrics: PassMetrics, port: int, address: str = "127.0.0.1") -> MetricsServer:
    """Serve the metrics; port 0 takes a free one. Raises Fault when the address is taken or not ours."""
    try:
        server, _ = start_http_server(port, addr=address, registry=metrics.registry)
    except OSError as error:
        raise Fault(
            f"metrics cannot be served at {address}:{port}: {error.strerror or error}",
            "give another --metrics-address, or stop what listens there",
        ) from None
    return MetricsServer(server, f"{address}:{server.server_port}")


def write_textfile(metrics: PassMetrics, path: Path) -> None:
    """Write the metrics for a node exporter's textfile collector; the file changes all at once. Raises Fault."""
    try:
        write_to_textfile(str(path), metrics.registry)
    except OSError as error:
        raise Fault(
            f"metrics cannot be written to {path}: {error.strerror or error}",
            "give --metrics-file a path in a folder that exists and may be written",
        ) from None
