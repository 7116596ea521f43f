"""Which Pulumi runs here: the CLI, and the official plugins where they exist.

Looked for in this order: `pulumi` on PATH when it is new enough; one that an earlier run has put into the
user's cache; the Automation API's own installer; a build from the pinned module in `tools/`. Importing this
module starts nothing and imports no Pulumi, so that `doctor` answers at once.
"""

import os
import re
import shutil
from collections.abc import Mapping
from enum import Enum
from pathlib import Path

from attrs import frozen

from engine.converge import toolchain_fetch
from engine.converge.pulumi_cli import PulumiVersion, ToolchainError, cli_version, pinned_version
from engine.programs.building import ProgramError
from engine.programs.cache import Tell, one_at_a_time

# Since late July 2026 Pulumi's Python SDK takes the whole list of what an engine can do from one call
# (GetDeploymentInfo). 3.254 is the release of that week; older engines were never tested with such an SDK, and
# a feature that is missing from their list (secrets, output values) would be lost in silence.
# `--client`, `stackConfigDir` and events over gRPC (3.205) are all older.
OLDEST_USABLE = (3, 254, 0)

# Written into the launchers of nodewright's own stand-in plugins (engine/sandbox/toolbox.py), so that one on
# PATH is never taken for the official plugin of the same name.
STAND_IN_MARK = b"nodewright stand-in"

LANGUAGE_HOST = "pulumi-language-python"
AWS_PLUGIN = "pulumi-resource-aws"


class FoundBy(Enum):
    PATH = "on PATH"
    CACHE = "in the user's cache"
    INSTALLER = "by the Automation API's installer"
    BUILD = "built from tools/go.mod"


@frozen
class Toolchain:
    """A usable Pulumi CLI, and the official plugins where there are any (None: a stand-in is needed)."""

    pulumi: Path
    version: PulumiVersion
    found_by: FoundBy
    language_host: Path | None
    aws_plugin: Path | None


class FindingState(Enum):
    OK = "ok"
    MISSING = "missing"
    STAND_IN = "stand-in"
    # Only some commands want it.
    NOT_BUILT = "not built"


@frozen
class Finding:
    """One line of `nodewright doctor`."""

    name: str
    state: FindingState
    detail: str
    hint: str = ""


def pulumi_home(environment: Mapping[str, str]) -> Path:
    """Where Pulumi keeps its plugins: PULUMI_HOME, else ~/.pulumi."""
    chosen = environment.get("PULUMI_HOME")
    return Path(chosen) if chosen else Path(environment.get("HOME") or Path.home()) / ".pulumi"


def find_toolchain(
    path: str,
    cache_dir: Path,
    tools_dir: Path,
    *,
    plugins_home: Path,
    tell: Tell = lambda line: None,
    may_fetch: bool = True,
) -> Toolchain:
    """The Pulumi to use, fetched or built when there is none.

    `path` is a PATH to search; `cache_dir` is `user_cache_dir()`; `tools_dir` holds go.mod; `plugins_home` is
    `pulumi_home`. `tell` is given a line of progress every few seconds while a build runs (6 to 12 minutes on
    two cores, once a version). With `may_fetch=False` nothing is downloaded or built.

    Raises ToolchainError, with hints, when no way leads to a CLI.
    """
    pinned = pinned_version(tools_dir)
    refusals: list[str] = []
    found = _on_path(path, refusals) or _in_cache(cache_dir, pinned)
    if found is None:
        if not may_fetch:
            raise ToolchainError(_nothing_found(refusals), _ways_out(pinned))
        found = _fetched(path, cache_dir, tools_dir, pinned, tell, refusals)
    pulumi, version, found_by = found
    return Toolchain(
        pulumi=pulumi,
        version=version,
        found_by=found_by,
        language_host=official_language_host(path, pulumi),
        aws_plugin=official_aws_plugin(path, plugins_home),
    )


def inspect_toolchain(path: str, cache_dir: Path, tools_dir: Path, *, plugins_home: Path) -> tuple[Finding, ...]:
    """What is here and what is not, for `doctor`: nothing is fetched and nothing fails."""
    try:
        tools = find_toolchain(path, cache_dir, tools_dir, plugins_home=plugins_home, may_fetch=False)
    except ToolchainError as error:
        hint = "; or ".join(error.hints)
        return (
            Finding("pulumi", FindingState.MISSING, str(error), hint),
            _language_host_finding(None),
            _aws_plugin_finding(official_aws_plugin(path, plugins_home)),
        )
    return (
        Finding("pulumi", FindingState.OK, f"{tools.version} {tools.found_by.value}: {tools.pulumi}"),
        _language_host_finding(tools.language_host),
        _aws_plugin_finding(tools.aws_plugin),
    )


def official_language_host(path: str, pulumi: Path | None) -> Path | None:
    """Pulumi's own Python host: on PATH, else beside the CLI, as its release archive puts it."""
    beside = pulumi.resolve().parent / LANGUAGE_HOST if pulumi else None
    return _first_official([*_all_on_path(LANGUAGE_HOST, path), *([beside] if beside else [])])


