"""Types that a pool's requirements keep out and that would hold a pod for which the pool has none large enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property

from attrs import evolve, frozen

from engine.catalog.node_shape import node_shape
from engine.decide.expected_labels import expected_labels
from engine.decide.options import Market, admitted
from engine.decide.question import Seen
from engine.model import labels as keys
from engine.model.catalog import InstanceType, Offering
from engine.model.constraint import Requirement
from engine.model.plan import Unplaced
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodeClass, NodePool
from engine.model.quantity import CPU, MEMORY, QuantityError, Resources
from engine.model.refusal import NoTypeFits, PoolRefusal, Refusal
from engine.policy.launch_template import image_variant
from engine.scheduling.daemons import Daemons
from engine.scheduling.groups import Demand
from engine.scheduling.near_misses import barring_requirement
from engine.scheduling.requirements import Requirements, is_custom

_MILLICORES = 1000


@frozen
class _KeptOut:
    """An offering that a pool does not take, for the requirements that it does not meet."""

    barred_by: tuple[Requirement, ...]
    instance_type: InstanceType
    offering: Offering
    labels: Mapping[str, str]

    @property
    def order(self) -> tuple[int, int, str]:
        price = self.offering.usd_per_hour
        return len(self.barred_by), price.micros if price is not None else 0, self.offering.key


class BeyondPools:
    """What pools could make for a pod if a requirement of theirs let them."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._market = Market(seen.catalog, seen.environment, seen.snapshot, seen.learned)

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
        zones = self._market.zones(node_class)
        kept_out = [each for kind in self._large_enough(pool, requests) for each in self._kept_out(pool, kind, zones)]
        for each in sorted(kept_out, key=lambda one: one.order):
            if barring_requirement(demand, each.labels, left_to_choose) is not None:
                continue
            room = self._allocatable(each.instance_type, node_class) - daemons.overhead(each.labels)
            if requests.fits_in(room):
                yield each

    def _large_enough(self, pool: NodePool, requests: Resources) -> Iterator[InstanceType]:
        """The types that have as much as is asked for, were nothing reserved, and that boot an image of the class."""
        images = self._seen.snapshot.cloud.images.get(pool.node_class, {})
        accelerators = requests.accelerators()
        for kind in self._seen.catalog.instance_types:
            if not accelerators and kind.is_accelerated and not pool.open_to_all_pods:
                continue
            if any(kind.accelerators.amount(name) < requests[name] for name in accelerators):
                continue
            is_small = kind.vcpus * _MILLICORES < requests.amount(CPU) or kind.memory_bytes < requests.amount(MEMORY)
            if not is_small and image_variant(kind) in images:
                yield kind

    def _kept_out(self, pool: NodePool, kind: InstanceType, zones: Set[str]) -> Iterator[_KeptOut]:
        labels = {
            **expected_labels(pool, kind, ()),
            keys.OS: "linux",
            **kind.labels,
            **pool.labels,
            keys.REGION: self._seen.catalog.region,
            keys.NODE_POOL: pool.name,
            keys.NODE_CLASS: pool.node_class,
        }
        for offering in self._priced.get(kind.name, ()):
            zone = offering.zone
            if zone not in zones:
                continue
            own = {**labels, keys.ZONE: zone, keys.CAPACITY_TYPE: offering.capacity_type}
            if zone in self._seen.catalog.zone_ids:
                own[keys.ZONE_ID] = self._seen.catalog.zone_ids[zone]
            barred_by = tuple(each for each in pool.requirements if not admitted((each,), own))
            if barred_by:
                yield _KeptOut(barred_by, kind, offering, own)

    def _allocatable(self, kind: InstanceType, node_class: NodeClass) -> Resources:
        try:
            return node_shape(kind, node_class, self._seen.environment).allocatable
        except QuantityError:
            return Resources()

    @cached_property
    def _priced(self) -> Mapping[str, list[Offering]]:
        by_type: dict[str, list[Offering]] = {}
        for offering in self._seen.catalog.offerings:
            if offering.usd_per_hour is not None:
                by_type.setdefault(offering.instance_type, []).append(offering)
        return by_type
