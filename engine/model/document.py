"""The desired document: the contract between deciding and converging. All of it is declared, nothing else is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from attrs import evolve, field, frozen

from engine.model.claim import Claim
from engine.model.environment import NetworkMode
from engine.model.money import UsdPerHour
from engine.model.policy import BlockDevice, MetadataOptions
from engine.model.quantity import NOTHING, Resources
from engine.model.reason import DisruptionReason

SCHEMA_VERSION = 1


@frozen
class BudgetUse:
    """The arithmetic that let a node go: ``used`` of ``allowed``, this one counted, of ``base`` nodes of the pool."""

    budget: str
    base: int
    allowed: int
    used: int


@frozen
class RemovalRecord:
    """Why one claim may leave. Converge deletes only what such a record names.

    ``rule`` names what allowed it (``gpu-elastic: consolidateAfter 5m``); ``since`` is when its cause began.
    ``budget`` is None for an involuntary loss, which no budget can hold back. ``capacity`` still counts against the
    pool's limits until the machine is known to be gone. ``stack`` is the Pulumi stack that holds the claim.
    """

    claim: str
    node_pool: str
    reason: DisruptionReason
    rule: str
    since: datetime
    usd_per_hour: UsdPerHour
    node: str | None = None
    budget: BudgetUse | None = None
    capacity: Resources = NOTHING
    stack: str = ""


@frozen
class LaunchTemplate:
    """Everything that boots, named by its content: ``name`` ends in the digest of the rest.

    ``image_id`` is an AMI id. ``user_data`` is clear text. ``instance_profile`` None means the one that the
    environment owns for ``role``.
    """

    name: str
    node_pool: str
    node_class: str
    image_id: str
    user_data: str
    block_devices: tuple[BlockDevice, ...]
    metadata_options: MetadataOptions
    role: str | None
    instance_profile: str | None
    tags: Mapping[str, str] = field(factory=dict)
    detailed_monitoring: bool = False


@frozen
class Foundation:
    """What an environment stands on besides claims: its network when owned, its node roles, its launch templates.

    ``roles`` are the IAM role names that the environment makes, each with an instance profile of the same name.
    ``interruption_queue`` is the SQS queue that it makes, with the rules that feed it; empty is none.
    """

    network_mode: NetworkMode
    cidr: str
    zones: Mapping[str, str]
    discovery_tags: Mapping[str, str]
    roles: tuple[str, ...]
    role_policies: tuple[str, ...]
    launch_templates: tuple[LaunchTemplate, ...]
    access_entry: bool = False
    interruption_queue: str = ""


@frozen
class NodeSet:
    """The desired claims of one pool, in name order."""

    node_pool: str
    claims: tuple[Claim, ...]


@frozen
class DesiredDocument:
    """All node sets of an environment. ``version`` counts from 1; a new one is published over the one before it.

    ``removals`` are the records of every claim that left in this version or whose deletion is not yet settled.
    Version 0 stands for no document at all: a plan carries it where nothing is published and nothing is to be done.
    """

    environment: str
    version: int
    foundation: Foundation
    node_sets: tuple[NodeSet, ...]
    removals: tuple[RemovalRecord, ...] = ()
    plan_hash: str = ""
    schema: int = SCHEMA_VERSION

    @property
    def claims(self) -> Iterator[Claim]:
        for node_set in self.node_sets:
            yield from node_set.claims

    def claim(self, name: str) -> Claim | None:
        return next((claim for claim in self.claims if claim.name == name), None)


def node_sets(claims: Iterator[Claim] | tuple[Claim, ...]) -> tuple[NodeSet, ...]:
    """Claims grouped by pool, pools and claims in name order."""
    by_pool: dict[str, list[Claim]] = {}
    for claim in sorted(claims, key=lambda each: (each.node_pool, each.name)):
        by_pool.setdefault(claim.node_pool, []).append(claim)
    return tuple(NodeSet(node_pool=pool, claims=tuple(members)) for pool, members in by_pool.items())


def with_removals(document: DesiredDocument, removals: tuple[RemovalRecord, ...]) -> DesiredDocument:
    """The document less the claims that the records name, the records kept."""
    leaving = {record.claim for record in removals}
    staying = tuple(claim for claim in document.claims if claim.name not in leaving)
    return evolve(document, node_sets=node_sets(staying), removals=document.removals + removals)
