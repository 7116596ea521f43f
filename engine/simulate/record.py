"""What a simulated run came to, as values: a sample of each moment, what was done, and what should not have been."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import field, frozen

from engine.model.money import UsdPerHour


@frozen
class Sample:
    """One moment, which lasts until the next. ``usd_per_hour`` is of all machines that run or are on their way;
    ``gpus`` are whole accelerators that nodes advertise, ``gpus_used`` those that bound pods ask for. ``going`` are
    nodes that are marked."""

    at: datetime
    usd_per_hour: UsdPerHour
    machines: int
    nodes: int
    going: int
    gpus: int
    gpus_used: int
    running: int
    waiting: int


@frozen
class Violation:
    """Something that must always hold and did not. ``rule`` is a short name of it."""

    at: datetime
    rule: str
    what: str


@frozen
class BudgetSeen:
    """How far one budget of a pool was used: the most that were out by it, of how many were allowed then, and how many
    removals asked it."""

    node_pool: str
    budget: str
    used: int
    allowed: int
    base: int
    removals: int


@frozen
class LimitSeen:
    """The most that was used of a limit; amounts as in `LimitUse`."""

    node_pool: str
    resource: str
    rule: str
    group: str
    limit: int
    used: int


@frozen
class RuleSeen:
    """How many pods got nothing for a rule of policy; ``code`` is the refusal's."""

    code: str
    rule: str
    pods: int


@frozen
class Waits:
    """Seconds from a pod's creation to its binding, in ascending order; ``still`` are of those that wait yet."""

    first: tuple[float, ...] = ()
    again: tuple[float, ...] = ()
    still: tuple[float, ...] = ()


@frozen
class Run:
    """One policy's way through a simulated world.

    ``launches`` are by instance type, ``refused`` by EC2's code, ``removals`` (machines released) and ``evictions`` by
    reason; ``lost_pods`` are pods that a machine took with it. ``usd`` is what all machines cost together.
    ``work_lost`` is what jobs had done when they were stopped. ``kept`` counts, at the end, the first reasons of the
    machines that stay, and ``refusals`` those of pods that got nothing, each by the pool that came nearest;
    ``refusing_rules`` say of the latter which rules of policy they were for.
    """

    name: str
    began: datetime
    ended: datetime
    samples: tuple[Sample, ...]
    passes: int
    usd: float
    gpu_hours: float
    gpu_hours_used: float
    launches: Mapping[str, int] = field(factory=dict)
    refused: Mapping[str, int] = field(factory=dict)
    removals: Mapping[str, int] = field(factory=dict)
    evictions: Mapping[str, int] = field(factory=dict)
    refused_evictions: int = 0
    lost_pods: int = 0
    jobs_done: int = 0
    work_lost: timedelta = timedelta()
    waits: Waits = Waits()
    budgets: tuple[BudgetSeen, ...] = ()
    limits: tuple[LimitSeen, ...] = ()
    kept: Mapping[str, int] = field(factory=dict)
    refusals: Mapping[str, int] = field(factory=dict)
    refusing_rules: tuple[RuleSeen, ...] = ()
    violations: tuple[Violation, ...] = ()

    @property
    def length(self) -> timedelta:
        return self.ended - self.began
