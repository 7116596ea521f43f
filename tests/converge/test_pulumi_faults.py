"""The CLI's refusals become errors that say what to do; its words are those of the pinned version."""

from __future__ import annotations

import os
import socket

import pytest

from engine.converge.faults import (
    BackendUnreachable,
    LockHolder,
    PulumiFailed,
    SaltUnreadable,
    StackLocked,
    StackMissing,
    StateDamaged,
    WrongPassphrase,
    fault_of,
)
from engine.converge.pulumi_process import Finished
from engine.converge.stack_lock import is_dead
from engine.converge.state import StateUnreadable, parse_state, with_strays, without_pending
from tests.converge.states import NAMES, exported, instance, providers, state_of

LOCKED = (
    "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
    "lock file with `pulumi cancel`.\n"
    "  file:///state/.pulumi/locks/organization/nodewright/test/1b2c.json: created by anna@build-7 (pid 4711) at "
    "2026-11-30T12:00:00Z\n"
)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("error: no stack named 'test' found", StackMissing),
        (LOCKED, StackLocked),
        ("error: getting stack configuration: get stack secrets manager: incorrect passphrase", WrongPassphrase),
        (
            "error: getting stack configuration: get stack secrets manager: passphrase must be set with "
            "PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE environment variables",
            WrongPassphrase,
        ),
        ('error: unable to open state directory "file:///gone": stat /gone: no such file', BackendUnreachable),
        ("error: PULUMI_ACCESS_TOKEN must be set for login during non-interactive CLI sessions", BackendUnreachable),
        (
            "error: getting stack configuration: get stack secrets manager: malformed state value",
            SaltUnreadable,
        ),
        ("error: failed to load checkpoint: place 1: unexpected end of JSON input", StateDamaged),
        ("error: something quite new", PulumiFailed),
    ],
)
def test_each_refusal_has_its_own_error_with_a_hint(said: str, kind: type[Exception]) -> None:
    fault = fault_of(Finished(255, "", said), "test", "reading")
    assert type(fault) is kind
    assert fault.hints or kind is PulumiFailed
    assert "Traceback" not in str(fault)


def test_a_locked_stack_names_who_holds_it() -> None:
    fault = fault_of(Finished(255, "", LOCKED), "test", "reading")
    assert isinstance(fault, StackLocked)
    assert fault.holders == (LockHolder("anna", "build-7", 4711, "2026-11-30T12:00:00Z"),)
    assert "anna@build-7, process 4711" in str(fault)


def test_an_unknown_refusal_shows_the_last_words_of_the_cli() -> None:
    said = "\n".join(f"line {number}" for number in range(40))
    assert "line 39" in str(fault_of(Finished(255, said, ""), "test", "updating"))
    assert "line 3\n" not in str(fault_of(Finished(255, said, ""), "test", "updating"))


def test_only_a_holder_of_this_machine_whose_process_is_gone_is_dead() -> None:
    here = socket.gethostname()
    nobody = 2**22 + 7  # above the largest process number that Linux gives
    assert is_dead(LockHolder("me", here, nobody, "then"))
    assert not is_dead(LockHolder("me", here, os.getpid(), "then"))
    assert not is_dead(LockHolder("me", "another-machine", nobody, "then"))
    assert not is_dead(LockHolder("root", here, 1, "then"))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"deployment": {"resources": [{}]}}'])
def test_a_state_that_cannot_be_read_is_an_error_and_not_an_empty_one(text: str) -> None:
    with pytest.raises(StateUnreadable, match="test"):
        parse_state("test", text)


def test_a_new_stack_is_empty() -> None:
    state = parse_state("test", '{"version": 3, "deployment": {"manifest": {}, "metadata": {}}}')
    assert state.is_empty
    assert state.written_at is None


def test_a_resource_that_waits_to_be_deleted_after_its_replacement_does_not_hide_it() -> None:
    state = state_of(instance("gpu-1", "i-new"), {**instance("gpu-1", "i-old"), "delete": True})
    assert state.instances_by_claim()["gpu-1"].id == "i-new"
    assert [one.id for one in state.condemned] == ["i-old"]


def test_pending_operations_are_dropped_by_choice_and_nothing_else_changes() -> None:
    state = state_of(instance("gpu-1", "i-1"), pending=["gpu-2", "gpu-3"])
    edited = parse_state("test", without_pending(state, lambda one: one.urn.endswith("gpu-2")))
    assert [one.urn.rsplit("::")[-1] for one in edited.pending] == ["gpu-3"]
    assert edited.resources == state.resources
    assert len(state.pending) == 2


def test_a_stray_is_written_into_the_state_with_its_provider() -> None:
    state = state_of(*providers(), instance("gpu-1", "i-1"))
    edited = parse_state("test", with_strays(state, ["i-9"]))
    [taken_in] = edited.strays()
    assert (taken_in.urn, taken_in.id) == (NAMES.stray("i-9"), "i-9")
    assert taken_in.provider == state.provider_reference("aws-launches")
    assert "i-9" not in edited.instances_by_claim()
    assert exported() != with_strays(state, [])
