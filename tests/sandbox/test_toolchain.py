"""Where Pulumi is looked for, in which order, and what doctor says when it is not there."""

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from engine.converge import toolchain_fetch
from engine.converge.pulumi_cli import PulumiVersion, ToolchainError, pinned_version
from engine.converge.toolchain import (
    FindingState,
    FoundBy,
    find_toolchain,
    inspect_toolchain,
)
from engine.programs.cache import user_cache_dir

PINNED = "v3.274.1"
HOLD_THE_LOCK = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print(1, flush=True); input()"


def program(path: Path, says: str = "", comment: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n# {comment}\necho '{says}'\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def tools_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "go.mod").write_text(
        f"module x\n\nrequire (\n\tgithub.com/pulumi/pulumi/pkg/v3 {PINNED} // indirect\n)\n"
    )
    return folder


class Machine:
    """A machine with the programs that a test puts on it, and no internet."""

    def __init__(self, root: Path, tools_dir: Path) -> None:
        self.bin = root / "bin"
        self.cache = root / "cache"
        self.plugins_home = root / "pulumi-home"
        self.tools_dir = tools_dir
        self.told: list[str] = []

    def find(self, *, may_fetch: bool = True):
        return find_toolchain(
            f"{self.bin}:/usr/bin:/bin",
            self.cache,
            self.tools_dir,
            plugins_home=self.plugins_home,
            tell=self.told.append,
            may_fetch=may_fetch,
        )

    def findings(self):
        found = inspect_toolchain(
            f"{self.bin}:/usr/bin:/bin", self.cache, self.tools_dir, plugins_home=self.plugins_home
        )
        return {finding.name: finding for finding in found}


@pytest.fixture
def machine(tmp_path: Path, tools_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(toolchain_fetch, "INSTALLER_ADDRESS", "http://127.0.0.1:9/install.sh")
    return Machine(tmp_path, tools_dir)


def test_a_pulumi_on_path_that_is_new_enough_is_used(machine: Machine) -> None:
    pulumi = program(machine.bin / "pulumi", "v3.254.0")
    tools = machine.find()
    assert (tools.pulumi, tools.found_by, str(tools.version)) == (pulumi, FoundBy.PATH, "v3.254.0")


@pytest.mark.parametrize("version", ["v3.253.9", "v4.0.0", "nonsense"])
def test_an_unfit_pulumi_on_path_is_passed_over_for_the_cached_one(machine: Machine, version: str) -> None:
    program(machine.bin / "pulumi", version)
    cached = program(machine.cache / "pulumi" / PINNED / "pulumi", PINNED)
    tools = machine.find()
    assert (tools.pulumi, tools.found_by) == (cached, FoundBy.CACHE)


def test_without_any_pulumi_the_refusal_lists_what_was_tried_and_what_to_do(machine: Machine) -> None:
    program(machine.bin / "pulumi", "v3.100.0")
    with pytest.raises(ToolchainError) as refused:
        machine.find()
    assert "v3.100.0" in str(refused.value)
    assert "installer cannot be downloaded" in str(refused.value)
    assert "no `go` on PATH" in str(refused.value)
    assert any("install Go" in hint for hint in refused.value.hints)


def test_a_build_appears_in_the_cache_under_its_version_and_is_found_there_next_time(machine: Machine) -> None:
    program(
        machine.bin / "go",
        comment=(
            f'x\nwhile [ "$1" != -o ]; do shift; done\nprintf \'#!/bin/sh\\necho {PINNED}\\n\' > "$2"; chmod +x "$2"; #'
        ),
    )
    built = machine.find()
    assert built.found_by is FoundBy.BUILD
    assert built.pulumi == machine.cache / "pulumi" / PINNED / "pulumi"
    assert any("building Pulumi" in line for line in machine.told)
    assert machine.find().found_by is FoundBy.CACHE


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_nothing_that_looks_finished(machine: Machine) -> None:
    program(machine.bin / "go", comment="x\necho 'package gone'; exit 3 #")
    with pytest.raises(ToolchainError, match="package gone"):
        machine.find()
    assert not (machine.cache / "pulumi" / PINNED / "pulumi").exists()


def test_a_second_run_waits_for_the_first_instead_of_building_again(machine: Machine) -> None:
    home = machine.cache / "pulumi" / PINNED
    home.mkdir(parents=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_THE_LOCK, str(home / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()

    def finish_the_other_run(line: str) -> None:
        machine.told.append(line)
        program(home / "pulumi", PINNED)
        holder.communicate(b"\n")

    tools = find_toolchain(
        str(machine.bin),
        machine.cache,
        machine.tools_dir,
        plugins_home=machine.plugins_home,
        tell=finish_the_other_run,
    )
    assert tools.found_by is FoundBy.CACHE
    assert machine.told == ["another run is preparing Pulumi; waiting (0 s)"]


def test_doctor_fetches_nothing_and_says_what_is_missing(machine: Machine) -> None:
    findings = machine.findings()
    assert findings["pulumi"].state is FindingState.MISSING
    assert "install Go" in findings["pulumi"].hint
    assert not machine.cache.exists()


def test_official_plugins_are_found_beside_the_cli_and_in_pulumis_own_folder(machine: Machine) -> None:
    program(machine.bin / "pulumi", PINNED)
    host = program(machine.bin / "pulumi-language-python")
    older = program(machine.plugins_home / "plugins/resource-aws-v7.9.0/pulumi-resource-aws")
    newer = program(machine.plugins_home / "plugins/resource-aws-v7.51.1/pulumi-resource-aws")
    (machine.plugins_home / "plugins/resource-aws-v7.51.1.lock").write_text("")
    tools = machine.find()
    assert tools.language_host == host
    assert tools.aws_plugin == newer != older


def test_our_own_launchers_on_path_are_not_taken_for_the_official_plugins(machine: Machine) -> None:
    program(machine.bin / "pulumi", PINNED)
    program(machine.bin / "pulumi-resource-aws", comment="nodewright stand-in")
    findings = machine.findings()
    assert findings["pulumi-resource-aws"].state is FindingState.STAND_IN
    assert "real account" in findings["pulumi-resource-aws"].hint


def test_the_pinned_version_is_read_from_the_module_file_and_its_absence_is_named(tmp_path: Path) -> None:
    project = Path(__file__).parents[2]
    assert pinned_version(project / "tools") == PulumiVersion.parse(PINNED)
    with pytest.raises(ToolchainError, match=r"go\.mod: cannot be read"):
        pinned_version(tmp_path)


def test_a_relative_cache_home_is_ignored_as_the_xdg_rules_say() -> None:
    assert user_cache_dir({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/nodewright")
    assert user_cache_dir({"XDG_CACHE_HOME": "x", "HOME": "/h"}) == Path("/h/.cache/nodewright")
