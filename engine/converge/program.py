"""The Pulumi program: a desired document, declared whole or only where it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from engine.converge import urns
from engine.converge.claims import GpuNodeSet, declare_claim, declare_template
from engine.converge.foundation import Ground, declare_foundation, declare_providers
from engine.converge.standing import anchor, standing_ground
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, LaunchTemplate
from engine.model.environment import Environment
from engine.model.fault import Fault

NOTHING_TO_ADOPT: Mapping[str, str] = {}


class ClaimWithoutPlace(Fault):
    """A claim names a zone in which the environment owns no subnet."""


def declare(
    document: DesiredDocument,
    environment: Environment,
    *,
    adopt: Mapping[str, str] = NOTHING_TO_ADOPT,
    protect: bool = True,
) -> None:
    """Declare all of a document: the body of a Pulumi program, run inside one.

    `adopt` are instance ids by claim name, for claims whose machine runs but is not in the stack's state;
    `protect=False` is for taking everything down. Raises NetworkTooSmall, ClaimWithoutPlace.
    """
    everything_else, launches = declare_providers(environment)
    ground = declare_foundation(document, environment, everything_else, protect=protect)
    node_sets = NodeSets()
    templates: dict[str, pulumi.Resource] = {
        template.name: declare_template(
            template, node_sets.of(template.node_pool), everything_else, ground.node_roles.get(template.role or "", ())
        )
        for template in document.foundation.launch_templates
    }
    claims = claims_of(document, pulumi.get_stack())
    _declare_claims(claims, document, ground, node_sets, templates, launches, adopt)


def declare_changes(
    document: DesiredDocument,
    environment: Environment,
    ids: Mapping[str, str],
    *,
    claims: Sequence[Claim],
    templates: Sequence[LaunchTemplate],
    adopt: Mapping[str, str] = NOTHING_TO_ADOPT,
) -> None:
    """Declare only these new claims and templates, for a targeted update of a stack whose foundation stands.

    `ids` are the state's resource ids by URN. A program that declares everything sees no difference afterwards.
    """
    if not claims and not templates:
        return
    everything_else, launches = declare_providers(environment)
    used = {claim.inputs.launch_template for claim in claims}
    ground = standing_ground(
        document,
        environment,
        ids,
        everything_else,
        zones={claim.inputs.zone for claim in claims if claim.inputs.subnet_id is None},
        roles={template.role for template in templates if template.role},
    )
    node_sets = NodeSets()
    new = {template.name for template in templates}
    declared: dict[str, pulumi.Resource] = {}
    for template in document.foundation.launch_templates:
        node_set = node_sets.of(template.node_pool) if template.name in used | new else None
        if template.name in new and node_set:
            needed = ground.node_roles.get(template.role or "", ())
            declared[template.name] = declare_template(template, node_set, everything_else, needed)
        elif node_set:
            declared[template.name] = anchor(
                urns.LAUNCH_TEMPLATE, template.name, node_set, everything_else, after=ground.resources()
            )
    _declare_claims(claims, document, ground, node_sets, declared, launches, adopt)


def claims_of(document: DesiredDocument, stack: str) -> tuple[Claim, ...]:
    """The document's claims that live in this stack."""
    return tuple(claim for claim in document.claims if claim.stack == stack)


class NodeSets:
    """The components, one a pool, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, GpuNodeSet] = {}

    def of(self, node_pool: str) -> GpuNodeSet:
        if node_pool not in self._made:
            self._made[node_pool] = GpuNodeSet(node_pool)
        return self._made[node_pool]


def _declare_claims(
    claims: Sequence[Claim],
    document: DesiredDocument,
    ground: Ground,
    node_sets: NodeSets,
    templates: Mapping[str, pulumi.Resource],
    launches: pulumi.ProviderResource,
    adopt: Mapping[str, str],
) -> None:
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
