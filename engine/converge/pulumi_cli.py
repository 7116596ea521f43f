"""A Pulumi CLI's version: which one is pinned, and what a program on disk says it is."""

import functools
import os
import re
import subprocess
from pathlib import Path

from attrs import frozen

from engine.programs.building import ProgramError

CLI_MODULE = "github.com/pulumi/pulumi/pkg/v3"


class ToolchainError(ProgramError):
    """No usable Pulumi. `hints` say what a person can do, most convenient first."""


@functools.total_ordering
@frozen(order=False)
class PulumiVersion:
    """A release of Pulumi, compared by number; a pre-release or build suffix is kept for show only."""

    number: tuple[int, int, int]
    suffix: str = ""

    @classmethod
    def parse(cls, text: str) -> "PulumiVersion":
        """From `v3.274.1` or `3.275.0-alpha.1`. Raises ToolchainError for anything else."""
        match = re.fullmatch(r"v?(\d+)\.(\d+)\.(\d+)([-+].*)?", text.strip())
        if match is None:
            raise ToolchainError(f"{text.strip()!r} is not a Pulumi version such as v3.274.1")
        return cls((int(match[1]), int(match[2]), int(match[3])), match[4] or "")

    def __lt__(self, other: "PulumiVersion") -> bool:
        return self.number < other.number

    def __str__(self) -> str:
        return "v" + ".".join(str(part) for part in self.number) + self.suffix


def pinned_version(tools_dir: Path) -> PulumiVersion:
    """The CLI's version that `tools/go.mod` pins: the one place where it is written.

    Raises ToolchainError when the file or the line is not there.
    """
    module_file = tools_dir / "go.mod"
    try:
        text = module_file.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolchainError(f"{module_file}: cannot be read: {error.strerror}") from error
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(CLI_MODULE)}\s+(v\S+)", text, re.MULTILINE)
    if match is None:
        raise ToolchainError(f"{module_file}: expected a requirement of {CLI_MODULE} with a version")
    return PulumiVersion.parse(match[1])


def cli_version(pulumi: Path) -> PulumiVersion:
    """What `pulumi version` says. Raises ToolchainError when it does not run or answers something else."""
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}
    try:
        done = subprocess.run(
            [str(pulumi), "version"], env=environment, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{pulumi}: does not run: {error}") from error
    if done.returncode != 0:
        raise ToolchainError(f"{pulumi}: `pulumi version` failed: {done.stderr.strip() or done.returncode}")
    return PulumiVersion.parse(done.stdout)
