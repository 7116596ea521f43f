"""The process that bench_steady measures: the real loop, each part of a pass timed in the thread that decides."""

from __future__ import annotations

import cProfile
import secrets
import statistics
import subprocess
import threading
import time
import urllib.request
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from attrs import define, field, frozen
from steady_world import event_of

from engine.actuate.drain import KubernetesDrainer
from engine.actuate.lease import KubernetesLease
from engine.actuate.nominate import KubernetesNominator
from engine.actuate.registration import KubernetesRegistrar
from engine.converge.store import FileStore
from engine.model.canonical import from_json
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.pod import Pod
from engine.model.policy import Policy
from engine.model.snapshot import CloudFacts
from engine.observe.api_server import ApiServer
from engine.observe.cluster import KubernetesCluster
from engine.observe.kubernetes import Seen
from engine.observe.live_cluster import LiveCluster
from engine.observe.live_kind import LiveKind
from engine.reconcile import live_pass
from engine.reconcile.assembly import catalog_now
from engine.reconcile.following import Watched
from engine.reconcile.host import Host
from engine.reconcile.loop import Options, run
from engine.reconcile.one_writer import BothLeases, StoreLease
from engine.reconcile.ports import Ports
from engine.reconcile.rules import Rules
from engine.reconcile.running import Asked, observed
from engine.reconcile.stopping import Stop
from engine.reconcile.works import Works
from engine.reconcile.workspace import Workspace
from engine.report.summary import PassReport, PassResult
from engine.sandbox.control_plane import Plane

Feed = Callable[..., "subprocess.Popen[str]"]
_PATIENCE_SECONDS = 120.0
_WARM_PASSES = 5


@frozen
class Settings:
    """``feed`` starts a process that changes pods."""

    root: Path
    environment: str
    plane: Plane
    is_replayed: bool
    passes: int
    rate: float
    seconds: float
    clients: int
    feed: Feed
    profile: str | None = None


@frozen
class Told:
    """EC2's answer, always the same."""

    facts: CloudFacts

    def read(
        self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
    ) -> CloudFacts:
        return self.facts

    def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
        return tuple(each for each in self.facts.instances if each.claim in names)


class NothingConverges:
    """A session that would be asked to converge only if there were something to do."""

    def lane(self, stack: str) -> Any:
        raise Fault(f"stack {stack} was to converge, and nothing should have to")

    def prepare_lane(self, stack: str) -> None:
        """Nothing to prepare."""

    def interrupt(self) -> None:
        """Nothing is under way."""


@define
class Passes:
    """Of each pass, the CPU seconds of its parts in the deciding thread, and when its facts were taken."""

    parts: list[dict[str, float]] = field(factory=list)
    looked_at: list[float] = field(factory=list)
    results: list[PassResult] = field(factory=list)
    ended: threading.Condition = field(factory=threading.Condition)
    _now: dict[str, float] = field(factory=lambda: defaultdict(float))
    _began: float = 0.0

    def begin(self) -> None:
        self._now, self._began = defaultdict(float), time.thread_time()

    def end(self, report: PassReport) -> None:
        with self.ended:
            self.parts.append({"whole": time.thread_time() - self._began, **self._now})
            self.results.append(report.result)
            self.ended.notify_all()

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def work_timed(*positional: Any, **named: Any) -> Any:
            began = time.thread_time()
            try:
                return work(*positional, **named)
            finally:
                self._now[name] += time.thread_time() - began

        return work_timed

    def await_count(self, count: int) -> None:
        with self.ended:
            if not self.ended.wait_for(lambda: len(self.parts) >= count, _PATIENCE_SECONDS):
                raise SystemExit(f"bench-steady: {len(self.parts)} passes where {count} were to come")


