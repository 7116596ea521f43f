"""``up`` in the small world: it converges, rests, asks before it acts, and carries on what was cut short."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.eviction import Eviction
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import ClaimOutcome, Outcome, OutcomeStatus
from engine.model.plan import RemovalPhase
from engine.model.pod import Owner, PodKey, PodPhase
from engine.model.policy import Budget, Disruption, Policy
from engine.model.snapshot import CloudFacts
from engine.model.upkeep import Upkeep
from engine.reconcile import passes
from engine.reconcile.destroying import destroy
from engine.reconcile.one_writer import StoreLease
from engine.reconcile.ports import OnEvent
from engine.reconcile.up import MOST_PASSES, up
from engine.report.later_words import later_words
from tests.builders import minutes, node_pool, pod
from tests.decide.world import World, policy
from tests.reconcile.world_ports import Watcher, WorldPorts

EMPTY_AT_ONCE = Disruption(consolidate_after=minutes(0), budgets=())


def world_of(pods: int, **more: object) -> World:
    pool = node_pool(disruption=EMPTY_AT_ONCE)
    return World(policy(pool), [pod(f"llm-{number}", gpu=1) for number in range(pods)], **more)  # type: ignore[arg-type]


@pytest.fixture
def three(tmp_path: Path) -> WorldPorts:
    return WorldPorts(world_of(3), tmp_path)


def test_up_launches_for_waiting_pods_and_then_rests(three: WorldPorts) -> None:
    watcher = Watcher()

    ending = up(three.ports, watcher)

    assert (ending.is_done, ending.changed, ending.has_failed) == (True, True, False)
    assert len(three.world.running()) == 3
    assert watcher.asked == 1
    again = Watcher()
    assert not up(three.ports, again).changed
    assert (again.asked, three.converged) == (0, 1)


def test_a_no_changes_nothing(three: WorldPorts) -> None:
    ending = up(three.ports, Watcher(False))

    assert (ending.was_approved, ending.changed) == (False, False)
    assert three.store.document() is None
    assert three.world.running() == []


def test_an_empty_node_is_marked_and_then_released_on_one_approval(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    three.world.finish(list(three.world.pods.values())[:1])
    watcher = Watcher()

    ending = up(three.ports, watcher)

    assert ending.is_done
    assert watcher.asked == 1
    assert [[removal.phase for removal in plan.removals] for plan in watcher.shown] == [[RemovalPhase.MARK]]
    assert [[removal.phase for removal in plan.removals] for plan in watcher.carried_on] == [[RemovalPhase.RELEASE]]
    assert len(three.world.running()) == 2


def test_a_pod_that_its_budget_holds_on_a_marked_node_is_asked_once_a_run(tmp_path: Path) -> None:
    ports = WorldPorts(world_of(2), tmp_path)
    up(ports.ports, Watcher())
    moved, spared = sorted(ports.world.pods.values(), key=lambda each: each.key)
    ports.world.finish([spared])
    ports.world.pods[moved.key] = evolve(moved, owner=Owner("ReplicaSet", "llm"))
    ports.world.mark(moved.node_name or "")
    watcher = Watcher()

    ending = up(ports.ports, watcher)

    assert (ending.passes, ending.has_failed, watcher.asked) == (2, False, 1)
    assert ports.evicted == [moved.key]
    assert len(ports.world.running()) == 2


def test_a_refused_launch_is_asked_about_again_with_another_offering(tmp_path: Path) -> None:
    three = WorldPorts(world_of(1), tmp_path)
    three.world.refuses = lambda claim: claim.inputs.capacity_type == keys.SPOT
    watcher = Watcher()

    ending = up(three.ports, watcher)

    assert ending.is_done
    assert watcher.asked >= 2
    assert [one.status for one in watcher.outcomes[0].claims] == [OutcomeStatus.FAILED_CAPACITY]
    assert [instance.capacity_type for instance in three.world.running()] == [keys.ON_DEMAND]
    names = [launch.claim.name for plan in watcher.shown for launch in plan.launches]
    assert len(names) == len(set(names))


def test_a_failure_that_would_repeat_itself_ends_the_run(three: WorldPorts) -> None:
    three.broken = {"*"}

    ending = up(three.ports, Watcher())

    assert (ending.has_failed, ending.passes) == (True, 1)


def test_a_pass_that_died_after_publishing_is_carried_on_without_a_new_document(three: WorldPorts) -> None:
    three.dies = True
    with pytest.raises(ConnectionError):
        up(three.ports, Watcher())
    three.dies = False
    published = three.store.document()
    assert published is not None

    ending = up(three.ports, Watcher())

    assert ending.is_done
    assert three.store.document() == published
    assert sorted(instance.claim for instance in three.world.running()) == sorted(
        claim.name for claim in published.claims
    )


def test_a_reviewed_plan_is_applied_and_no_other(three: WorldPorts) -> None:
    proposal = passes.propose(three.ports)
    passes.pin(three.ports, proposal.plan)
    late = pod("late", gpu=1)
    three.world.pods[late.key] = late
    watcher = Watcher()

    ending = up(three.ports, watcher, passes.reviewed_plan(three.ports, proposal.plan.hash[:12]))

    assert not ending.has_failed
    assert [plan.hash for plan in watcher.shown] == [proposal.plan.hash]
    document = three.store.document()
    assert document is not None
    assert document.plan_hash == proposal.plan.hash


def test_a_plan_of_an_older_version_is_refused(three: WorldPorts) -> None:
    proposal = passes.propose(three.ports)
    passes.pin(three.ports, proposal.plan)
    pinned = passes.reviewed_plan(three.ports, proposal.plan.hash)
    up(three.ports, Watcher())

    with pytest.raises(Fault, match="was decided on version 0, and version 1 is published by now"):
        passes.apply(three.ports, proposal, print, print)
    with pytest.raises(Fault, match="there is no plan"):
        passes.reviewed_plan(three.ports, pinned.hash)


@pytest.mark.parametrize("wanted", ["", "abc", "f" * 12])
def test_a_hash_that_names_no_plan_is_refused_with_what_is_there(three: WorldPorts, wanted: str) -> None:
    passes.pin(three.ports, passes.propose(three.ports).plan)

    with pytest.raises(Fault, match=r"there is no plan .*; the plan on disk is") as refused:
        passes.reviewed_plan(three.ports, wanted)
    assert refused.value.hints == ("nodewright plan test",)


def test_the_clock_of_an_empty_node_runs_on_although_nothing_is_done(tmp_path: Path) -> None:
    pool = node_pool(disruption=Disruption(consolidate_after=minutes(5), budgets=()))
    one = WorldPorts(World(policy(pool), [pod("llm", gpu=1)]), tmp_path)
    up(one.ports, Watcher())
    one.world.finish(list(one.world.pods.values()))

    assert not up(one.ports, Watcher()).changed
    one.world.now += minutes(6)
    assert up(one.ports, Watcher()).changed
    assert one.world.running() == []


class Rolling(WorldPorts):
    """Who is evicted is made again elsewhere, and machines are up at once: only policy holds a rollout up."""

    def evict(self, pods: Sequence[PodKey]) -> tuple[Eviction, ...]:
        for key in pods:
            again = evolve(key, name=f"{key.name}-again")
            old = self.world.pods.pop(key)
            self.world.pods[again] = evolve(old, key=again, node_name=None, phase=PodPhase.PENDING)
        return super().evict(pods)


def rollout(folder: Path, machines: int, canaries: int) -> Rolling:
    """As many machines, each with a pod, of a pool whose label changed after an hour; one may be out at a time."""
    at_once = Disruption(consolidate_after=minutes(0), budgets=(Budget(nodes=1),))
    before, after = (
        policy(node_pool(disruption=at_once, labels={"stage": stage}, upkeep=Upkeep(canaries=canaries)))
        for stage in ("one", "two")
    )
    pods = [evolve(pod(f"llm-{number}", gpu=1), owner=Owner("ReplicaSet", "llm")) for number in range(machines)]
    rolling = Rolling(World(before, pods), folder)
    up(rolling.ports, Watcher())
    rolling.world.now += minutes(60)
    rolling.world.policy = after
    rolling.ports = evolve(rolling.ports, policy=after)
    return rolling


def stages(rolling: Rolling) -> list[str]:
    return sorted(claim.labels["stage"] for claim in rolling.world.document.claims)  # type: ignore[union-attr]


def test_a_rollout_that_waits_for_its_trial_ends_well_and_goes_on_when_that_is_over(tmp_path: Path) -> None:
    rolling = rollout(tmp_path, machines=3, canaries=1)

    ending = up(rolling.ports, Watcher())

    assert (ending.is_done, ending.has_failed, ending.goes_on) == (True, False, False)
    assert stages(rolling) == ["one", "one", "two"]
    assert ending.last is not None
    assert later_words(ending.last.plan) == "2 nodes wait for a trial, for 10m at least"
    rolling.world.now += minutes(11)
    assert not up(rolling.ports, Watcher()).has_failed
    assert stages(rolling) == ["two", "two", "two"]


def test_a_rollout_longer_than_one_run_ends_well_in_its_middle_and_the_next_run_goes_on(tmp_path: Path) -> None:
    rolling = rollout(tmp_path, machines=6, canaries=0)
    waits = len(rolling.world.running())

    ending = up(rolling.ports, Watcher())

    assert (ending.passes, ending.has_failed, ending.goes_on) == (MOST_PASSES, False, True)
    done = stages(rolling).count("two")
    assert 0 < done < waits
    for _ in range(waits):
        ending = up(rolling.ports, Watcher())
    assert (ending.is_done, ending.changed) == (True, False)
    assert stages(rolling) == ["two"] * waits


def test_a_rollout_whose_launches_are_refused_to_the_end_has_failed(tmp_path: Path) -> None:
    rolling = rollout(tmp_path, machines=2, canaries=0)
    rolling.world.refuses = lambda claim: True

    ending = up(rolling.ports, Watcher())

    assert not ending.goes_on
    assert stages(rolling).count("one") == 2


def test_pods_that_no_pass_of_a_run_could_place_are_a_failure(tmp_path: Path) -> None:
    one = WorldPorts(world_of(1), tmp_path)
    passed = [0]

    def another(claim: Claim) -> bool:
        passed[0] += 1
        late = pod(f"late-{passed[0]}", gpu=1)
        one.world.pods[late.key] = late
        return False

    one.world.refuses = another

    ending = up(one.ports, Watcher())

    assert (ending.passes, ending.has_failed, ending.goes_on) == (MOST_PASSES, True, False)


def test_destroy_lets_every_claim_go_by_a_record(three: WorldPorts) -> None:
    up(three.ports, Watcher())

    outcome = destroy(three.ports, print, print)

    assert outcome.is_settled
    assert three.world.running() == []
    document = three.store.document()
    assert document is not None
    assert list(document.claims) == []
    assert {record.reason.value for record in document.removals} == {"Destroyed"}


class _Kept(StoreLease):
    """A lease that may not be removed, and says whether it was held when that was tried."""

    def remove(self) -> None:
        raise Fault(f"refused, held: {self.is_held()}")


def test_a_destroy_that_may_not_remove_its_lease_says_so_and_is_done(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    told: list[str] = []

    outcome = destroy(evolve(three.ports, lease=_Kept(three.store)), told.append, print)

    assert outcome.is_settled
    assert told[-1] == "the environment's Lease stays in the cluster: refused, held: False"


class _Interrupted(WorldPorts):
    """Broken off while its first claim's machine was being made, of which there is a second."""

    def converge(
        self,
        document: DesiredDocument,
        instances: Sequence[Instance],
        on_progress: OnEvent,
        *,
        refresh: bool = False,
        known_ids: Mapping[str, str] | None = None,
    ) -> Outcome:
        name = next(iter(document.claims)).name
        claims = (
            ClaimOutcome(name, OutcomeStatus.UNKNOWN, "i-begun"),
            ClaimOutcome(name, OutcomeStatus.UNKNOWN, "i-twin", code="DuplicateInstance"),
        )
        return Outcome(document.environment, document.version, self.world.now, claims, was_interrupted=True)


