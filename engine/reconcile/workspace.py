"""The project on disk: its stack files, policy files and state directory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

from engine.model.diagnostic import Diagnostic, InvalidInput, Position, Severity
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.policy import Policy
from engine.policy.load import load_policy
from engine.policy.stack_file import load_environment

_ENVIRONMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_YAML = ("*.yaml", "*.yml")
# Tests of policies lie beside them and are no policy.
_POLICY_TEST = re.compile(r".*[._]test\.ya?ml")


@frozen
class PolicyFiles:
    """``read`` are (shown path, content); ``unreadable`` a finding for each file that could not be."""

    read: tuple[tuple[str, bytes], ...]
    unreadable: tuple[Diagnostic, ...] = ()


@frozen
class Workspace:
    """``root`` is the folder that holds ``Pulumi.yaml`` and ``stacks/``."""

    root: Path

    @property
    def stacks(self) -> Path:
        return self.root / "stacks"

    def environment_names(self) -> tuple[str, ...]:
        """Every environment that has a stack file, in name order."""
        files = self.stacks.glob("Pulumi.*.yaml")
        return tuple(sorted(file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in files))

    def environment(self, name: str) -> Environment:
        """The environment of that name; raises Fault when there is none, InvalidInput when its file is wrong."""
        file = self.stacks / f"Pulumi.{name}.yaml"
        if _ENVIRONMENT_NAME.fullmatch(name) is None or not file.is_file():
            known = ", ".join(self.environment_names()) or "none"
            raise Fault(
                f"there is no environment {name!r}: no file stacks/Pulumi.{name}.yaml in {self.root}",
                f"environments here: {known}; a new one starts as a copy of stacks/Pulumi.sandbox.yaml",
            )
        return load_environment(name, self._shown(file), _read(file))

    def policy_files(self, paths: tuple[str, ...]) -> PolicyFiles:
        """The policy files below the paths, in path order. Raises Fault for a missing path."""
        files = sorted({file for path in paths for file in self._policy_paths(path)})
        read: list[tuple[str, bytes]] = []
        unreadable: list[Diagnostic] = []
        for file in files:
            try:
                read.append((self._shown(file), file.read_bytes()))
            except OSError as error:
                unreadable.append(_unreadable(self._shown(file), file, error))
        return PolicyFiles(tuple(read), tuple(unreadable))

    def policy_tests(self, places: Iterable[Path]) -> tuple[tuple[Path, str, bytes], ...]:
        """(path, shown path, content) of each file of policy tests among the files and below the folders, in path
        order. A file that is named is read whatever its name is. Raises Fault for a missing path."""
        found: set[Path] = set()
        for place in (each.resolve() for each in places):
            if place.is_dir():
                below = (file for pattern in _YAML for file in place.rglob(pattern))
                found |= {file for file in below if _POLICY_TEST.fullmatch(file.name)}
            elif place.is_file():
                found.add(place)
            else:
                raise Fault(f"{place} does not exist", "name files or folders of policy tests, NAME.test.yaml")
        return tuple((file, self._shown(file), _read(file)) for file in sorted(found))

    def policy(self, environment: Environment) -> Policy:
        """The policy in force in that environment; raises InvalidInput with every finding, or Fault."""
        files = self.policy_files(environment.policies)
        if not (files.read or files.unreadable):
            raise Fault(
                f"environment {environment.name}: no policy file below {', '.join(environment.policies)}",
                "an empty policy removes nothing and buys nothing; name folders or files in nodewright:policies",
            )
        if files.unreadable:
            raise InvalidInput((*files.unreadable, *_findings(files.read, environment)))
        return load_policy(files.read, environment)

    def price_file(self, environment: Environment) -> bytes | None:
        named = environment.pricing.file
        return _read(self.root / named) if named else None

    def stamp(self, environment: Environment) -> str:
        """Changes when a file that decisions depend on does; contents are not read. Raises Fault for a missing path."""
        prices = [self.root / environment.pricing.file] if environment.pricing.file else []
        policies = {file for path in environment.policies for file in self._policy_paths(path)}
        files = [self.stacks / f"Pulumi.{environment.name}.yaml", *prices, *sorted(policies)]
        return " ".join(_mark(file) for file in files)

    def folder_in(self, folder: Path) -> str:
        """Where the project lies below a folder, with slashes; empty where it is that folder, or elsewhere."""
        root, above = self.root.resolve(), folder.resolve()
        return root.relative_to(above).as_posix() if root != above and root.is_relative_to(above) else ""

    def store_root(self, environment: Environment) -> Path:
        """Where the environment keeps its desired documents, pins and ledger."""
        return (self.root / environment.store).resolve()

    def state_directory(self, environment: Environment) -> Path:
        """Where this machine keeps what belongs to the environment and is no document: sandbox, caches, backend."""
        return self.root / ".nodewright" / environment.name

    def _policy_paths(self, path: str) -> Iterator[Path]:
        place = self.root / path
        if place.is_file():
            yield place
        elif place.is_dir():
            found = (file for pattern in _YAML for file in place.rglob(pattern))
            yield from (file for file in found if _POLICY_TEST.fullmatch(file.name) is None)
        else:
            raise Fault(f"the policy path {path} does not exist below {self.root}", "correct nodewright:policies")

    def _shown(self, file: Path) -> str:
        return str(file.relative_to(self.root)) if file.is_relative_to(self.root) else str(file)


def find_workspace(start: Path) -> Workspace:
    """The nearest folder at or above ``start`` that holds Pulumi.yaml and stacks/. Raises Fault."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "Pulumi.yaml").is_file() and (folder / "stacks").is_dir():
            return Workspace(folder)
    raise Fault(
        f"{start} is in no Nodewright project: no folder at or above it holds Pulumi.yaml and stacks/",
        "run the command inside a project, or name one with --project",
    )


def _unreadable(shown: str, file: Path, error: OSError) -> Diagnostic:
    hint = "correct or remove the symbolic link" if file.is_symlink() else "it has to be a file that may be read"
    message = f"the file cannot be read: {error.strerror}"
    return Diagnostic(Severity.ERROR, "unreadable-file", message, Position(shown, 1, 1), hint)


def _findings(files: Sequence[tuple[str, bytes]], environment: Environment) -> tuple[Diagnostic, ...]:
    """What is to be said of the other files, where one cannot be read."""
    if not files:
        return ()
    try:
        return load_policy(files, environment).warnings
    except InvalidInput as invalid:
        return invalid.diagnostics


def _mark(file: Path) -> str:
    try:
        seen = file.stat()
    except OSError:
        return f"{file} -"
    return f"{file} {seen.st_ino}.{seen.st_mtime_ns}.{seen.st_size}"


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise Fault(f"{file} cannot be read: {error.strerror}", "check that the file exists and is readable") from None
