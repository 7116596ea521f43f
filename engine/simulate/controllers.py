"""Who makes pods in a simulated cluster: tasks that come, and controllers that replace what was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from random import Random

from attrs import define, evolve

from engine.model.pod import Pod, PodKey, PodPhase
from engine.simulate.agenda import Agenda
from engine.simulate.cluster import SimulatedCluster
from engine.simulate.conditions import Latencies
from engine.simulate.tasks import Stay, Task


@define
class _Origin:
    """One task's pods, one after the other. ``is_over``: none comes any more."""

    task: Task
    current: PodKey
    restarts: int = 0
    is_over: bool = False


class Controllers:
    """``stirred`` is told when pods come or go. ``restarted`` are pods that replace others, ``expected`` counts those
    that are yet to come; ``work_lost`` is what jobs had done when they were stopped."""

    def __init__(
        self,
        agenda: Agenda,
        latencies: Latencies,
        chance: Random,
        cluster: SimulatedCluster,
        stirred: Callable[[], None],
    ) -> None:
        self._agenda, self._latencies, self._chance, self._cluster = agenda, latencies, chance, cluster
        self._stirred = stirred
        self._origins: dict[PodKey, _Origin] = {}
        self.restarted: set[PodKey] = set()
        self.expected = 0
        self.jobs_done = 0
        self.work_lost = timedelta()
        self._ran_since: dict[PodKey, datetime] = {}

    def expect(self, tasks: Iterable[Task]) -> None:
        """Let tasks come when their time is there."""
        began = self._agenda.now
        for task in sorted(tasks, key=lambda each: (each.after, each.pod.key)):
            self.expected += 1
            self._agenda.enter(began + task.after, lambda coming=task: self._begin(coming))  # type: ignore[misc]

    def adopt(self, pod: Pod) -> None:
        """A pod that was there before stays for good, and is made again where it has an owner."""
        if pod.owner is not None and not pod.is_daemon:
            task = Task(timedelta(), pod, None, Stay.REPLICA)
            self._origins[pod.key] = _Origin(task, pod.key)

    def started(self, pod: Pod) -> None:
        """A pod was bound: its containers run a while later, and a job is done a while after that."""
        start = self._latencies.start.drawn(self._chance)
        self._agenda.enter(self._agenda.now + start, lambda: self._run(pod.key))

    def stopped(self, pod: Pod) -> None:
        """A pod was evicted, or lost with its node: its controller makes another, where it has one."""
        began = self._ran_since.pop(pod.key, None)
        origin = self._origins.pop(pod.key, None)
        if origin is None or origin.is_over:
            self._stirred()
            return
        if began is not None and origin.task.stay is Stay.JOB:
            self.work_lost += self._agenda.now - began
        origin.restarts += 1
        key = PodKey(origin.task.pod.key.namespace, f"{origin.task.pod.key.name}-r{origin.restarts}")
        origin.current = key
        self.expected += 1
        self.restarted.add(key)
        self._agenda.enter(
            self._agenda.now + self._latencies.recreate.drawn(self._chance), lambda: self._make_again(origin, key)
        )

    def _begin(self, task: Task) -> None:
        self.expected -= 1
        origin = _Origin(task, task.pod.key)
        self._make(origin, task.pod.key)
        if task.stay is Stay.REPLICA and task.lasts is not None:
            self._agenda.enter(self._agenda.now + task.lasts, lambda: self._leave(origin))

    def _make_again(self, origin: _Origin, key: PodKey) -> None:
        self.expected -= 1
        self._make(origin, key)

    def _make(self, origin: _Origin, key: PodKey) -> None:
        if origin.is_over:
            return
        self._origins[key] = origin
        self._cluster.add_pod(
            evolve(
                origin.task.pod,
                key=key,
                created_at=self._agenda.now,
                phase=PodPhase.PENDING,
                node_name=None,
                nominated_node_name=None,
                started_at=None,
                ready_at=None,
                deleting=False,
            )
        )
        self._stirred()

    def _run(self, key: PodKey) -> None:
        pod = self._cluster.pod(key)
        if pod is None:
            return
        now = self._agenda.now
        self._ran_since[key] = now
        self._cluster.change_pod(evolve(pod, started_at=now, ready_at=now))
        origin = self._origins.get(key)
        if origin is not None and origin.task.stay is Stay.JOB and origin.task.lasts is not None:
            self._agenda.enter(now + origin.task.lasts, lambda: self._finish(key))

    def _finish(self, key: PodKey) -> None:
        """A job that still runs is done; one that was stopped meanwhile runs anew under another key."""
        if self._cluster.remove_pod(key) is not None:
            self._ran_since.pop(key, None)
            origin = self._origins.pop(key, None)
            if origin is not None:
                origin.is_over = True
            self.jobs_done += 1
            self._stirred()

    def _leave(self, origin: _Origin) -> None:
        origin.is_over = True
        self._origins.pop(origin.current, None)
        if self._cluster.remove_pod(origin.current) is not None:
            self._ran_since.pop(origin.current, None)
            self._stirred()
