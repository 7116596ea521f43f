"""How near a draft's cost is to the least, as far as it can be proven."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.model.environment import Caps
from engine.model.money import UsdPerHour
from engine.model.packing_bound import PackingBound
from engine.model.pod import PodKey
from engine.scheduling.draft import Draft
from engine.scheduling.groups import PodClass, Shape
from engine.scheduling.kinds import Kind, Make
from engine.scheduling.limits import Headroom
from engine.scheduling.market import Market
from engine.scheduling.packed import Wish, packed_within
from engine.scheduling.problem import PoolState
from engine.scheduling.steps import Steps

# For a bound that is proven afterwards, of which the first question may use half; there are few kinds of pods then.
_STEPS = 1_000_000
# So near is near enough: nothing more is proven.
_NEAR = 1.01


def packing_bound(
    draft: Draft, market: Market, classes: Sequence[PodClass], pools: Iterable[PoolState]
) -> PackingBound | None:
    """None where no new node is for a pod.

    What was proven on the way is of the pods that were bought for together. Where others got nodes besides, or the
    question was not asked whole, it is little; then more is proven of all of them.
    """
    if not any(draft.world.pods.get(member) for member in draft.new_nodes.opened):
        return None
    parts = _parts(draft, market, classes)
    proven = {member for members in parts.values() for member, _ in members}
    apart = sum(opened.kind.cost.micros for member, opened in draft.new_nodes.opened.items() if member not in proven)
    least = draft.lower_bound_micros
    if draft.proven_pods < sum(map(len, parts.values())) and draft.cost_micros - apart > least * _NEAR:
        least = max(least, _least_micros(parts, market, pools))
    return PackingBound(UsdPerHour(draft.cost_micros), UsdPerHour(least), apart=UsdPerHour(apart))


# Pods of a class on new nodes of one rung, each with its node.
_Parts = Mapping[tuple[PodClass, int], Sequence[tuple[int, PodKey]]]


def _parts(draft: Draft, market: Market, classes: Sequence[PodClass]) -> _Parts:
    """Pods that fill a node which none would be bought for are left out."""
    class_of = {pod: pod_class for pod_class in classes for pod in pod_class.pods}
    rungs: dict[tuple[Shape, Make], int | None] = {}
    parts: dict[tuple[PodClass, int], list[tuple[int, PodKey]]] = {}
    for member, opened in sorted(draft.new_nodes.opened.items()):
        for pod in draft.world.pods.get(member, ()):
            pod_class = class_of[pod]
            asked = (pod_class.shape, opened.kind.make)
            if asked not in rungs:
                rungs[asked] = _rung_of(pod_class, opened.kind, market)
            rung = rungs[asked]
            if rung is not None:
                parts.setdefault((pod_class, rung), []).append((member, pod))
    return parts


def _least_micros(parts: _Parts, market: Market, pools: Iterable[PoolState]) -> int:
    """What the pods on new nodes cost at the least, on such nodes as policy prefers as much as those that they are on.

    Of all limits only the places of reservations count, and no ties: that makes it no more.
    """
    wishes = [
        Wish(pod_class, [pod for _, pod in pods], market.rungs(pod_class)[rung])
        for (pod_class, rung), pods in parts.items()
    ]
    places = Headroom(pools, Caps()).places()
    return packed_within(places, wishes, (), (), Steps(_STEPS)).lower_bound_micros if wishes else 0


def _rung_of(pod_class: PodClass, kind: Kind, market: Market) -> int | None:
    rungs = enumerate(market.rungs(pod_class))
    return next((at for at, rung in rungs if any(offer.kind.make == kind.make for offer in rung)), None)
