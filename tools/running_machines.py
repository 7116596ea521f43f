"""Machines of the benches that are there already."""

from __future__ import annotations

from engine.model.claim import Claim
from engine.model.node import Instance, InstanceState


def running_instance(number: int, claim: Claim) -> Instance:
    """The machine of a claim, up since the claim was made; ``number`` makes its id."""
    inputs = claim.inputs
    return Instance(
        id=f"i-{number:017x}",
        claim=claim.name,
        state=InstanceState.RUNNING,
        instance_type=inputs.instance_type,
        zone=inputs.zone,
        capacity_type=inputs.capacity_type,
        launched_at=claim.created_at,
    )
