"""Nodes that are there, or on their way, or of this plan, and the filling of them.

Nodes that are alike are handled together: alike in the labels that anybody asks for, in taints and in room.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.model import labels as keys
from engine.model.constraint import HostPort, Taint
from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.scheduling.ceilings import Counts
from engine.scheduling.fits import Fits
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind, Offer, OfferingName
from engine.scheduling.packed import Standing
from engine.scheduling.places import (
    Alike,
    Fit,
    Group,
    Place,
    dislikes_of,
    may_not_wait_for,
    rank_of,
)
from engine.scheduling.problem import NodeOption
from engine.scheduling.requirements import canonical_labels
from engine.scheduling.topology.topology import Topology
from engine.scheduling.values_left import ValuesLeft

_ALWAYS_RELEVANT = frozenset((keys.NODE_POOL, keys.INSTANCE_TYPE, keys.CAPACITY_TYPE, keys.ZONE))


class World:
    """Nodes with the room that is left on them, and who got which pods. Numbers, the members, stand for nodes."""

    def __init__(
        self, relevant_keys: frozenset[str], counts: Counts | None = None, topology: Topology | None = None
    ) -> None:
        """``relevant_keys`` are the labels that some pod asks for; nodes that differ in others only are alike.

        ``counts`` know the ceilings of groups of pods, ``topology`` what ties pods to each other, None where nothing
        does; every node that joins and every pod that is put somewhere is told to them. So are ``values_left``, where a
        draft sets them: some pool has minValues.
        """
        self._relevant = sorted(relevant_keys | _ALWAYS_RELEVANT)
        self._places: dict[tuple[object, ...], Place] = {}
        self._fits = Fits()
        self._known: dict[tuple[Place, Resources, bool], Alike] = {}
        self._members: dict[Alike, list[int]] = {}
        self._changed: list[Alike] = []
        self._in_zone: dict[tuple[str, str, bool], int] = {}
        self._is: dict[int, Alike] = {}
        self.pods: dict[int, list[PodKey]] = {}
        self.counts = counts or Counts()
        self.topology = topology
        self.values_left: ValuesLeft | None = None

    @property
    def size(self) -> int:
        """How many kinds of nodes there are, alike ones counted once."""
        return len(self._members)

    def place_of(
        self, labels: Mapping[str, str], taints: Iterable[Taint], *, is_accelerated: bool, in_flight: bool
    ) -> Place:
        """The place that a node is; ``labels`` under their present names."""
        shown = tuple((key, labels[key]) for key in self._relevant if key in labels)
        standing = tuple(sorted(taints, key=str))
        content = (shown, tuple(map(str, standing)), is_accelerated, in_flight)
        if content not in self._places:
            offering = (
                labels.get(keys.NODE_POOL, ""),
                labels.get(keys.INSTANCE_TYPE, ""),
                labels.get(keys.CAPACITY_TYPE, ""),
                labels.get(keys.ZONE, ""),
            )
            self._places[content] = Place(dict(shown), standing, is_accelerated, in_flight, offering, content)
        return self._places[content]

    def add(
        self,
        place: Place,
        room: Resources,
        member: int,
        is_empty: bool = True,
        name: str | None = None,
        daemon_ports: Iterable[HostPort] = (),
    ) -> None:
        """A node with the room that is left on it; by its ``name`` the pods that are bound there are known."""
        self._put(place, room, member, is_empty)
        self._count(place, is_empty, 1)
        if self.topology is not None:
            self.topology.join(member, place.labels, place.taints, name)
            self.topology.occupy(member, daemon_ports)

    def put(self, pod_class: PodClass, pods: Sequence[PodKey], member: int) -> None:
        """Puts pods of the class on a node that has room for them and suits them."""
        self._hold(self._is[member], member, pods, pod_class)

    def copy(self) -> World:
        """The same nodes and pods, to be filled apart; what was learnt about places is shared."""
        topology = self.topology.copy() if self.topology is not None else None
        twin = World(frozenset(self._relevant), self.counts.copy(), topology)
        twin._places, twin._known, twin._fits = self._places, self._known, self._fits.apart()
        twin._members = {alike: list(members) for alike, members in self._members.items()}
        twin._in_zone = dict(self._in_zone)
        twin._is = dict(self._is)
        twin.pods = {member: list(pods) for member, pods in self.pods.items()}
        return twin

    def reserve(
        self, pod_class: PodClass, pods: Sequence[PodKey], member: int, *, regardless_of_room: bool
    ) -> Sequence[PodKey]:
        """Puts pods of the class on one node; returns those that may not go there or do not fit."""
        alike = self._is[member]
        if may_not_wait_for(pod_class, alike.place, errors_bar=False):
            return pods
        count = len(pods) if regardless_of_room else min(len(pods), pod_class.requests.times_in(alike.room))
        if self.topology is not None and pod_class.coupling is not None and pod_class.coupling.ports:
            count = self.topology.admitted(pod_class.coupling, member, count)
        if not count or dislikes_of(pod_class.demand, alike.place) is None:
            return pods
        self._hold(alike, member, pods[:count], pod_class)
        return pods[count:]

    def put_packed(self, pod_class: PodClass, pods: Sequence[PodKey], member: int) -> Sequence[PodKey]:
        """Puts pods of the class on a node that has room for them and suits them, as far as ceilings admit them; who
        went there."""
        alike, count = self._is[member], len(pods)
        if pod_class.shares and alike.place.in_flight:
            pool = alike.place.offering[0]
            count = self.counts.admitted(pod_class.shares, pool, member, pod_class.requests, count)
        if self.values_left is not None:
            count = self.values_left.admitted(pod_class, member, count)
        if count:
            self.put(pod_class, pods[:count], member)
        return pods[:count]

    def put_one_by_one(self, pod_class: PodClass, pods: Sequence[PodKey], member: int) -> int:
        """The same, as far as what ties pods to each other admits one after another; how many went there."""
        if self.topology is not None and pod_class.coupling is not None:
            pods = pods[: self.topology.admitted(pod_class.coupling, member, len(pods))]
        return len(self.put_packed(pod_class, pods, member))

    def nodes_for(self, pod_class: PodClass, requests: Resources) -> Sequence[int]:
        """The nodes that take a pod of the class and have room for so much besides what they hold, the tightest first,
        those that stand before those in flight."""
        fits = [fit for group in self._fitting(pod_class, {}) for fit in (*group.first, *group.last)]
        return [member for fit in fits if requests.fits_in(fit.alike.room) for member in self._members[fit.alike]]

    def put_together(self, loads: Sequence[tuple[PodClass, tuple[PodKey, ...]]], member: int) -> Sequence[PodKey]:
        """Puts pods of several classes, in their order, on one node that has room for them, if it takes each; who went
        there. Ceilings may keep some of them out."""
        place = self._is[member].place
        trial = self.topology.copy() if self.topology is not None else None
        for pod_class, pods in loads:
            if dislikes_of(pod_class.demand, place) is None or may_not_wait_for(pod_class, place, errors_bar=True):
                return ()
            if trial is not None and pod_class.coupling is not None:
                if trial.admitted(pod_class.coupling, member, len(pods)) < len(pods):
                    return ()
                trial.put(pod_class.coupling, member, len(pods))
        return [pod for pod_class, pods in loads for pod in self.put_packed(pod_class, pods, member)]

    def options_open_to(
        self, pod_class: PodClass, kind: Kind, options: tuple[NodeOption, ...]
    ) -> tuple[NodeOption, ...]:
        """Of a kind's options those whose new node could take a pod of the class: where spreads count fewest."""
        if self.topology is None or pod_class.coupling is None:
            return options
        added = dict(kind.added_labels)
        outlooks = [
            (self.topology.outlook(pod_class.coupling, {**canonical_labels(each.labels), **added}), each)
            for each in options
        ]
        fewest = min((seen for seen, _ in outlooks if seen is not None), default=None)
        return tuple(each for seen, each in outlooks if seen == fewest and seen is not None)

    def groups_for(self, classes: Iterable[PodClass]) -> tuple[Standing, ...]:
        """The nodes that take pods of any of the classes, alike ones together."""
        takers: dict[Alike, set[PodClass]] = {}
        wasted: set[Alike] = set()
        for pod_class in classes:
            for group in self._fitting(pod_class, {}):
                for fit in (*group.first, *group.last):
                    takers.setdefault(fit.alike, set()).add(pod_class)
                    wasted.update([fit.alike] if fit.wasted else ())
        return tuple(
            Standing(
                members=tuple(self._members[alike]),
                room=alike.room,
                takes=frozenset(takers[alike]),
                is_empty=alike.is_empty,
                is_wasted=alike in wasted,
            )
            for alike in sorted(takers, key=lambda each: each.order)
        )

    def zone_order(self, pool: str, zone: str, with_empty: bool) -> tuple[int, str]:
        """By which zones are spread over: the pool's nodes there, those without pods counted or not, then the name."""
        empty = self._in_zone.get((pool, zone, True), 0) if with_empty else 0
        return self._in_zone.get((pool, zone, False), 0) + empty, zone

    def fill(
        self, pod_class: PodClass, pods: Sequence[PodKey], offers: Mapping[OfferingName, Offer]
    ) -> Sequence[PodKey]:
        """Puts pods of the class on nodes; returns those for which there is no room.

        Nodes that are there come before those that are on their way. Of each: nodes in use, the tightest first; then
        empty nodes of kinds that the class is offered, in the order in which it would have them opened, so that a plan
        asked again with its nodes in flight comes out the same; last, accelerated nodes for pods that ask for none.
        """
        if pod_class.is_tied:
            return self._fill_in_turns(pod_class, pods, offers)
        placed = 0
        for group in self._fitting(pod_class, offers):
            placed += self._fill_in_order(pod_class, pods[placed:], group.first)
            while group.offered and placed < len(pods):
                placed += self._fill_best_offered(pod_class, pods[placed:], group.offered)
            placed += self._fill_in_order(pod_class, pods[placed:], group.last)
        return pods[placed:]

    def _fill_in_turns(
        self, pod_class: PodClass, pods: Sequence[PodKey], offers: Mapping[OfferingName, Offer]
    ) -> Sequence[PodKey]:
        """As `fill`, for pods that keep each other apart or together: where one goes may close or open other nodes, so
        it is asked again as long as any pod finds a place."""
        placed = 0
        while placed < len(pods):
            before = placed
            for group in self._fitting(pod_class, offers):
                offered = [fit for fit, _ in sorted(group.offered, key=lambda pair: pair[0].alike.order)]
                placed += self._fill_in_order(pod_class, pods[placed:], (*group.first, *offered, *group.last))
            if placed == before:
                break
        return pods[placed:]

    def _fill_in_order(self, pod_class: PodClass, pods: Sequence[PodKey], order: Sequence[Fit]) -> int:
        placed = 0
        for fit in order:
            for member in list(self._members[fit.alike]):
                if placed == len(pods):
                    return placed
                count = self._admitted(pod_class, fit.alike.place, member, min(fit.count, len(pods) - placed))
                if count > 0:
                    self._hold(fit.alike, member, pods[placed : placed + count], pod_class)
                    placed += count
        return placed

    def _admitted(self, pod_class: PodClass, place: Place, member: int, most: int) -> int:
        """How many pods a node may take of a class, ``most`` at most. Ceilings have no say where nodes stand."""
        if self.topology is not None and pod_class.coupling is not None:
            most = self.topology.admitted(pod_class.coupling, member, most)
        if self.values_left is not None:
            most = self.values_left.admitted(pod_class, member, most)
        if not (most and pod_class.shares and place.in_flight):
            return most
        return self.counts.admitted(pod_class.shares, place.offering[0], member, pod_class.requests, most)

    def _fill_best_offered(self, pod_class: PodClass, pods: Sequence[PodKey], offered: list[tuple[Fit, Offer]]) -> int:
        """Fills the best empty nodes, as many as the class would open, spread over zones alike; drops used-up ones."""
        ranks = [(rank_of(fit, offer, len(pods)), fit) for fit, offer in offered]
        best = min(rank for rank, _ in ranks)
        equals = [fit for rank, fit in ranks if rank == best]
        each = min(equals[0].count, len(pods))
        placed = 0
        closed: set[Fit] = set()
        for _ in range(len(pods) // each):
            if not equals:
                break
            fit = min(equals, key=self._zone_order_of)
            member, count = self._first_admitted(pod_class, fit.alike, each)
            if count:
                self._hold(fit.alike, member, pods[placed : placed + count], pod_class)
                placed += count
            else:
                closed.add(fit)
            if fit.alike not in self._members or not count:
                equals.remove(fit)
        offered[:] = [pair for pair in offered if pair[0].alike in self._members and pair[0] not in closed]
        return placed

    def _first_admitted(self, pod_class: PodClass, alike: Alike, most: int) -> tuple[int, int]:
        """The first of the nodes that may take pods of the class, and how many; none of them: 0."""
        for member in self._members[alike]:
            count = self._admitted(pod_class, alike.place, member, most)
            if count:
                return member, count
        return -1, 0

    def _zone_order_of(self, fit: Fit) -> tuple[tuple[int, str], tuple[object, ...]]:
        pool, _, _, zone = fit.alike.place.offering
        return self.zone_order(pool, zone, with_empty=False), fit.alike.order

    def _hold(self, alike: Alike, member: int, pods: Sequence[PodKey], pod_class: PodClass) -> None:
        members = self._members[alike]
        members.remove(member)
        if not members:
            del self._members[alike]
            self._changed.append(alike)
        place = alike.place
        self._count(place, alike.is_empty, -1)
        self.pods.setdefault(member, []).extend(pods)
        if pod_class.shares:
            self.counts.put(pod_class.shares, place.offering[0], member, pod_class.requests, len(pods))
        if self.topology is not None and pod_class.coupling is not None:
            self.topology.put(pod_class.coupling, member, len(pods))
        if self.values_left is not None:
            self.values_left.put(pod_class, member, len(pods))
        self._put(place, alike.room.less(pod_class.requests, len(pods)), member, is_empty=False)
        self._count(place, False, 1)

    def _put(self, place: Place, room: Resources, member: int, is_empty: bool) -> None:
        key = (place, room, is_empty)
        alike = self._known.get(key) or self._known.setdefault(key, Alike.of(place, room, is_empty))
        if alike not in self._members:
            self._members[alike] = []
            self._changed.append(alike)
        self._members[alike].append(member)
        self._is[member] = alike

    def _count(self, place: Place, is_empty: bool, change: int) -> None:
        pool, _, _, zone = place.offering
        where = (pool, zone, is_empty)
        self._in_zone[where] = self._in_zone.get(where, 0) + change

    def _fitting(self, pod_class: PodClass, offers: Mapping[OfferingName, Offer]) -> tuple[Group, Group]:
        """The nodes that take a pod of the class: those that are there, and those on their way."""
        return self._fits.of(pod_class, offers, self._members, self._changed)
