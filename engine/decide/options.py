"""What a pool can make a node from: the catalog's offerings, through the pool's requirements and its node class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property

from attrs import evolve, frozen

from engine.catalog.ledger import Standing, standing
from engine.catalog.node_shape import NodeShape, node_shape
from engine.catalog.price import ebs_usd_per_hour
from engine.decide.expected_labels import doubts_about, expected_labels, given_labels
from engine.decide.reserved import Places, places, selected
from engine.model import labels as keys
from engine.model.catalog import Catalog, InstanceType, Offering
from engine.model.constraint import Requirement
from engine.model.environment import Environment, NetworkMode
from engine.model.ledger import Ledger
from engine.model.money import FREE, UsdPerHour
from engine.model.policy import NodeClass, NodePool
from engine.model.quantity import QuantityError, Resources
from engine.model.refusal import PoolNotReady
from engine.model.snapshot import Snapshot
from engine.policy.launch_template import image_variant
from engine.scheduling.problem import NodeOption

# Labels that differ between the offerings of one type.
_OFFERING_KEYS = frozenset(
    {
        keys.ZONE,
        keys.ZONE_ID,
        keys.CAPACITY_TYPE,
        keys.CAPACITY_RESERVATION_ID,
        keys.CAPACITY_RESERVATION_TYPE,
    }
)


@frozen(eq=False)
class _Shelf:
    """All that a pool's options follow from, what is out for now apart."""

    catalog: Catalog
    environment: Environment
    pool: NodePool
    node_class: NodeClass
    images: frozenset[str]
    zones: frozenset[str]
    doubts: frozenset[str]
    reserved: tuple[Places, ...]

    def is_like(self, other: _Shelf) -> bool:
        """Whether the options are the same. A catalog is large, so only the very same one is taken for equal."""
        return self.catalog is other.catalog and (
            (self.environment, self.pool, self.node_class, self.images, self.zones, self.doubts)
            == (other.environment, other.pool, other.node_class, other.images, other.zones, other.doubts)
            and self.reserved == other.reserved
        )


# The last options of each environment's pool: thousands, and the same from pass to pass.
_SHELVES: dict[tuple[str, str], tuple[_Shelf, tuple[NodeOption, ...]]] = {}
# Of each environment's pool the last options with refusals told: the options without, how some stand, and with.
_REFUSED: dict[tuple[str, str], tuple[tuple[NodeOption, ...], Mapping[int, Standing], tuple[NodeOption, ...]]] = {}


