"""All that ``nodewright run`` is made of: the ports, who watches, and the loop between them."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

from attrs import evolve, frozen

from engine.actuate.event_recorder import EventRecorder
from engine.decide.budgets_asked import rules_on_pools
from engine.model.diagnostic import InvalidInput
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.outcome import Outcome
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from engine.reconcile.assembly import assemble, catalog_now
from engine.reconcile.following import Polled
from engine.reconcile.host import Host
from engine.reconcile.loop import DONE, Options, run
from engine.reconcile.ports import PassObserver, Ports, RunAudience
from engine.reconcile.rules import Rules
from engine.reconcile.shell import require_aws_plugin
from engine.reconcile.stopping import Stop
from engine.reconcile.troubles import Troubles, as_fault
from engine.reconcile.workspace import Workspace
from engine.report.events import events_of
from engine.report.metrics import PassMetrics, serve, write_textfile
from engine.report.summary import PassReport

_LOOK_AT_FILES_SECONDS = 2.0


@frozen
class Asked:
    """What the command line asks of a run; None leaves it to the stack file. ``metrics_address`` is ``HOST:PORT``."""

    options: Options = Options()
    every: timedelta | None = None
    batch_idle: timedelta | None = None
    batch_max: timedelta | None = None
    metrics_address: tuple[str, int] | None = None
    metrics_file: Path | None = None

    def over(self, environment: Environment) -> Environment:
        """The environment with these laid over what its stack file says."""
        declared = environment.run
        run = evolve(
            declared,
            every=declared.every if self.every is None else self.every,
            batch_idle=declared.batch_idle if self.batch_idle is None else self.batch_idle,
            batch_max=declared.batch_max if self.batch_max is None else self.batch_max,
        )
        return evolve(environment, run=run)


def run_environment(
    workspace: Workspace,
    name: str,
    asked: Asked,
    audience: RunAudience,
    stop: Stop,
    observers: Sequence[PassObserver] = (),
    host: Host = Host(),
) -> int:
    """Run until stopped, or once; the exit code of the loop. Raises Fault, InvalidInput when it cannot begin."""
    require_aws_plugin(workspace.environment(name), os.environ)
    rules = Rules(workspace, host.monotonic, catalog_now, asked.over)
    ports = _first_ports(workspace, name, rules, asked, audience, stop)
    if ports is None:
        return DONE
    # A one-shot run lists and goes; what it would watch is over before a watch is worth its connections.
    live = Polled(ports.cluster) if asked.options.once else ports.live()
    in_force = ports.policy

    def refreshed(before: Ports, troubles: Troubles) -> Ports:
        nonlocal in_force
        after = rules.current(before, troubles)
        in_force = after.policy
        return after

    with observed(ports, asked, audience, observers, lambda: in_force) as observer:
        return run(ports, live, host, audience, asked.options, observer=observer, stop=stop, refresh=refreshed)


def _first_ports(
    workspace: Workspace, name: str, rules: Rules, asked: Asked, audience: RunAudience, stop: Stop
) -> Ports | None:
    """The ports, once the files load: until then the whole environment is held. None when asked to stop before."""
    told = ""
    while not stop.is_requested:
        try:
            rules.about_to_read(workspace.environment(name))
            ports = assemble(workspace, name)
            return evolve(ports, environment=asked.over(ports.environment))
        except InvalidInput as invalid:
            if asked.options.once:
                raise
            if str(invalid) != told:
                told = str(invalid)
                audience.warn(Fault(told, "nothing is decided until the files load: nodewright check"))
        time.sleep(_LOOK_AT_FILES_SECONDS)
    return None


@contextmanager
def observed(
    ports: Ports,
    asked: Asked,
    audience: RunAudience,
    observers: Sequence[PassObserver],
    policy: Callable[[], Policy],
) -> Iterator[PassObserver]:
    """Everybody who is told of passes: metrics, events, logs."""
    environment = ports.environment
    metrics = PassMetrics(
        environment.name, policy, lambda current, snapshot: rules_on_pools(current, environment, snapshot)
    )
    with ExitStack() as opened:
        if asked.metrics_address is not None:
            host, port = asked.metrics_address
            server = serve(metrics, port, host)
            opened.callback(server.close)
            audience.say(f"metrics at http://{server.address}/metrics")
        told: list[PassObserver] = [metrics, *observers]
        if not asked.options.once:
            told.append(_KeptForLong())
        if ports.api_server is not None:
            recorder = EventRecorder(ports.api_server, environment.name, on_failure=metrics.event_failed)
            recorder.start()
            opened.callback(recorder.close)
            told.append(_Recorded(recorder))
        if asked.metrics_file is not None:
            told.append(_Written(metrics, asked.metrics_file))
        yield Everybody(tuple(told), audience)


class Everybody:
    """Tells each observer. One that fails is told of once and stops nothing: it only watches."""

    def __init__(self, observers: tuple[PassObserver, ...], audience: RunAudience) -> None:
        self._observers, self._audience = observers, audience
        self._failed: set[str] = set()

    def pass_begins(self, pass_id: str) -> None:
        self._each(lambda one: one.pass_begins(pass_id))

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        self._each(lambda one: one.decided(snapshot, plan, report))

    def converged(self, outcome: Outcome) -> None:
        self._each(lambda one: one.converged(outcome))

    def pass_ended(self, report: PassReport) -> None:
        self._each(lambda one: one.pass_ended(report))

    def _each(self, tell: Callable[[PassObserver], None]) -> None:
        for observer in self._observers:
            try:
                tell(observer)
            except Exception as error:
                fault = as_fault(error)
                if str(fault) not in self._failed:
                    self._failed.add(str(fault))
                    self._audience.warn(fault)


class _KeptForLong:
    """Spares the garbage collector what a whole cluster was read into: going through that took longer than a pass.

    It is freed all the same once nothing refers to it.
    """

    _is_done = False

    def pass_begins(self, pass_id: str) -> None:
        """Nothing is kept yet."""

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        if not self._is_done:
            self._is_done = True
            gc.freeze()

    def converged(self, outcome: Outcome) -> None:
        """It has no long life."""

    def pass_ended(self, report: PassReport) -> None:
        """The first plan was the moment."""


class _Recorded:
    """Kubernetes events of each plan."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def pass_begins(self, pass_id: str) -> None:
        """An event is about an object, not a pass."""

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        self._recorder.record(events_of(snapshot, plan, report.refused_evictions))

    def converged(self, outcome: Outcome) -> None:
        """The next plan tells what follows from it."""

    def pass_ended(self, report: PassReport) -> None:
        """All is told."""


class _Written:
    """The metrics in a file, after each pass."""

    def __init__(self, metrics: PassMetrics, file: Path) -> None:
        self._metrics, self._file = metrics, file

    def pass_begins(self, pass_id: str) -> None:
        """Nothing to write yet."""

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        """Written at the pass's end."""

    def converged(self, outcome: Outcome) -> None:
        """Written at the pass's end."""

    def pass_ended(self, report: PassReport) -> None:
        write_textfile(self._metrics, self._file)
