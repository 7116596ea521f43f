"""Pods that moved for money a while ago: they do not move again at once.

kube-scheduler binds as it likes, so a pod may come to another node than the move was made for, and the very same move
be worth it again. Each time that pods of one controller move which came since the time before, the next time is twice
as far away. Pods that came before are free: a set that is moved node by node is not held up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from engine.model.ledger import Moved
from engine.model.pod import Pod

_LONGEST = timedelta(days=7)
_MOST_TIMES = 12


def may_move_at(pods: Iterable[Pod], moved: Mapping[str, Moved], life: timedelta) -> datetime | None:
    """From when on these pods of one node may move for money; None: at any time. ``life`` is the least life of a node,
    which is doubled each time."""
    times = []
    for pod in pods:
        before = moved.get(_controller(pod))
        if before is not None and pod.created_at >= before.at:
            times.append(before.at + min(life * 2**before.times, _LONGEST))
    return max(times, default=None)


def with_moved(moved: Mapping[str, Moved], pods: Iterable[Pod], now: datetime) -> Mapping[str, Moved]:
    """What is known once these pods have been asked to move for money; what is over for long is forgotten."""
    known = {key: each for key, each in moved.items() if now - each.at < 2 * _LONGEST}
    found = dict(known)
    for pod in sorted(pods, key=lambda each: each.key):
        before = known.get(_controller(pod))
        is_again = before is not None and pod.created_at >= before.at
        times = min(before.times + 1, _MOST_TIMES) if before is not None and is_again else 1
        found[_controller(pod)] = Moved(now, max(times, before.times if before is not None else 1))
    return dict(sorted(found.items()))


def _controller(pod: Pod) -> str:
    owner = pod.owner
    return f"{pod.key.namespace}/{owner.kind}/{owner.name}" if owner is not None else ""
