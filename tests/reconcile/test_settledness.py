"""What has converged is known although the ledger was lost: the outcomes tell it."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from engine.model.ledger import Ledger
from engine.reconcile.memory import Memory
from engine.reconcile.passes import observe
from engine.reconcile.settledness import with_what_settled
from engine.reconcile.up import up
from tests.reconcile.test_up import world_of
from tests.reconcile.world_ports import Watcher, WorldPorts


@pytest.fixture
def settled(tmp_path: Path) -> WorldPorts:
    """Three nodes stand, and then the ledger is lost."""
    three = WorldPorts(world_of(3), tmp_path)
    up(three.ports, Watcher())
    three.ports.store.write_ledger(Ledger())
    return three


def test_a_pass_after_the_ledger_was_lost_knows_that_the_document_has_settled(settled: WorldPorts) -> None:
    snapshot, _ = observe(settled.ports)

    assert snapshot.document is not None
    assert snapshot.ledger.settled_version == snapshot.document.version > 0


def test_a_loop_that_begins_without_a_ledger_knows_it_too(settled: WorldPorts) -> None:
    memory = Memory(settled.ports.store)
    memory.refresh()

    assert memory.document is not None
    assert memory.ledger == Ledger(settled_version=memory.document.version)


def test_what_no_outcome_shows_settled_is_not(settled: WorldPorts) -> None:
    store = settled.ports.store
    document, outcomes = store.document(), store.outcomes()
    cut_short = {stack: evolve(each, is_settled=False) for stack, each in outcomes.items()}

    assert with_what_settled(Ledger(), document, cut_short) == Ledger()
    assert with_what_settled(Ledger(), document, {}) == Ledger()
    assert with_what_settled(Ledger(), None, outcomes) == Ledger()
