"""What always holds of rules: ceilings are exact however pods come, and a rule that errs never lets more be done."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from attrs import evolve, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model import labels as keys
from engine.model.claim import Claim
from engine.model.plan import Plan
from engine.model.pod import Pod, PodKey
from engine.model.policy import Budget, Disruption, NodePool
from engine.model.quantity import NVIDIA_GPU
from engine.model.reason import VOLUNTARY_REASONS, DisruptionReason
from engine.model.rule import ActionClass, AnyRule, LimitedResource
from engine.policy.cel.engines import ENGINES
from tests.builders import minutes, node_pool, requirement
from tests.decide.rule_values import (
    ADD,
    GPUS,
    NO_BOOL,
    NO_INT,
    NODES,
    REMOVE,
    USD,
    budget,
    guardrail,
    limit,
    of_team,
    require,
)
from tests.decide.world import World, policy

SMALL = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
FIVE = Disruption(consolidate_after=minutes(5), budgets=(Budget(percent=100),))
ON_DEMAND = requirement(keys.CAPACITY_TYPE, "In", "on-demand")
TEAMS = ("vision", "text")

drawn_pods = st.lists(
    st.tuples(st.sampled_from(TEAMS), st.sampled_from([1, 1, 2, 4]), st.integers(0, 2)), min_size=1, max_size=10
)


def pods_of(drawn: Iterable[tuple[str, int, int]], prefix: str = "p") -> list[Pod]:
    return [
        evolve(of_team(f"{prefix}{number}", team, gpu), priority=priority)
        for number, (team, gpu, priority) in enumerate(drawn)
    ]


def pool_named(name: str, **more: object) -> NodePool:
    fields: dict[str, object] = {
        "requirements": [ON_DEMAND],
        "disruption": FIVE,
        "labels": {"tier": "gold" if name == "core" else "any"},
        **more,
    }
    return node_pool(name, **fields)  # type: ignore[arg-type]


POOLS = (pool_named("core"), pool_named("elastic"), pool_named("extra", labels={"tier": "gold"}))


def amount(resource: LimitedResource, claim: Claim) -> int:
    match resource:
        case LimitedResource.GPUS:
            return claim.capacity.amount(NVIDIA_GPU)
        case LimitedResource.USD_PER_HOUR:
            return claim.usd_per_hour.micros
        case _:
            return 1


@frozen
class PoolCeiling:
    """``ceiling`` in the unit of the rule; ``by_tier``: pools of one tier share it."""

    resource: LimitedResource
    ceiling: int
    by_tier: bool

    def rule(self, number: int) -> AnyRule:
        text = f"{self.ceiling}.0" if self.resource is USD else str(self.ceiling)
        return limit(text, self.resource, name=f"rule-{number}", by='nodePool.labels["tier"]' if self.by_tier else "")

    def holds(self, claims: Iterable[Claim]) -> bool:
        sums: dict[str, int] = {}
        tiers = {pool.name: pool.labels["tier"] for pool in POOLS}
        for claim in claims:
            group = tiers[claim.node_pool] if self.by_tier else claim.node_pool
            sums[group] = sums.get(group, 0) + amount(self.resource, claim)
        most = self.ceiling * (1_000_000 if self.resource is USD else 1)
        return all(used <= most for used in sums.values())


pool_ceilings = st.lists(
    st.builds(PoolCeiling, st.sampled_from([GPUS, NODES, USD]), st.integers(0, 9), st.booleans()),
    min_size=1,
    max_size=3,
)


@SMALL
@given(pool_ceilings, drawn_pods, st.lists(drawn_pods, max_size=3), st.randoms(use_true_random=False))
def test_no_split_into_batches_takes_groups_of_pools_over_any_ceiling(
    drawn: list[PoolCeiling],
    first: list[tuple[str, int, int]],
    later: list[list[tuple[str, int, int]]],
    dice: random.Random,
) -> None:
    rules = tuple(each.rule(number) for number, each in enumerate(drawn))
    world = World(policy(*POOLS, rules=rules), pods_of(first), refuses=lambda claim: dice.random() < 0.2)
    world.keeps = lambda claim: dice.random() < 0.3
    ever: dict[str, Claim] = {}
    for number in range(6):
        plan = world.turn(minutes(7))
        ever |= {launch.claim.name: launch.claim for launch in plan.launches}
        counted = {each.claim for each in world.running()}
        counted |= {claim.name for claim in world.document.claims} if world.document else set()
        assert all(each.holds(ever[name] for name in counted) for each in drawn)
        if number < len(later):
            world.pods |= {each.key: each for each in pods_of(later[number], f"later{number}-")}
        world.finish([each for each in list(world.pods.values()) if dice.random() < 0.2])


@SMALL
@given(
    st.sampled_from([GPUS, NODES, USD]),
    st.integers(0, 9),
    drawn_pods,
    st.lists(drawn_pods, max_size=3),
    st.randoms(use_true_random=False),
)
def test_nothing_is_launched_for_a_team_beyond_its_ceiling_however_its_pods_come(
    resource: LimitedResource,
    ceiling: int,
    first: list[tuple[str, int, int]],
    later: list[list[tuple[str, int, int]]],
    dice: random.Random,
) -> None:
    text = f"{ceiling}.0" if resource is USD else str(ceiling)
    rules = (limit(text, resource, by='pod.labels["team"]'),)
    world = World(policy(*POOLS, rules=rules), pods_of(first))
    most = ceiling * (1_000_000 if resource is USD else 1)
    ever: dict[str, Claim] = {}
    for number in range(6):
        plan = world.decide()
        ever |= {launch.claim.name: launch.claim for launch in plan.launches}
        for team in TEAMS:
            assert not launched_for(plan, world, team) or taken(resource, plan, world, team, ever) <= most
        world.apply(plan)
        if dice.random() < 0.7:
            world.settle()
        world.now += minutes(7)
        if number < len(later):
            world.pods |= {each.key: each for each in pods_of(later[number], f"later{number}-")}
        world.finish([each for each in list(world.pods.values()) if dice.random() < 0.2])


def launched_for(plan: Plan, world: World, team: str) -> bool:
    return any(world.pods[key].labels["team"] == team for launch in plan.launches for key in launch.pods)


def taken(resource: LimitedResource, plan: Plan, world: World, team: str, ever: Mapping[str, Claim]) -> int:
    """What a team's pods take: those that run, those that are expected on a machine in flight, those of launches."""
    nodes = {f"node-{identity}": each.claim for identity, each in world.instances.items()}
    on: dict[PodKey, str] = {
        each.key: nodes[each.node_name] for each in world.pods.values() if each.node_name is not None
    }
    on |= {each.pod: each.claim for each in plan.placements if each.node is None and each.claim is not None}
    on |= {key: launch.claim.name for launch in plan.launches for key in launch.pods}
    theirs = {key: claim for key, claim in on.items() if world.pods[key].labels["team"] == team}
    if resource is GPUS:
        return sum(world.pods[key].placing.requests.amount(NVIDIA_GPU) for key in theirs)
    return sum(amount(resource, ever[claim]) for claim in set(theirs.values()))


