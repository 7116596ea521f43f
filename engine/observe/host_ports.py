"""The ports of its node that a pod takes."""

from __future__ import annotations

from engine.model.constraint import HostPort
from engine.observe.json_fields import BrokenObject, Json, flag, objects, shown, text, whole_number

_PROTOCOLS = ("TCP", "UDP", "SCTP")
_EVERY_ADDRESS = frozenset({"", "0.0.0.0", "::"})
_LAST_PORT = 65535


def host_ports(spec: Json) -> tuple[HostPort, ...]:
    """Those of containers, init containers and sidecars, each once and in order; raises BrokenObject.

    On the node's own network each container port is one: the API server says so in pods, but not in templates.
    """
    on_host = flag(spec, "hostNetwork")
    taken = set()
    for key in ("containers", "initContainers"):
        for container in objects(spec, key):
            for written in objects(container, "ports"):
                port = whole_number(written, "hostPort") or (whole_number(written, "containerPort") if on_host else 0)
                if port:
                    taken.add(_host_port(written, port))
    return tuple(sorted(taken))


def _host_port(written: Json, port: int) -> HostPort:
    protocol, address = text(written, "protocol") or "TCP", text(written, "hostIP")
    if not 1 <= port <= _LAST_PORT:
        raise BrokenObject(f"hostPort is {port}, expected 1 to {_LAST_PORT}")
    if protocol not in _PROTOCOLS:
        raise BrokenObject(f"the protocol of host port {port} is {shown(protocol)}, expected {', '.join(_PROTOCOLS)}")
    return HostPort(port, protocol, "" if address in _EVERY_ADDRESS else address)
