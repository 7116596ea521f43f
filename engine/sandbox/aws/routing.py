"""Routes as AWS takes and gives them: one destination, one target."""

from collections.abc import Iterable, Mapping
from typing import Any

from engine.sandbox.aws.deleting import found
from engine.sandbox.aws.session import Region
from engine.sandbox.aws.wire import Properties

TABLE_GONE = ("InvalidRouteTableID.NotFound",)

# A waiter that reads its own writes meets lag, not absence; the plugin is as patient.
LAG_MISSES = 1000

# Our name of a target, AWS's in requests (also in answers).
TARGETS = {
    "gatewayId": "GatewayId",
    "natGatewayId": "NatGatewayId",
    "networkInterfaceId": "NetworkInterfaceId",
    "transitGatewayId": "TransitGatewayId",
    "vpcPeeringConnectionId": "VpcPeeringConnectionId",
    "egressOnlyGatewayId": "EgressOnlyInternetGatewayId",
    "carrierGatewayId": "CarrierGatewayId",
    "localGatewayId": "LocalGatewayId",
    "coreNetworkArn": "CoreNetworkArn",
    "vpcEndpointId": "VpcEndpointId",
}
NOT_PERFORMED_TARGETS = ("odbNetworkArn",)

DESTINATIONS = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")


def find_table(aws: Region, identity: str) -> Any:
    return found(aws, "DescribeRouteTables", "RouteTables", TABLE_GONE, RouteTableIds=[identity])


def routes_made_by_people(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A table's routes without the local one that comes with it, and without propagated ones."""
    return [
        route
        for route in table.get("Routes") or []
        if route.get("Origin", "CreateRoute") == "CreateRoute" and route.get("GatewayId") != "local"
    ]


def destination_of(route: Mapping[str, Any]) -> tuple[str, str] | None:
    """AWS's name of a route's destination and its value."""
    return next(((name, route[name]) for name in DESTINATIONS if route.get(name)), None)


def target_of(route: Mapping[str, Any]) -> Properties:
    """A route's target by our name."""
    return {ours: route[theirs] for ours, theirs in TARGETS.items() if route.get(theirs)}


def target_request(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A target by AWS's name, from our properties."""
    return {theirs: properties[ours] for ours, theirs in TARGETS.items() if properties.get(ours)}


def find_route(table: Mapping[str, Any] | None, destination: tuple[str, str]) -> Mapping[str, Any] | None:
    routes: Iterable[Mapping[str, Any]] = (table or {}).get("Routes") or []
    return next((route for route in routes if destination_of(route) == destination), None)
