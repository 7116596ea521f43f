"""Getting a Pulumi CLI that is not there: the official installer, else a build from the pinned module.

Both work inside the version's own cache folder, under a lock, and their result appears there by a rename: a
run that is killed leaves nothing that looks finished.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from engine.converge.pulumi_cli import CLI_MODULE, PulumiVersion, Tell, ToolchainError, cli_version

INSTALLER_ADDRESS = "https://get.pulumi.com/install.sh"
PROBE_SECONDS = 5
INSTALL_SECONDS = 300
PROGRESS_EVERY_SECONDS = 5

# The SDK refuses a CLI that cannot say its version, and a plain `go build` leaves it empty.
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"

# Run in a process of its own: the installer has no timeout, and importing Pulumi would slow every command.
_INSTALL = """
import sys
from pulumi.automation import PulumiCommand
from semver import VersionInfo
PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2]))
"""


@contextlib.contextmanager
def one_at_a_time(home: Path, tell: Tell) -> Iterator[None]:
    """Hold the version's lock; a second run waits for the first and says so."""
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w", encoding="utf-8") as lock:
        waited_seconds = 0
        while not _locked(lock.fileno()):
            if waited_seconds % PROGRESS_EVERY_SECONDS == 0:
                tell(f"another run is preparing Pulumi; waiting ({waited_seconds} s)")
            time.sleep(1)
            waited_seconds += 1
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def install_official(home: Path, version: PulumiVersion, tell: Tell) -> Path:
    """Let the Automation API install the CLI, with its language hosts beside it, into `home/bin`.

    Raises ToolchainError within seconds where the download cannot be reached, and after five minutes at most.
    """
    try:
        urllib.request.urlopen(urllib.request.Request(INSTALLER_ADDRESS, method="HEAD"), timeout=PROBE_SECONDS).close()
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise ToolchainError(f"Pulumi's installer cannot be downloaded: {reason}") from error
    tell(f"installing Pulumi {version}")
    scratch = home / "install.part"
    shutil.rmtree(scratch, ignore_errors=True)
    command = [sys.executable, "-c", _INSTALL, str(scratch), str(version).removeprefix("v")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode != 0:
            last = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
            raise ToolchainError(f"Pulumi's installer failed: {last}")
        (scratch / "bin").rename(home / "bin")
    except subprocess.TimeoutExpired as error:
        raise ToolchainError(f"Pulumi's installer did not end within {INSTALL_SECONDS} s") from error
    except OSError as error:
        raise ToolchainError(f"Pulumi's installer left nothing usable: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return home / "bin" / "pulumi"


def build_from_source(path: str, home: Path, tools_dir: Path, version: PulumiVersion, tell: Tell) -> Path:
    """Build the CLI that `tools_dir/go.mod` pins into `home/pulumi`.

    Takes six minutes on two idle cores; the log stays in `home/build.log`. Raises ToolchainError when there is
    no Go, or with the log's last lines when the build fails.
    """
    go = shutil.which("go", path=path)
    if go is None:
        raise ToolchainError("Pulumi cannot be built: there is no `go` on PATH")
    log = home / "build.log"
    unfinished = home / "pulumi.part"
    command = [
        go,
        "build",
        "-v",
        "-trimpath",
        "-mod=readonly",
        "-ldflags",
        f"-s -w -X {VERSION_VARIABLE}={version}",
        "-o",
        str(unfinished),
        f"{CLI_MODULE}/cmd/pulumi",
    ]
    tell(f"building Pulumi {version} from tools/go.mod: about six minutes, once; log in {log}")
    environment = {**os.environ, "PATH": path, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=tools_dir,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _watched(process, log, version, tell)
        finally:
            _stopped(process)
    if code != 0:
        tail = "\n".join(_lines(log)[-5:])
        raise ToolchainError(f"Pulumi's build failed (exit code {code}), see {log}:\n{tail}")
    made = cli_version(unfinished)
    if made != version:
        raise ToolchainError(f"the build in {unfinished} says that it is {made}, expected {version}")
    finished = home / "pulumi"
    unfinished.rename(finished)
    return finished


def _watched(process: "subprocess.Popen[bytes]", log: Path, version: PulumiVersion, tell: Tell) -> int:
    started = time.monotonic()
    while True:
        try:
            return process.wait(timeout=PROGRESS_EVERY_SECONDS)
        except subprocess.TimeoutExpired:
            elapsed_seconds = round(time.monotonic() - started)
            tell(f"building Pulumi {version}: {elapsed_seconds} s, {len(_lines(log))} packages compiled")


def _stopped(process: "subprocess.Popen[bytes]") -> None:
    """An interrupted run takes its compiler with it."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8", errors="replace").splitlines()
