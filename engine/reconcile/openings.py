"""In which order nodes are opened, so that no pod is tried between being told its node and the node's opening.

Whenever a node opens, kube-scheduler tries every waiting pod that could run there, one after another, those first that
were tried longest ago. A pod that is tried while its own node is still closed forgets its nomination, and its room is
anybody's for a moment: one such pod can cost a node. So those nodes come next whose pods were tried last, and only once
they have been; then all others are tried before them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from attrs import define, field, frozen

from engine.actuate.nominate import Nominator, Waiting
from engine.model.fault import Fault
from engine.model.plan import Nomination
from engine.reconcile.registrations import Registration

# A change of kube-scheduler's is seen some milliseconds after it tried a pod.
_POLL_SECONDS, _QUIET_SECONDS, _QUIET_LOOKS = 0.01, 0.1, 3
# Pods start late while nodes stay closed, and a cluster whose pods come and go all the time is never quiet: so long for
# one turn, for each pod that may have to be tried on a busy machine or at least; and for all turns.
_SECONDS_A_POD, _LEAST_SECONDS, _MOST_SECONDS = 0.05, 1.0, 45.0
# So many are tried anew before what is done here is done.
_FEW_PODS = 40
# Of the pods that wait, so many are told and let in at once: while the others are tried there is time for it.
_SHARE = 8


@frozen
class Opening:
    """A node that is about to be opened, and its own pods. None is opened before those of higher ``rank``."""

    registration: Registration
    own: tuple[Nomination, ...]
    rank: tuple[int, ...] = ()


@frozen
class Pace:
    """Seconds that only grow, and a way to let some pass."""

    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@define
class _Look:
    """What is seen of the waiting pods, since when nothing changes, and in how many looks."""

    waiting: Waiting
    since: float
    same: int = 0


@define
class Turns:
    """Takes ``openings``, best first, group by group. A cluster that does not tell how its pods stand has them one by
    one, without waiting."""

    _nominator: Nominator
    _pace: Pace = Pace()
    _left_seconds: float = _MOST_SECONDS
    _opened_at: int | None = field(default=None, init=False)

    def groups(self, openings: Sequence[Opening]) -> Iterator[tuple[Opening, ...]]:
        """When the next is asked for, the one before must be open."""
        pending = list(openings)
        while pending:
            of_rank = [each for each in pending if each.rank == pending[0].rank]
            group = self._next(of_rank)
            pending = [each for each in pending if each not in group]
            yield group
            if pending:
                seen = self._seen()
                self._opened_at = seen.version if seen is not None else None

    def _next(self, openings: Sequence[Opening]) -> tuple[Opening, ...]:
        seen = self._seen() if self._left_seconds > 0 else None
        if seen is None:
            return (openings[0],)
        began = self._pace.monotonic()
        look = _Look(seen, began)
        opened_at = self._opened_at if self._opened_at is not None else seen.version
        while not self._may_open(look, openings, opened_at):
            passed = self._pace.monotonic() - began
            if passed >= min(max(_LEAST_SECONDS, _SECONDS_A_POD * len(look.waiting.pods)), self._left_seconds):
                self._left_seconds -= passed
                return _tried_last(openings, look.waiting)[-1:]
            self._pace.sleep(_POLL_SECONDS)
            seen = self._seen()
            if seen is None:
                return (openings[0],)
            is_same = seen.pods == look.waiting.pods
            look = _Look(seen, look.since, look.same + 1) if is_same else _Look(seen, self._pace.monotonic())
        self._left_seconds -= self._pace.monotonic() - began
        return _tried_last(openings, look.waiting)

    def _may_open(self, look: _Look, openings: Sequence[Opening], opened_at: int) -> bool:
        """Whether all is quiet, or those that come next were tried since the last opening and many others are before
        them; or nobody else waits."""
        if look.same >= _QUIET_LOOKS and self._pace.monotonic() - look.since >= _QUIET_SECONDS:
            return True
        waiting, group = look.waiting, _tried_last(openings, look.waiting)
        own = {told.pod for each in group for told in each.own}
        if waiting.pods.keys() <= own:
            return True
        return len(waiting.pods) > _FEW_PODS and all(_tried_at(each, waiting) > opened_at for each in group)

    def _seen(self) -> Waiting | None:
        with suppress(Fault):
            return self._nominator.waiting()
        return None


def _tried_last(openings: Sequence[Opening], waiting: Waiting) -> tuple[Opening, ...]:
    """Those that come next, in the order in which their pods will be tried; one at least."""
    room = len(waiting.pods) // _SHARE if len(waiting.pods) > _FEW_PODS else 0
    found: list[Opening] = []
    for each in sorted(openings, key=lambda each: _tried_at(each, waiting), reverse=True):
        room -= sum(told.pod in waiting.pods for told in each.own)
        if found and room < 0:
            break
        found.append(each)
    return tuple(reversed(found))


def _tried_at(opening: Opening, waiting: Waiting) -> int:
    """The least version of its own pods that wait; one whose pods are all bound already may open at any time."""
    return min(
        (waiting.pods[told.pod] for told in opening.own if told.pod in waiting.pods), default=waiting.version + 1
    )
