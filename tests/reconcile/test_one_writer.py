"""One process at a time changes an environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from engine.converge.store import FileStore
from engine.model import labels as keys
from engine.model.fault import Fault
from engine.reconcile.one_writer import BothLeases, EnvironmentHeld, StoreLease, sole_writer
from engine.reconcile.up import up
from tests.reconcile.loop_world import LoopPorts
from tests.reconcile.loops import loop_of
from tests.reconcile.world_ports import Watcher


@pytest.fixture
def loop(tmp_path: Path) -> LoopPorts:
    return loop_of(1, tmp_path)


def test_who_waits_says_for_whom_and_gives_up_in_the_end(loop: LoopPorts) -> None:
    other, told, slept = StoreLease(FileStore(loop.store.folder.parent, "test")), list[str](), list[float]()  # type: ignore[attr-defined]
    assert other.take() == ""

    with (
        pytest.raises(EnvironmentHeld, match="is being changed by process"),
        sole_writer(loop.ports, told.append, patience_seconds=1.0, sleep=slept.append),
    ):
        pytest.fail("it was not ours")
    assert len(told) == 1
    assert sum(slept) == 1.0


def test_who_waits_goes_on_once_the_other_has_ended(loop: LoopPorts) -> None:
    other, entered = StoreLease(FileStore(loop.store.folder.parent, "test")), []  # type: ignore[attr-defined]
    other.take()

    with sole_writer(loop.ports, str, sleep=lambda seconds: other.release()):
        entered.append(loop.ports.lease.is_held())
    assert (entered, loop.ports.lease.is_held()) == ([True], False)


def test_a_cluster_that_refuses_its_lease_leaves_the_store_free(loop: LoopPorts) -> None:
    class Refusing(StoreLease):
        def take(self) -> str:
            raise Fault("the API server refused")

    both = BothLeases(StoreLease(loop.store), Refusing(loop.store))

    with pytest.raises(Fault, match="refused"):
        both.take()
    assert StoreLease(loop.store).take() == ""


def test_up_converges_a_document_with_claims_in_several_lanes_whole(loop: LoopPorts) -> None:
    loop.time.delays["lane"] = 3000.0
    loop.run(until=5.0)
    document = loop.store.document()
    assert document is not None
    claim = next(iter(document.claims))
    inputs = evolve(claim.inputs, tags={**claim.inputs.tags, keys.TAG_CLAIM: "gpu-second"})
    second = evolve(claim, name="gpu-second", stack="test.1", inputs=inputs)
    sets = (evolve(document.node_sets[0], claims=(claim, second)),)
    loop.store.publish(evolve(document, version=2, node_sets=sets))

    assert up(loop.ports, Watcher()).is_done

    assert {stack for _, stack, version in loop.calls if version == 2} >= {"test.1"}
    assert "gpu-second" in {instance.claim for instance in loop.world.instances.values()}
