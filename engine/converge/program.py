"""The Pulumi program: a desired document, declared whole."""

from __future__ import annotations

from collections.abc import Mapping

import pulumi

from engine.converge.claims import NodeSets
from engine.converge.foundation import declare_foundation
from engine.converge.placing import declare_claims
from engine.converge.providers import declare_providers
from engine.converge.templates import declare_template
from engine.model.claim import Claim
from engine.model.document import DesiredDocument
from engine.model.environment import Environment

NOTHING_TO_ADOPT: Mapping[str, str] = {}


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
            template,
            node_sets.of(template.node_pool),
            everything_else,
            after=ground.node_roles.get(template.role or "", ()),
        )
        for template in document.foundation.launch_templates
    }
    claims = claims_of(document, pulumi.get_stack())
    declare_claims(claims, document, ground, node_sets, templates, launches, adopt)


def claims_of(document: DesiredDocument, stack: str) -> tuple[Claim, ...]:
    """The document's claims that live in this stack."""
    return tuple(claim for claim in document.claims if claim.stack == stack)