class Audience:
    """Ends each pass's record; what goes wrong is shown, since nothing should."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes

    def say(self, line: str) -> None:
        """Nobody reads along."""

    def warn(self, fault: Fault) -> None:
        print(f"  warning: {fault}", flush=True)

    def pass_ended(self, report: PassReport, *, is_quiet: bool) -> None:
        self._passes.end(report)

    def on_event(self, event: object) -> None:
        """Nothing converges."""


class Observing:
    """The observers that ``run`` installs, timed."""

    def __init__(self, observer: Any, passes: Passes) -> None:
        self._observer, self._passes = observer, passes
        self.converged = observer.converged
        self.decided = passes.timed("observers", observer.decided)
        self.pass_ended = passes.timed("observers", observer.pass_ended)
        self._pass_begins = passes.timed("observers", observer.pass_begins)

    def pass_begins(self, pass_id: str) -> None:
        self._passes.begin()
        self._passes.looked_at.append(time.time())
        self._pass_begins(pass_id)


@contextmanager
def each_part_timed(passes: Passes, arrived: dict[int, float]) -> Iterator[None]:
    """Time the parts of a pass, and note when each event of the bench has come to be among the facts."""
    put = LiveKind.put

    def put_noted(kind: LiveKind, seen: Seen) -> None:
        put(kind, seen)
        if isinstance(seen.value, Pod):
            arrived[event_of(seen.value.ready_at)] = time.time()

    with ExitStack() as patched:
        for holder, name, part in (
            (Watched, "facts", "facts"),
            (live_pass, "decide", "decide"),
            (Works, "do", "works and chores"),
            (live_pass, "report_of", "report"),
        ):
            patched.enter_context(patch.object(holder, name, passes.timed(part, getattr(holder, name))))
        patched.enter_context(patch.object(LiveKind, "put", put_noted))
        yield


def measured_loop(settings: Settings) -> dict[str, Any]:
    """Begin a loop, let it sync, force passes one by one, then let events come; what all of that cost."""
    passes, stop, told = Passes(), Stop(), dict[str, Any]()
    arrived: dict[int, float] = {}
    with ExitStack() as opened:
        kubeconfig, play = str(settings.plane.kubeconfig), ""
        if settings.is_replayed:
            kubeconfig, play = opened.enter_context(_replay(settings))
        ports = _ports(settings, kubeconfig)
        rules = Rules(ports.workspace, time.monotonic, catalog_now)
        audience = Audience(passes)
        asked = Asked(metrics_address=("127.0.0.1", 0))
        observer = opened.enter_context(observed(ports, asked, audience, (), lambda: ports.policy))
        opened.enter_context(each_part_timed(passes, arrived))
        live = ports.live()
        began = time.time(), time.process_time()

        def conduct() -> None:
            try:
                told["sync"] = _synced(live, passes, began)
                told["passes"] = {} if settings.is_replayed else _forced(settings, passes)
                told["rss_mb"] = _memory_mb("VmRSS")
                told["events"] = _fed(settings, passes, arrived, play)
            except BaseException as error:
                print(error, flush=True)
            finally:
                stop.request()

        threading.Thread(target=conduct, name="conductor", daemon=True).start()
        profile = cProfile.Profile() if settings.profile else None
        with profile or nullcontext():
            run(
                ports,
                live,
                Host(),
                audience,
                Options(),
                observer=Observing(observer, passes),
                stop=stop,
                refresh=passes.timed("files", rules.current),
            )
        if profile is not None:
            profile.dump_stats(str(settings.profile))
    unlike = {result.value for result in passes.results[_WARM_PASSES:] if result is not PassResult.IDLE}
    if "events" not in told or unlike:
        raise SystemExit(f"bench-steady: passes that had nothing to do ended with {unlike or told.keys()}")
    return told | {"peak_rss_mb": _memory_mb("VmHWM")}


def _ports(settings: Settings, kubeconfig: str) -> Ports:
    """As for a real cluster, but for EC2 and Pulumi."""
    workspace = Workspace(settings.root)
    environment = workspace.environment(settings.environment)
    store = FileStore(workspace.store_root(environment), environment.name)
    cluster = KubernetesCluster(str(settings.plane.kubeconfig))
    api_server = cluster.api_server
    lease = KubernetesLease(api_server, "kube-system", "nodewright-bench", f"bench-{secrets.token_hex(4)}")
    return Ports(
        workspace=workspace,
        environment=environment,
        policy=workspace.policy(environment),
        catalog=catalog_now(workspace, environment),
        store=store,
        cloud=Told(from_json(CloudFacts, (settings.root / "cloud.json").read_bytes())),
        cluster=_Unasked(),
        drainer=KubernetesDrainer(api_server),
        registrar=KubernetesRegistrar(api_server),
        nominator=KubernetesNominator(api_server),
        lease=BothLeases(StoreLease(store), lease),
        session=lambda tell: nullcontext(NothingConverges()),
        live=lambda: Watched(LiveCluster(ApiServer(kubeconfig))),
        api_server=api_server,
        now=lambda: datetime.now(UTC),
    )


class _Unasked:
    """A loop follows its cluster and never reads it whole."""

    def read(self, cloud: CloudFacts, document: DesiredDocument | None) -> Any:
        raise AssertionError("a loop reads its live source")


def _synced(live: Any, passes: Passes, began: tuple[float, float]) -> dict[str, float]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while unsynced := live.unsynced():
        if time.monotonic() > deadline:
            raise SystemExit(f"bench-steady: not synced after {_PATIENCE_SECONDS:.0f} s: {unsynced}")
        time.sleep(0.01)
    synced_at = time.time()
    passes.await_count(1)
    first = {"seconds": synced_at - began[0], "first_pass_seconds": time.time() - began[0]}
    return first | {"cpu_ms": (time.process_time() - began[1]) * 1000}


def _forced(settings: Settings, passes: Passes) -> dict[str, Any]:
    """One pass for each harmless change of a pod, and each at rest before the next."""
    feed = settings.feed("demand")
    assert feed.stdin is not None
    first, numbers = 0, _unused_numbers()
    for number in range(_WARM_PASSES + settings.passes):
        if number == _WARM_PASSES:
            first, began = len(passes.parts), time.process_time()
        count = len(passes.parts)
        feed.stdin.write(f"{numbers + number}\n")
        feed.stdin.flush()
        passes.await_count(count + 1)
        time.sleep(0.05)
    cost = time.process_time() - began
    feed.stdin.close()
    feed.wait()
    made = passes.parts[first:]
    names = dict.fromkeys(name for each in made for name in each)
    table = {name: _median_and_p99([each.get(name, 0.0) * 1000 for each in made]) for name in names}
    return table | {"process_ms": cost * 1000 / len(made), "count": len(made)}


def _fed(settings: Settings, passes: Passes, arrived: dict[int, float], play: str) -> dict[str, Any]:
    """Let events come at the rate for the time; how far behind each was seen, and what the process used for it."""
    first_pass, arrived_before = len(passes.parts), set(arrived)
    began = time.time(), time.process_time()
    sent = _replayed(play) if play else _patched(settings)
    until = time.time()
    share = (time.process_time() - began[1]) / (until - began[0])
    time.sleep(2.0)
    seen = {number: at for number, at in arrived.items() if number in sent and number not in arrived_before}
    looks = passes.looked_at[first_pass:]
    decided = {number: looks[place] for number, at in seen.items() if (place := bisect_left(looks, at)) < len(looks)}
    return {
        "sent_per_second": len(sent) / (max(sent.values()) - min(sent.values())),
        "sent": len(sent),
        "unseen": len(sent) - len(seen),
        "passes": len(passes.parts) - first_pass,
        "cpu_share": share,
        "in_facts": _lags(sent, seen),
        "decided": _lags(sent, decided),
    }


def _unused_numbers() -> int:
    """The first of many that no event had so far, in a cluster that was kept either: a pod that is told again what it
    says already has not changed."""
    return int((time.time() - 1_700_000_000) * 1000)


def _patched(settings: Settings) -> Mapping[int, float]:
    first = _unused_numbers()
    feeds = [
        settings.feed(
            "rate", "--first", str(first + each), "--step", str(settings.clients),
            "--rate", str(settings.rate / settings.clients), "--seconds", str(settings.seconds),
        )
        for each in range(settings.clients)
    ]  # fmt: skip
    return _numbered("\n".join(feed.communicate()[0] for feed in feeds))


@contextmanager
def _replay(settings: Settings) -> Iterator[tuple[str, str]]:
    """A kubeconfig of the source that replays, and where to make it begin."""
    feed = settings.feed("replay", "--rate", str(settings.rate), "--seconds", str(settings.seconds))
    try:
        assert feed.stdout is not None
        server = f"http://127.0.0.1:{int(feed.stdout.readline())}"
        written = yaml.safe_load(settings.plane.kubeconfig.read_text(encoding="utf-8"))
        written["clusters"][0]["cluster"] = {"server": server}
        kubeconfig = settings.root.parent / "replay.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(written), encoding="utf-8")
        yield str(kubeconfig), f"{server}/play"
    finally:
        feed.kill()
        feed.wait()


def _replayed(play: str) -> Mapping[int, float]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(play, method="POST"), timeout=_PATIENCE_SECONDS) as answer:
        return _numbered(answer.read().decode())


def _numbered(text: str) -> Mapping[int, float]:
    return {int(number): float(at) for number, at in (line.split() for line in text.splitlines() if line)}


def _lags(sent: Mapping[int, float], seen: Mapping[int, float]) -> dict[str, float]:
    lags = sorted(at - sent[number] for number, at in seen.items()) or [float("nan")]
    return {"median": statistics.median(lags), "p99": lags[len(lags) * 99 // 100], "most": lags[-1]}


def _median_and_p99(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    return {"median_ms": statistics.median(ordered), "p99_ms": ordered[max(0, -(-len(ordered) * 99 // 100) - 1)]}


def _memory_mb(name: str) -> float:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise SystemExit("bench-steady: this system does not tell what a process holds in memory")
