"""The Pulumi CLI's refusals, from its words into errors that say what to do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from engine.converge.events import plain
from engine.converge.pulumi_process import Finished
from engine.model.document import DesiredDocument
from engine.model.fault import Fault
from engine.model.node import Instance

_HOLDER = re.compile(r"created by (?P<user>.+?)@(?P<host>\S+) \(pid (?P<pid>\d+)\) at (?P<since>\S+)")
_SHOWN_LINES = 12


class StackMissing(Fault):
    """The backend has no such stack."""


class WrongPassphrase(Fault):
    """The stack's secrets cannot be opened."""


class BackendUnreachable(Fault):
    """Where the stacks are kept cannot be reached, or wants a login."""


class SaltUnreadable(Fault):
    """The stack file's `encryptionsalt` is damaged."""


class StateDamaged(Fault):
    """The backend's file of the stack's state is cut off or empty."""


class CliMissing(Fault):
    """The Pulumi CLI is not where it was found before."""


class PulumiFailed(Fault):
    """The CLI refused for a reason that is not one of the above; its words follow."""


class ConvergeRefused(Fault):
    """An update would delete or replace what no removal record names. Nothing was changed."""

    def __init__(self, message: str, urns: tuple[str, ...], hints: tuple[str, ...]) -> None:
        self.urns = urns
        super().__init__(message, hints)


@frozen
class LockHolder:
    """The CLI process that wrote a stack's lock."""

    user: str
    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"{self.user}@{self.host}, process {self.pid}, since {self.since}"


class StackLocked(Fault):
    """Another update of this stack runs, or was killed and left its lock behind."""

    def __init__(self, stack: str, holders: tuple[LockHolder, ...]) -> None:
        self.holders = holders
        who = "; ".join(str(holder) for holder in holders) or "another update"
        super().__init__(
            f"stack {stack!r} is locked by {who}",
            (
                "wait until that update has ended, then run again; run and up take over a lock of another machine "
                "once it has shown no sign of life for 10 minutes",
                f"if it runs no more: pulumi cancel --yes --stack {stack}, then run again",
            ),
        )


def lost_stack(
    missing: StackMissing, environment: str, document: DesiredDocument, alive: Sequence[Instance]
) -> StackMissing:
    """A stack that is missing although machines of its environment run: the backend is a wrong one, or it is lost.

    An empty stack takes in the machines that the document names, and no others: these are nobody's until the document
    that named them is back.
    """
    kept = {claim.name for claim in document.claims} | {record.claim for record in document.removals}
    unnamed = sum(instance.claim not in kept for instance in alive)
    if unnamed:
        what_to_do: tuple[str, ...] = (
            f"version {document.version} of the desired document does not name {unnamed} of them, and an empty stack "
            "would not adopt these: first restore the documents (`store` in the stack file)",
            f"or begin anew: nodewright destroy {environment} terminates them",
        )
    else:
        what_to_do = (
            f"if the stack is really lost: nodewright env {environment} makes an empty one, into which the next up "
            "adopts the instances",
        )
    check = "check that PULUMI_BACKEND_URL, or `backend` in the stack file, names the right backend"
    words = f"{missing}, but {len(alive)} instance(s) of environment {environment!r} run"
    return StackMissing(words, (check, *what_to_do))


def fault_of(finished: Finished, stack: str, doing: str) -> Fault:
    """Why a CLI command failed. `doing` completes "while …": ``reading the state of stack sandbox``."""
    said = plain(f"{finished.errors}\n{finished.output}")
    holders = tuple(
        LockHolder(found["user"].strip(), found["host"], int(found["pid"]), found["since"])
        for found in _HOLDER.finditer(said)
    )
    if "currently locked by" in said:
        return StackLocked(stack, holders)
    if "no stack named" in said:
        return StackMissing(
            f"the backend has no stack {stack!r}", (f"nodewright env {stack} makes it", "check PULUMI_BACKEND_URL")
        )
    if "malformed state value" in said or "illegal base64 data" in said:
        return SaltUnreadable(
            f"the secrets of stack {stack!r} cannot be opened: `encryptionsalt` in its stack file "
            f"(Pulumi.{stack}.yaml) is damaged: {_last_error(said)}",
            (
                "restore that line as it was, from version control or a backup; it belongs to the passphrase",
                "if the stack holds no secrets, remove the line: the next run writes a new one",
            ),
        )
    if "failed to load checkpoint" in said:
        return StateDamaged(
            f"the state of stack {stack!r} in Pulumi's backend is damaged: {_last_error(said)}",
            (
                f"Pulumi keeps the state before it beside the file: in the backend's folder copy "
                f".pulumi/stacks/nodewright/{stack}.json.bak over {stack}.json",
                f"what was made since then is found again by its tags: nodewright up {stack}",
            ),
        )
    if "passphrase" in said or "encryption salt" in said:
        return WrongPassphrase(
            f"the secrets of stack {stack!r} cannot be opened: {_last_error(said)}",
            "set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to the passphrase that the stack was "
            "made with; `encryptionsalt` in its stack file belongs to it",
        )
    if _is_about_backend(said):
        return BackendUnreachable(
            f"Pulumi's backend cannot be used: {_last_error(said)}",
            "check PULUMI_BACKEND_URL, or `backend` in the stack file, and the credentials for it",
        )
    return PulumiFailed(f"while {doing}, pulumi failed (exit code {finished.exit_code}):\n{_tail(said)}")


def _is_about_backend(said: str) -> bool:
    return any(
        words in said
        for words in (
            "unable to open state directory",
            "PULUMI_ACCESS_TOKEN must be set",
            "could not open bucket",
            "unable to open bucket",
            ".pulumi/meta.yaml",
            "problem logging in",
            "no such host",
            "connection refused",
        )
    )


def _last_error(said: str) -> str:
    errors = [line.removeprefix("error:").strip() for line in said.splitlines() if line.startswith("error:")]
    return errors[-1] if errors else _tail(said)


def _tail(said: str) -> str:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:])
