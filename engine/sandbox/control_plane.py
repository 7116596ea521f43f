"""A whole Kubernetes control plane on loopback: etcd, API server, scheduler, controllers, and kwok for kubelets.

It runs in background processes that outlive the command, and is looked after through its folder: `plane.json` (ports,
pids with start times), `kubeconfig`, a log for each part, etcd's data. Delete the folder and the processes end.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from attrs import asdict, define, evolve, field, frozen

from engine.model.fault import Fault
from engine.sandbox.credentials import ADMIN, PARTS, Credentials, credentials, write_private
from engine.sandbox.plane_client import PlaneClient, PlaneRefused, PlaneUnreachable
from engine.sandbox.plane_parts import API_SERVER, Layout, Ports, arguments, free_ports, stages
from engine.sandbox.plane_parts import PARTS as ALL_PARTS
from engine.sandbox.processes import Process, is_alive, pause, process_of, resume, stop

START_SECONDS = 120
STOP_SECONDS = 15
# The API server would wait for its watchers, who have no reason to leave.
CUT_OFF_SECONDS = 1
_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 2
_ATTEMPTS = 3
_SHOWN_LINES = 5
_RECORD = "plane.json"
_PORT_TAKEN = "address already in use"
# What the controllers make first of all in a new cluster.
_FIRST_ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"


class ControlPlaneError(Fault):
    """A part of the control plane did not start; the message ends with what it said."""


class _PortTaken(ControlPlaneError):
    """Somebody was quicker at a port that was free."""


@frozen
class Plane:
    """A control plane that answers. ``certificate_authority`` is base64 PEM, as in a kubeconfig."""

    endpoint: str
    kubeconfig: Path
    certificate_authority: str
    authority_file: Path
    token: str
    parts_token: str

    def client(self, timeout_seconds: float = 30.0) -> PlaneClient:
        """A connection of its own, for one thread."""
        return PlaneClient(self.endpoint, self.authority_file, self.token, timeout_seconds)

    def parts_client(self) -> PlaneClient:
        """As the plane's own parts connect: ``renew_token`` does not shut it out."""
        return PlaneClient(self.endpoint, self.authority_file, self.parts_token)


@define
class _Record:
    ports: Ports
    processes: dict[str, Process] = field(factory=dict)


