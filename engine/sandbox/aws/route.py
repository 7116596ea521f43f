"""aws:ec2/route:Route"""

import binascii
from collections.abc import Mapping
from typing import Any

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.routing import (
    LAG_MISSES,
    NOT_PERFORMED_TARGETS,
    TARGETS,
    find_route,
    find_table,
    target_of,
    target_request,
)
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import AwsError, Region, has_code
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties

_DESTINATIONS = {
    "destinationCidrBlock": "DestinationCidrBlock",
    "destinationIpv6CidrBlock": "DestinationIpv6CidrBlock",
    "destinationPrefixListId": "DestinationPrefixListId",
}


class Route(Resource):
    token = "aws:ec2/route:Route"
    noun = "Route"
    tagged = False
    create_seconds = 5 * MINUTE_SECONDS
    update_seconds = 2 * MINUTE_SECONDS
    delete_seconds = 5 * MINUTE_SECONDS
    inputs = (
        Input("routeTableId", required=True, replaces=True),
        *(Input(name, replaces=True) for name in _DESTINATIONS),
        *(Input(name) for name in TARGETS),
        *(Input(name, performed=False) for name in NOT_PERFORMED_TARGETS),
    )
    outputs = ("instanceId", "instanceOwnerId", "origin", "state")
    rules = Rules(exactly_one=(tuple(_DESTINATIONS), (*TARGETS, *NOT_PERFORMED_TARGETS)))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        table, (name, value) = inputs["routeTableId"], _destination(inputs)
        existing = find_route(find_table(aws, table), (name, value))
        if existing is not None and existing.get("Origin") == "CreateRoute":
            raise AwsError(
                "ec2", "CreateRoute", "RouteAlreadyExists", f"route in {table} to {value} already exists", 400, ""
            )
        patiently(
            aws.pace,
            timeout,
            lambda error: has_code(error, "InvalidParameterException", "InvalidTransitGatewayID.NotFound"),
            lambda: aws.ec2("CreateRoute", RouteTableId=table, **{name: value}, **target_request(inputs)),
        )
        return route_id(table, value)

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        Wait(timeout, misses=LAG_MISSES).until_found(aws.pace, lambda: _found(aws, inputs), times=2)

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        route = find_route(find_table(aws, known["routeTableId"]), _destination(known))
        if route is None:
            return None
        return {
            **dict.fromkeys(TARGETS, ""),
            **target_of(route),
            "instanceId": route.get("InstanceId", ""),
            "instanceOwnerId": route.get("InstanceOwnerId", ""),
            "origin": route.get("Origin"),
            "state": route.get("State"),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        if changed & TARGETS.keys():
            name, value = _destination(new)
            aws.ec2("ReplaceRoute", RouteTableId=new["routeTableId"], **{name: value}, **target_request(new))
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        # A local route comes with its table and cannot be deleted: it is only forgotten.
        if known.get("gatewayId") == "local":
            return
        name, value = _destination(known)
        delete(
            aws,
            "DeleteRoute",
            ("InvalidRoute.NotFound", "InvalidRouteTableID.NotFound"),
            timeout,
            while_in_use=("InvalidParameterException",),
            RouteTableId=known["routeTableId"],
            **{name: value},
        )


def route_id(table: str, destination: str) -> str:
    """Terraform's: the table, and a checksum of the destination."""
    return f"r-{table}{binascii.crc32(destination.encode())}"


def _destination(properties: Mapping[str, Any]) -> tuple[str, str]:
    return next((theirs, properties[ours]) for ours, theirs in _DESTINATIONS.items() if properties.get(ours))


def _found(aws: Region, inputs: Properties) -> str | None:
    return None if find_route(find_table(aws, inputs["routeTableId"]), _destination(inputs)) is None else "found"
