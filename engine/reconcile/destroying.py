"""Taking down all of an environment, on a person's word: the one removal that no policy decides."""

from __future__ import annotations

from attrs import evolve

from engine.model.document import DesiredDocument, RemovalRecord, with_removals
from engine.model.fault import Fault
from engine.model.ledger import Ledger
from engine.model.node import Instance
from engine.model.outcome import Outcome
from engine.model.reason import DisruptionReason
from engine.reconcile.one_writer import sole_writer
from engine.reconcile.ports import OnEvent, Ports, Tell


def what_stands(ports: Ports) -> tuple[DesiredDocument | None, tuple[Instance, ...]]:
    """What a destroy would take down: the published document, and the instances that are alive."""
    document = ports.store.document()
    cloud = ports.cloud.read(ports.environment, ports.policy, document, ports.store.ledger().ledger)
    return document, tuple(instance for instance in cloud.instances if instance.is_alive)


def destroy(ports: Ports, tell: Tell, on_progress: OnEvent) -> Outcome:
    """Publish a document without claims, each gone by a removal record; then delete everything, network included.

    Instances that carry the environment's tag and that the stack does not know, left by a killed run, go as well.
    Raises Fault; KeyboardInterrupt, once the outcome is recorded, when a person broke it off.
    """
    with sole_writer(ports, tell):
        published, instances = what_stands(ports)
        emptied = _emptied(ports, published) if published else None
        with ports.session(tell) as session:
            converger = session.lane(ports.environment.name)
            if emptied is not None and emptied != published:
                ports.store.publish(emptied)
            ports.store.drop_pin()
            try:
                outcome = converger.destroy(emptied, instances, on_progress)
            except Fault:
                _take_back(ports, published, emptied)
                raise
        ports.store.write_outcome(evolve(outcome, plan_hash=emptied.plan_hash if emptied else ""))
        # A settled version's removal records are done with: the next document does not carry them on.
        ports.store.write_ledger(Ledger(settled_version=outcome.version if outcome.is_settled else 0))
    if outcome.was_interrupted:
        raise KeyboardInterrupt
    if outcome.is_settled:
        _remove_lease(ports, tell)
    return outcome


def _remove_lease(ports: Ports, tell: Tell) -> None:
    """What is left of it harms nobody, so an environment without it is not the less gone."""
    try:
        ports.lease.remove()
    except Fault as left:
        tell(f"the environment's Lease stays in the cluster: {left}")


def _take_back(ports: Ports, published: DesiredDocument | None, emptied: DesiredDocument | None) -> None:
    """A destroy that could not begin has let nothing go: otherwise the next ``up`` would terminate what still runs."""
    if published is not None and emptied is not None and emptied != published:
        ports.store.publish(evolve(published, version=emptied.version + 1))


def _emptied(ports: Ports, document: DesiredDocument) -> DesiredDocument:
    records = tuple(
        RemovalRecord(
            claim=claim.name,
            node_pool=claim.node_pool,
            reason=DisruptionReason.DESTROYED,
            rule="nodewright destroy",
            since=ports.now(),
            usd_per_hour=claim.usd_per_hour,
        )
        for claim in document.claims
    )
    return evolve(with_removals(document, records), version=document.version + 1) if records else document