def official_aws_plugin(path: str, plugins_home: Path) -> Path | None:
    """The official AWS plugin: on PATH, else the newest of major version 7 in Pulumi's plugin directory."""
    installed = sorted(
        (plugins_home / "plugins").glob("resource-aws-v7.*"),
        key=lambda folder: [int(digits) for digits in re.findall(r"\d+", folder.name)],
        reverse=True,
    )
    candidates = [folder / AWS_PLUGIN for folder in installed if folder.is_dir()]
    return _first_official([*_all_on_path(AWS_PLUGIN, path), *candidates])


def cached_cli(cache_dir: Path, version: PulumiVersion) -> Path | None:
    """The CLI that an earlier build (`pulumi`) or install (`bin/pulumi`) left in the cache."""
    home = cli_home(cache_dir, version)
    return next((file for file in (home / "pulumi", home / "bin" / "pulumi") if os.access(file, os.X_OK)), None)


def cli_home(cache_dir: Path, version: PulumiVersion) -> Path:
    return cache_dir / "pulumi" / str(version)


Found = tuple[Path, PulumiVersion, FoundBy]


def _on_path(path: str, refusals: list[str]) -> Found | None:
    oldest = PulumiVersion(OLDEST_USABLE)
    for pulumi in _all_on_path("pulumi", path):
        try:
            version = cli_version(pulumi)
        except ToolchainError as error:
            refusals.append(str(error))
            continue
        if version >= oldest and version.number[0] == oldest.number[0]:
            return pulumi, version, FoundBy.PATH
        refusals.append(f"{pulumi} is {version}; nodewright needs a 3.x from {oldest} on")
    return None


def _in_cache(cache_dir: Path, pinned: PulumiVersion) -> Found | None:
    pulumi = cached_cli(cache_dir, pinned)
    return None if pulumi is None else (pulumi, pinned, FoundBy.CACHE)


def _fetched(
    path: str, cache_dir: Path, tools_dir: Path, pinned: PulumiVersion, tell: Tell, refusals: list[str]
) -> Found:
    home = cli_home(cache_dir, pinned)
    with one_at_a_time(home, "Pulumi", tell):
        # Another run may have finished the very same work while this one waited.
        pulumi = cached_cli(cache_dir, pinned)
        if pulumi is not None:
            return pulumi, pinned, FoundBy.CACHE
        try:
            return toolchain_fetch.install_official(home, pinned, tell), pinned, FoundBy.INSTALLER
        except ToolchainError as error:
            refusals.append(str(error))
        try:
            built = toolchain_fetch.build_from_source(path, home, tools_dir, pinned, tell)
            return built, pinned, FoundBy.BUILD
        except ProgramError as error:
            refusals.append(str(error))
    raise ToolchainError(_nothing_found(refusals), _ways_out(pinned))


def _nothing_found(refusals: list[str]) -> str:
    return "no usable Pulumi CLI" + ("".join(f"\n  - {line}" for line in refusals) if refusals else " was found")


def _ways_out(pinned: PulumiVersion) -> tuple[str, ...]:
    return (
        f"install Pulumi {pinned} so that `pulumi` is on PATH (https://www.pulumi.com/docs/install/)",
        "allow downloads from get.pulumi.com and run again",
        "install Go, so that nodewright can build the CLI from tools/go.mod",
    )


def _all_on_path(program: str, path: str) -> list[Path]:
    folders = [folder for folder in path.split(os.pathsep) if folder]
    hits = (shutil.which(program, path=folder) for folder in dict.fromkeys(folders))
    return [Path(hit) for hit in hits if hit]


def _first_official(candidates: list[Path]) -> Path | None:
    return next((file for file in candidates if os.access(file, os.X_OK) and not is_stand_in(file)), None)


def is_stand_in(program: Path) -> bool:
    """Whether this executable is one of nodewright's launchers rather than what its name says."""
    try:
        with program.open("rb") as opened:
            return STAND_IN_MARK in opened.read(1024)
    except OSError:
        return False


def _language_host_finding(official: Path | None) -> Finding:
    if official is not None:
        return Finding(LANGUAGE_HOST, FindingState.OK, str(official))
    return Finding(
        LANGUAGE_HOST,
        FindingState.STAND_IN,
        "Pulumi's Python language host is not installed; nodewright's stand-in runs the program instead",
        "nothing to do; the official one comes with Pulumi's release archive, beside `pulumi`",
    )


def _aws_plugin_finding(official: Path | None) -> Finding:
    if official is not None:
        return Finding(AWS_PLUGIN, FindingState.OK, str(official))
    return Finding(
        AWS_PLUGIN,
        FindingState.STAND_IN,
        "Pulumi's AWS plugin is not installed; nodewright's stand-in serves loopback endpoints only",
        "for a real account: `pulumi plugin install resource aws 7.51.1`",
    )
