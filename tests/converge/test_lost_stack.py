"""A stack that is missing while machines run: what helps hangs on whether the document names them."""

from __future__ import annotations

import pytest

from engine.converge.faults import StackMissing, lost_stack
from engine.model import labels
from engine.model.document import DesiredDocument
from engine.model.node import Instance, InstanceState
from tests.converge.documents import NOON, claim, document, removal

MISSING = StackMissing("the backend has no stack 'test'", "nodewright env test makes it")


def alive(claim_name: str) -> Instance:
    return Instance(
        f"i-{claim_name}", claim_name, InstanceState.RUNNING, "g5.xlarge", "us-east-1a", labels.ON_DEMAND, NOON
    )


@pytest.mark.parametrize("known", [document(claim("gpu-1")), document(removals=[removal("gpu-1")])])
def test_an_empty_stack_is_offered_where_the_document_names_every_machine(known: DesiredDocument) -> None:
    fault = lost_stack(MISSING, "test", known, [alive("gpu-1")])

    assert str(fault) == "the backend has no stack 'test', but 1 instance(s) of environment 'test' run"
    assert [hint.partition(":")[0] for hint in fault.hints] == [
        "check that PULUMI_BACKEND_URL, or `backend` in the stack file, names the right backend",
        "if the stack is really lost",
    ]


def test_no_empty_stack_is_offered_where_the_document_names_not_every_machine() -> None:
    fault = lost_stack(MISSING, "test", document(claim("gpu-1"), version=7), [alive(f"gpu-{n}") for n in (1, 2, 3)])

    assert not any("nodewright env" in hint for hint in fault.hints)
    assert fault.hints[1].startswith("version 7 of the desired document does not name 2 of them")
    assert "restore the documents" in fault.hints[1]
    assert fault.hints[2] == "or begin anew: nodewright destroy test terminates them"
