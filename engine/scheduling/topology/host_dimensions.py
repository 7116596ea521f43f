"""What ties pods on one fresh node, said as room: sums that any load may be held against before there is a node.

A pod that excludes its own kind takes all of a room of one; a spread over hostnames with max_skew 2 is a room of two. A
load that respects all sums may be bound in any order. Sums cannot say everything: where they would cost many nodes, the
pods concerned are named instead, to be placed one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cached_property

from attrs import evolve, field, frozen

from engine.model.constraint import HostPort
from engine.scheduling.topology.counter import Role
from engine.scheduling.topology.coupling import HOST, Coupling
from engine.scheduling.topology.neighbourhood import Neighbourhood

# More pods than any node holds.
_MANY = 1024


@frozen
class HostDimensions:
    """For each place in the given list, what a pod of it takes of each of ``rooms``. ``too_tangled`` are the places
    whose pods sums do not describe; their takes mean nothing."""

    rooms: tuple[int, ...]
    takes: tuple[tuple[int, ...], ...]
    too_tangled: frozenset[int]


def host_dimensions(
    neighbourhood: Neighbourhood, couplings: Sequence[Coupling | None], pods: Sequence[int], most: int = 12
) -> HostDimensions:
    """Dimensions, ``most`` at most, for classes of pods with these couplings, so many ``pods`` each.

    New nodes must be possible for all of them: the least of a spread over hostnames is then none.
    """
    tangled = _Batch(neighbourhood, couplings, pods).tangled()
    rest = [each if each is not None and each.number not in tangled else None for each in couplings]
    batch = _Batch(neighbourhood, rest, pods)
    sums = [*batch.exact, *(loose.sum for loose in batch.loose)]
    binding = {each.content: each for each in sums if batch.load(each) > each.room}
    ranked = sorted(binding.values(), key=lambda each: (-batch.nodes(each), each.content))
    tangled |= {coupling for each in ranked[most:] for coupling in each.takes}
    kept = [each.without(tangled) for each in ranked[:most]]
    return HostDimensions(
        rooms=tuple(each.room for each in kept),
        takes=tuple(
            tuple(each.takes.get(coupling.number, 0) if coupling is not None else 0 for each in kept)
            for coupling in couplings
        ),
        too_tangled=frozenset(
            place for place, coupling in enumerate(couplings) if coupling is not None and coupling.number in tangled
        ),
    )


@frozen(eq=False)
class _Sum:
    """The pods' ``takes``, by the number of their coupling, may add up to ``room`` on one node."""

    room: int
    takes: Mapping[int, int]

    @property
    def content(self) -> tuple[int, tuple[tuple[int, int], ...]]:
        return self.room, tuple(sorted(self.takes.items()))

    def without(self, couplings: Set[int]) -> _Sum:
        return evolve(self, takes={number: take for number, take in self.takes.items() if number not in couplings})


@frozen(eq=False)
class _Loose:
    """A sum that forbids more than the constraint does. ``suspects`` would be placed one by one in its stead;
    ``nodes`` are needed without it in any case."""

    sum: _Sum
    suspects: frozenset[int]
    nodes: int


