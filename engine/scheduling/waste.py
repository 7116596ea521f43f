"""GPUs of a new node that no pod would use, and how much of that a pool accepts."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from engine.model.policy import NodePool
from engine.model.quantity import Resources
from engine.model.spare_refusal import GpuWaste
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.offers import PoolOffers
from engine.scheduling.problem import NodeOption


def wasted(option: NodeOption, requests: Resources) -> Fraction:
    """The share of a node's GPUs that pods with these ``requests`` together leave unused, 0 to 1; 0 where it has none.

    A device that counts under two resources (Neuron devices and their cores) is in use by either.
    """
    return min(
        (Fraction(max(0, has - requests.amount(name)), has) for name, has in devices(option).items()),
        default=Fraction(0),
    )


def exceeds_waste(pool: NodePool, option: NodeOption, requests: Resources) -> bool:
    """Whether such a node would waste more than the pool accepts."""
    return pool.max_gpu_waste is not None and wasted(option, requests) > Fraction(pool.max_gpu_waste)


def waste_refusal(pod_class: PodClass, pool: PoolOffers) -> GpuWaste | None:
    """What a pod of the class would use of the type with the fewest GPUs, where each that would do wastes too much."""
    allowed = pool.state.pool.max_gpu_waste
    kinds = [
        kind
        for kind, _ in pool.holding(pod_class)
        if pod_class.rulings.bar(pool.name, kind.type_at) is None and kind.buyable
    ]
    wasteful = pod_class.terms.wasteful
    if allowed is None or not kinds or any((pool.name, kind.instance_type.name) not in wasteful for kind in kinds):
        return None
    smallest = min(kinds, key=lambda kind: (_most_devices(kind), kind.order))
    resource = max(devices(smallest.options[0]).items(), key=lambda pair: (pod_class.requests.amount(pair[0]), pair))[0]
    return GpuWaste(
        resource=resource,
        requested=pod_class.requests.amount(resource),
        smallest=smallest.capacity.amount(resource),
        smallest_type=smallest.instance_type.name,
        allowed=allowed,
    )


def devices(option: NodeOption) -> Mapping[str, int]:
    """How many accelerators such a node has, by resource."""
    return {name: option.capacity.amount(name) for name in option.capacity.accelerators()}


def _most_devices(kind: Kind) -> int:
    return max(devices(kind.options[0]).values(), default=0)
