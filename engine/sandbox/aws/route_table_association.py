"""aws:ec2/routeTableAssociation:RouteTableAssociation"""

from typing import Any

from engine.sandbox.aws.deleting import delete
from engine.sandbox.aws.resource import MINUTE_SECONDS, Resource
from engine.sandbox.aws.routing import LAG_MISSES, find_table
from engine.sandbox.aws.schema import Input, Rules
from engine.sandbox.aws.session import AwsError, Region, has_code
from engine.sandbox.aws.waiting import Wait, patiently
from engine.sandbox.aws.wire import Properties

_GONE = ("InvalidAssociationID.NotFound",)
_CREATE_PATIENCE_SECONDS = 5 * MINUTE_SECONDS


class RouteTableAssociation(Resource):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    noun = "EC2 Route Table Association"
    tagged = False
    create_seconds = 5 * MINUTE_SECONDS
    update_seconds = 2 * MINUTE_SECONDS
    delete_seconds = 5 * MINUTE_SECONDS
    inputs = (
        Input("routeTableId", required=True),
        Input("subnetId", replaces=True),
        Input("gatewayId", replaces=True),
    )
    rules = Rules(exactly_one=(("subnetId", "gatewayId"),))

    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        answer = patiently(
            aws.pace,
            _CREATE_PATIENCE_SECONDS,
            lambda error: has_code(error, "InvalidRouteTableID.NotFound"),
            lambda: aws.ec2(
                "AssociateRouteTable",
                RouteTableId=inputs["routeTableId"],
                SubnetId=inputs.get("subnetId"),
                GatewayId=inputs.get("gatewayId"),
            ),
        )
        return str(answer["AssociationId"])

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        table = inputs["routeTableId"]
        Wait(timeout, misses=LAG_MISSES).until(
            aws.pace, "associated", lambda: _state(aws, identity, table), pending=("associating",)
        )

    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        association = _find(aws, identity, known["routeTableId"])
        if association is None:
            return None
        return {
            "routeTableId": association["RouteTableId"],
            "subnetId": association.get("SubnetId", ""),
            "gatewayId": association.get("GatewayId", ""),
        }

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        """AWS gives the association a new id, which the state keeps among its outputs."""
        if "routeTableId" not in changed:
            return identity
        table = new["routeTableId"]
        try:
            answer = aws.ec2("ReplaceRouteTableAssociation", AssociationId=identity, RouteTableId=table)
            identity = str(answer["NewAssociationId"])
        except AwsError as error:
            if error.code not in _GONE:
                raise
            identity = self.make(aws, new, timeout)
        self.settle(aws, identity, new, timeout)
        return identity

    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        delete(aws, "DisassociateRouteTable", _GONE, timeout, AssociationId=identity)
        Wait(timeout).until_gone(aws.pace, lambda: _state(aws, identity, known["routeTableId"]), "disassociated")


def _find(aws: Region, identity: str, table: str) -> Any:
    associations = (find_table(aws, table) or {}).get("Associations") or []
    return next((one for one in associations if one["RouteTableAssociationId"] == identity), None)


def _state(aws: Region, identity: str, table: str) -> str | None:
    association = _find(aws, identity, table)
    if association is None:
        return None
    # An emulator may leave the state out.
    return str((association.get("AssociationState") or {}).get("State", "associated"))
