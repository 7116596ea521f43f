"""Types that a pool's requirements keep out and that would hold a pod for which the pool has none large enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from attrs import evolve, frozen

from engine.catalog.node_shape import node_shape
from engine.decide.expected_labels import expected_labels
from engine.decide.options import admitted
from engine.decide.question import Seen, market_of
from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.constraint import Requirement
from engine.model.plan import Unplaced
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodeClass, NodePool
from engine.model.quantity import CPU, MEMORY, NOTHING, QuantityError, Resources
from engine.model.refusal import NoTypeFits, PoolRefusal, Refusal
from engine.policy.launch_template import image_variant
from engine.scheduling.daemons import Daemons
from engine.scheduling.groups import Demand
from engine.scheduling.near_misses import barring_requirement
from engine.scheduling.requirements import Requirements, canonical_key, is_custom

_MILLICORES = 1000
# Labels that differ between the offerings of one type.
_OFFERING_KEYS = frozenset({keys.ZONE, keys.ZONE_ID, keys.CAPACITY_TYPE})


@frozen(eq=False)
class _KeptOut:
    """An offering that a pool does not take, for the requirements that it does not meet, with a node's labels there."""

    barred_by: tuple[Requirement, ...]
    instance_type: InstanceType
    offering: Offering
    labels: Mapping[str, str]
    own_labels: Mapping[str, str]


@frozen(eq=False)
class _Shelf:
    """All that is kept out of a pool, and what that follows from: good for the very same catalog and an equal pool."""

    catalog: Catalog
    pool: NodePool
    zones: frozenset[str]
    images: frozenset[str]
    kept_out: tuple[_KeptOut, ...]


# The last of each environment's pool: thousands, and the same from pass to pass.
_SHELVES: dict[tuple[str, str], _Shelf] = {}


class BeyondPools:
    """What pools could make for a pod if a requirement of theirs let them."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._market = market_of(seen)

    def told(self, unplaced: Iterable[Unplaced], pods: Iterable[Pod]) -> tuple[Unplaced, ...]:
        """The same answers; where no type fits a pod, with the cheapest that would, and what keeps it out of the pool.

        Pods of one class share their refusals, and are asked about once.
        """
        answers = tuple(unplaced)
        if not any(isinstance(each.refusal, NoTypeFits) for answer in answers for each in answer.refusals):
            return answers
        by_key = {pod.key: pod for pod in pods}
        known: dict[int, tuple[PoolRefusal, ...]] = {}
        return tuple(evolve(answer, refusals=self._completed(answer, by_key, known)) for answer in answers)

    def completed(self, refusal: Refusal, node_pool: str, requests: Resources, demand: Demand) -> Refusal:
        """A pool's refusal of such a pod, with the type beyond the pool that would do where no type of it does."""
        pool = self._seen.policy.node_pool(node_pool)
        if not isinstance(refusal, NoTypeFits) or refusal.would_do or pool is None:
            return refusal
        found = next(self._would_hold(pool, requests, demand), None)
        if found is None:
            return refusal
        barred_by = "; ".join(map(str, found.barred_by))
        return evolve(refusal, would_do=found.instance_type.name, barred_by=barred_by)

    def _completed(
        self, answer: Unplaced, pods: Mapping[PodKey, Pod], known: dict[int, tuple[PoolRefusal, ...]]
    ) -> tuple[PoolRefusal, ...]:
        refusals = answer.refusals
        if not any(isinstance(each.refusal, NoTypeFits) for each in refusals):
            return refusals
        if id(refusals) not in known:
            placing = pods[answer.pod].placing
            demand = Demand.of(placing)
            known[id(refusals)] = tuple(
                evolve(each, refusal=self.completed(each.refusal, each.node_pool, placing.requests, demand))
                for each in refusals
            )
        return known[id(refusals)]

    def _would_hold(self, pool: NodePool, requests: Resources, demand: Demand) -> Iterator[_KeptOut]:
        """Those barred by fewest requirements first, then the cheapest."""
        node_class = self._seen.policy.node_class(pool.node_class)
        if node_class is None:
            return
        daemons = Daemons(self._seen.snapshot.daemon_sets, pool.taints)
        left_to_choose = [key for key in Requirements.of(pool.requirements).sets if is_custom(key)]
        of_types = _without_offering_keys(demand)
        may_hold: dict[str, bool] = {}
        for each in self._kept_out(pool, node_class):
            kind = each.instance_type
            if kind.name not in may_hold:
                may_hold[kind.name] = (
                    _is_large_enough(kind, requests)
                    and (bool(requests.accelerators()) or not kind.is_accelerated or pool.open_to_all_pods)
                    and barring_requirement(of_types, each.labels, left_to_choose) is None
                )
            if not may_hold[kind.name]:
                continue
            labels = {**each.labels, **each.own_labels}
            if barring_requirement(demand, labels, left_to_choose) is None:
                room = self._allocatable(kind, node_class) - daemons.overhead(labels)
                if requests.fits_in(room):
                    yield each

    def _kept_out(self, pool: NodePool, node_class: NodeClass) -> tuple[_KeptOut, ...]:
        catalog, name = self._seen.catalog, (self._seen.environment.name, pool.name)
        zones = self._market.zones(node_class)
        images = frozenset(self._seen.snapshot.cloud.images.get(node_class.name, {}))
        known = _SHELVES.get(name)
        if (
            known is None
            or known.catalog is not catalog
            or (known.pool, known.zones, known.images) != (pool, zones, images)
        ):
            known = _Shelf(catalog, pool, zones, images, _laid_out(pool, catalog, zones, images))
            _SHELVES[name] = known
        return known.kept_out

    def _allocatable(self, kind: InstanceType, node_class: NodeClass) -> Resources:
        try:
            return node_shape(kind, node_class, self._seen.environment).allocatable
        except QuantityError:
            return NOTHING


