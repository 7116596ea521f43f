"""Subnets and security groups that exist already, looked up by a node class's selectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from engine.model.policy import NodeClass, SelectorTerm
from engine.model.snapshot import ResolvedSubnet

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

ANY_VALUE = "*"


def subnets_of(ec2: EC2Client, node_class: NodeClass) -> tuple[ResolvedSubnet, ...]:
    """The subnets that any term matches, in id order; empty when none does."""
    found = {}
    for term in node_class.subnet_selector_terms:
        for page in ec2.get_paginator("describe_subnets").paginate(Filters=term_filters(term, "subnet-id")):
            for raw in page["Subnets"]:
                found[raw["SubnetId"]] = ResolvedSubnet(
                    id=raw["SubnetId"],
                    zone=raw["AvailabilityZone"],
                    available_ip_count=raw["AvailableIpAddressCount"],
                    tags={tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])},
                )
    return tuple(found[each] for each in sorted(found))


def security_group_ids_of(ec2: EC2Client, node_class: NodeClass) -> tuple[str, ...]:
    """The security groups that any term matches, in id order; empty when none does."""
    found: set[str] = set()
    for term in node_class.security_group_selector_terms:
        for page in ec2.get_paginator("describe_security_groups").paginate(
            Filters=term_filters(term, "group-id", "group-name")
        ):
            found.update(raw["GroupId"] for raw in page["SecurityGroups"])
    return tuple(sorted(found))


def term_filters(term: SelectorTerm, id_filter: str, name_filter: str = "tag:Name") -> list[Any]:
    """EC2 filters for one term, all of whose parts have to hold (Karpenter's rule).

    Raises ValueError for an empty term: without any filter EC2 would answer with everything in the region.
    """
    filters = [{"Name": name, "Values": [value]} for name, value in _conditions(term, id_filter, name_filter)]
    if not filters:
        raise ValueError("a selector term has neither id, name nor tags")
    return filters


def _conditions(term: SelectorTerm, id_filter: str, name_filter: str) -> Iterator[tuple[str, str]]:
    if term.id is not None:
        yield id_filter, term.id
    if term.name is not None:
        yield name_filter, term.name
    for key, value in sorted(term.tags.items()):
        # Karpenter's "*" and the empty text ask for the key alone.
        yield ("tag-key", key) if value in (ANY_VALUE, "") else (f"tag:{key}", value)