@frozen(eq=False, slots=False)
class _Batch:
    neighbourhood: Neighbourhood
    given: Sequence[Coupling | None]
    given_pods: Sequence[int]
    pods: dict[int, int] = field(init=False)
    couplings: tuple[Coupling, ...] = field(init=False)

    @pods.default
    def _pods_by_coupling(self) -> dict[int, int]:
        pods: dict[int, int] = {}
        for coupling, count in zip(self.given, self.given_pods, strict=True):
            if coupling is not None:
                pods[coupling.number] = pods.get(coupling.number, 0) + count
        return pods

    @couplings.default
    def _distinct(self) -> tuple[Coupling, ...]:
        distinct = {coupling.number: coupling for coupling in self.given if coupling is not None}
        return tuple(distinct[number] for number in sorted(distinct))

    def load(self, each: _Sum) -> int:
        """What all pods together would take."""
        return sum(take * self.pods[number] for number, take in each.takes.items())

    def nodes(self, each: _Sum) -> int:
        """How many nodes the sum alone forces."""
        return -(-self.load(each) // each.room)

    def tangled(self) -> set[int]:
        """Couplings that sums do not describe well: those that want company on their node, and those whose sum would
        force many nodes that nothing else does."""
        tangled = {each.number for each in self.couplings if any(key == HOST for _, key in each.affinity)}
        forced = max(map(self.nodes, self.exact), default=0)
        for loose in self.loose:
            if self.nodes(loose.sum.without(tangled)) > max(forced, 2 * loose.nodes, 1):
                tangled |= loose.suspects
        return tangled

    @cached_property
    def exact(self) -> list[_Sum]:
        return [*self._of_ports(), *(each for each in self._mixed if isinstance(each, _Sum))]

    @cached_property
    def loose(self) -> list[_Loose]:
        return [each for each in self._mixed if isinstance(each, _Loose)]

    @cached_property
    def _mixed(self) -> list[_Sum | _Loose]:
        return [*self._of_anti_affinity(), *self._of_spreads()]

    @cached_property
    def _adding(self) -> Mapping[int, Set[int]]:
        """By counter, the couplings whose pods it counts."""
        adding: dict[int, set[int]] = {}
        for coupling in self.couplings:
            for counter in coupling.adds:
                adding.setdefault(counter, set()).add(coupling.number)
        return adding

    def _of_ports(self) -> Iterable[_Sum]:
        """A port of every address is a port of each one: a sum for each address that somebody names."""
        named: dict[tuple[int, str], list[tuple[HostPort, int]]] = {}
        for coupling in self.couplings:
            for port in coupling.ports:
                named.setdefault((port.port, port.protocol), []).append((port, coupling.number))
        for (number, protocol), takers in sorted(named.items()):
            for address in sorted({port.ip for port, _ in takers} - {""}) or [""]:
                asked = HostPort(number, protocol, address)
                yield _Sum(1, {taker: 1 for port, taker in takers if asked.conflicts(port)})

    def _of_anti_affinity(self) -> Iterable[_Sum | _Loose]:
        """For each term, pods that hold it against pods that match it; those that do both exclude each other."""
        holding: dict[int, set[int]] = {}
        for coupling in self.couplings:
            for counter, key in coupling.bars:
                if key == HOST and self.neighbourhood.counters[counter].role is Role.MATCH:
                    holding.setdefault(counter, set()).add(coupling.number)
        for counter, holders in sorted(holding.items()):
            matched = self._adding.get(counter, set())
            both, sides = holders & matched, (holders - matched, matched - holders)
            few, many = sorted(sides, key=lambda side: (sum(self.pods[each] for each in side), sorted(side)))
            if not (both or few):
                continue
            takes = {**dict.fromkeys(both | few, _MANY), **dict.fromkeys(many, 1)}
            limit = _Sum(_MANY, takes) if many else _Sum(1, dict.fromkeys(both, 1))
            if few and sum(self.pods[each] for each in few) > 1:
                yield _Loose(limit, frozenset(few), sum(self.pods[each] for each in both))
            else:
                yield limit

    def _of_spreads(self) -> Iterable[_Sum | _Loose]:
        """With a pod that spreads over hostnames, a node has no more matching pods than its max_skew, itself included
        if it matches. Without one it could have more: that is what the sum forbids in excess."""
        skews: dict[int, dict[int, int]] = {}
        for coupling in self.couplings:
            for rule in coupling.spreads:
                if rule.key == HOST:
                    skews.setdefault(rule.counter, {})[coupling.number] = rule.max_skew
        for counter, spreading in sorted(skews.items()):
            counted = self._adding.get(counter, set())
            least = min(spreading.values())
            limit = _Sum(least, dict.fromkeys(counted, 1))
            own = sum(self.pods[each] for each in counted & set(spreading))
            if counted <= set(spreading) and set(spreading.values()) == {least}:
                yield limit
            else:
                yield _Loose(limit, frozenset(spreading), -(-own // least))
