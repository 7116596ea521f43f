"""How near a draft's cost is to the least, as far as it can be proven."""

from __future__ import annotations

from collections.abc import Sequence

from engine.model.money import UsdPerHour
from engine.model.packing_bound import PackingBound
from engine.model.pod import PodKey
from engine.scheduling.draft import Draft
from engine.scheduling.groups import PodClass
from engine.scheduling.kinds import Kind
from engine.scheduling.market import Market
from engine.scheduling.packed import Wish, packed

# Of pods that were placed one by one nothing is proven on the way; there are few kinds of them.
_STEPS = 500_000


def packing_bound(draft: Draft, market: Market, classes: Sequence[PodClass]) -> PackingBound | None:
    """None where no new node is for a pod."""
    if not any(draft.world.pods.get(member) for member in draft.new_nodes.opened):
        return None
    least = draft.lower_bound_micros or _least_micros(draft, market, classes)
    return PackingBound(UsdPerHour(draft.cost_micros), UsdPerHour(least))


def _least_micros(draft: Draft, market: Market, classes: Sequence[PodClass]) -> int:
    """What the pods on new nodes cost at the least, on such nodes as policy prefers as much as those that they are on.

    Pods that fill a node which none would be bought for, and all ties and limits, are left out: that makes it no more.
    """
    class_of = {pod: pod_class for pod_class in classes for pod in pod_class.pods}
    parts: dict[tuple[PodClass, int], list[PodKey]] = {}
    for member, opened in sorted(draft.new_nodes.opened.items()):
        for pod in draft.world.pods.get(member, ()):
            rung = _rung_of(class_of[pod], opened.kind, market)
            if rung is not None:
                parts.setdefault((class_of[pod], rung), []).append(pod)
    wishes = [Wish(pod_class, pods, market.rungs(pod_class)[rung]) for (pod_class, rung), pods in parts.items()]
    return packed(wishes, _STEPS).lower_bound_micros if wishes else 0


def _rung_of(pod_class: PodClass, kind: Kind, market: Market) -> int | None:
    rungs = enumerate(market.rungs(pod_class))
    return next((at for at, rung in rungs if any(offer.kind.make == kind.make for offer in rung)), None)
