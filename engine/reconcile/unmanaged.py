"""Machines of this environment that nothing here manages: they cost, and only a person can say what they are."""

from __future__ import annotations

from collections.abc import Mapping

from engine.model.fault import Fault
from engine.model.node import Instance
from engine.model.snapshot import Snapshot
from engine.reconcile.troubles import Troubles

_HINT = "drain its node, if it has one, and terminate it: aws ec2 terminate-instances --instance-ids {}"


class UnmanagedMachines:
    """Tells of each once, and once that it is gone."""

    def __init__(self, troubles: Troubles) -> None:
        self._troubles = troubles
        self._told: set[str] = set()

    def tell(self, snapshot: Snapshot) -> None:
        found = unmanaged(snapshot)
        for identity, fault in found.items():
            self._troubles.tell(f"instance {identity}", fault)
        for identity in sorted(self._told - found.keys()):
            self._troubles.over(f"instance {identity}", f"instance {identity} needs nobody any more")
        self._told = set(found)


def unmanaged(snapshot: Snapshot) -> Mapping[str, Fault]:
    """By instance id: those that run and whose claim neither is desired nor leaves by record, and those beside the
    machine of their claim. Which one that is, is known from the ledger; until then nothing is said of either.
    """
    document, kept = snapshot.document, snapshot.ledger.instance_ids
    claims = {claim.name for claim in document.claims} if document else set()
    claims |= {record.claim for record in document.removals} if document else set()
    alive = sorted((one for one in snapshot.cloud.instances if one.is_alive), key=lambda one: one.id)
    ids = {one.id for one in alive}
    found: dict[str, Fault] = {}
    for one in alive:
        own = kept.get(one.claim)
        if one.claim in claims:
            if own in ids and own != one.id:
                found[one.id] = _fault(one, f"carries the same claim tag, {one.claim}, as {own}, which is managed")
        elif one.claim:
            found[one.id] = _fault(
                one, f"carries the tag of claim {one.claim}, which the desired document does not name"
            )
        else:
            found[one.id] = _fault(one, "carries this environment's tag and that of no claim")
    return found


def _fault(instance: Instance, why: str) -> Fault:
    return Fault(
        f"instance {instance.id} ({instance.instance_type}, {instance.zone}) {why}: it is left alone, and costs",
        _HINT.format(instance.id),
    )
