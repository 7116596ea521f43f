"""A project as it was, or would be: a folder, or what a Git revision holds of policies, stack files and prices.

Of a revision only those files are read, by their content in the repository, into a folder that is gone afterwards:
nothing of it is run, and attributes, filters and links in it have no say.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from attrs import frozen

from engine.model.diagnostic import InvalidInput
from engine.model.fault import Fault
from engine.reconcile.workspace import Workspace, find_workspace

SNAPSHOTS = "policies/snapshots"
_ALWAYS = ("Pulumi.yaml", "stacks", SNAPSHOTS)
_REGULAR, _LINK = ("100644", "100755"), "120000"
_READ_AS = (".yaml", ".yml", ".json", ".csv")
_SECONDS = 60
_LONGEST_NAME = 250


@frozen
class Side:
    """``name`` is what the person wrote, with the commit's first digits where it is a revision."""

    name: str
    workspace: Workspace

    def told(self, fault: Fault) -> Fault:
        """The same fault, of this side: a folder that will be gone is not named."""
        return Fault(f"{self.name}: {fault}".replace(str(self.workspace.root), self.name), fault.hints)


@contextmanager
def opened(name: str, project: Path) -> Iterator[Side]:
    """The side of that name: a folder that holds Pulumi.yaml and stacks/, or a revision of ``project``'s repository.

    Raises Fault.
    """
    folder = (project / name) if name else None
    if folder is not None and _is_project(folder):
        yield Side(name, Workspace(folder.resolve()))
        return
    if name == ".":
        yield Side("the working tree", find_workspace(project))
        return
    root = find_workspace(project).root
    commit = _commit(name, root)
    with TemporaryDirectory(prefix="nodewright-diff-") as made:
        target = Path(made).resolve()
        _write(root, commit, _ALWAYS, target)
        workspace = Workspace(target)
        _write(root, commit, _named_by_stacks(workspace), target)
        if not workspace.stacks.is_dir():
            raise Fault(f"{name} ({commit[:12]}) holds no stacks/ here, so it is no project", "name a later revision")
        shown = commit[:12] if commit.startswith(name.lower()) else f"{name} ({commit[:12]})"
        yield Side(shown, workspace)


def _is_project(folder: Path) -> bool:
    return (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir()


def _named_by_stacks(workspace: Workspace) -> tuple[str, ...]:
    """The paths that stack files name. What else is wrong with one is told when it is read for good.

    Raises Fault for a path that leads out of the project: whoever wrote the revision must not choose what of this
    machine is read, and shown.
    """
    paths: set[str] = set()
    for name in workspace.environment_names():
        try:
            environment = workspace.environment(name)
        except (InvalidInput, Fault):
            continue
        prices = (environment.pricing.file,) if environment.pricing.file else ()
        manifests = environment.sandbox.manifests if environment.sandbox is not None else ()
        for path in (*environment.policies, *prices, *manifests):
            if PurePosixPath(path).is_absolute() or not _inside(path):
                raise Fault(
                    f"stacks/Pulumi.{name}.yaml names {path}, which leads out of the project: not read of a revision",
                    "compare folders instead: git worktree add FOLDER REVISION",
                )
            paths.add(path)
    return tuple(sorted(paths))


def _commit(name: str, root: Path) -> str:
    if not name or name.startswith("-") or len(name) > _LONGEST_NAME or re.search(r"[\x00-\x20\x7f]", name):
        raise Fault(
            f"{name[:_LONGEST_NAME]!r} is neither a project's folder nor the name of a Git revision",
            "name a branch, tag or commit, such as main or HEAD~1, or a folder that holds Pulumi.yaml and stacks/",
        )
    try:
        found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except Fault as fault:
        raise Fault(
            f"there is no Git revision {name!r} in {root}, and no project's folder of that name",
            (*fault.hints, "git fetch brings revisions that this clone lacks; . is the working tree"),
        ) from None
    return found.decode().strip()


def _write(root: Path, commit: str, paths: Iterable[str], target: Path) -> None:
    """Writes the files at or below these paths, as the commit holds them; a path that it lacks is passed over."""
    wanted = [path for path in (_inside(each) for each in paths) if path]
    if not wanted:
        return
    listed = _git(root, "--literal-pathspecs", "ls-tree", "-r", "-z", commit, "--", *wanted)
    blobs: dict[str, str] = {}
    for entry in listed.decode("utf-8", "surrogateescape").split("\0"):
        described, _, path = entry.partition("\t")
        if not path or not path.endswith(_READ_AS) or _inside(path) != path:
            continue
        mode, _, blob = described.split(" ")
        if mode == _LINK:
            raise Fault(
                f"{path} is a symbolic link in revision {commit[:12]}, which is not followed",
                "compare folders instead: git worktree add FOLDER REVISION",
            )
        if mode in _REGULAR:
            blobs[path] = blob
    contents = _contents(root, blobs.values())
    for path, blob in blobs.items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(contents[blob])


def _inside(path: str) -> str:
    """The path without dots that lead nowhere; empty where it leads out of the project."""
    parts: list[str] = []
    for part in PurePosixPath(path).parts:
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts) or "."


def _contents(root: Path, blobs: Iterable[str]) -> dict[str, bytes]:
    asked = sorted(set(blobs))
    if not asked:
        return {}
    answer = _git(root, "cat-file", "--batch", given="\n".join(asked).encode() + b"\n")
    contents: dict[str, bytes] = {}
    at = 0
    for blob in asked:
        end = answer.index(b"\n", at)
        size = int(answer[at:end].rsplit(b" ", 1)[-1])
        contents[blob] = answer[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return contents


def _git(root: Path, *arguments: str, given: bytes = b"") -> bytes:
    """Raises Fault. What Git may read of the environment's settings is left to it, but it never asks anybody."""
    variables = {**os.environ, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", "--no-pager", "--no-replace-objects", "-C", str(root), *arguments]
    try:
        ran = subprocess.run(command, input=given, capture_output=True, env=variables, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise Fault("git is not installed, so no revision can be read", "compare folders instead") from None
    except subprocess.TimeoutExpired:
        raise Fault(f"git {arguments[0]} did not answer within {_SECONDS} s", "compare folders instead") from None
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Fault(f"git in {root} failed", tuple(said[:2]) or "is this a Git repository, with that revision?")
    return ran.stdout