class Market:
    """The offerings of one environment at one moment; remembers shapes and prices that several pools share."""

    def __init__(
        self,
        catalog: Catalog,
        environment: Environment,
        snapshot: Snapshot,
        ledger: Ledger,
        under_way: Set[str] = frozenset(),
    ) -> None:
        """``under_way`` names, as the ledger does, all that a launch without an answer yet is of: what is on probation
        is not tried twice at once."""
        self._under_way = under_way
        self._catalog = catalog
        self._environment = environment
        self._cloud = snapshot.cloud
        self._now, self._ledger = snapshot.taken_at, ledger
        self._places = places(snapshot)
        self._shapes: dict[tuple[str, str], NodeShape] = {}

    # Most passes buy nothing, and ask nothing of these.

    @cached_property
    def _offerings(self) -> dict[str, list[Offering]]:
        by_type: dict[str, list[Offering]] = {}
        for offering in sorted(self._catalog.offerings, key=lambda each: each.key):
            by_type.setdefault(offering.instance_type, []).append(offering)
        return by_type

    @cached_property
    def _types(self) -> dict[str, InstanceType]:
        return {kind.name: kind for kind in sorted(self._catalog.instance_types, key=lambda each: each.name)}

    @cached_property
    def _variants(self) -> dict[str, str]:
        return {name: image_variant(kind) for name, kind in self._types.items()}

    def options(self, pool: NodePool, node_class: NodeClass | None) -> tuple[NodeOption, ...] | PoolNotReady:
        """Every offering that the pool's requirements permit, in the zones and for the images that its class has.

        PoolNotReady names what the class lacks. A type without an image for it is passed over, while others have one.
        """
        if node_class is None:
            return PoolNotReady(why=f"no file defines EC2NodeClass {pool.node_class}")
        lacking = self._lacking(node_class)
        if lacking:
            return PoolNotReady(why=f"EC2NodeClass {node_class.name}: {lacking}")
        shelf = _Shelf(
            self._catalog,
            self._environment,
            pool,
            node_class,
            frozenset(self._cloud.images.get(node_class.name, {})),
            self.zones(node_class),
            doubts_about(pool, self._ledger, self._now),
            selected(self._places, node_class),
        )
        known = _SHELVES.get((self._environment.name, pool.name))
        if known is None or not known[0].is_like(shelf):
            laid_out = self._lay_out(shelf)
            if isinstance(laid_out, PoolNotReady):
                return laid_out
            known = (shelf, laid_out)
            _SHELVES[self._environment.name, pool.name] = known
        return self._with_refusals(pool, node_class, known[1])

    def _lay_out(self, shelf: _Shelf) -> tuple[NodeOption, ...] | PoolNotReady:
        pool, node_class = shelf.pool, shelf.node_class
        permitted = self._permitted(pool)
        bootable = [kind for kind in permitted if self._variants[kind.name] in shelf.images]
        if permitted and not bootable:
            variants = ", ".join(sorted({self._variants[kind.name] for kind in permitted}))
            return PoolNotReady(why=f"EC2NodeClass {node_class.name}: amiSelectorTerms match no image for {variants}")
        try:
            given = given_labels(pool, permitted)
            return tuple(
                option
                for kind in bootable
                for option in self._of_type(shelf, kind, given[kind.name], expected_labels(pool, kind, shelf.doubts))
            )
        except QuantityError as error:
            return PoolNotReady(why=f"EC2NodeClass {node_class.name}: kubelet: {error}")

    def _with_refusals(
        self, pool: NodePool, node_class: NodeClass, options: tuple[NodeOption, ...]
    ) -> tuple[NodeOption, ...]:
        """The very same options while the ledger says the same of them, so that what was worked out about them stays
        good."""
        stands = (standing(self._ledger, each.offering, node_class.name, self._now) for each in options)
        refused = {index: self._while_tried(each) for index, each in enumerate(stands) if each is not None}
        if not refused:
            return options
        known = _REFUSED.get((self._environment.name, pool.name))
        if known is None or known[0] is not options or known[1] != refused:
            told = tuple(
                _refused(each, refused[index]) if index in refused else each for index, each in enumerate(options)
            )
            known = (options, refused, told)
            _REFUSED[self._environment.name, pool.name] = known
        return known[2]

    def _while_tried(self, stands: Standing) -> Standing:
        return evolve(stands, barred=True, probes=()) if self._under_way & frozenset(stands.probes) else stands

    def permits(self, pool: NodePool, node_class: NodeClass, offering: Offering, also: Mapping[str, str]) -> bool:
        """Whether the pool may make a node of an offering, sold or not, that has these labels besides."""
        kind = self._types.get(offering.instance_type)
        own = {**self._labels_of(offering), **also}
        wanted = (each for each in pool.requirements if _key(each) in _OFFERING_KEYS)
        is_near = offering.zone in self.zones(node_class)
        return kind is not None and is_near and self._permits(pool, kind) and admitted(wanted, own)

    def unsold(self, pool: NodePool) -> tuple[InstanceType, ...]:
        """The types that the pool permits; asked when none of them is offered where the pool may buy."""
        return tuple(self._permitted(pool))

    def capacity(self, instance_type: str, node_class: NodeClass) -> Resources | None:
        """The capacity of a node of that type; None when the catalog does not know the type, or its class is broken."""
        kind = self._types.get(instance_type)
        try:
            return self._shape(kind, node_class).capacity if kind is not None else None
        except QuantityError:
            return None

    def usd_per_hour(self, labels: Mapping[str, str]) -> UsdPerHour:
        """Today's price of a node that is not ours, its volumes apart, by its labels; free where none is known."""
        told = (labels.get(keys.ZONE, ""), labels.get(keys.CAPACITY_TYPE, ""))
        sold = self._offerings.get(labels.get(keys.INSTANCE_TYPE, ""), ())
        prices = (each.usd_per_hour for each in sold if (each.zone, each.capacity_type) == told)
        return next(prices, None) or FREE

    def zones(self, node_class: NodeClass) -> frozenset[str]:
        """The zones that a node of the class can be in: those of its subnets, or of the environment's own network."""
        if self._environment.network.mode is NetworkMode.OWNED:
            return frozenset(self._environment.network.zones)
        return frozenset(subnet.zone for subnet in self._cloud.subnets.get(node_class.name, ()))

    def _lacking(self, node_class: NodeClass) -> str:
        if self._environment.network.mode is NetworkMode.OWNED:
            return ""
        if not self._cloud.subnets.get(node_class.name):
            return "subnetSelectorTerms match no subnet"
        if not self._cloud.security_group_ids.get(node_class.name):
            return "securityGroupSelectorTerms match no security group"
        return ""

    def _permitted(self, pool: NodePool) -> list[InstanceType]:
        known = [kind for kind in self._types.values() if self._permits(pool, kind)]
        left = given_labels(pool, known)
        return [kind for kind in known if kind.name in left]

    def _permits(self, pool: NodePool, kind: InstanceType) -> bool:
        labels = self._type_labels(pool, kind)
        return admitted((each for each in pool.requirements if _key(each) not in _OFFERING_KEYS), labels)

    def _type_labels(self, pool: NodePool, kind: InstanceType) -> dict[str, str]:
        return {
            keys.OS: "linux",
            **kind.labels,
            **pool.labels,
            keys.REGION: self._catalog.region,
            keys.NODE_POOL: pool.name,
            keys.NODE_CLASS: pool.node_class,
        }

    def _of_type(
        self, shelf: _Shelf, kind: InstanceType, given: Mapping[str, str], expected: Mapping[str, str]
    ) -> Iterator[NodeOption]:
        pool, node_class = shelf.pool, shelf.node_class
        labels = {**self._type_labels(pool, kind), **given}
        predicted = {key: value for key, value in expected.items() if key not in labels}
        wanted = [each for each in pool.requirements if _key(each) in _OFFERING_KEYS]
        shape = self._shape(kind, node_class)
        volumes = ebs_usd_per_hour(self._catalog, node_class)
        reserved = {each.offering: each for each in shelf.reserved if each.reservation.instance_type == kind.name}
        for offering in (*self._offerings.get(kind.name, ()), *reserved):
            own = self._labels_of(offering)
            if offering in reserved:
                own.update(reserved[offering].labels)
            if offering.zone in shelf.zones and admitted(wanted, own):
                price = offering.usd_per_hour
                yield NodeOption(
                    instance_type=kind,
                    offering=offering,
                    capacity=shape.capacity,
                    allocatable=shape.allocatable,
                    usd_per_hour=price + volumes if price is not None else None,
                    labels={**labels, **own},
                    predicted_labels=predicted,
                    available=reserved[offering].left if offering in reserved else None,
                    places=reserved[offering].reservation.total if offering in reserved else 0,
                )

    def _labels_of(self, offering: Offering) -> dict[str, str]:
        own = {keys.ZONE: offering.zone, keys.CAPACITY_TYPE: offering.capacity_type}
        if offering.zone in self._catalog.zone_ids:
            own[keys.ZONE_ID] = self._catalog.zone_ids[offering.zone]
        return own

    def _shape(self, kind: InstanceType, node_class: NodeClass) -> NodeShape:
        known = (kind.name, node_class.name)
        if known not in self._shapes:
            self._shapes[known] = node_shape(kind, node_class, self._environment)
        return self._shapes[known]


def _refused(option: NodeOption, stands: Standing) -> NodeOption:
    return evolve(option, is_available=not stands.barred, refused=stands.by, probes=stands.probes)


def admitted(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels meets the requirements. A custom key that no label answers passes: the
    scheduler gives such a node the label that its pods ask for."""
    return all(
        each.admits(labels.get(_key(each)))
        for each in requirements
        if _key(each) in labels or _key(each) in keys.WELL_KNOWN
    )


def _key(requirement: Requirement) -> str:
    return keys.ALIASES.get(requirement.key, requirement.key)