@frozen
class ControlPlane:
    """The plane of a folder, run by ``program``.

    ``extra`` are further flags of a part. With an ``owner``, a process id, the parts end when that process is gone;
    without one they run until ``down``, or until the folder is deleted.
    """

    program: Path
    folder: Path
    extra: Mapping[str, tuple[str, ...]] = field(factory=dict)
    owner: int | None = None

    def up(self) -> Plane:
        """Start what does not run, on the data of before, and wait until all of it works.

        Raises ControlPlaneError when it does not within two minutes; nothing is left running then.
        """
        with self._locked():
            running = self.status()
            if running is not None:
                return running
            for attempt in range(1, _ATTEMPTS + 1):
                try:
                    return self._up()
                except _PortTaken:
                    self._stop_all()
                    self._forget_ports()
                    if attempt == _ATTEMPTS:
                        raise
                except BaseException:
                    self._stop_all()
                    raise
        raise AssertionError("the last attempt raises")

    def status(self) -> Plane | None:
        """The plane when all of its parts run and its API server answers."""
        record = self._recorded()
        if record is None or not all(
            part in record.processes and is_alive(record.processes[part]) for part in ALL_PARTS
        ):
            return None
        plane = self._plane(self._layout(record.ports))
        return plane if _is_ready(plane) else None

    def known(self) -> Plane | None:
        """The plane as it was last started, whether or not it runs; None when it never was."""
        record = self._recorded()
        return None if record is None else self._plane(self._layout(record.ports))

    def down(self) -> bool:
        """Stop every part, the last one first; whether any ran. Its data stay."""
        if not (self.folder / _RECORD).exists():
            return False
        with self._locked():
            return self._stop_all()

    def process(self, part: str) -> Process | None:
        """A part's process, when it runs."""
        record = self._recorded()
        process = record.processes.get(part) if record else None
        return process if process is not None and is_alive(process) else None

    def stop(self, part: str) -> None:
        """Stop one part; the others go on without it. ``up`` starts it again."""
        process = self.process(part)
        if process is not None:
            stop(process, CUT_OFF_SECONDS)

    def restart(self, part: str) -> Plane:
        self.stop(part)
        return self.up()

    def pause(self, part: str) -> None:
        """Freeze one part: connections stay open and nothing answers."""
        process = self.process(part)
        if process is not None:
            pause(process)

    def resume(self, part: str) -> None:
        process = self.process(part)
        if process is not None:
            resume(process)

    def renew_token(self) -> Plane:
        """Make the kubeconfig's token invalid and write another into it; the API server starts again for that."""
        credentials(self.folder / "credentials").renew_token(ADMIN)
        return self.restart(API_SERVER)

    def _up(self) -> Plane:
        record = self._recorded() or _Record(free_ports())
        layout = self._layout(record.ports)
        plane = self._plane(layout)
        _write_kubeconfig(plane.kubeconfig, layout, ADMIN)
        _write_kubeconfig(layout.parts_kubeconfig, layout, PARTS)
        self._write_stages(layout)
        for part in ALL_PARTS:
            if part not in record.processes or not is_alive(record.processes[part]):
                self._start(part, layout, record)
            self._await(part, layout, plane, record)
        return plane

    def _start(self, part: str, layout: Layout, record: _Record) -> None:
        # The record first: a part without one ends by itself.
        self._write_record(record)
        owner = {} if self.owner is None else {"CONTROL_PLANE_OWNER": str(self.owner)}
        with open(layout.log(part), "ab") as log:
            started = subprocess.Popen(
                [str(self.program), *arguments(part, layout, self.extra)],
                cwd=self.folder,
                env={**_without_proxies(), "CONTROL_PLANE_RECORD": str(self.folder / _RECORD), **owner},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        process = process_of(started.pid)
        if process is not None:
            record.processes[part] = process
            self._write_record(record)

    def _await(self, part: str, layout: Layout, plane: Plane, record: _Record) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not _works(part, layout, plane):
            process = record.processes.get(part)
            if process is None or not is_alive(process):
                raise _not_started(part, layout, "ended")
            if time.monotonic() > deadline:
                raise _not_started(part, layout, f"did not work within {START_SECONDS} s")
            time.sleep(_POLL_SECONDS)

    def _stop_all(self) -> bool:
        record = self._recorded()
        if record is None:
            return False
        running = [record.processes[part] for part in reversed(ALL_PARTS) if part in record.processes]
        was_running = any(is_alive(process) for process in running)
        for process in running:
            stop(process, STOP_SECONDS)
        self._write_record(evolve(record, processes={}))
        return was_running

    def _forget_ports(self) -> None:
        (self.folder / _RECORD).unlink(missing_ok=True)

    def _layout(self, ports: Ports) -> Layout:
        return Layout(self.folder, credentials(self.folder / "credentials"), ports)

    def _plane(self, layout: Layout) -> Plane:
        return Plane(
            endpoint=_endpoint(layout.ports),
            kubeconfig=self.folder / "kubeconfig",
            certificate_authority=layout.credentials.authority_base64,
            authority_file=layout.credentials.authority,
            token=layout.credentials.token(ADMIN),
            parts_token=layout.credentials.token(PARTS),
        )

    def _write_stages(self, layout: Layout) -> None:
        done = subprocess.run([str(self.program), "kwok-stages"], capture_output=True, check=False)
        if done.returncode != 0:
            raise ControlPlaneError(f"{self.program} does not run: {done.stderr.decode(errors='replace').strip()}")
        write_private(layout.stages, stages(done.stdout))

    def _recorded(self) -> _Record | None:
        try:
            stored = json.loads((self.folder / _RECORD).read_bytes())
            processes = {part: Process(**known) for part, known in stored["processes"].items()}
            return _Record(Ports(**stored["ports"]), processes)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _write_record(self, record: _Record) -> None:
        write_private(self.folder / _RECORD, json.dumps(asdict(record)).encode())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        with open(self.folder / "plane.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _endpoint(ports: Ports) -> str:
    return f"https://127.0.0.1:{ports.api}"


def _write_kubeconfig(file: Path, layout: Layout, user: str) -> None:
    have: Credentials = layout.credentials
    name = "nodewright-sandbox"
    written: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": _endpoint(layout.ports),
                    "certificate-authority-data": have.authority_base64,
                },
            }
        ],
        "users": [{"name": user, "user": {"token": have.token(user)}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
    write_private(file, yaml.safe_dump(written, sort_keys=False).encode())


def _works(part: str, layout: Layout, plane: Plane) -> bool:
    """The scheduler has nothing to ask: it is taken to work while it runs."""
    match part:
        case "etcd":
            return _is_healthy(f"http://127.0.0.1:{layout.ports.etcd}/health")
        case "kwok":
            return _is_healthy(f"http://127.0.0.1:{layout.ports.kwok}/healthz")
        case "kube-apiserver":
            return _is_ready(plane)
        case "kube-controller-manager":
            return _answers(plane, _FIRST_ACCOUNT)
        case _:
            return True


def _is_ready(plane: Plane) -> bool:
    return _answers(plane, "/readyz")


def _answers(plane: Plane, path: str) -> bool:
    client = plane.client(_ANSWER_SECONDS)
    try:
        client.get(path)
    except (PlaneRefused, PlaneUnreachable):
        return False
    else:
        return True
    finally:
        client.close()


def _is_healthy(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=_ANSWER_SECONDS) as answer:
            # etcd says so in words too: it answers while it has no leader.
            return b'"health":"false"' not in answer.read()
    except OSError:
        return False


def _without_proxies() -> dict[str, str]:
    """Loopback is never behind a proxy; and no part may find a kubeconfig or an account that is a person's own."""
    barred = ("KUBECONFIG",)
    return {
        name: value
        for name, value in os.environ.items()
        if not name.lower().endswith("_proxy") and not name.startswith("AWS_") and name not in barred
    }


def _not_started(part: str, layout: Layout, what: str) -> ControlPlaneError:
    log = layout.log(part)
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-_SHOWN_LINES:]
    kind = _PortTaken if any(_PORT_TAKEN in line for line in said) else ControlPlaneError
    return kind(f"{part} {what}, see {log}:\n" + "\n".join(said), "run it again; if it stays, read the log")
