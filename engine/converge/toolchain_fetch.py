"""Getting a Pulumi CLI that is not there: the official installer, else a build from the pinned module.

Both work inside the version's own cache folder, under a lock, and their result appears there by a rename: a
run that is killed leaves nothing that looks finished.
"""

import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from engine.converge.pulumi_cli import CLI_MODULE, PulumiVersion, ToolchainError, cli_version
from engine.programs.building import go_on, run_build
from engine.programs.cache import Tell

INSTALLER_ADDRESS = "https://get.pulumi.com/install.sh"
PROBE_SECONDS = 5
INSTALL_SECONDS = 300

# The SDK refuses a CLI that cannot say its version, and a plain `go build` leaves it empty.
VERSION_VARIABLE = "github.com/pulumi/pulumi/sdk/v3/go/common/version.Version"

# Run in a process of its own: the installer has no timeout, and importing Pulumi would slow every command.
_INSTALL = """
import sys
from pulumi.automation import PulumiCommand
from semver import VersionInfo
PulumiCommand.install(root=sys.argv[1], version=VersionInfo.parse(sys.argv[2]))
"""


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

    Takes six minutes on two idle cores; the log stays in `home/build.log`. Raises ProgramError when there is no
    Go, or with the log's last lines when the build fails.
    """
    go = go_on(path, "Pulumi")
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
    run_build(command, tools_dir, path, log, f"Pulumi {version}", tell)
    made = cli_version(unfinished)
    if made != version:
        raise ToolchainError(f"the build in {unfinished} says that it is {made}, expected {version}")
    finished = home / "pulumi"
    unfinished.rename(finished)
    return finished
