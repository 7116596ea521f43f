"""Dividing an owned network among its zones."""

from __future__ import annotations

import ipaddress

from engine.model.document import Foundation
from engine.model.fault import Fault

# A subnet is an eighth of the network: a /19, with 8,187 addresses, of a /16.
SUBNET_BITS = 3
# AWS allows no smaller subnet.
LONGEST_SUBNET_PREFIX = 28


class NetworkTooSmall(Fault):
    """The owned network's address range cannot be divided among its zones."""


def network_plan(foundation: Foundation) -> dict[str, str]:
    """The address range of each zone's subnet.

    A zone's last letter chooses its range, so that a zone added later moves no other; where two zones share a
    letter (local zones), their order does. Raises NetworkTooSmall.
    """
    network = ipaddress.ip_network(foundation.cidr)
    bits = min(SUBNET_BITS, LONGEST_SUBNET_PREFIX - network.prefixlen)
    zones = sorted(foundation.zones)
    if bits < 0 or len(zones) > 2**bits:
        raise NetworkTooSmall(
            f"network.cidr {foundation.cidr} has no room for a subnet in each of {len(zones)} zones",
            f"choose a range of /{LONGEST_SUBNET_PREFIX - SUBNET_BITS} or larger for up to {2**SUBNET_BITS} zones",
        )
    letters = [ord(zone[-1]) - ord("a") for zone in zones]
    are_usable = len(set(letters)) == len(zones) and all(0 <= letter < 2**bits for letter in letters)
    ranges = list(network.subnets(prefixlen_diff=bits))
    places = letters if are_usable else list(range(len(zones)))
    return {zone: str(ranges[place]) for zone, place in zip(zones, places, strict=True)}
