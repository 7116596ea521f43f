"""The state of all that ties pods to each other while they are placed: which nodes there are, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.model import labels as keys
from engine.model.constraint import HostPort, Taint
from engine.scheduling.topology.coupling import Coupling
from engine.scheduling.topology.ground import ABSENT, Ground, Spot
from engine.scheduling.topology.neighbourhood import Bound, Neighbourhood
from engine.scheduling.topology.tally import Bar, Tally

_NO_PORTS: frozenset[HostPort] = frozenset()


class Topology:
    """Nodes are known by numbers, the members, once they join. Standing nodes count from the start, joined or not.

    A node's room, and whether its labels and taints suit a pod, are other questions: only ask about nodes that do.
    """

    def __init__(self, neighbourhood: Neighbourhood) -> None:
        self._tally = Tally(Ground(neighbourhood))
        self._spots: dict[int, Spot] = {}
        self._ports: dict[int, frozenset[HostPort]] = {}
        self._apart: dict[str, tuple[Bound, Spot]] = {}
        for bound in neighbourhood.bound:
            node = bound.node
            spot = self._tally.ground.spot(node.labels, node.taints, None)
            self._apart[node.name] = (bound, spot)
            self._settle(bound, spot, 1)

    def copy(self) -> Topology:
        """The same state, to be changed apart."""
        twin = Topology.__new__(Topology)
        twin._tally = self._tally.copy()
        twin._spots = dict(self._spots)
        twin._ports = dict(self._ports)
        twin._apart = dict(self._apart)
        return twin

    def join(self, member: int, labels: Mapping[str, str], taints: Iterable[Taint], name: str | None = None) -> None:
        """Makes a node known as ``member``: with the pods bound to it where a standing node has the name, else empty.

        ``labels`` and ``taints`` are those that it is expected to have when pods are bound; they replace the standing
        node's, all but a hostname that they do not tell.
        """
        bound, before = self._apart.pop(name, (None, None)) if name is not None else (None, None)
        if bound is None or before is None:
            spot = self._tally.ground.spot(labels, taints, member)
            self._tally.enter(spot)
        else:
            # What is not registered under a hostname by now will not be.
            spot = self._tally.ground.spot(labels, taints, bound.node.labels.get(keys.HOSTNAME) or None)
            if before.domains != spot.domains or before.shape is not spot.shape:
                self._settle(bound, before, -1)
                self._settle(bound, spot, 1)
            self.occupy(member, bound.ports)
        self._spots[member] = spot

    def occupy(self, member: int, ports: Iterable[HostPort]) -> None:
        """Host ports of a member that others than the placed pods take, such as daemons still to come."""
        taken = frozenset(ports)
        if taken:
            self._ports[member] = self._ports.get(member, _NO_PORTS) | taken

    def offer(self, coupling: Coupling, combos: Sequence[Mapping[str, str]]) -> None:
        """Nodes could be made for pods of it with such values of its topology keys: domains to spread over from now on.

        Give one combo at least, an empty one where no key matters, whenever a new node is possible at all.
        """
        self._tally.offer(coupling, combos)

    def admitted(self, coupling: Coupling, member: int, most: int) -> int:
        """How many more pods of it may be bound there one after another, ``most`` at most, all else unchanged."""
        if coupling.is_free:
            return most
        if coupling.ports:
            if self._taken_port(coupling, member) is not None:
                return 0
            most = min(most, 1)
        return self._tally.room(coupling, self._spots[member], most)

    def keeps(self, coupling: Coupling, member: int) -> bool:
        """Whether one of its pods that are counted on the member could be bound there last of all; host ports apart."""
        spot = self._spots[member]
        self._tally.count(coupling.adds, spot, -1)
        room = self._tally.room(coupling, spot, 1)
        self._tally.count(coupling.adds, spot, 1)
        return room > 0

    def come_together(self, placed: Iterable[tuple[Coupling, int, int]]) -> bool:
        """Whether so many pods of a coupling on a member, which are counted, find company there whoever is bound first.

        Those come last who find none but may be the first of all: then nobody else is left who could be that elsewhere.
        """
        tally = self._tally.copy()
        waiting = [each for each in placed if each[0].affinity]
        for coupling, member, pods in waiting:
            tally.count(coupling.adds, self._spots[member], -pods)
        while waiting:
            able = [each for each in waiting if tally.meets_company(each[0], self._spots[each[1]])]
            able = able or [each for each in waiting if tally.has_company(each[0], self._spots[each[1]])][:1]
            if not able:
                return False
            for coupling, member, pods in able:
                tally.count(coupling.adds, self._spots[member], pods)
            waiting = [each for each in waiting if each not in able]
        return True

    def outlook(self, coupling: Coupling, labels: Mapping[str, str]) -> tuple[int, int, int] | None:
        """How many pods its spreads count, and those that it is to leave even, where a new node with such labels would
        be; None: no pod of it could be the first there."""
        spot = self._tally.ground.fresh(labels)
        return self._tally.matching(coupling, spot) if self._tally.room(coupling, spot, 1) else None

    def put(self, coupling: Coupling, member: int, pods: int) -> None:
        """So many pods of it are on the member from now on."""
        if pods:
            self._tally.count(coupling.adds, self._spots[member], pods)
            self.occupy(member, coupling.ports)

    def why_not(self, coupling: Coupling, member: int) -> Bar | None:
        """The first constraint that keeps one more pod of it from the member; None where it may go there."""
        taken = self._taken_port(coupling, member)
        if taken is not None:
            return Bar(taken, "")
        return self._tally.bar(coupling, self._spots[member])

    def why_not_alone(self, coupling: Coupling, labels: Mapping[str, str]) -> Bar | None:
        """The same for a new node with such labels that would have no pod but this one; host ports apart."""
        return self._tally.bar(coupling, self._tally.ground.fresh(labels))

    def nodes_in(self, key: str, domain: str) -> tuple[list[int], list[str]]:
        """The members that are in a domain of a topology key, and the names of standing nodes there that are none."""
        ground = self._tally.ground
        at = ground.keys.index(key)
        members = [member for member, spot in sorted(self._spots.items()) if _is_in(spot, at, domain, ground)]
        return members, [name for name, (_, spot) in sorted(self._apart.items()) if _is_in(spot, at, domain, ground)]

    @property
    def tally(self) -> Tally:
        """The counts themselves."""
        return self._tally

    def _taken_port(self, coupling: Coupling, member: int) -> HostPort | None:
        taken = self._ports.get(member)
        if not taken:
            return None
        return next((port for port in coupling.ports if any(port.conflicts(other) for other in taken)), None)

    def _settle(self, bound: Bound, spot: Spot, sign: int) -> None:
        self._tally.enter(spot, sign)
        for adds, pods in bound.adds.items():
            self._tally.count(adds, spot, sign * pods)


def _is_in(spot: Spot, key: int, domain: str, ground: Ground) -> bool:
    return spot.domains[key] != ABSENT and ground.name(spot.domains[key]) == domain