def test_an_interrupted_run_ends_once_its_outcome_and_what_it_began_are_recorded(tmp_path: Path) -> None:
    interrupted, watcher = _Interrupted(world_of(1), tmp_path), Watcher()

    with pytest.raises(KeyboardInterrupt):
        up(interrupted.ports, watcher)

    recorded = interrupted.store.outcome()
    assert recorded is not None
    assert recorded.stack == "test"
    assert watcher.outcomes == [evolve(recorded, stack="")]
    assert list(interrupted.store.ledger().ledger.instance_ids.values()) == ["i-begun"]


def test_after_a_destroy_the_next_up_carries_none_of_its_records(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    destroy(three.ports, print, print)

    assert up(three.ports, Watcher()).is_done

    document = three.store.document()
    assert document is not None
    assert len(list(document.claims)) == 3
    assert document.removals == ()


def test_a_node_is_given_the_labels_that_its_claim_promised_and_keeps_its_own(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    name, node = next(iter(three.world.nodes.items()))
    three.world.nodes[name] = evolve(node, labels={keys.ZONE: "somewhere-else", "mine": "1"})

    up(three.ports, Watcher())

    assert three.labelled == [name]
    assert three.world.nodes[name].labels == {**node.labels, keys.ZONE: "somewhere-else", "mine": "1"}


def test_what_is_refused_before_it_begins_is_not_published(three: WorldPorts) -> None:
    three.refuses = Fault("the stack holds what no record names")

    with pytest.raises(Fault, match="no record names"):
        up(three.ports, Watcher())

    assert three.store.document() is None


def test_a_destroy_that_cannot_begin_lets_nothing_go(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    three.cannot_destroy = Fault("incorrect passphrase")
    with pytest.raises(Fault, match="incorrect passphrase"):
        destroy(three.ports, print, print)

    ending = up(three.ports, Watcher())

    assert ending.is_done
    assert len(three.world.running()) == 3
    document = three.store.document()
    assert document is not None
    assert sorted(claim.name for claim in document.claims) == sorted(each.claim for each in three.world.running())


def test_a_document_of_the_same_version_that_was_never_converged_is_not_settled(three: WorldPorts) -> None:
    up(three.ports, Watcher())
    outcome = three.store.outcome()
    assert outcome is not None
    three.store.write_outcome(evolve(outcome, plan_hash="f" * 64))

    assert not passes.propose(three.ports).is_settled


@pytest.mark.parametrize(("published", "looks"), [(0, 1), (1, 2), (9, 3)])
def test_a_document_that_is_published_while_one_looks_is_looked_at_anew(
    three: WorldPorts, published: int, looks: int
) -> None:
    up(three.ports, Watcher())
    reads: list[int] = []

    class Publishing:
        def read(
            self, environment: Environment, policy: Policy, document: DesiredDocument | None, ledger: Ledger
        ) -> CloudFacts:
            assert document is not None
            reads.append(document.version)
            if len(reads) <= published:
                three.store.publish(evolve(document, version=document.version + 1))
            return three.read(environment, policy, document, ledger)

        def read_claims(self, environment: Environment, names: Collection[str]) -> tuple[Instance, ...]:
            return three.read_claims(environment, names)

    snapshot, _ = passes.observe(evolve(three.ports, cloud=Publishing()))

    assert reads == list(range(1, looks + 1))
    assert snapshot.document is not None
    assert snapshot.document.version == looks
