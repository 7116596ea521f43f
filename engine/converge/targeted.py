"""The Pulumi program of a targeted update: only what is new. Imports no pulumi_aws unless a template is new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from engine.converge import urns
from engine.converge.claims import NodeSets
from engine.converge.ground import Ground
from engine.converge.placing import declare_claims
from engine.converge.providers import declare_providers
from engine.converge.standing import anchor, standing_ground
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, LaunchTemplate
from engine.model.environment import Environment


def declare_changes(
    document: DesiredDocument,
    environment: Environment,
    ids: Mapping[str, str],
    *,
    claims: Sequence[Claim],
    templates: Sequence[LaunchTemplate],
    adopt: Mapping[str, str],
) -> None:
    """Declare only these new or unfinished claims and new templates, for a stack whose foundation stands.

    `ids` are the state's resource ids by URN. A program that declares everything sees no difference afterwards.
    Raises ClaimWithoutPlace.
    """
    if not claims and not templates:
        return
    everything_else, launches = declare_providers(environment)
    ground = standing_ground(
        document,
        environment,
        ids,
        everything_else,
        zones={claim.inputs.zone for claim in claims if claim.inputs.subnet_id is None},
        roles={template.role for template in templates if template.role},
    )
    node_sets = NodeSets()
    used = {claim.inputs.launch_template for claim in claims} - {template.name for template in templates}
    standing = {
        template.name: anchor(
            urns.LAUNCH_TEMPLATE,
            template.name,
            node_sets.of(template.node_pool),
            everything_else,
            after=ground.resources(),
        )
        for template in document.foundation.launch_templates
        if template.name in used
    }
    new = _new_templates(templates, node_sets, everything_else, ground)
    declare_claims(claims, document, ground, node_sets, {**standing, **new}, launches, adopt)


def _new_templates(
    templates: Sequence[LaunchTemplate],
    node_sets: NodeSets,
    provider: pulumi.ProviderResource,
    ground: Ground,
) -> dict[str, pulumi.Resource]:
    if not templates:
        return {}
    # Importing pulumi_aws takes seconds of CPU, which one more claim should not pay.
    from engine.converge.templates import declare_template

    return {
        template.name: declare_template(
            template,
            node_sets.of(template.node_pool),
            provider,
            after=ground.node_roles.get(template.role or "", ()),
        )
        for template in templates
    }
