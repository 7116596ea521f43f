"""``replace``: a request is an annotation, set and taken away by a node's name, and refused where it means nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from engine.model.eviction import Eviction
from engine.model.fault import Fault
from engine.model.pending import Pending
from engine.model.plan import RemovalPhase
from engine.model.pod import PodKey, PodPhase
from engine.model.snapshot import KarpenterFacts
from engine.observe.cluster import ClusterFacts
from engine.reconcile import passes, requesting
from engine.reconcile.explaining import Asked
from engine.reconcile.explaining_nodes import explain_node, machine_named
from engine.reconcile.up import up
from tests.decide.world import World, policy
from tests.disruption.going_world import of, served, steady
from tests.reconcile.world_ports import Watcher, WorldPorts


class Evicting(WorldPorts):
    """Pods that are asked to leave do so, and are made anew."""

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        for key in pods:
            self.world.pods[key] = evolve(self.world.pods[key], node_name=None, phase=PodPhase.PENDING)
        self.world.settle()
        return super().evict(pods)


@pytest.fixture
def two(tmp_path: Path) -> WorldPorts:
    made = Evicting(World(policy(steady()), [served(f"llm-{number}") for number in range(2)]), tmp_path)
    up(made.ports, Watcher())
    return made


def claims(made: WorldPorts) -> set[str]:
    return {each.claim for each in made.world.running()}


def test_a_node_that_was_asked_for_is_replaced_by_the_passes_that_follow(two: WorldPorts) -> None:
    name, before = min(two.world.nodes), claims(two)

    request = requesting.ask(two.ports, name)
    assert (request.node, request.was_asked) == (name, False)
    assert request.outcome.startswith("It stays: ")
    assert f"replacement of {name} was asked for by annotation at 2026-11-30" in request.outcome
    assert claims(two) == before, "asking does nothing by itself"

    watcher = Watcher()
    up(two.ports, watcher)
    [removal] = [each for plan in watcher.shown for each in plan.removals]
    assert [each.phase for plan in watcher.carried_on for each in plan.removals] == [RemovalPhase.RELEASE]
    assert removal.record.rule.startswith(f"gpu: replacement of {name} was asked for by annotation at ")
    assert removal.record.node == name
    assert len(before & claims(two)) == 1
    assert len(two.evicted) == 1


def test_a_claims_name_does_as_well(two: WorldPorts) -> None:
    name = min(claims(two))
    request = requesting.ask(two.ports, name)
    assert request.claim == name
    assert two.world.nodes[request.node].replace_asked


def test_asking_twice_leaves_the_first_request_as_it_was(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    requesting.ask(two.ports, name)
    first = two.world.nodes[name]
    two.world.now += two.world.now - first.created_at
    assert requesting.ask(two.ports, name).was_asked
    assert two.world.nodes[name] == first


def test_a_request_that_is_withdrawn_is_none(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    requesting.ask(two.ports, name)
    assert requesting.withdraw(two.ports, name).was_asked
    assert not passes.propose(two.ports).needs_converging
    assert not requesting.withdraw(two.ports, name).was_asked


def test_explain_says_of_a_node_that_stays_that_it_was_asked_for(two: WorldPorts) -> None:
    name = min(two.world.nodes)

    def explained() -> tuple[Pending, ...]:
        seen, _ = passes.observe(two.ports)
        return explain_node(Asked(two.ports.environment, two.ports.policy, two.ports.catalog, seen), name).pending

    assert explained() == ()
    two.world.nodes[name] = evolve(two.world.nodes[name], replace_asked=True)
    [cause] = explained()
    assert cause.why == f"replacement of {name} was asked for by annotation"


def test_an_unknown_name_is_answered_with_the_nearest(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    with pytest.raises(Fault, match="there is no node or machine") as told:
        requesting.ask(two.ports, f"{name}x")
    assert told.value.hints == (f"did you mean {name}?",)


def test_a_strangers_node_is_left_alone(two: WorldPorts) -> None:
    stranger = evolve(two.world.nodes[min(two.world.nodes)], name="stranger", provider_id="aws:///us-east-1a/i-other")
    two.world.nodes["stranger"] = stranger
    with pytest.raises(Fault, match="no machine of ours behind node 'stranger'"):
        requesting.ask(two.ports, "stranger")
    assert two.world.nodes["stranger"] == stranger


def test_a_marked_node_is_on_its_way_out_already_and_cannot_be_taken_back(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    two.world.mark(name)
    for act in (requesting.ask, requesting.withdraw):
        with pytest.raises(Fault, match=f"node {name} is on its way out already") as told:
            act(two.ports, name)
        assert told.value.hints == (f"nodewright explain node {name} test says what it waits for",)


def test_a_machine_that_the_published_document_lets_go_is_on_its_way_out_too() -> None:
    one = of(served("llm"), keeps=lambda claim: True).started()
    [old], [name] = one.running(), one.nodes
    one.nodes[name] = evolve(one.nodes[name], replace_asked=True)
    for _ in range(3):
        one.turn()
    of_then = Asked(one.environment, one.policy, one.catalog, one.snapshot())
    assert old.claim in {each.claim for each in one.running()}
    for named in (name, old.claim):
        with pytest.raises(Fault, match=f"{named} is on its way out already: the published document .*, Drifted"):
            machine_named(of_then, named)


def test_a_machine_without_a_node_has_nothing_to_replace(two: WorldPorts) -> None:
    name = min(claims(two))
    two.world.nodes.clear()
    with pytest.raises(Fault, match=f"{name} has no node yet"):
        requesting.ask(two.ports, name)


def test_a_node_of_a_pool_that_no_file_has_is_left_alone_and_may_still_be_taken_back(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    two.ports = evolve(two.ports, policy=policy(steady("other")))
    with pytest.raises(Fault, match=f"{name} is of pool gpu, which no policy file of test has"):
        requesting.ask(two.ports, name)
    assert requesting.withdraw(two.ports, name).node == name


def test_a_node_of_a_karpenter_that_lives_is_left_alone(two: WorldPorts) -> None:
    name = min(two.world.nodes)
    node = two.world.nodes[name]

    class Karpenters:
        def read(self, cloud: object, document: object) -> ClusterFacts:
            world = two.world
            owned = KarpenterFacts(is_live=True, instance_ids=(node.instance_id,))
            return ClusterFacts(tuple(world.pods.values()), tuple(world.nodes.values()), (), karpenter=owned)

    two.ports = evolve(two.ports, cluster=Karpenters())
    with pytest.raises(Fault, match="no machine of ours behind node"):
        requesting.ask(two.ports, name)
    [claim] = [each.claim for each in two.world.running() if each.id == node.instance_id]
    with pytest.raises(Fault, match=f"{claim} belongs to a Karpenter"):
        requesting.ask(two.ports, claim)


def test_a_node_that_went_meanwhile_is_told(two: WorldPorts, tmp_path: Path) -> None:
    class Gone(Evicting):
        def annotate(self, node_name: str, annotations: Mapping[str, str | None]) -> bool:
            return False

    ports = evolve(two.ports, registrar=Gone(two.world, tmp_path / "gone"))
    with pytest.raises(Fault, match="is gone since it was looked at"):
        requesting.ask(ports, min(two.world.nodes))
