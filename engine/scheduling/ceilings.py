"""Ceilings of limit rules: whose capacity counts in each, and how much of them the pods of one plan take.

A group is of node pools, and all that they launch counts in it; or of pods. A group of pods counts what its pods
request; nodes and dollars count in full in every group that has a pod on the node. Pods go onto nodes that stand as
kube-scheduler puts them there, ceiling or not: what a ceiling holds back is machines that are still to come.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import field, frozen

from engine.model.money import FREE, UsdPerHour
from engine.model.plan import LimitUse
from engine.model.pod import PodKey
from engine.model.quantity import CPU, MEMORY, Resources
from engine.model.refusal import CeilingReached
from engine.model.rule import LimitedResource
from engine.policy.facts.values import gpu_count

_OF_NODES = (LimitedResource.NODES, LimitedResource.USD_PER_HOUR)
_NO_PODS: frozenset[PodKey] = frozenset()


@frozen(eq=False)
class Ceiling:
    """One group's ceiling by one rule. ``limit`` and ``used`` are in base units, usdPerHour in millionths of a dollar.

    ``pods`` None: the group is all capacity of ``node_pools``. Else it is waiting pods, by the pool that they would be
    in; ``elsewhere`` are those that belong to it on the nodes of any other pool, or of none. ``counted`` are the nodes
    and claims that are in ``used`` of nodes and usdPerHour already.

    One that is not enforced only tells. ``error`` is what the rule came to where it gave no number; ``message`` is what
    it has to say where it holds something back.
    """

    rule: str
    group: str
    resource: LimitedResource
    limit: int
    used: int
    node_pools: frozenset[str] = frozenset()
    pods: Mapping[str, frozenset[PodKey]] | None = None
    elsewhere: frozenset[PodKey] = _NO_PODS
    counted: frozenset[str] = frozenset()
    is_enforced: bool = True
    error: str = ""
    message: str = ""

    @property
    def counts_nodes(self) -> bool:
        return self.pods is None or self.resource in _OF_NODES

    def of_node(self, capacity: Resources, price: UsdPerHour) -> int:
        """What one node takes of it."""
        match self.resource:
            case LimitedResource.NODES:
                return 1
            case LimitedResource.USD_PER_HOUR:
                return price.micros
            case _:
                return self.of_pod(capacity)

    def of_pod(self, requests: Resources) -> int:
        """What one pod takes of it, nodes and dollars apart."""
        match self.resource:
            case LimitedResource.GPUS:
                return gpu_count(requests)
            case LimitedResource.CPU:
                return requests.amount(CPU)
            case LimitedResource.MEMORY:
                return requests.amount(MEMORY)
            case _:
                return 0

    def use(self, planned: int) -> LimitUse:
        pool = next(iter(self.node_pools)) if self.pods is None and len(self.node_pools) == 1 else ""
        return LimitUse(
            node_pool=pool,
            resource=self.resource.value,
            limit=self.limit,
            used=self.used,
            planned=planned,
            rule=self.rule,
            group=self.group,
        )

    def reached(self, planned: int, needed: int) -> CeilingReached:
        return CeilingReached(
            rule=self.rule,
            group=self.group,
            resource=self.resource,
            limit=self.limit,
            used=self.used,
            planned=planned,
            needed=needed,
            error=self.error,
            message=self.message,
        )


@frozen(eq=False)
class Share:
    """Some pods' part in a ceiling: they count in it on nodes of ``node_pools``, and, maybe, on those of all others."""

    ceiling: Ceiling
    node_pools: frozenset[str]
    is_elsewhere_too: bool

    def counts_in(self, pool: str) -> bool:
        return pool in self.node_pools or (self.is_elsewhere_too and pool not in (self.ceiling.pods or ()))


def shares_of_pods(ceilings: Iterable[Ceiling]) -> Mapping[PodKey, tuple[Share, ...]]:
    """Of every pod that is in a group of pods, in the order of the ceilings."""
    found: dict[PodKey, tuple[Share, ...]] = {}
    for ceiling in ceilings:
        if ceiling.pods is None:
            continue
        alike: dict[frozenset[PodKey], list[str]] = {ceiling.elsewhere: []}
        for pool, pods in ceiling.pods.items():
            alike.setdefault(pods, []).append(pool)
        for pods, pools in alike.items():
            share = Share(ceiling, frozenset(pools), pods == ceiling.elsewhere)
            for pod in pods:
                found[pod] = (*found.get(pod, ()), share)
    return found


