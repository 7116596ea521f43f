"""EC2's quotas of vCPUs: one counts all running instances of a group of families, of on-demand or of spot.

Source: the EC2 User Guide, "On-Demand Instance quotas" and "Spot Instance quotas", as of November 2026. The names are
those that the Service Quotas console shows, so that a person can look them up and ask for more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from engine.model import labels as keys

_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"

# By the letters that a family's name begins with.
_GROUPS: Mapping[str, str] = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), _STANDARD),
    **dict.fromkeys(("g", "gr", "vt"), "G and VT"),
    "dl": "DL",
    "f": "F",
    "hpc": "HPC",
    "inf": "Inf",
    "p": "P",
    "trn": "Trn",
    "u": "High Memory",
    "x": "X",
}
# Spot has no quota for these: they are not sold as spot.
_NEVER_SPOT = frozenset({"HPC", "High Memory"})
# Spot counts the generations of P in two quotas; of later ones none is documented.
_SPOT_P: Mapping[str, str] = {**dict.fromkeys(("2", "3", "4"), "P4, P3 and P2"), "5": "P5"}

_FAMILY = re.compile(r"(?P<letters>[a-z]+)-?(?P<generation>\d*)")


def quota_class(instance_type: str, capacity_type: str) -> str:
    """The vCPU quota that a new machine of the type counts against, by its name in Service Quotas.

    Empty where none is known: a family of no documented group, or reserved capacity, whose vCPUs were counted when it
    was reserved.
    """
    found = _FAMILY.match(instance_type)
    group = _GROUPS.get(found["letters"], "") if found else ""
    if found is None or not group:
        return ""
    if capacity_type == keys.ON_DEMAND:
        return f"Running On-Demand {group} instances"
    if capacity_type != keys.SPOT or group in _NEVER_SPOT:
        return ""
    if group == "P":
        group = _SPOT_P.get(found["generation"], "")
    return f"All {group} Spot Instance Requests" if group else ""
