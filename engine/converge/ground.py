"""What claims stand on, however it came to be: declared a moment ago, or long standing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeVar

import pulumi
from attrs import frozen

from engine.converge import urns
from engine.converge.providers import provider_inputs
from engine.converge.subnets import network_plan
from engine.model import labels
from engine.model.canonical import digest
from engine.model.document import DesiredDocument
from engine.model.environment import Environment, NetworkMode

R = TypeVar("R", bound=pulumi.CustomResource)


@frozen
class Ground:
    """Where claims are put: ids, or outputs that will be, and the resources that have to stand before.

    `subnet_ids` and `before_launch` are by zone; `node_roles` by role name.
    """

    security_group_id: pulumi.Input[str] | None
    subnet_ids: Mapping[str, pulumi.Input[str]]
    before_launch: Mapping[str, tuple[pulumi.Resource, ...]]
    node_roles: Mapping[str, tuple[pulumi.Resource, ...]]

    def resources(self) -> tuple[pulumi.Resource, ...]:
        """All that it names, each once."""
        named = [one for group in (*self.before_launch.values(), *self.node_roles.values()) for one in group]
        return tuple(dict.fromkeys(named))


class PartsMaker(Protocol):
    """Makes the parts of a foundation, or does something else with what they would be made from."""

    def make(self, kind: type[R], part: str, options: pulumi.ResourceOptions, /, **inputs: Any) -> R: ...


class FoundationParts(pulumi.ComponentResource):
    """The tree's node for everything that is no claim; its outputs are what was declared, in short."""

    def __init__(self, environment: str) -> None:
        super().__init__(urns.FOUNDATION, environment)
        self.parts: list[pulumi.CustomResource] = []

    def make(self, kind: type[R], part: str, options: pulumi.ResourceOptions, /, **inputs: Any) -> R:
        """Declare the part of that name, of a class of pulumi_aws."""
        made = kind(part, opts=options, **inputs)
        self.parts.append(made)
        return made

    def finish(self, declared: str) -> None:
        """The digest is stored only when every part stands, so that a half-made foundation is seen as such."""
        ids: list[Any] = [part.id for part in self.parts]
        names: list[Any] = [part.urn for part in self.parts]
        standing = pulumi.Output.all(*ids).apply(lambda _: declared)
        self.register_outputs({urns.DIGEST: standing, urns.PARTS: pulumi.Output.all(*names)})


def foundation_digest(document: DesiredDocument, environment: Environment) -> str:
    """Of everything that the foundation is declared from, launch templates apart: those have names of their own."""
    foundation = document.foundation
    declared = {
        "network": network_plan(foundation) if foundation.network_mode is NetworkMode.OWNED else None,
        "discovery_tags": dict(foundation.discovery_tags),
        "roles": sorted(foundation.roles),
        "role_policies": sorted(foundation.role_policies),
        "access_entry": environment.cluster.name if foundation.access_entry else None,
        "tags": owned_tags(environment, environment.name),
        "cluster": environment.cluster.name,
        "provider": provider_inputs(environment),
    }
    if foundation.interruption_queue:
        declared["interruption_queue"] = foundation.interruption_queue
    return digest(declared)[:16]


def attachment_name(role: str, policy_arn: str) -> str:
    """The name of a policy's attachment to a role."""
    return f"{role}-{policy_arn.rsplit('/', 1)[-1]}"


def owned_tags(environment: Environment, name: str) -> dict[str, str]:
    """The tags of everything that an environment makes besides machines."""
    return {**environment.tags, labels.TAG_NAME: name, labels.TAG_ENVIRONMENT: environment.name}