# --- errors


@frozen
class Ruled:
    """One rule of each kind, in the words of the test. None: there is no such rule."""

    most_gpus_each: int | None
    ceiling: int | None
    ceiling_of: LimitedResource
    may_go_below: int | None
    at_once: int | None
    most_launches: int | None
    most_removals: int | None
    errs: frozenset[str]

    def rules(self) -> tuple[AnyRule, ...]:
        every: dict[str, AnyRule | None] = {
            "at-once": self._budget("at-once"),
            "candidate": self._candidate("candidate"),
            "ceiling": self._ceiling("ceiling"),
            "launches": self._guard("launches", "plan.launchCount <=", self.most_launches, ADD),
            "removals": self._guard("removals", "plan.removalCount <=", self.most_removals, REMOVE),
            "require": self._require("require"),
        }
        return tuple(rule for _, rule in sorted(every.items()) if rule is not None)

    def errs_of(self, *names: str) -> bool:
        return any(rule.name in names and rule.name in self.errs for rule in self.rules())

    def _budget(self, name: str) -> AnyRule | None:
        if self.at_once is None:
            return None
        return budget(name, at_once=self._or_error(name, str(self.at_once), NO_INT))

    def _candidate(self, name: str) -> AnyRule | None:
        if self.may_go_below is None:
            return None
        return budget(name, candidate=self._or_error(name, f"node.gpus < {self.may_go_below}", NO_BOOL))

    def _ceiling(self, name: str) -> AnyRule | None:
        if self.ceiling is None:
            return None
        return limit(self._or_error(name, str(self.ceiling), NO_INT), self.ceiling_of, name=name)

    def _require(self, name: str) -> AnyRule | None:
        if self.most_gpus_each is None:
            return None
        return require(self._or_error(name, f"instanceType.gpuCount <= {self.most_gpus_each}", NO_BOOL), name)

    def _guard(self, name: str, text: str, most: int | None, blocks: ActionClass) -> AnyRule | None:
        if most is None:
            return None
        return guardrail(self._or_error(name, f"{text} {most}", NO_BOOL), blocks, name=name)

    def _or_error(self, name: str, text: str, error: str) -> str:
        return error if name in self.errs else text


NAMES = ("at-once", "candidate", "ceiling", "launches", "removals", "require")


def ruled(dice: random.Random) -> Ruled:
    """Each rule is there more often than not, and errs as often as not: drawn evenly, so that all mixtures come."""

    def maybe(*values: int) -> int | None:
        return dice.choice(values) if dice.random() < 0.6 else None

    return Ruled(
        most_gpus_each=maybe(1, 4, 8),
        ceiling=maybe(0, 2, 4, 8, 12),
        ceiling_of=dice.choice([GPUS, NODES]),
        may_go_below=maybe(0, 2, 9),
        at_once=maybe(0, 1, 3),
        most_launches=maybe(0, 1, 2, 4),
        most_removals=maybe(0, 1, 3),
        errs=frozenset(name for name in NAMES if dice.random() < dice.choice([0.1, 0.5])),
    )


