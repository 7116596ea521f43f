"""aws:ec2/routeTable:RouteTable"""

import uuid
from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.routing import (
    LAG_MISSES,
    TABLE_GONE,
    destination_of,
    find_table,
    routes_made_by_people,
    target_of,
    target_request,
)
from engine.sandbox.aws.schema import Input, equal_as_sets
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.tagging import remote_tags, tag_specifications
from engine.sandbox.aws.waiting import Wait
from engine.sandbox.aws.wire import Properties

_DESTINATIONS = {
    "cidrBlock": "DestinationCidrBlock",
    "ipv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}


class RouteTable(Resource):
    token = "aws:ec2/routeTable:RouteTable"
    noun = "EC2 Route Table"
    create_seconds = 5 * MINUTE_SECONDS
    update_seconds = 2 * MINUTE_SECONDS
    delete_seconds = 5 * MINUTE_SECONDS
    inputs = (
        Input("vpcId", required=True, replaces=True),
        Input("routes", computed=True, same=equal_as_sets),
        Input("propagatingVgws", computed=True, performed=False),
    )
    outputs = ("arn", "ownerId", "tagsAll")

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = aws.ec2(
            "CreateRouteTable",
            VpcId=inputs["vpcId"],
            ClientToken=str(uuid.uuid4()),
            TagSpecifications=tag_specifications("route-table", inputs.get("tagsAll")),
        )
        return str(answer["RouteTable"]["RouteTableId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        Wait(timeout, misses=LAG_MISSES).until_found(aws.pace, lambda: _found(aws, identity))
        for route in inputs.get("routes") or []:
            aws.ec2("CreateRoute", RouteTableId=identity, **_request(route))

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        table = find_table(aws, identity)
        if table is None:
            return None
        routes = [_route(route) for route in routes_made_by_people(table)]
        before = known.get("routes")
        return {
            "arn": aws.arn("ec2", f"route-table/{identity}", table.get("OwnerId")),
            "ownerId": table.get("OwnerId"),
            "vpcId": table["VpcId"],
            "routes": before if before is not None and equal_as_sets(before, routes) else routes,
            "propagatingVgws": [one["GatewayId"] for one in table.get("PropagatingVgws") or []],
            "tagsAll": remote_tags(aws.session.config, table.get("Tags")),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if "routes" not in changed:
            return identity
        before = {_destination(route): route for route in old.get("routes") or []}
        after = {_destination(route): route for route in new.get("routes") or []}
        for destination, route in after.items():
            if destination not in before:
                aws.ec2("CreateRoute", RouteTableId=identity, **_request(route))
            elif before[destination] != route:
                aws.ec2("ReplaceRoute", RouteTableId=identity, **_request(route))
        for name, value in sorted(before.keys() - after.keys()):
            gone: dict[str, Any] = {"RouteTableId": identity, name: value}
            delete(aws, "DeleteRoute", ("InvalidRoute.NotFound",), timeout, **gone)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        table = find_table(aws, identity)
        if table is None:
            return
        for association in table.get("Associations") or []:
            if not association.get("Main"):
                delete(
                    aws,
                    "DisassociateRouteTable",
                    ("InvalidAssociationID.NotFound",),
                    timeout,
                    AssociationId=association["RouteTableAssociationId"],
                )
        delete(aws, "DeleteRouteTable", TABLE_GONE, timeout, RouteTableId=identity)
        Wait(timeout).until_gone(aws.pace, lambda: _found(aws, identity))


def _found(aws: Region, identity: str) -> str | None:
    return None if find_table(aws, identity) is None else "found"


def _destination(route: Mapping[str, Any]) -> tuple[str, str]:
    return next((theirs, route[ours]) for ours, theirs in _DESTINATIONS.items() if route.get(ours))


def _request(route: Mapping[str, Any]) -> dict[str, Any]:
    name, value = _destination(route)
    return {name: value, **target_request(route)}


def _route(route: Mapping[str, Any]) -> Properties:
    name, value = destination_of(route) or ("", "")
    ours = {theirs: ours for ours, theirs in _DESTINATIONS.items()}
    return {ours[name]: value, **target_of(route)} if name else target_of(route)
