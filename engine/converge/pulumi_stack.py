"""One Pulumi stack, through the CLI: make it, read it, write it, operate on it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Sequence
from datetime import datetime

from attrs import Factory, field, frozen

from engine.converge.events import Waiting
from engine.converge.faults import (
    CliMissing,
    LockHolder,
    PulumiFailed,
    StackLocked,
    StackMissing,
    StateDamaged,
    fault_of,
)
from engine.converge.pulumi_process import (
    PARALLEL_STEPS,
    Finished,
    OnEvent,
    Program,
    PulumiCli,
    run_operation,
    run_quietly,
)
from engine.converge.stack_lock import AGAIN_SECONDS, TAKEN_OVER_AFTER_SECONDS, LockWatch, is_dead, may_run_here
from engine.converge.state import StackState, parse_state
from engine.converge.state_backup import take_up_backup
from engine.converge.state_file import StateFile
from engine.model.fault import Fault


@frozen
class PulumiStack:
    """A stack's name and the CLI that knows it.

    `locks` is for whoever holds the environment's lease, and breaks the lock of a holder on another machine that
    gives no sign of life; without it such a lock stays.
    """

    cli: PulumiCli
    name: str
    locks: LockWatch | None = field(default=None, eq=False, repr=False)
    _file: StateFile = field(
        init=False,
        eq=False,
        repr=False,
        default=Factory(lambda self: StateFile(self.cli.variables, self.name), takes_self=True),
    )

    def exists(self) -> bool:
        """Raises Fault when the backend cannot answer."""
        try:
            self.state()
        except StackMissing:
            return False
        return True

    def ensure(self) -> None:
        """Make the stack when the backend lacks it. Raises Fault."""
        if self.exists():
            return
        try:
            self._quietly(["stack", "init", self.name, "--no-select"], "creating stack " + self.name)
        except Fault:
            # A spare lane is made ahead of need, in another thread, and the need may come at that moment.
            if not self.exists():
                raise

    def state(self) -> StackState:
        """Read from the backend's file where that is on this machine, else told by the CLI. Raises as `exported`."""
        return self._file.state() or self.exported()

    def exported(self) -> StackState:
        """The state as the CLI tells it, which finds out on the way whether the stack can be used at all.

        A file that a killed run left cut off is replaced by Pulumi's backup of it, where that is on this machine.

        Raises StackMissing, WrongPassphrase, BackendUnreachable, CliMissing, StateDamaged, StateUnreadable,
        PulumiFailed.
        """
        try:
            return self._told_by_cli()
        except StateDamaged:
            if not take_up_backup(self.cli.variables, self.name, self._is_gone):
                raise
            return self._told_by_cli()

    def siblings(self) -> tuple[str, ...]:
        """The names of all stacks of this project in the backend. Raises as `exported`."""
        done = self._quietly(["stack", "ls", "--json"], "listing the stacks")
        try:
            listed = [str(one["name"]) for one in json.loads(done.output)]
        except (ValueError, KeyError, TypeError) as error:
            raise PulumiFailed(f"`pulumi stack ls --json` told of no list of stacks: {error}", ()) from None
        return tuple(sorted(name.rsplit("/", 1)[-1] for name in listed))

    def _told_by_cli(self) -> StackState:
        done = self._quietly(["stack", "export", "--stack", self.name], f"reading the state of stack {self.name}")
        return parse_state(self.name, done.output)

    def replace_state(self, exported: str) -> None:
        """Write an edited state. Raises as `state` does, and StackLocked."""
        self._quietly(
            ["stack", "import", "--stack", self.name], f"writing the state of stack {self.name}", stdin=exported
        )

    def unprotect_all(self) -> None:
        """Raises as `replace_state` does."""
        self._quietly(["state", "unprotect", "--all", "--yes", "--stack", self.name], f"unprotecting stack {self.name}")

    def operate(
        self, verb: str, arguments: Sequence[str] = (), *, program: Program | None, on_event: OnEvent
    ) -> Finished:
        """Run `up`, `preview`, `refresh` or `destroy`; whether it succeeded is in the answer.

        A lock whose holder was killed is broken, once: at once where it was on this machine, and after a silence where
        that cannot be seen, for which this waits. Raises StackLocked, and other Faults when
        the operation did not even begin. Raises KeyboardInterrupt when a person broke it off before it began, or
        broke off one that launches and deletes nothing, so that it has no outcome to record.
        """
        doing = f"running `pulumi {verb}` on stack {self.name}"
        done, fault = self._past_dead_locks(
            lambda: self._operation(verb, arguments, program, on_event), doing, on_event
        )
        has_outcome = verb in ("up", "destroy") and bool(done.told.events)
        if done.was_interrupted and not has_outcome:
            raise KeyboardInterrupt
        if fault is not None:
            raise fault
        return done

    def _operation(self, verb: str, arguments: Sequence[str], program: Program | None, on_event: OnEvent) -> Finished:
        command = [verb, "--stack", self.name, f"--parallel={PARALLEL_STEPS}", *arguments]
        if verb != "preview":
            command += ["--yes", "--skip-preview"]
        try:
            return run_operation(self.cli, command, program=program, on_event=on_event)
        except OSError as error:
            raise self._cli_missing(error) from error

    def _quietly(self, arguments: Sequence[str], doing: str, stdin: str | None = None) -> Finished:
        done, fault = self._past_dead_locks(lambda: self._command(arguments, stdin), doing)
        if fault is not None:
            raise fault
        return done

    def _command(self, arguments: Sequence[str], stdin: str | None = None) -> Finished:
        try:
            return run_quietly(self.cli, arguments, stdin)
        except OSError as error:
            raise self._cli_missing(error) from error

    def _past_dead_locks(
        self, run: Callable[[], Finished], doing: str, on_event: OnEvent | None = None
    ) -> tuple[Finished, Fault | None]:
        """Run it, and once more when nothing but the lock of a killed process was in the way."""
        done, fault = self._judged(run(), doing)
        waited_seconds = 0.0
        while isinstance(fault, StackLocked) and not self._is_left_behind(fault.holders):
            if not self._may_be_taken_over(fault.holders) or waited_seconds >= TAKEN_OVER_AFTER_SECONDS:
                return done, fault
            if waited_seconds == 0.0 and on_event is not None:
                _tell_of_waiting(fault, on_event)
            waited_seconds += self._paused_for_the_lock()
            done, fault = self._judged(run(), doing)
        if isinstance(fault, StackLocked):
            self._command(["cancel", "--yes", "--stack", self.name])
            done, fault = self._judged(run(), doing)
        return done, fault

    def _may_be_taken_over(self, holders: tuple[LockHolder, ...]) -> bool:
        """Whether silence alone can show that all of them are gone."""
        return self.locks is not None and bool(holders) and not any(map(may_run_here, holders))

    def _is_left_behind(self, holders: tuple[LockHolder, ...]) -> bool:
        if holders and all(map(is_dead, holders)):
            return True
        if self.locks is None or not self._may_be_taken_over(holders):
            return False
        return self.locks.is_abandoned(holders, self._written())

    def _is_gone(self, holder: LockHolder) -> bool:
        """The same of one holder, while the state itself cannot be read."""
        return bool(holder.host) and self._is_left_behind((holder,))

    def _paused_for_the_lock(self) -> float:
        """Seconds. Raises KeyboardInterrupt when a person wishes to stop."""
        if self.locks is not None:
            self.locks.sleep(AGAIN_SECONDS)
        if self.cli.interrupts.count:
            raise KeyboardInterrupt
        return AGAIN_SECONDS

    def _written(self) -> datetime | None:
        """When the state was last written, as far as it can be read: a holder at work writes it at each step."""
        with contextlib.suppress(Fault):
            state = self._file.state()
            if state is None:
                state = parse_state(self.name, self._command(["stack", "export", "--stack", self.name]).output)
            return state.written_at
        return None

    def _judged(self, done: Finished, doing: str) -> tuple[Finished, Fault | None]:
        """An operation that told of nothing has failed before it began, and its words say why."""
        has_begun = done.succeeded or bool(done.told.events)
        return done, None if has_begun else fault_of(done, self.name, doing)

    def _cli_missing(self, error: OSError) -> CliMissing:
        return CliMissing(
            f"{self.cli.program}: {error.strerror or error}", "nodewright doctor finds or builds the Pulumi CLI"
        )


def _tell_of_waiting(fault: StackLocked, on_event: OnEvent) -> None:
    words = f"{fault}; it is taken over after {TAKEN_OVER_AFTER_SECONDS / 60:.0f} minutes without a sign of life"
    with contextlib.suppress(Exception):
        on_event(Waiting(words))
