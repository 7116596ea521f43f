"""Nodes that are there or on their way as places for pods, alike ones together, and how well they fit a class."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from engine.model import labels as keys
from engine.model.constraint import Taint
from engine.model.quantity import CPU, MEMORY, Resources
from engine.scheduling.groups import Demand, PodClass
from engine.scheduling.kinds import Offer, OfferingName

_ALWAYS_RELEVANT = frozenset((keys.NODE_POOL, keys.INSTANCE_TYPE, keys.CAPACITY_TYPE, keys.ZONE))


@frozen(eq=False)
class Place:
    """What decides, room apart, which pods a node takes. One object for equal places."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    is_accelerated: bool
    in_flight: bool
    offering: OfferingName
    content: tuple[object, ...]


@frozen(eq=False)
class Alike:
    """Nodes of one place with equal room. ``is_empty``: no pod is there, nor planned for it so far.

    ``order`` puts the tightest first: accelerators, cpu, memory; then content, so that names decide only between twins.
    """

    place: Place
    room: Resources
    is_empty: bool
    order: tuple[object, ...]

    @classmethod
    def of(cls, place: Place, room: Resources, is_empty: bool) -> Alike:
        devices = sum(room.amount(resource) for resource in room.accelerators())
        order = (devices, room.amount(CPU), room.amount(MEMORY), place.content, tuple(room.items()))
        return cls(place, room, is_empty, order)


@frozen(eq=False)
class Fit:
    """Nodes that hold ``count`` pods of a class each, with how many taints speak softly against it."""

    alike: Alike
    count: int
    disliked: int
    wasted: bool


@frozen(eq=False)
class Group:
    first: list[Fit] = field(factory=list)
    offered: list[tuple[Fit, Offer]] = field(factory=list)
    last: list[Fit] = field(factory=list)

    def list_for(self, fit: Fit, offer: Offer | None) -> list[Fit] | None:
        """Where nodes that nobody is offered belong; none for those of ``offered``, and for such as come later."""
        if offer is not None:
            return None
        if fit.wasted and fit.alike.place.in_flight and fit.alike.is_empty:
            # It is launched for pods that ask for accelerators: others may have what these leave, not come first.
            return None
        return self.last if fit.wasted and not fit.alike.place.in_flight else self.first

    def for_one(self) -> Group:
        """The same, of which offered nodes may be taken as they are used up."""
        return Group(self.first, list(self.offered), self.last)


def dislikes_of(demand: Demand, place: Place) -> int | None:
    """How many taints speak against the place; None when the kube-scheduler would not bind the pod there at all."""
    if demand.barring_taint(place.taints) is not None or not demand.admits(place.labels):
        return None
    return demand.disliked_taints(place.taints)


def may_not_wait_for(pod_class: PodClass, place: Place, *, errors_bar: bool) -> bool:
    """Whether rules bar pods of the class from a node that is still to come; where nodes stand, they have no say.

    A rule that errs makes nothing new of a node for the class, and takes nothing away that was planned before.
    """
    if not place.in_flight:
        return False
    pool, instance_type, capacity_type, _ = place.offering
    bar = pod_class.rulings.bar(pool, (instance_type, capacity_type))
    return bar is not None and (errors_bar or bar.is_forbidden)


def tightest_first(fit: Fit) -> tuple[object, ...]:
    return fit.disliked, fit.wasted, fit.alike.is_empty, fit.alike.order


def rank_of(fit: Fit, offer: Offer, pods: int) -> tuple[object, ...]:
    """As the offer itself is ranked; a node whose custom labels are others was opened for somebody else."""
    labels = fit.alike.place.labels
    others = sum(labels.get(key, value) != value for key, value in offer.kind.added_labels)
    return fit.disliked, offer.cost(pods, fit.count), others
