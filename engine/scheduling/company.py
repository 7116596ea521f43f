"""Pods that must share a host with pods of other classes, and how they are parted into shares that keep together.

A follower has required pod affinity over hostnames to a leader. Were the leader to get the node that is cheapest for it
alone, the follower would have no place, so a leader and its followers are asked about as one: a share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from attrs import field, frozen

from engine.model.pod import PodKey
from engine.model.quantity import Resources
from engine.scheduling.groups import PodClass
from engine.scheduling.topology.coupling import HOST

# Shares are looked at of so many sizes: from one follower of the largest class in each, to all of them.
_MOST_SIZES = 24
# Up to so many sizes, what is left after the last whole share is tried in each of the smaller ones, too.
_FEW_SIZES = 8


class Parting(str, Enum):
    """Which of the ways to part companies is taken, of those that leave out fewest."""

    CHEAPEST = "cheapest"
    WIDEST = "widest"
    CLOSEST = "closest"


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


# What the nodes for some shares and for pods alone would cost, and for how many pods there would be none: the smaller
# the better.
Estimate = tuple[int, int]


@frozen(eq=False)
class Company:
    """Classes that required affinity over hostnames ties together.

    ``leaders`` need nobody on their host. ``gangs`` need their own kind alone, so all of a gang's pods go to one host.
    ``followers`` come after those whom they need. Who needs somebody that nothing can place is none of it.
    """

    leaders: tuple[PodClass, ...]
    gangs: tuple[PodClass, ...]
    followers: tuple[PodClass, ...]

    @property
    def classes(self) -> tuple[PodClass, ...]:
        """Each after those that it may need."""
        return (*self.leaders, *self.gangs, *self.followers)

    def parted(
        self,
        parting: Parting,
        pods: Mapping[PodClass, Sequence[PodKey]],
        estimate: Callable[[Sequence[Share], Mapping[PodClass, int]], Estimate],
    ) -> Sequence[Share]:
        """Shares of these ``pods``. Leaders whom no follower needs are in none: they go where they like.

        ``estimate`` is asked about some shares and how many pods of each class are in none of them.
        """
        largest = max((*self.gangs, *self.followers), key=lambda each: len(pods[each]))
        found = []
        for sizes in _sizes(len(pods[largest])):
            for leaders in dict.fromkeys((self.leaders, self.leaders[::-1])):
                shares = list(_Division(self, leaders, pods, largest, sizes).shares())
                taken = [load for share in shares for load in share.loads]
                left = {
                    each: len(pods[each]) - sum(len(some) for other, some in taken if other is each)
                    for each in self.classes
                }
                found.append((estimate(shares, left), sizes, shares))
        fewest = min(left_out for (left_out, _), _, _ in found)
        fit = [each for each in found if each[0][0] == fewest]
        if parting is Parting.CHEAPEST:
            return min(fit, key=lambda each: each[0])[2]
        if parting is Parting.WIDEST:
            return min(fit, key=lambda each: (each[1], each[0]))[2]
        return min(fit, key=lambda each: (-each[1][0], each[0]))[2]


def companies(classes: Iterable[PodClass]) -> list[Company]:
    """The companies among classes whose pods may start nodes, in the order of the classes."""
    able = [each for each in classes if not (each.unsupported or each.terms.fills_only)]
    apart: list[list[PodClass]] = []
    if any(map(_needs, able)):
        for each in able:
            joined = [part for part in apart if any(_are_tied(each, other) for other in part)]
            apart = [part for part in apart if part not in joined]
            apart.append([other for part in joined for other in part] + [each])
    places = {each: place for place, each in enumerate(able)}
    parts = sorted((sorted(part, key=lambda each: places[each]) for part in apart), key=lambda part: places[part[0]])
    found = [_company(part) for part in parts if len(part) > 1]
    return [each for each in found if each.gangs or each.followers]


def _needs(pod_class: PodClass) -> tuple[int, ...]:
    """The counters that must count a pod on its host."""
    coupling = pod_class.coupling
    return tuple(counter for counter, key in coupling.affinity if key == HOST) if coupling is not None else ()


def _meets(pod_class: PodClass, counter: int) -> bool:
    return pod_class.coupling is not None and counter in pod_class.coupling.adds


def _are_tied(one: PodClass, other: PodClass) -> bool:
    return any(_meets(other, counter) for counter in _needs(one)) or any(
        _meets(one, counter) for counter in _needs(other)
    )


def _company(part: Sequence[PodClass]) -> Company:
    leaders = [each for each in part if not _needs(each)]
    gangs: list[PodClass] = []
    followers: list[PodClass] = []
    waiting = [each for each in part if _needs(each)]
    while waiting:
        known = (*leaders, *gangs, *followers)
        led = [each for each in waiting if all(any(_meets(other, need) for other in known) for need in _needs(each))]
        if led:
            followers += led
        else:
            led = [each for each in waiting if each.coupling is not None and each.coupling.may_begin][:1]
            gangs += led
        if not led:
            break
        waiting = [each for each in waiting if each not in led]
    return Company(tuple(leaders), tuple(gangs), tuple(followers))


def _sizes(most: int) -> Iterator[tuple[int, int]]:
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


class _Division:
    """One way to part a company: followers of the ``largest`` class by such sizes, of the others in proportion; share
    after share, as long as there are leaders."""

    def __init__(
        self,
        company: Company,
        leaders: Sequence[PodClass],
        pods: Mapping[PodClass, Sequence[PodKey]],
        largest: PodClass,
        sizes: tuple[int, int],
    ) -> None:
        self._order = (*leaders, *company.gangs, *company.followers)
        self._company = company
        self._left = {each: list(pods[each]) for each in self._order}
        self._pods = {each: len(pods[each]) for each in self._order}
        self._largest, self._sizes = largest, sizes

    def _at_once(self, pod_class: PodClass) -> int:
        """How many of its pods go into the next share."""
        if pod_class in self._company.gangs:
            return self._pods[pod_class]
        size = self._sizes[0] if len(self._left[self._largest]) >= self._sizes[0] else self._sizes[1]
        count = 1
        if pod_class in self._company.followers:
            count = -(-self._pods[pod_class] * size // self._pods[self._largest])
        on_a_node = pod_class.coupling.most_on_a_new_node if pod_class.coupling is not None else None
        return max(1, count if on_a_node is None else min(count, on_a_node))

    def shares(self) -> Iterator[Share]:
        while True:
            group: dict[PodClass, list[PodKey]] = {}
            sizes = {each: self._at_once(each) for each in self._order}
            for pod_class in (*self._company.gangs, *self._company.followers):
                wanted = sizes[pod_class] - len(group.get(pod_class, ()))
                if wanted > 0 and self._left[pod_class] and self._has_company(pod_class, group):
                    self._take(pod_class, wanted, group)
            if not any(each in group for each in (*self._company.gangs, *self._company.followers)):
                return
            yield Share(tuple((each, tuple(group[each])) for each in self._company.classes if each in group))

    def _has_company(self, pod_class: PodClass, group: dict[PodClass, list[PodKey]]) -> bool:
        """Whether those that a pod needs are in the group; who is lacking is called into it, with whom they need."""
        if pod_class in self._company.gangs:
            return True
        before = self._order[: self._order.index(pod_class)]
        for need in _needs(pod_class):
            if any(_meets(other, need) for other in group if other is not pod_class):
                continue
            able = (other for other in before if self._left[other] and _meets(other, need))
            called = next((other for other in able if self._has_company(other, group)), None)
            if called is None:
                return False
            self._take(called, self._pods[called] if called in self._company.gangs else 1, group)
        return True

    def _take(self, pod_class: PodClass, count: int, group: dict[PodClass, list[PodKey]]) -> None:
        group.setdefault(pod_class, []).extend(self._left[pod_class][:count])
        del self._left[pod_class][:count]
