"""Which nodes take a pod of a class, kept for the next class that asks for the same: classes by the dozen differ only
in what ties them to others, and follow each other."""

from __future__ import annotations

from bisect import insort
from collections.abc import Container, Iterable, Mapping, Sequence

from engine.scheduling.groups import Demand, PodClass
from engine.scheduling.kinds import Offer, OfferingName
from engine.scheduling.places import Alike, Fit, Group, Place, dislikes_of, may_not_wait_for, tightest_first


class Fits:
    """Those of one world at a time, for one kind of class at a time."""

    def __init__(self) -> None:
        self._dislikes: dict[Demand, dict[Place, int | None]] = {}
        self._asked: tuple[object, ...] | None = None
        # With the offers themselves, so that nothing else comes to have their identity.
        self._offers: Mapping[OfferingName, Offer] = {}
        self._there, self._coming = Group(), Group()
        self._known: set[Alike] = set()
        self._read = 0

    def apart(self) -> Fits:
        """For a copy of the world; what was learnt about places is shared."""
        twin = Fits()
        twin._dislikes = self._dislikes
        return twin

    def of(
        self,
        pod_class: PodClass,
        offers: Mapping[OfferingName, Offer],
        members: Mapping[Alike, object],
        changed: Sequence[Alike],
    ) -> tuple[Group, Group]:
        """The nodes among ``members`` that take a pod of the class: those that are there, and those on their way.

        ``changed`` has everything that ever came to be among the members, or left them, the latest last.
        """
        asked = (pod_class.shape, id(offers))
        if asked == self._asked:
            if self._read < len(changed):
                self._forget_those_that_left(members)
                self._add((each for each in changed[self._read :] if each in members), pod_class)
        else:
            self._asked, self._offers = asked, offers
            self._there, self._coming, self._known = Group(), Group(), set()
            self._add(members, pod_class)
        self._read = len(changed)
        return self._there.for_one(), self._coming.for_one()

    def _add(self, candidates: Iterable[Alike], pod_class: PodClass) -> None:
        found = [alike for alike in candidates if alike not in self._known]
        fits = [fit for fit in (self._fit(alike, pod_class) for alike in dict.fromkeys(found)) if fit is not None]
        self._known.update(fit.alike for fit in fits)
        few = len(fits) * 8 < len(self._known)
        for fit in fits:
            group = self._coming if fit.alike.place.in_flight else self._there
            offer = self._offers.get(fit.alike.place.offering) if fit.alike.is_empty else None
            into = group.list_for(fit, offer)
            if into is not None and few:
                insort(into, fit, key=tightest_first)
            elif into is not None:
                into.append(fit)
            elif offer is not None:
                group.offered.append((fit, offer))
        if fits and not few:
            for group in (self._there, self._coming):
                group.first.sort(key=tightest_first)
                group.last.sort(key=tightest_first)

    def _fit(self, alike: Alike, pod_class: PodClass) -> Fit | None:
        count = pod_class.requests.times_in(alike.room)
        if not count or may_not_wait_for(pod_class, alike.place, errors_bar=True):
            return None
        dislikes = self._dislikes.setdefault(pod_class.demand, {})
        place = alike.place
        if place not in dislikes:
            dislikes[place] = dislikes_of(pod_class.demand, place)
        disliked = dislikes[place]
        if disliked is None:
            return None
        return Fit(alike, count, disliked, place.is_accelerated and not pod_class.accelerators)

    def _forget_those_that_left(self, members: Container[Alike]) -> None:
        left = {alike for alike in self._known if alike not in members}
        if left:
            self._known -= left
            for group in (self._there, self._coming):
                group.first[:] = [fit for fit in group.first if fit.alike not in left]
                group.offered[:] = [pair for pair in group.offered if pair[0].alike not in left]
                group.last[:] = [fit for fit in group.last if fit.alike not in left]
