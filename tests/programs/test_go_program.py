"""Programs of tools/: built once into the cache, known by what they were made from, refused in words."""

from __future__ import annotations

import shutil
import stat
from collections import namedtuple
from pathlib import Path

import pytest
from attrs import evolve

from engine.programs.building import ProgramError
from engine.programs.go_program import PROGRAMS, GoProgram, build_program, find_program, require_program

PROGRAM = GoProgram(
    file="tool",
    folder="tool",
    named="the tool",
    wanted_by="a test",
    takes="a moment",
    cold_bytes=1,
    size_bytes=1,
    check=("works",),
)
BUILD = 'echo package/one; printf "#!/bin/sh\\nexit 0\\n" > "$1"; chmod +x "$1"\n'


class Machine:
    """A checkout with one module, a Go that answers what it must, and an empty cache."""

    def __init__(self, root: Path) -> None:
        self.tools, self.cache, self.bin = root / "tools", root / "cache", root / "bin"
        self.module = self.tools / "tool"
        self.module.mkdir(parents=True)
        self.bin.mkdir()
        self.told: list[str] = []
        for name in ("go.mod", "go.sum", "main.go"):
            (self.module / name).write_text(name)
        self.build_script(BUILD)
        self.go("go1.26.8", root / "gocache")

    @property
    def path(self) -> str:
        return f"{self.bin}:/usr/bin:/bin"

    def build_script(self, text: str) -> None:
        (self.module / "build.sh").write_text(text)

    def go(self, version: str, cache: Path) -> None:
        go = self.bin / "go"
        go.write_text(f'#!/bin/sh\n[ "$1" = version ] && echo "go version {version} linux/amd64" || echo "{cache}"\n')
        go.chmod(go.stat().st_mode | stat.S_IXUSR)

    def build(self, program: GoProgram = PROGRAM) -> Path:
        return build_program(program, self.path, self.cache, self.tools, self.told.append)

    def find(self) -> Path | None:
        return find_program(PROGRAM, self.path, self.cache, self.tools)

    def kept(self) -> list[str]:
        return sorted(file.parent.name for file in self.cache.glob("tool/*/tool"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_program_is_built_once_and_found_from_then_on(machine: Machine) -> None:
    assert machine.find() is None
    built = machine.build()
    assert machine.told[0].startswith("building the tool from tools/tool: a moment, once; log in ")
    machine.told.clear()
    assert machine.build() == machine.find() == built
    assert machine.told == []


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "main.go", "build.sh"])
def test_a_change_of_anything_that_it_is_made_from_builds_another_beside_it(machine: Machine, changed: str) -> None:
    before = machine.build()
    (machine.module / changed).write_text(BUILD + "# changed\n")
    assert machine.find() is None
    after = machine.build()
    assert after != before
    assert before.exists()


def test_another_go_makes_another_program(machine: Machine) -> None:
    machine.build()
    machine.go("go1.27.0", machine.cache)
    assert machine.find() is None
    machine.build()
    assert [name.partition("-")[2] for name in machine.kept()] == ["go1.26.8-linux-amd64", "go1.27.0-linux-amd64"]


def test_without_go_a_program_that_was_built_before_is_used(machine: Machine) -> None:
    built = machine.build()
    (machine.bin / "go").unlink()
    assert find_program(PROGRAM, str(machine.bin), machine.cache, machine.tools) == built


def test_without_go_a_build_is_refused_and_go_is_named(machine: Machine) -> None:
    (machine.bin / "go").unlink()
    with pytest.raises(ProgramError, match="there is no `go` on PATH") as refused:
        build_program(PROGRAM, str(machine.bin), machine.cache, machine.tools, machine.told.append)
    assert "install Go" in refused.value.hints[0]


def test_a_failed_build_shows_the_end_of_its_log_and_leaves_nothing_that_looks_finished(machine: Machine) -> None:
    machine.build_script('echo "something is wrong"; touch "$1"; exit 3\n')
    with pytest.raises(ProgramError, match=r"exit code 3\), see .*build\.log:\nsomething is wrong"):
        machine.build()
    assert machine.find() is None


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("dial tcp: lookup modules.example: no such host", "GOPROXY"),
        ("write /x: no space left on device", "GOCACHE"),
    ],
)
def test_a_build_that_failed_for_a_known_reason_says_what_to_do(machine: Machine, said: str, hint: str) -> None:
    machine.build_script(f'echo "{said}"; exit 1\n')
    with pytest.raises(ProgramError) as refused:
        machine.build()
    assert hint in refused.value.hints[0]


def test_a_build_that_leaves_a_program_which_does_not_run_is_no_success(machine: Machine) -> None:
    machine.build_script('printf "#!/bin/sh\\necho it is broken >&2; exit 2\\n" > "$1"; chmod +x "$1"\n')
    with pytest.raises(ProgramError, match="does not run: it is broken"):
        machine.build()
    assert machine.find() is None


def test_too_little_room_is_said_before_the_build_begins(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 3_000_000_000))
    needing = evolve(PROGRAM, cold_bytes=5_000_000_000)
    with pytest.raises(ProgramError, match=r"needs 5\.0 GB free .* there are 3\.0 GB") as refused:
        machine.build(needing)
    assert any("GOCACHE" in hint for hint in refused.value.hints)
    assert machine.told == []


def test_a_command_that_needs_a_missing_program_says_which_command_builds_it(machine: Machine) -> None:
    with pytest.raises(ProgramError, match="the tool is not built yet") as refused:
        require_program(PROGRAM, machine.path, machine.cache, machine.tools)
    assert "nodewright doctor --install --all" in refused.value.hints[0]


def test_outside_a_checkout_there_is_nothing_to_build_from(machine: Machine) -> None:
    with pytest.raises(ProgramError, match="holds no module"):
        build_program(PROGRAM, machine.path, machine.cache, machine.tools / "none", machine.told.append)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_every_program_is_pinned_in_tools(program: GoProgram) -> None:
    folder = Path(__file__).parents[2] / "tools" / program.folder
    assert {"go.mod", "go.sum", "main.go", "build.sh", "pin.sh"} <= {file.name for file in folder.iterdir()}
