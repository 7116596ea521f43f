"""Pods that must share a host with pods of other classes, and how they are parted into shares that keep together.

A follower has required pod affinity over hostnames to a leader. Were the leader to get the node that is cheapest for it
alone, the follower would have no place, so a leader and its followers are asked about as one: a share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum

from attrs import frozen

from engine.model.pod import PodKey
from engine.scheduling.groups import PodClass
from engine.scheduling.shares import Division, Share, meets, needs, sizes_of_shares


class Parting(str, Enum):
    """Which of the ways to part companies is taken, of those that leave out fewest."""

    CHEAPEST = "cheapest"
    WIDEST = "widest"
    CLOSEST = "closest"


# What the nodes for some shares and for pods alone would cost, and for how many pods there would be none: the smaller
# the better.
Estimate = tuple[int, int]
# With the sizes of its shares, and these.
_Parted = tuple[Estimate, tuple[int, int], Sequence[Share]]


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
        company, found = self, self._partings(self.classes, pods, estimate)
        while parting is Parting.CHEAPEST and _least_left_out(found):
            # One whom no node holds with the others is no reason to leave these out.
            trials = [(less, less._partings(self.classes, pods, estimate)) for less in company._less_one()]
            smaller, partings = min(trials, key=lambda trial: _least_left_out(trial[1]), default=(company, found))
            if _least_left_out(partings) >= _least_left_out(found):
                break
            company, found = smaller, partings
        fit = [each for each in found if each[0][0] == _least_left_out(found)]
        if parting is Parting.CHEAPEST:
            return min(fit, key=lambda each: each[0])[2]
        if parting is Parting.WIDEST:
            return min(fit, key=lambda each: (each[1], each[0]))[2]
        return min(fit, key=lambda each: (-each[1][0], each[0]))[2]

    def _partings(
        self,
        everybody: Sequence[PodClass],
        pods: Mapping[PodClass, Sequence[PodKey]],
        estimate: Callable[[Sequence[Share], Mapping[PodClass, int]], Estimate],
    ) -> list[_Parted]:
        largest = max((*self.gangs, *self.followers), key=lambda each: len(pods[each]))
        found: list[_Parted] = []
        for sizes in sizes_of_shares(len(pods[largest])):
            for leaders in dict.fromkeys((self.leaders, self.leaders[::-1])):
                order = (*leaders, *self.gangs, *self.followers)
                shares = list(Division(order, self.gangs, self.followers, pods, largest, sizes).shares())
                left = {each: len(pods[each]) for each in everybody}
                for share in shares:
                    for pod_class, some in share.loads:
                        left[pod_class] -= len(some)
                found.append((estimate(shares, left), sizes, shares))
        return found

    def _less_one(self) -> Iterator[Company]:
        for one in self.classes:
            parts = (self.leaders, self.gangs, self.followers)
            less = Company(*(tuple(each for each in part if each is not one) for part in parts))
            if less.gangs or less.followers:
                yield less


def _least_left_out(found: Iterable[_Parted]) -> int:
    return min(left_out for (left_out, _), _, _ in found)


def companies(classes: Iterable[PodClass]) -> list[Company]:
    """The companies among classes whose pods may start nodes, in the order of the classes."""
    able = [each for each in classes if not (each.unsupported or each.terms.fills_only)]
    apart: list[list[PodClass]] = []
    if any(map(needs, able)):
        for each in able:
            joined = [part for part in apart if any(_are_tied(each, other) for other in part)]
            apart = [part for part in apart if part not in joined]
            apart.append([other for part in joined for other in part] + [each])
    places = {each: place for place, each in enumerate(able)}
    parts = sorted((sorted(part, key=lambda each: places[each]) for part in apart), key=lambda part: places[part[0]])
    found = [_company(part) for part in parts if len(part) > 1]
    return [each for each in found if each.gangs or each.followers]


def _are_tied(one: PodClass, other: PodClass) -> bool:
    return any(meets(other, counter) for counter in needs(one)) or any(meets(one, counter) for counter in needs(other))


def _company(part: Sequence[PodClass]) -> Company:
    leaders = [each for each in part if not needs(each)]
    gangs: list[PodClass] = []
    followers: list[PodClass] = []
    waiting = [each for each in part if needs(each)]
    while waiting:
        known = (*leaders, *gangs, *followers)
        led = [each for each in waiting if all(any(meets(other, need) for other in known) for need in needs(each))]
        if led:
            followers += led
        else:
            led = [each for each in waiting if each.coupling is not None and each.coupling.may_begin][:1]
            gangs += led
        if not led:
            break
        waiting = [each for each in waiting if each not in led]
    return Company(tuple(leaders), tuple(gangs), tuple(followers))
