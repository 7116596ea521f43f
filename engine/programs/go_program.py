"""Programs that a folder of tools/ pins: found in the user's cache, or built into it, once.

A build's folder is named by what it was made from, so a bump builds anew and never disturbs what runs. The program
appears there by a rename: a run that is killed leaves nothing that looks finished.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from engine.programs.building import ProgramError, build_environment, go_on, require_free_space, run_build
from engine.programs.cache import Tell, one_at_a_time

_ASK_SECONDS = 60
_GIGABYTE = 1_000_000_000
_DIGITS = 16


@frozen
class GoProgram:
    """``file`` is the program's name on disk, ``folder`` where its module is below tools/, ``named`` its name in words.

    ``takes`` says how long a build with empty caches is, and ``cold_bytes`` what it leaves in Go's; ``size_bytes`` is
    the program's size, ``wanted_by`` who needs it. With the arguments ``check`` a program that works exits with 0 at
    once; empty: it has none.
    """

    file: str
    folder: str
    named: str
    wanted_by: str
    takes: str
    cold_bytes: int
    size_bytes: int
    check: tuple[str, ...] = ()


CONTROL_PLANE = GoProgram(
    file="control-plane",
    folder="control-plane",
    named="the Kubernetes control plane",
    wanted_by="a sandbox with a real cluster",
    takes="10 to 20 minutes",
    cold_bytes=5 * _GIGABYTE,
    size_bytes=_GIGABYTE // 5,
    check=("kube-apiserver", "--version"),
)
KUBERNETES_PROVIDER = GoProgram(
    file="pulumi-resource-kubernetes",
    folder="kubernetes-provider",
    named="Pulumi's Kubernetes provider",
    wanted_by="what an environment installs in its cluster",
    takes="10 to 20 minutes",
    cold_bytes=5 * _GIGABYTE,
    size_bytes=_GIGABYTE // 2,
)
PROGRAMS = (CONTROL_PLANE, KUBERNETES_PROVIDER)


def find_program(program: GoProgram, path: str, cache_dir: Path, tools_dir: Path) -> Path | None:
    """The program in the cache, made from these sources; None when there is none.

    Where Go is on PATH, it must be the same Go that made it: another compiler makes another program.
    """
    sources = _sources(program, tools_dir)
    if sources is None:
        return None
    homes = cache_dir / program.file
    try:
        kept = [homes / _key(program, path, tools_dir, sources)]
    except ProgramError:
        kept = sorted(homes.glob(f"{sources}-*"))
    return next((home / program.file for home in kept if os.access(home / program.file, os.X_OK)), None)


def require_program(program: GoProgram, path: str, cache_dir: Path, tools_dir: Path) -> Path:
    """The program in the cache. Raises ProgramError, which says how to build it, when it is not there."""
    found = find_program(program, path, cache_dir, tools_dir)
    if found is None:
        raise ProgramError(
            f"{program.named} is not built yet",
            f"nodewright doctor --install --all builds it ({program.takes}, once)",
        )
    return found


def build_program(program: GoProgram, path: str, cache_dir: Path, tools_dir: Path, tell: Tell) -> Path:
    """The program in the cache, built when it is not there. ``tell`` gets a line every few seconds.

    Raises ProgramError: no module, no Go, no network, no room, or a failed build with its log's last lines.
    """
    found = find_program(program, path, cache_dir, tools_dir)
    if found is not None:
        return found
    sources = _sources(program, tools_dir)
    if sources is None:
        raise ProgramError(
            f"{program.named} cannot be built: {tools_dir / program.folder} holds no module",
            "run this in a checkout of Nodewright: the modules are pinned in its tools/",
        )
    home = cache_dir / program.file / _key(program, path, tools_dir, sources)
    with one_at_a_time(home, program.named, tell):
        finished = home / program.file
        # Another run may have finished the very same work while this one waited.
        if not os.access(finished, os.X_OK):
            _build(program, path, tools_dir, home, tell)
    return finished


def _build(program: GoProgram, path: str, tools_dir: Path, home: Path, tell: Tell) -> None:
    folder = tools_dir / program.folder
    require_free_space(home, program.size_bytes, program.named, "the program")
    require_free_space(
        Path(_asked(program, path, folder, "env", "GOCACHE")), program.cold_bytes, program.named, "Go's build cache"
    )
    unfinished, log = home / f"{program.file}.part", home / "build.log"
    tell(f"building {program.named} from tools/{program.folder}: {program.takes}, once; log in {log}")
    run_build(["bash", "build.sh", str(unfinished.resolve())], folder, path, log, program.named, tell)
    _require_that_it_works(program, unfinished)
    unfinished.rename(home / program.file)


def _require_that_it_works(program: GoProgram, unfinished: Path) -> None:
    if not os.access(unfinished, os.X_OK):
        raise ProgramError(f"{program.named}: the build left no program at {unfinished}")
    if not program.check:
        return
    command = [str(unfinished), *program.check]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{program.named} was built and does not run: {error}") from error
    if done.returncode != 0:
        raise ProgramError(f"{program.named} was built and does not run: {(done.stderr or done.stdout).strip()}")


def _key(program: GoProgram, path: str, tools_dir: Path, sources: str) -> str:
    """`<digest of the sources>-go1.26.8-linux-amd64`."""
    words = _asked(program, path, tools_dir / program.folder, "version").split()
    return "-".join([sources, *words[2:]]).replace("/", "-")


def _asked(program: GoProgram, path: str, folder: Path, *arguments: str) -> str:
    """What Go answers, in the module's folder: its go.mod may choose the toolchain."""
    go = go_on(path, program.named)
    environment = build_environment(path)
    try:
        done = subprocess.run(
            [go, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_ASK_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProgramError(f"{go} does not run: {error}") from error
    if done.returncode != 0:
        raise ProgramError(f"`go {' '.join(arguments)}` failed in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def _sources(program: GoProgram, tools_dir: Path) -> str | None:
    """A digest of all that a build reads; None when there is no module."""
    folder = tools_dir / program.folder
    if not (folder / "go.mod").is_file():
        return None
    digest = hashlib.sha256()
    for file in _source_files(folder):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:_DIGITS]


def _source_files(folder: Path) -> Iterator[Path]:
    yield from (folder / "go.mod", folder / "go.sum", folder / "build.sh")
    yield from sorted(folder.glob("*.go"))
