"""Where no type holds a pod: what lacks, the type that lacks least, and which would do but for a requirement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

from engine.model.constraint import Requirement
from engine.model.quantity import Resources
from engine.model.refusal import Measured, NoTypeFits
from engine.scheduling.groups import Demand, PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.limits import resource_order
from engine.scheduling.offers import PoolOffers
from engine.scheduling.requirements import canonical_labels


def no_type_fits(pod_class: PodClass, pool: PoolOffers, permitted: Sequence[Kind]) -> NoTypeFits | None:
    """What the kinds that a pool permits lack for a pod of the class; None: one of them holds it, or none is open."""
    requests = pod_class.requests
    kinds = [kind for kind in permitted if pool.open_to(pod_class, kind)]
    # Equal rooms of a pool are one object, and many kinds share one.
    rooms = {id(kind.room): kind.room for kind in kinds}
    if not rooms or any(map(requests.fits_in, rooms.values())):
        return None
    # A type without the accelerator is no near miss, however much of the rest it has.
    wanted = set(pod_class.accelerators)
    rooms = {key: room for key, room in rooms.items() if wanted.issubset(room.accelerators())} or rooms
    lacking = {key: tuple(name for name, _, _ in requests.shortfalls(room)) for key, room in rooms.items()}
    decisive = _fewest_that_leave_none(lacking.values())
    fewest = min(map(len, lacking.values()))
    missed = {key: _missed(requests, rooms[key], short) for key, short in lacking.items() if len(short) == fewest}
    least = min(missed.values())
    nearest = min((kind for kind in kinds if missed.get(id(kind.room)) == least), key=cheapest_first)
    short = lacking[id(nearest.room)]
    names = sorted(
        {*short, *decisive}, key=lambda name: (name not in short, name not in decisive, resource_order(name))
    )
    told, *also = [
        Measured(name, requests[name], max(0, nearest.room.amount(name)), nearest.overhead.amount(name))
        for name in names
    ]
    would_do, barred_by = _barred_by_the_pod(pod_class, pool)
    return NoTypeFits(
        resource=told.resource,
        needed=told.needed,
        nearest_amount=told.has,
        nearest_type=nearest.instance_type.name,
        daemon_overhead=told.daemon_overhead,
        also=tuple(also),
        only_together=len(decisive) > 1,
        would_do=would_do,
        barred_by=barred_by,
        is_barred_by_pod=bool(barred_by),
    )


def barring_requirement(demand: Demand, labels: Mapping[str, str], chosen: Iterable[str] = ()) -> Requirement | None:
    """The first requirement that a node with these labels does not meet, of the term that it meets most of in a row.

    None: it meets one. Keys that it lacks and that are ``chosen`` when it is made bar nothing.
    """
    left_to_choose = frozenset(chosen) - labels.keys()
    furthest: tuple[int, Requirement] | None = None
    for term in demand.terms:
        failed = (
            (met, each)
            for met, each in enumerate(term)
            if each.key not in left_to_choose and not each.admits(labels.get(each.key))
        )
        first = next(failed, None)
        if first is None:
            return None
        if furthest is None or first[0] > furthest[0]:
            furthest = first
    return furthest[1] if furthest is not None else None


def cheapest_first(kind: Kind) -> tuple[bool, int, tuple[object, ...]]:
    """Sorts kinds by price, those without one last."""
    price = kind.usd_per_hour
    return price is None, price.micros if price is not None else 0, kind.order


def _fewest_that_leave_none(lacking: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The fewest resources of which every kind lacks one, the scarce ones first."""
    sets = {frozenset(short) for short in lacking}
    names = sorted({name for short in sets for name in short}, key=resource_order)
    return next(
        chosen
        for count in range(1, len(names) + 1)
        for chosen in combinations(names, count)
        if all(not short.isdisjoint(chosen) for short in sets)
    )


def _missed(requests: Resources, room: Resources, short: Iterable[str]) -> float:
    """How much of what is asked for is not there, each resource counted as a share of the request."""
    return sum((requests[name] - max(0, room.amount(name))) / requests[name] for name in short)


def _barred_by_the_pod(pod_class: PodClass, pool: PoolOffers) -> tuple[str, str]:
    """The cheapest type of the pool's that would hold the pod, and the pod's own requirement that it does not meet."""
    every = pool.kinds_without_pods()
    if pool.permitted(pod_class.demand) is every:
        return "", ""
    fitting = (
        kind
        for kind in every
        if kind.usd_per_hour is not None
        and pod_class.requests.fits_in(kind.room)
        and pool.open_to(pod_class, kind)
        and pod_class.rulings.bar(pool.name, kind.type_at) is None
    )
    for kind in sorted(fitting, key=cheapest_first):
        labels = canonical_labels(kind.options[0].labels)
        barring = barring_requirement(pod_class.demand, labels, pool.custom)
        if barring is not None:
            return kind.instance_type.name, str(barring)
    return "", ""
