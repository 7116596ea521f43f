"""Putting claims on their ground."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from engine.converge.claims import NodeSets, declare_claim
from engine.converge.ground import Ground
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.fault import Fault


class ClaimWithoutPlace(Fault):
    """A claim names a zone in which the environment owns no subnet."""


def declare_claims(
    claims: Sequence[Claim],
    document: DesiredDocument,
    ground: Ground,
    node_sets: NodeSets,
    templates: Mapping[str, pulumi.Resource],
    launches: pulumi.ProviderResource,
    adopt: Mapping[str, str],
) -> None:
    """`templates` are by name; `adopt` are instance ids by claim name. Raises ClaimWithoutPlace."""
    monitored = {template.name for template in document.foundation.launch_templates if template.detailed_monitoring}
    for claim in claims:
        declare_claim(
            claim,
            node_sets.of(claim.node_pool),
            launches,
            subnet_id=_subnet(claim, ground),
            security_group_ids=_security_groups(claim, ground),
            after=_prerequisites(claim, ground, templates.get(claim.inputs.launch_template)),
            detailed_monitoring=claim.inputs.launch_template in monitored,
            adopt_id=adopt.get(claim.name),
        )


def _subnet(claim: Claim, ground: Ground) -> pulumi.Input[str]:
    if claim.inputs.subnet_id is not None:
        return claim.inputs.subnet_id
    if claim.inputs.zone not in ground.subnet_ids:
        raise ClaimWithoutPlace(
            f"claim {claim.name} is in zone {claim.inputs.zone}, where this environment owns no subnet",
            f"the zones of its network are {', '.join(sorted(ground.subnet_ids)) or 'none'}; see network.zones",
        )
    return ground.subnet_ids[claim.inputs.zone]


def _security_groups(claim: Claim, ground: Ground) -> Sequence[pulumi.Input[str]]:
    if claim.inputs.security_group_ids is not None:
        return claim.inputs.security_group_ids
    return [ground.security_group_id] if ground.security_group_id is not None else []


def _prerequisites(claim: Claim, ground: Ground, template: pulumi.Resource | None) -> tuple[pulumi.Resource, ...]:
    """What must stand before the claim's machine boots, and must outlive it."""
    place = ground.before_launch.get(claim.inputs.zone, ()) if claim.inputs.subnet_id is None else ()
    return (*place, template) if template is not None else tuple(place)
