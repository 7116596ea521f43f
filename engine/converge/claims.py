"""Claims, each beneath the component of its pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from engine.converge import urns
from engine.model import labels
from engine.model.claim import Claim, ClaimInputs
from engine.model.reservation import OpenReservations, ReservationKind

# A launch template is named by its content, so it never gets a second version.
ONLY_VERSION = "1"
_PREFERENCES = {OpenReservations.LEAVE: "none", OpenReservations.USE: "open"}


class GpuNodeSet(pulumi.ComponentResource):
    """The tree's node for one pool: its launch templates and its claims."""

    def __init__(self, node_pool: str) -> None:
        super().__init__(urns.NODE_SET, node_pool)


class NodeSets:
    """The components, one a pool, made when first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, GpuNodeSet] = {}

    def of(self, node_pool: str) -> GpuNodeSet:
        if node_pool not in self._made:
            self._made[node_pool] = GpuNodeSet(node_pool)
        return self._made[node_pool]


def declare_claim(
    claim: Claim,
    node_set: GpuNodeSet,
    provider: pulumi.ProviderResource,
    *,
    subnet_id: pulumi.Input[str],
    security_group_ids: Sequence[pulumi.Input[str]],
    after: Sequence[pulumi.Resource],
    detailed_monitoring: bool,
    adopt_id: str | None,
) -> pulumi.CustomResource:
    """Declare one machine exactly as its claim records it; with `adopt_id` take over the instance that runs already.

    Nothing is protected, retained or ignored here: each of these leaves or removes a machine outside the budget.

    An `aws.ec2.Instance` in the wire's form and without that class: it has 70 outputs, none of which is read, and
    the SDK's work at a program's end grows with the square of the number of outputs.
    """
    inputs: dict[str, Any] = {
        **_offering(claim.inputs),
        "subnetId": subnet_id,
        "vpcSecurityGroupIds": list(security_group_ids),
        "tags": dict(claim.inputs.tags),
    }
    if claim.inputs.associate_public_ip_address is not None:
        inputs["associatePublicIpAddress"] = claim.inputs.associate_public_ip_address
    if detailed_monitoring:
        # Left out, the provider would tell EC2 `false`, over what the template says.
        inputs["monitoring"] = True
    options = pulumi.ResourceOptions(parent=node_set, provider=provider, depends_on=list(after), import_=adopt_id)
    return pulumi.CustomResource(urns.INSTANCE, claim.name, inputs, options)


def _offering(inputs: ClaimInputs) -> Mapping[str, Any]:
    """What is bought, and how."""
    bought: dict[str, Any] = {
        "launchTemplate": {"name": inputs.launch_template, "version": ONLY_VERSION},
        "instanceType": inputs.instance_type,
    }
    if inputs.capacity_type == labels.SPOT:
        spot = {"instanceInterruptionBehavior": "terminate", "spotInstanceType": "one-time"}
        bought["instanceMarketOptions"] = {"marketType": "spot", "spotOptions": spot}
    if inputs.capacity_reservation_kind is ReservationKind.CAPACITY_BLOCK:
        bought["instanceMarketOptions"] = {"marketType": "capacity-block"}
    if inputs.capacity_reservation_id is not None:
        target = {"capacityReservationId": inputs.capacity_reservation_id}
        bought["capacityReservationSpecification"] = {"capacityReservationTarget": target}
    elif inputs.open_reservations is not None:
        preference = _PREFERENCES[inputs.open_reservations]
        bought["capacityReservationSpecification"] = {"capacityReservationPreference": preference}
    return bought
