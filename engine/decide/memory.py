"""What the next pass starts from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from attrs import evolve

from engine.decide.bring_up import BringUp
from engine.decide.budgets_asked import counted_since, with_disruptions
from engine.decide.fleet import Fleet
from engine.disruption.empty import stands_empty
from engine.disruption.machine import Machine
from engine.disruption.moved import with_moved
from engine.model.document import DesiredDocument
from engine.model.ledger import Ledger, Milestones, PodsSeen
from engine.model.outcome import ClaimOutcome
from engine.model.plan import Removal, RemovalPhase
from engine.model.pod import Pod
from engine.model.reason import DisruptionReason
from engine.model.snapshot import Snapshot

_NOTHING_SEEN = Milestones()


def next_ledger(
    learned: Ledger,
    fleet: Fleet,
    brought: Mapping[str, BringUp],
    machines: Sequence[Machine],
    document: DesiredDocument,
    planned: Mapping[str, str],
    removals: Iterable[Removal],
    snapshot: Snapshot,
) -> Ledger:
    """The ledger after a pass that leads to ``document``; ``learned`` knows its refused launches already.

    The clock of an empty node starts when it is first seen empty, and stops when it is not. Instance ids are kept as
    long as the document names the claim, in a removal record too: by its id EC2 is asked whether a machine is gone.
    Milestones are kept while it is one of the document's claims.
    """
    staying = {claim.name for claim in document.claims}
    named = staying | {record.claim for record in document.removals}
    seen = {each.claim.name: each.instance.id for each in fleet.sightings if each.instance is not None}
    ids = {**learned.instance_ids, **seen}
    empty_since = {
        machine.claim.name: machine.empty_since or snapshot.taken_at
        for machine in machines
        if machine.claim.name in staying and stands_empty(machine)
    }
    drifted_since = {
        machine.name: machine.drifted_since or snapshot.taken_at
        for machine in machines
        if machine.name in staying and machine.is_to_be_replaced
    }
    return evolve(
        learned,
        empty_since=empty_since,
        drifted_since=drifted_since,
        moved=with_moved(learned.moved, _moving(machines, removals), snapshot.taken_at),
        pods_seen=_pods_seen(machines, staying, snapshot),
        instance_ids={name: ids[name] for name in sorted(ids) if name in named},
        milestones={name: brought[name].milestones if name in brought else _NOTHING_SEEN for name in sorted(staying)},
        planned=planned,
        outcomes=_unanswered(learned.outcomes, staying - seen.keys()),
        disruptions=with_disruptions(learned, removals, snapshot),
        counted_since=counted_since(snapshot),
    )


def _moving(machines: Iterable[Machine], removals: Iterable[Removal]) -> Iterator[Pod]:
    """The pods whose node is marked for money in this plan."""
    marked = {
        each.record.claim
        for each in removals
        if each.phase is RemovalPhase.MARK and each.record.reason is DisruptionReason.UNDERUTILIZED
    }
    for machine in machines:
        if machine.name in marked and not machine.is_marked:
            yield from (pod for pod in machine.pods if not pod.deleting)


def _pods_seen(machines: Iterable[Machine], staying: Set[str], snapshot: Snapshot) -> Mapping[str, PodsSeen]:
    """How many pods are on each machine that has a node, by claim, in the machines' order."""
    before = snapshot.ledger.pods_seen
    seen: dict[str, PodsSeen] = {}
    for machine in machines:
        if machine.name in staying and machine.node is not None:
            known = before.get(machine.name)
            is_same = known is not None and known.pods == machine.workload
            seen[machine.name] = known if known and is_same else PodsSeen(machine.workload, snapshot.taken_at)
    return seen


def _unanswered(outcomes: Iterable[ClaimOutcome], waiting: set[str]) -> tuple[ClaimOutcome, ...]:
    """A launch is answered once its claim left or its machine was seen."""
    return tuple(sorted((each for each in outcomes if each.claim in waiting), key=lambda each: each.claim))