def _laid_out(pool: NodePool, catalog: Catalog, zones: Set[str], images: Set[str]) -> tuple[_KeptOut, ...]:
    """What the pool does not take of all that is sold at a price in the zones and boots one of the images."""
    about_offerings = [each for each in pool.requirements if canonical_key(each.key) in _OFFERING_KEYS]
    about_types = [each for each in pool.requirements if canonical_key(each.key) not in _OFFERING_KEYS]
    places: dict[tuple[str, str], tuple[Mapping[str, str], tuple[Requirement, ...]]] = {}
    types = {kind.name: kind for kind in catalog.instance_types if image_variant(kind) in images}
    barred: dict[str, tuple[Mapping[str, str], tuple[Requirement, ...]]] = {}
    kept_out = []
    for offering in catalog.offerings:
        kind, place = types.get(offering.instance_type), (offering.zone, offering.capacity_type)
        if kind is None or offering.usd_per_hour is None or offering.zone not in zones:
            continue
        if place not in places:
            own: dict[str, str] = {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type}
            if offering.zone in catalog.zone_ids:
                own[keys.ZONE_ID] = catalog.zone_ids[offering.zone]
            places[place] = own, _not_met(about_offerings, own)
        if kind.name not in barred:
            labels = _labels(pool, kind, catalog.region)
            barred[kind.name] = labels, _not_met(about_types, labels)
        (labels, of_type), (where, of_place) = barred[kind.name], places[place]
        if of_type or of_place:
            order = (len(of_type) + len(of_place), offering.usd_per_hour.micros, offering.key)
            kept_out.append((order, _KeptOut((*of_type, *of_place), kind, offering, labels, where)))
    return tuple(each for _, each in sorted(kept_out, key=lambda pair: pair[0]))


def _labels(pool: NodePool, kind: InstanceType, region: str) -> Mapping[str, str]:
    """A node's, zone and capacity type apart."""
    own = {keys.REGION: region, keys.NODE_POOL: pool.name, keys.NODE_CLASS: pool.node_class}
    return {**expected_labels(pool, kind, ()), keys.OS: "linux", **kind.labels, **pool.labels, **own}


def _not_met(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(each for each in requirements if not admitted((each,), labels))


def _is_large_enough(kind: InstanceType, requests: Resources) -> bool:
    """Whether the type has as much as is asked for, were nothing of it reserved."""
    if kind.vcpus * _MILLICORES < requests.amount(CPU) or kind.memory_bytes < requests.amount(MEMORY):
        return False
    return all(kind.accelerators.amount(name) >= requests[name] for name in requests.accelerators())


def _without_offering_keys(demand: Demand) -> Demand:
    """What of a demand is about types and pools alone."""
    terms = (tuple(each for each in term if each.key not in _OFFERING_KEYS) for term in demand.terms)
    return evolve(demand, terms=tuple(terms))
