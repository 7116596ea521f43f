"""Pods sorted out by where they are. Each pod is looked at once: there are ten thousand of them, in every pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from engine.model.pod import DAEMON_OWNERS, Pod, PodPhase


class PodsByNode:
    """``bound`` are those that have a node and have not finished, by its name; of these ``workload`` are no daemon's,
    and ``guarded`` must not be disrupted. ``waiting`` want a node. All in the order given."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        bound: defaultdict[str, list[Pod]] = defaultdict(list)
        workload: defaultdict[str, list[Pod]] = defaultdict(list)
        guarded: defaultdict[str, list[Pod]] = defaultdict(list)
        waiting: list[Pod] = []
        running = PodPhase.RUNNING
        for pod in pods:
            node = pod.node_name
            if node is None:
                if pod.is_waiting:
                    waiting.append(pod)
            elif pod.phase is running or not pod.is_finished:
                bound[node].append(pod)
                if (owner := pod.owner) is None or owner.kind not in DAEMON_OWNERS:
                    workload[node].append(pod)
                if pod.do_not_disrupt:
                    guarded[node].append(pod)
        self.bound, self.workload, self.guarded, self.waiting = dict(bound), dict(workload), dict(guarded), waiting
