"""Machines with the environment's tag that no claim accounts for are told of, once each."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from engine.model.node import InstanceState
from engine.reconcile.unmanaged import unmanaged
from tests.reconcile.loops import at_rest


def test_a_machine_of_a_claim_that_nobody_knows_is_told_of_once_and_so_is_its_end(tmp_path: Path) -> None:
    loop = at_rest(1, tmp_path)
    (own,) = loop.world.running()
    loop.world.instances["i-stray"] = evolve(own, id="i-stray", claim="gone-1")

    def leave() -> None:
        loop.world.instances["i-stray"] = evolve(own, id="i-stray", claim="gone-1", state=InstanceState.TERMINATED)

    loop.at(200.0, leave)
    _, heard = loop.run(until=400.0)

    told = [words for words in heard.warned if "i-stray" in words]
    assert len(told) == 1
    assert "claim gone-1, which the desired document does not name" in told[0]
    assert [line for line in heard.said if "i-stray" in line] == ["instance i-stray needs nobody any more"]


def test_a_second_machine_of_a_claim_is_told_of_and_the_managed_one_is_not(tmp_path: Path) -> None:
    loop = at_rest(1, tmp_path)
    (own,) = loop.world.running()
    loop.world.instances["i-0-second"] = evolve(own, id="i-0-second")

    _, heard = loop.run(until=120.0)

    (told,) = heard.warned
    assert told.startswith("instance i-0-second (")
    assert f"{own.claim}, as {own.id}, which is managed" in told


def test_machines_that_are_desired_or_leave_by_record_are_not_told_of(tmp_path: Path) -> None:
    loop = at_rest(2, tmp_path)
    _, heard = loop.run(until=60.0)
    assert heard.warned == []
    snapshot = heard.snapshots[-1]
    assert snapshot.cloud.instances
    assert unmanaged(snapshot) == {}


def test_a_machine_without_a_claim_tag_is_told_of_with_what_to_do(tmp_path: Path) -> None:
    loop = at_rest(1, tmp_path)
    (own,) = loop.world.running()
    snapshot = loop.world.snapshot(document=loop.store.document())
    bare = evolve(own, id="i-bare", claim="")
    cloud = evolve(snapshot.cloud, instances=(*snapshot.cloud.instances, bare))

    (fault,) = unmanaged(evolve(snapshot, cloud=cloud)).values()

    assert "that of no claim" in str(fault)
    assert fault.hints[0].endswith("terminate-instances --instance-ids i-bare")
