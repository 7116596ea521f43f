"""EC2's refusals of a launch that are no fault of the request, and how much each of them says is out.

Source: the EC2 API reference's error codes. Codes that are not here (a missing image, no permission) are about the
request itself: no offering is out on their account, since another would be refused alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum


class Reach(Enum):
    """What a refusal says of more than the launch that it answers."""

    OFFERING = "this instance type, in this zone, at this capacity type"
    SUBNETS = "the zone, for nodes of this node class"
    INSTANCE_TYPE = "the instance type at this capacity type, in every zone"
    VCPU_QUOTA = "all that counts against the same quota of vCPUs"
    CAPACITY_TYPE = "the capacity type"


REACH: Mapping[str, Reach] = {
    # EC2 is short of such machines there, or does not sell them there.
    "InsufficientCapacity": Reach.OFFERING,
    "InsufficientCapacityOnHost": Reach.OFFERING,
    "InsufficientHostCapacity": Reach.OFFERING,
    "InsufficientInstanceCapacity": Reach.OFFERING,
    "InsufficientReservedInstanceCapacity": Reach.OFFERING,
    "ReservationCapacityExceeded": Reach.OFFERING,
    "SpotMaxPriceTooLow": Reach.OFFERING,
    "UnfulfillableCapacity": Reach.OFFERING,
    "Unsupported": Reach.OFFERING,
    # The subnet has no address left for any machine, whatever its type.
    "InsufficientFreeAddressesInSubnet": Reach.SUBNETS,
    # The account's quotas, which a person has to raise.
    "InstanceLimitExceeded": Reach.INSTANCE_TYPE,
    "MaxSpotInstanceCountExceeded": Reach.VCPU_QUOTA,
    "VcpuLimitExceeded": Reach.VCPU_QUOTA,
    # The account has no service-linked role for spot, and may not make it.
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": Reach.CAPACITY_TYPE,
}

_QUOTAS = frozenset({Reach.INSTANCE_TYPE, Reach.VCPU_QUOTA})


def reach(code: str) -> Reach:
    """How much is out after a refusal for capacity; the one offering, where the code is none that we know."""
    return REACH.get(code, Reach.OFFERING)


def is_quota(code: str) -> bool:
    """Whether AWS's error code means one of the account's quotas."""
    return reach(code) in _QUOTAS
