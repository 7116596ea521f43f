"""Shares of a company: a leader or a gang, with followers, that go to one node together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.scheduling.groups import PodClass
from engine.scheduling.topology.coupling import HOST

# Shares are looked at of so many sizes: from one follower of the largest class in each, to all of them.
_MOST_SIZES = 24
# Up to so many sizes, what is left after the last whole share is tried in each of the smaller ones, too.
_FEW_SIZES = 8


@frozen(eq=False)
class Share:
    """Pods that go to one node together: each class after those that it follows."""

    loads: tuple[tuple[PodClass, tuple[PodKey, ...]], ...]
    requests: Resources = field(init=False)

    @requests.default
    def _summed(self) -> Resources:
        amounts: dict[str, int] = {}
        for pod_class, pods in self.loads:
            for resource, amount in pod_class.requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount * len(pods)
        return Resources(amounts)

    @property
    def content(self) -> tuple[tuple[PodClass, int], ...]:
        """Equal for shares that differ in their pods' names only."""
        return tuple((pod_class, len(pods)) for pod_class, pods in self.loads)

    @property
    def most_on_a_new_node(self) -> int | None:
        """How many such shares a new node takes as far as their pods exclude each other; None: any number."""
        bounds = [
            coupling.most_on_a_new_node // len(pods)
            for pod_class, pods in self.loads
            for coupling in [pod_class.coupling]
            if coupling is not None and coupling.most_on_a_new_node is not None
        ]
        return min(bounds, default=None)


def needs(pod_class: PodClass) -> tuple[int, ...]:
    """The counters that must count a pod on its host."""
    coupling = pod_class.coupling
    return tuple(counter for counter, key in coupling.affinity if key == HOST) if coupling is not None else ()


def meets(pod_class: PodClass, counter: int) -> bool:
    """Whether a pod of the class counts there."""
    return pod_class.coupling is not None and counter in pod_class.coupling.adds


def sizes_of_shares(most: int) -> Iterator[tuple[int, int]]:
    """How many followers of a class of ``most`` are in a share, and in those made of what is left in the end."""
    if most <= _MOST_SIZES:
        sizes: Sequence[int] = range(1, most + 1)
    else:
        half = _MOST_SIZES // 2
        sizes = sorted({*range(1, half + 1), *(-(-most // parts) for parts in range(1, half + 1))})
    for size in sizes:
        yield size, size
        if most <= _FEW_SIZES:
            yield from ((size, smaller) for smaller in range(1, min(size - 1, most % size) + 1))


class Division:
    """One way to part a company: followers of the ``largest`` class by such sizes, of the others in proportion; share
    after share, as long as there are leaders."""

    def __init__(
        self,
        order: Sequence[PodClass],
        gangs: Sequence[PodClass],
        followers: Sequence[PodClass],
        pods: Mapping[PodClass, Sequence[PodKey]],
        largest: PodClass,
        sizes: tuple[int, int],
    ) -> None:
        """``order`` is all of the company's classes: whoever is called first of those that will do, each after those
        that it may need."""
        self._order, self._gangs, self._followers = order, gangs, followers
        self._left = {each: list(pods[each]) for each in self._order}
        self._pods = {each: len(pods[each]) for each in self._order}
        self._largest, self._sizes = largest, sizes

    def _at_once(self, pod_class: PodClass) -> int:
        """How many of its pods go into the next share."""
        if pod_class in self._gangs:
            return self._pods[pod_class]
        size = self._sizes[0] if len(self._left[self._largest]) >= self._sizes[0] else self._sizes[1]
        count = 1
        if pod_class in self._followers:
            count = -(-self._pods[pod_class] * size // self._pods[self._largest])
        on_a_node = pod_class.coupling.most_on_a_new_node if pod_class.coupling is not None else None
        return max(1, count if on_a_node is None else min(count, on_a_node))

    def shares(self) -> Iterator[Share]:
        while True:
            group: dict[PodClass, list[PodKey]] = {}
            sizes = {each: self._at_once(each) for each in self._order}
            for pod_class in (*self._gangs, *self._followers):
                wanted = sizes[pod_class] - len(group.get(pod_class, ()))
                if wanted > 0 and self._left[pod_class] and self._has_company(pod_class, group):
                    self._take(pod_class, wanted, group)
            if not any(each in group for each in (*self._gangs, *self._followers)):
                return
            yield Share(tuple((each, tuple(group[each])) for each in self._order if each in group))

    def _has_company(self, pod_class: PodClass, group: dict[PodClass, list[PodKey]]) -> bool:
        """Whether those that a pod needs are in the group; who is lacking is called into it, with whom they need."""
        if pod_class in self._gangs:
            return True
        before = self._order[: self._order.index(pod_class)]
        for need in needs(pod_class):
            if any(meets(other, need) for other in group if other is not pod_class):
                continue
            able = (other for other in before if self._left[other] and meets(other, need))
            called = next((other for other in able if self._has_company(other, group)), None)
            if called is None:
                return False
            self._take(called, self._pods[called] if called in self._gangs else 1, group)
        return True

    def _take(self, pod_class: PodClass, count: int, group: dict[PodClass, list[PodKey]]) -> None:
        group.setdefault(pod_class, []).extend(self._left[pod_class][:count])
        del self._left[pod_class][:count]
