"""The sandbox's EC2: moto's server on loopback, as a background process that outlives the command.

`python -m engine.sandbox.ec2 --port N --state DIR` serves; `ec2_up`, `ec2_status` and `ec2_down` look after such a
process through DIR, which holds `ec2.json` (address, pid, boot id), `ec2.log`, `requests.jsonl` (what was asked),
`faults.json` (what to do wrong, see faults.py) and `reservations.json` (see reservations.py). Its state is in memory:
a new boot id means that every instance, network and role of the old one is gone.
"""

import argparse
import contextlib
import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

from attrs import asdict, frozen

import engine
from engine.sandbox.ec2_app import BOOT_PATH, DATA, Ec2Application, RequestLog, is_running
from engine.sandbox.ec2_tags import read_tags_by_owner
from engine.sandbox.faults import FaultBook
from engine.sandbox.reservations import ReservationBook

START_SECONDS = 60
STOP_SECONDS = 5
ANSWER_SECONDS = 5
# Twice in a row, so that a record that is being replaced does not count.
FORGOTTEN_SECONDS, FORGOTTEN_AFTER = 5, 2

STATE_FILE = "ec2.json"
FAULTS_FILE = "faults.json"
RESERVATIONS_FILE = "reservations.json"
REQUESTS_FILE = "requests.jsonl"
LOG_FILE = "ec2.log"


class Ec2Error(Exception):
    """The endpoint did not start; the message ends with what it said."""


@frozen
class Ec2Endpoint:
    """A server that answers. `fresh`: this call started it, so it holds nothing yet."""

    url: str
    pid: int
    boot_id: str
    fresh: bool


def ec2_up(state_dir: Path) -> Ec2Endpoint:
    """The endpoint of `state_dir`, started when it is not running; on the port it had before, where that is free.

    Raises Ec2Error when it does not answer within a minute.
    """
    state_dir.mkdir(parents=True, exist_ok=True)
    with _one_starter(state_dir):
        running = ec2_status(state_dir)
        return running if running is not None else _started(state_dir)


def ec2_status(state_dir: Path) -> Ec2Endpoint | None:
    """The endpoint of `state_dir` if it is alive: one that answers with the boot id on record, not just a pid."""
    noted = _noted(state_dir)
    if noted is None or _boot_id_at(noted.url) != noted.boot_id:
        return None
    return noted


def ec2_down(state_dir: Path) -> bool:
    """Stop the endpoint of `state_dir`; False when there was none.

    Its address stays on record: Pulumi's states name it, so the next one is to answer there again.
    """
    running = ec2_status(state_dir)
    if running is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.pid, signal.SIGTERM)
        _await_silence(running)
    return running is not None


def _started(state_dir: Path) -> Ec2Endpoint:
    before = _noted(state_dir)
    port = before.url.rsplit(":", 1)[1] if before else "0"
    source = str(Path(engine.__file__).resolve().parent.parent)
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    with (state_dir / LOG_FILE).open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "engine.sandbox.ec2", "--port", port, "--state", str(state_dir)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        running = ec2_status(state_dir)
        if running is not None:
            return Ec2Endpoint(running.url, running.pid, running.boot_id, fresh=True)
        time.sleep(0.05)
    process.kill()
    process.wait()
    said = (state_dir / LOG_FILE).read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
    raise Ec2Error(f"the sandbox's EC2 did not start, see {state_dir / LOG_FILE}:\n" + "\n".join(said))


def _await_silence(running: Ec2Endpoint) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    while _boot_id_at(running.url) == running.boot_id:
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(running.pid, signal.SIGKILL)
            return
        time.sleep(0.02)


@contextlib.contextmanager
def _one_starter(state_dir: Path) -> Iterator[None]:
    with (state_dir / "ec2.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _noted(state_dir: Path) -> Ec2Endpoint | None:
    try:
        noted = json.loads((state_dir / STATE_FILE).read_text(encoding="utf-8"))
        return Ec2Endpoint(str(noted["url"]), int(noted["pid"]), str(noted["boot_id"]), fresh=False)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _boot_id_at(url: str) -> str | None:
    # Without proxies: loopback is never theirs.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url + BOOT_PATH, timeout=ANSWER_SECONDS) as answer:
            return str(json.load(answer)["boot_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(prog="python -m engine.sandbox.ec2")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one, as does a port that is taken")
    parser.add_argument("--state", type=Path, required=True, help="folder for the address, the logs and the faults")
    parser.add_argument("--faults", type=Path, help="JSON file of faults; default: faults.json in the state folder")
    chosen = parser.parse_args(arguments)
    serve(chosen.port, chosen.state, chosen.faults or chosen.state / FAULTS_FILE)


def serve(port: int, state_dir: Path, faults_file: Path) -> None:
    state_dir.mkdir(parents=True, exist_ok=True)
    _describe_images(state_dir)
    # Node roles name AWS's own policies.
    os.environ["MOTO_IAM_LOAD_MANAGED_POLICIES"] = "true"
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    read_tags_by_owner()
    boot_id = uuid.uuid4().hex
    moto = DomainDispatcherApplication(create_backend_app)
    reservations = ReservationBook(state_dir / RESERVATIONS_FILE, is_running)
    log = RequestLog(state_dir / REQUESTS_FILE)
    application = Ec2Application(moto, boot_id, FaultBook(faults_file), log, reservations)
    handler = type("Handler", (MotoRequestHandler,), {"disable_nagle_algorithm": True})
    try:
        server = make_server("127.0.0.1", port, application, threaded=True, request_handler=handler)
    except (OSError, SystemExit):
        server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))
    _note(state_dir, Ec2Endpoint(f"http://127.0.0.1:{server.server_port}", os.getpid(), boot_id, fresh=False))
    threading.Thread(target=_leave_when_forgotten, args=(state_dir, boot_id), daemon=True).start()
    server.serve_forever()


def is_on_record(state_dir: Path, boot_id: str) -> bool:
    """Whether the folder's record still names the server of that boot id: nobody else can find it or stop it."""
    noted = _noted(state_dir)
    return noted is not None and noted.boot_id == boot_id


def _leave_when_forgotten(state_dir: Path, boot_id: str) -> None:
    """End once the record is gone or names another: a server that `ec2_down` cannot see would run for ever."""
    missed = 0
    while missed < FORGOTTEN_AFTER:
        time.sleep(FORGOTTEN_SECONDS)
        missed = 0 if is_on_record(state_dir, boot_id) else missed + 1
    os._exit(0)


def _note(state_dir: Path, endpoint: Ec2Endpoint) -> None:
    unfinished = state_dir / f"{STATE_FILE}.part"
    unfinished.write_text(json.dumps(asdict(endpoint)), encoding="utf-8")
    unfinished.rename(state_dir / STATE_FILE)


def _describe_images(state_dir: Path) -> None:
    """Tell moto of the sandbox's images instead of its own hundreds, through which it walks at every launch."""
    images = json.loads((DATA / "images.json").read_text(encoding="utf-8"))["images"]
    described = [
        {
            **image,
            "state": "available",
            "public": True,
            "owner_id": "123456789012",
            "image_location": f"nodewright/{image['name']}",
            "sriov": "simple",
            "root_device_type": "ebs",
            "root_device_name": "/dev/xvda",
            "image_type": "machine",
            "virtualization_type": "hvm",
            "hypervisor": "xen",
        }
        for image in images
    ]
    file = state_dir / "images.json"
    file.write_text(json.dumps(described), encoding="utf-8")
    os.environ["MOTO_AMIS_PATH"] = str(file)


if __name__ == "__main__":
    main(sys.argv[1:])