def unruled(drawn: list[tuple[str, int, int]], dice: random.Random, engine: str) -> World:
    """A cluster where some machines are empty for long, some are lost, and some pods wait."""
    world = World(policy(*POOLS, cel_engine=engine), pods_of(drawn))
    for _ in range(dice.randint(1, 3)):
        world.turn()
    world.finish([each for each in list(world.pods.values()) if dice.random() < 0.4])
    world.apply(world.decide())
    world.settle()
    world.now += minutes(20)
    for each in world.running():
        if dice.random() < 0.2:
            world.lose(each.claim)
    return world


@settings(SMALL, max_examples=100)
@given(st.integers(0, 2**32), drawn_pods, drawn_pods, st.sampled_from(sorted(ENGINES)))
def test_rules_that_err_let_nothing_go_and_nothing_come_that_a_working_rule_forbids(
    seed: int, first: list[tuple[str, int, int]], second: list[tuple[str, int, int]], engine: str
) -> None:
    dice = random.Random(seed)
    rules = ruled(dice)
    world = unruled(first, dice, engine)
    if dice.random() < 0.6:
        world.pods |= {each.key: each for each in pods_of(second, "new")}
    world.policy = evolve(world.policy, rules=rules.rules())
    # Nothing is owed from before: what the document holds now is what errors may keep up.
    desired = claims_of(world)
    for _ in range(3):
        before = claims_of(world)
        plan = world.decide()
        lost = {each.record.claim for each in plan.removals if each.record.reason is DisruptionReason.LOST}
        check_removals(plan, rules, before)
        check_launches(plan, rules, before, lost)
        if plan.launches:
            check_growth(plan, rules, desired)
        world.apply(plan)
        world.settle()
        world.now += minutes(7)


def claims_of(world: World) -> dict[str, Claim]:
    return {claim.name: claim for claim in world.document.claims} if world.document else {}


def check_growth(plan: Plan, rules: Ruled, desired: Mapping[str, Claim]) -> None:
    """While a rule about launches errs, no pool comes to have more than it was meant to have when that began."""
    for pool in POOLS:
        then = [claim for claim in desired.values() if claim.node_pool == pool.name]
        now = [claim for claim in plan.document.claims if claim.node_pool == pool.name]
        if rules.errs_of("launches"):
            assert len(now) <= len(then)
            assert sum(amount(GPUS, each) for each in now) <= sum(amount(GPUS, each) for each in then)
        if rules.errs_of("ceiling"):
            of = rules.ceiling_of
            assert sum(amount(of, each) for each in now) <= sum(amount(of, each) for each in then)


def check_removals(plan: Plan, rules: Ruled, before: Mapping[str, Claim]) -> None:
    """Each is permitted by every rule that works, and depends on none that erred."""
    chosen = [each.record for each in plan.removals if each.record.reason in VOLUNTARY_REASONS]
    if not chosen:
        return
    assert not rules.errs_of("at-once", "candidate", "launches", "removals")
    if rules.may_go_below is not None:
        assert all(before[each.claim].capacity.amount(NVIDIA_GPU) < rules.may_go_below for each in chosen)
    if rules.at_once is not None:
        pools = [each.node_pool for each in chosen]
        assert all(pools.count(pool) <= rules.at_once for pool in pools)
    if rules.most_removals is not None:
        assert len(plan.removals) <= rules.most_removals


def check_launches(plan: Plan, rules: Ruled, before: Mapping[str, Claim], lost: set[str]) -> None:
    """None is forbidden by a rule that works, and none is for a pod whose types a rule could not tell."""
    launched = [launch.claim for launch in plan.launches]
    if not launched:
        return
    if rules.errs_of("require"):
        assert not any(launch.pods for launch in plan.launches)
    if rules.most_gpus_each is not None and not rules.errs_of("require"):
        assert all(each.capacity.amount(NVIDIA_GPU) <= rules.most_gpus_each for each in launched)
    if rules.most_launches is not None and not rules.errs_of("launches"):
        assert len(launched) <= rules.most_launches
    if rules.ceiling is not None and not rules.errs_of("ceiling"):
        for pool in {each.node_pool for each in launched}:
            staying = [claim for name, claim in before.items() if claim.node_pool == pool and name not in lost]
            theirs = [*staying, *(each for each in launched if each.node_pool == pool)]
            assert sum(amount(rules.ceiling_of, each) for each in theirs) <= rules.ceiling


def test_the_errors_of_these_tests_are_errors() -> None:
    """Else the property would hold for nothing."""
    every = frozenset(NAMES)
    rules = Ruled(8, 9, GPUS, 9, 9, 9, 9, every)
    world = World(policy(*POOLS, rules=rules.rules()), pods_of([("vision", 1, 0)]))
    told = world.decide().verdicts
    assert {each.rule for each in told if each.error} >= {"ceiling", "launches", "removals", "require"}
