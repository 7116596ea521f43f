"""The sandbox's kubelets as a background process beside the control plane that it is for.

`python -m engine.sandbox.kubelets_process FILE` runs until SIGTERM, or until FILE is gone; FILE holds its settings.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

import engine
from engine.model.fault import Fault
from engine.sandbox.control_plane import ControlPlane
from engine.sandbox.credentials import write_private
from engine.sandbox.kubelets import Kubelets, Pace
from engine.sandbox.plane_client import PlaneClient, PlaneUnreachable
from engine.sandbox.processes import Process, is_alive, process_of, stop

_STOP_SECONDS = 10
_FORGOTTEN_SECONDS = 5
_SETTINGS, _RECORD, _LOG = "kubelets.settings.json", "kubelets.json", "kubelets.log"


@frozen
class KubeletSettings:
    """For whom the kubelets work: the machines of one environment at an EC2 endpoint."""

    ec2_url: str
    region: str
    environment: str
    pace: Pace


def kubelets_up(plane_folder: Path, settings: KubeletSettings) -> Process:
    """The process for the plane of that folder, started when it does not run with these very settings.

    Raises Fault when it ends at once.
    """
    wanted = json.dumps(asdict(settings)).encode()
    file = plane_folder / _SETTINGS
    running = _running(plane_folder)
    if running is not None and file.is_file() and file.read_bytes() == wanted:
        return running
    kubelets_down(plane_folder)
    write_private(file, wanted)
    source = str(Path(engine.__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH")]))
    with open(plane_folder / _LOG, "ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "engine.sandbox.kubelets_process", str(file)],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    process = process_of(started.pid)
    if process is None:
        raise Fault(f"the sandbox's kubelets did not start, see {plane_folder / _LOG}", "read the log")
    write_private(plane_folder / _RECORD, json.dumps(asdict(process)).encode())
    return process


def kubelets_down(plane_folder: Path) -> bool:
    """Stop the process for that plane; whether it ran."""
    running = _running(plane_folder)
    if running is not None:
        stop(running, _STOP_SECONDS)
    return running is not None


def _running(plane_folder: Path) -> Process | None:
    try:
        process = Process(**json.loads((plane_folder / _RECORD).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return process if is_alive(process) else None


def main(file: Path) -> None:
    """Serve until SIGTERM, or until the settings are gone: nobody could find this process then."""
    stored = json.loads(file.read_bytes())
    pace = stored.pop("pace")
    settings = KubeletSettings(**stored, pace=Pace(**{**pace, "startup_taints": tuple(pace["startup_taints"])}))
    plane = ControlPlane(Path("control-plane"), file.parent)

    def connect() -> PlaneClient:
        known = plane.known()
        if known is None:
            raise PlaneUnreachable("the control plane is gone", "nodewright sandbox up starts it again")
        return known.parts_client()

    kubelets = Kubelets(_ec2(settings), connect, settings.environment, settings.pace, tell=_log)
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    threading.Thread(target=_leave_when_forgotten, args=(file,), daemon=True).start()
    kubelets.run()


def _ec2(settings: KubeletSettings) -> Any:
    import boto3
    from botocore.config import Config

    return boto3.client(
        "ec2",
        region_name=settings.region,
        endpoint_url=settings.ec2_url,
        aws_access_key_id="sandbox",
        aws_secret_access_key="sandbox",
        config=Config(proxies={}, connect_timeout=3, read_timeout=10),
    )


def _leave_when_forgotten(file: Path) -> None:
    while file.exists():
        time.sleep(_FORGOTTEN_SECONDS)
    os._exit(0)


def _log(line: str) -> None:
    with contextlib.suppress(OSError):
        print(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {line}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