@frozen(eq=False)
class Counts:
    """What pods that are placed take of the ceilings of groups of pods, so far.

    Nodes are known by number; ``prices`` are theirs. ``groups`` are the nodes that count in each ceiling already.
    """

    ceilings: tuple[Ceiling, ...] = ()
    prices: dict[int, UsdPerHour] = field(factory=dict)
    placed: dict[Ceiling, int] = field(factory=dict)
    groups: dict[Ceiling, set[int]] = field(factory=dict)

    @classmethod
    def of(
        cls, ceilings: Iterable[Ceiling], names: Sequence[tuple[str | None, str | None]], prices: Sequence[UsdPerHour]
    ) -> Counts:
        """Before anybody is placed. ``names`` and ``prices`` are the nodes': node's name, claim's name, in number."""
        ours = tuple(each for each in ceilings if each.pods is not None)
        if not ours:
            return cls()
        groups = {
            each: {
                number for number, (node, claim) in enumerate(names) if node in each.counted or claim in each.counted
            }
            for each in ours
        }
        return cls(ours, dict(enumerate(prices)), dict.fromkeys(ours, 0), groups)

    def copy(self) -> Counts:
        """The same, to be counted on apart; nodes' prices are shared."""
        groups = {ceiling: set(members) for ceiling, members in self.groups.items()}
        return Counts(self.ceilings, self.prices, dict(self.placed), groups)

    def put(self, shares: Iterable[Share], pool: str, member: int, requests: Resources, pods: int) -> None:
        """Counts pods of one class that come to a node of the pool."""
        for share in shares:
            if not share.counts_in(pool):
                continue
            ceiling = share.ceiling
            if not ceiling.counts_nodes:
                self.placed[ceiling] += ceiling.of_pod(requests) * pods
            elif member not in self.groups[ceiling]:
                self.groups[ceiling].add(member)
                self.placed[ceiling] += ceiling.of_node(requests, self.prices.get(member, FREE))

    def pods_within(self, shares: Iterable[Share], pool: str, requests: Resources, most: int) -> int:
        """How many pods of one class their ceilings admit to nodes of the pool, ``most`` at most; nodes apart."""
        for share in _enforced(shares, pool):
            each = share.ceiling.of_pod(requests)
            if each > 0 and not share.ceiling.counts_nodes:
                most = min(most, self._left(share.ceiling) // each)
        return most

    def nodes_within(self, shares: Iterable[Share], pool: str, price: UsdPerHour, most: int) -> int:
        """How many further nodes of the pool their ceilings admit for pods of one class, ``most`` at most."""
        for share in _enforced(shares, pool):
            each = share.ceiling.of_node(_NOTHING, price) if share.ceiling.counts_nodes else 0
            if each > 0:
                most = min(most, self._left(share.ceiling) // each)
        return most

    def admitted(self, shares: Sequence[Share], pool: str, member: int, requests: Resources, most: int) -> int:
        """How many pods of one class may be planned onto a node that is still to come, ``most`` at most."""
        for share in _enforced(shares, pool):
            ceiling = share.ceiling
            is_new = ceiling.counts_nodes and member not in self.groups[ceiling]
            if is_new and ceiling.of_node(_NOTHING, self.prices.get(member, FREE)) > self._left(ceiling):
                return 0
        return self.pods_within(shares, pool, requests, most)

    def in_the_way(
        self, shares: Iterable[Share], pool: str, requests: Resources, prices: Sequence[UsdPerHour]
    ) -> CeilingReached | None:
        """The first ceiling that admits no pod of the class to the cheapest of the pool's nodes at these prices."""
        for share in _enforced(shares, pool):
            ceiling = share.ceiling
            needed = ceiling.of_pod(requests)
            if ceiling.counts_nodes:
                needed = min((ceiling.of_node(_NOTHING, price) for price in prices), default=0)
            if needed > self._left(ceiling):
                return ceiling.reached(self.placed[ceiling], needed)
        return None

    def uses(self) -> Iterator[LimitUse]:
        """Each ceiling with what is placed, in their order."""
        return (ceiling.use(self.placed[ceiling]) for ceiling in self.ceilings)

    def _left(self, ceiling: Ceiling) -> int:
        return max(0, ceiling.limit - ceiling.used - self.placed[ceiling])


_NOTHING = Resources()
NO_COUNTS = Counts()


def _enforced(shares: Iterable[Share], pool: str) -> Iterator[Share]:
    return (each for each in shares if each.ceiling.is_enforced and each.counts_in(pool))
