"""Passes over a simulated world: one whenever something has happened that it should see, or a time has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from attrs import evolve, frozen

from engine.decide import decide
from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.simulate.auditor import Auditor
from engine.simulate.record import Run, Violation
from engine.simulate.recorder import Recorder
from engine.simulate.timers import next_timer
from engine.simulate.world import Decider, Done, World

# A plan that is due again this soon is as good as due now.
_SOON = timedelta(seconds=1)
_QUIET_PASSES = 6


@frozen
class Pace:
    """How often a pass looks. ``urgent`` after pods that wait or a node that came, ``calm`` after anything else that
    happened or while a plan is being carried out, ``quiet`` when nothing did: budgets and windows open by themselves.
    """

    urgent: timedelta = timedelta(seconds=2)
    calm: timedelta = timedelta(minutes=1)
    quiet: timedelta = timedelta(minutes=10)


@frozen
class PolicyChange:
    """From ``at`` on passes read ``policy``: somebody committed it."""

    at: datetime
    policy: Policy


Watch = Callable[[datetime, Plan], None]


def _unwatched(now: datetime, plan: Plan) -> None:
    """Nobody looks on."""


class Simulation:
    """One policy over one world, and what becomes of it by ``changes``. ``decider`` decides; ``watch`` is told of each
    pass."""

    def __init__(
        self,
        world: World,
        policy: Policy,
        catalog: Catalog,
        environment: Environment,
        *,
        pace: Pace = Pace(),
        changes: Sequence[PolicyChange] = (),
        decider: Decider = decide,
        watch: Watch = _unwatched,
    ) -> None:
        self._world, self._policy, self._catalog, self._environment = world, policy, catalog, environment
        self._pace, self._decider, self._watch = pace, decider, watch
        self._changes = sorted(changes, key=lambda each: each.at)
        self._auditor = Auditor(world, policy, environment)
        self._recorder: Recorder | None = None
        self._latest: datetime | None = None

    def run(self, length: timedelta, name: str = "") -> Run:
        """Go on for so long, and tell what it came to."""
        end = self._world.now + length
        self._recorder = Recorder(self._world, length)
        # What comes at the very beginning is there for the first pass.
        self._world.advance(self._world.now)
        while self._world.now < end:
            plan, _ = self._pass()
            self._wait(plan, end)
        return self._recorder.finished(name, tuple(self._auditor.violations))

    def come_to_rest(self, most_plans: int, most_passes: int = 400) -> None:
        """With nothing happening any more, pass on pass until several in a row have nothing to do.

        A violation where that takes more than ``most_plans`` plans that change something, or more than ``most_passes``.
        Machines expire no more, since time alone would change a world of those for good. A plan that asks pods once
        more, whose PodDisruptionBudgets still refuse every one of them, changes nothing.
        """
        self._policy = _without_expiry(self._policy)
        self._auditor.follow(self._policy)
        changing = quiet = passes = 0
        while quiet < _QUIET_PASSES and changing <= most_plans and passes < most_passes:
            plan, done = self._pass()
            changes = not (plan.is_empty or _only_asks_in_vain(plan, done))
            is_idle = not changes and not self._world.cluster_is_moving
            changing, quiet, passes = changing + changes, quiet + 1 if is_idle else 0, passes + 1
            self._wait(plan, self._world.now + self._pace.quiet)
        if quiet < _QUIET_PASSES:
            what = f"after {passes} passes over a world that does not change, {changing} of which changed it, no rest"
            self._auditor.violations.append(Violation(self._world.now, "rest", what))

    @property
    def violations(self) -> tuple[Violation, ...]:
        return tuple(self._auditor.violations)

    def _pass(self) -> tuple[Plan, Done]:
        while self._changes and self._changes[0].at <= self._world.now:
            self._policy = self._changes.pop(0).policy
            self._auditor.follow(self._policy)
        snapshot = self._world.snapshot()
        plan = self._decider(snapshot, self._policy, self._catalog, self._environment)
        self._auditor.look(snapshot, plan)
        done = self._world.apply(plan)
        if self._recorder is not None:
            self._recorder.note(plan, done)
        self._watch(self._world.now, plan)
        return plan, done

    def _wait(self, plan: Plan, end: datetime) -> None:
        """Let the world go on until the next pass is due."""
        world, pace, began = self._world, self._pace, self._world.now
        wake = min(end, began + (pace.quiet if plan.is_empty else pace.calm))
        timer = next_timer(plan, self._policy)
        if timer is not None:
            # By the world's clock: the plan's may be wrong.
            wake = min(wake, max(began + _SOON, began + (timer - plan.decided_at)))
        if self._changes:
            wake = min(wake, max(began + _SOON, self._changes[0].at))
        while world.now < wake:
            following = world.next_at
            world.advance(wake if following is None else min(following, wake))
            if world.is_urgent:
                wake = min(wake, max(world.now, began + pace.urgent))
            elif world.has_moved:
                wake = min(wake, max(world.now, began + pace.calm))


def _without_expiry(policy: Policy) -> Policy:
    pools = tuple(evolve(pool, expire_after=None) for pool in policy.node_pools)
    return evolve(policy, node_pools=pools, digest=f"{policy.digest}-unexpiring")


def _only_asks_in_vain(plan: Plan, done: Done) -> bool:
    """Whether each removal asks only pods that stay. All other plans that are not empty change something, or should."""
    asking = {removal.record.claim for removal, _ in done.evictions}
    is_other = plan.launches or plan.foundation_changes or plan.repriced
    is_refused = all(answer.is_refused for _, answer in done.evictions)
    return not is_other and is_refused and all(removal.record.claim in asking for removal in plan.removals)
