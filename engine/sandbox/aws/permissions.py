"""Security group rules, taken apart into atoms: one protocol, port range, source and description each.

The program groups sources as it likes and AWS groups them otherwise; as sets of atoms they can be compared.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from engine.sandbox.aws.wire import Properties, Value

# Protocol, first port, last port, kind of source, source, description.
Atom = tuple[str, int, int, str, str, str]

ALL_PORTS = -1

# Our name of a kind of source; AWS's list in a permission; AWS's name of the source in it.
_KINDS = (
    ("cidrBlocks", "IpRanges", "CidrIp"),
    ("ipv6CidrBlocks", "Ipv6Ranges", "CidrIpv6"),
    ("prefixListIds", "PrefixListIds", "PrefixListId"),
    ("securityGroups", "UserIdGroupPairs", "GroupId"),
)

_PROTOCOL_NAMES = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "all": "-1"}


def protocol_name(protocol: Any) -> str:
    """One spelling for each protocol: `tcp`, `6` and `TCP` are the same, `all` is `-1`."""
    text = str(protocol).lower()
    return _PROTOCOL_NAMES.get(text, text)


def atoms_of_rules(rules: Value, itself: str) -> frozenset[Atom]:
    """What the program's rules allow; `self` is the group's own id, `itself`."""
    return frozenset(atom for rule in rules or () for atom in _atoms_of_rule(rule, itself))


def atoms_of_permissions(permissions: Iterable[Mapping[str, Any]] | None) -> frozenset[Atom]:
    """What AWS says is allowed."""
    return frozenset(
        (*_ports(one["IpProtocol"], one.get("FromPort"), one.get("ToPort")), ours, source[name], _text(source))
        for one in permissions or ()
        for ours, listed, name in _KINDS
        for source in one.get(listed) or ()
    )


def permission(atom: Atom) -> dict[str, Any]:
    """AWS's form of one atom."""
    protocol, first, last, kind, source, description = atom
    listed, name = next((listed, name) for ours, listed, name in _KINDS if ours == kind)
    described = {"Description": description} if description else {}
    ports = {} if protocol == "-1" else {"FromPort": first, "ToPort": last}
    return {"IpProtocol": protocol, **ports, listed: [{name: source, **described}]}


def rules_of(atoms: Iterable[Atom], itself: str) -> list[Properties]:
    """Atoms as rules: one for each protocol, port range and description."""
    grouped: dict[tuple[str, int, int, str], Properties] = defaultdict(dict)
    for protocol, first, last, kind, source, description in sorted(atoms):
        rule = grouped[protocol, first, last, description]
        if kind == "securityGroups" and source == itself:
            rule["self"] = True
        else:
            rule.setdefault(kind, []).append(source)
    return [
        {
            "protocol": protocol,
            "fromPort": 0 if protocol == "-1" else first,
            "toPort": 0 if protocol == "-1" else last,
            "self": False,
            **({"description": description} if description else {}),
            **sources,
        }
        for (protocol, first, last, description), sources in grouped.items()
    ]


def _atoms_of_rule(rule: Mapping[str, Any], itself: str) -> Iterable[Atom]:
    ports = _ports(rule.get("protocol"), rule.get("fromPort"), rule.get("toPort"))
    description = str(rule.get("description") or "")
    for kind, _, _ in _KINDS:
        for source in rule.get(kind) or ():
            yield (*ports, kind, str(source), description)
    if rule.get("self"):
        yield (*ports, "securityGroups", itself, description)


def _ports(protocol: Any, first: Any, last: Any) -> tuple[str, int, int]:
    name = protocol_name(protocol)
    if name == "-1":
        return name, ALL_PORTS, ALL_PORTS
    return name, int(ALL_PORTS if first is None else first), int(ALL_PORTS if last is None else last)


def _text(source: Mapping[str, Any]) -> str:
    return str(source.get("Description") or "")
