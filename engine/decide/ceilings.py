"""Limit rules in a pass: each group's ceiling, and what is used of it already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from attrs import frozen

from engine.decide.fleet import Fleet
from engine.decide.options import Market
from engine.model import labels as keys
from engine.model.environment import Environment
from engine.model.ledger import Owed
from engine.model.money import FREE, UsdPerHour
from engine.model.plan import LimitUse, Verdict, VerdictOutcome
from engine.model.pod import Pod, PodKey
from engine.model.policy import NodePool, Policy
from engine.model.quantity import NODES, NOTHING, Resources
from engine.model.rule import ActionClass, Enforcement, LimitedResource, LimitRule
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import gpu_count
from engine.policy.rules.ceilings import Amount, AskedLimit, Group, LimitRules
from engine.policy.rules.compiled import bundle_of
from engine.policy.rules.pass_facts import PoolMarket
from engine.scheduling.ceilings import Ceiling
from engine.scheduling.problem import PoolState


class Ceilings:
    """Asks nothing, and costs nothing, where there are no limit rules or nothing is wanted."""

    def __init__(
        self, fleet: Fleet, gone: Iterable[str], owed: Mapping[str, Owed], policy: Policy, environment: Environment
    ) -> None:
        """``gone`` are claims that are lost; ``owed`` is what pools may replace where a rule gives no number."""
        self._fleet, self._gone, self._owed = fleet, frozenset(gone), owed
        self._policy, self._environment = policy, environment
        self._has_rules = any(isinstance(rule, LimitRule) for rule in policy.rules)
        self._found: tuple[Ceiling, ...] | None = None
        self._rules: LimitRules | None = None

    def of(
        self, states: Sequence[PoolState], waiting: Iterable[Pod], market: Market, snapshot: Snapshot
    ) -> tuple[Ceiling, ...]:
        """In the order of rules and groups. Pools and pods are those of the first call."""
        if not self._has_rules:
            return ()
        if self._found is None:
            markets = [pool_market(state) for state in states]
            self._rules = LimitRules(bundle_of(self._policy), self._policy, self._environment, snapshot, markets)
            standing = _Standing(self._fleet, self._gone, market)
            found: list[Ceiling] = []
            for asked in self._rules.asked:
                if asked.is_of_pods:
                    counting = _OfPods(asked, self._rules, standing, self._policy, self._owed)
                    found += counting.ceilings(waiting, snapshot.ledger.planned)
                else:
                    found += self._of_pools(asked, self._rules, standing, states)
            self._found = tuple(sorted(found, key=lambda each: (each.rule, each.group, each.error)))
        return self._found

    @property
    def closed_pools(self) -> frozenset[str]:
        """The pools of which a ceiling could not be told, so that nothing but what is lost is launched there."""
        every = frozenset(pool.name for pool in self._policy.node_pools)
        erred = [each for each in self._found or () if each.error and each.is_enforced]
        return frozenset(pool for each in erred for pool in (each.node_pools if each.pods is None else every))

    def verdicts(self, uses: Iterable[LimitUse]) -> tuple[Verdict, ...]:
        """Of rules that gave no number, and of those that only warn or count and whose ceiling this plan goes over.

        ``uses`` are the plan's. One verdict a rule, of the first of its groups.
        """
        planned = {(use.rule, use.group): use for use in uses if use.rule}
        told: dict[str, Verdict] = {}
        for ceiling in self._found or ():
            use = planned.get((ceiling.rule, ceiling.group))
            is_over = use is not None and use.planned > 0 and use.used + use.planned > use.limit
            if ceiling.error or (is_over and not ceiling.is_enforced):
                told.setdefault(ceiling.rule, self._verdict(ceiling))
        return tuple(told.values())

    def _verdict(self, ceiling: Ceiling) -> Verdict:
        asked = next(each for each in (self._rules.asked if self._rules else ()) if each.rule.name == ceiling.rule)
        return Verdict(
            rule=ceiling.rule,
            kind=asked.rule.kind,
            enforcement=asked.rule.enforcement,
            outcome=VerdictOutcome.ERROR if ceiling.error else VerdictOutcome.VIOLATED,
            message=asked.rule.message,
            error=ceiling.error,
            blocked=(ActionClass.ADD,) if ceiling.error and ceiling.is_enforced else (),
        )

    def _of_pools(
        self, asked: AskedLimit, rules: LimitRules, standing: _Standing, states: Sequence[PoolState]
    ) -> Iterator[Ceiling]:
        groups: dict[Group, list[PoolState]] = {}
        for state in states:
            group = rules.group_of_pool(asked, state.pool)
            if group is not None:
                # Which group a pool is in whose groupBy errs is not known, so it is held by itself.
                groups.setdefault(Group(state.pool.name, group.error) if group.error else group, []).append(state)
        for group, members in groups.items():
            own = members[0].pool.name
            amount = rules.ceiling(asked, group, own)
            if amount is None:
                continue
            pools = [state.pool.name for state in members]
            blank = _blank(asked.rule, group, amount)
            used = sum(
                blank.of_node(state.used, standing.usd_per_hour(state.pool.name))
                if asked.rule.resource is not LimitedResource.NODES
                else state.used.amount(NODES)
                for state in members
            )
            yield Ceiling(
                rule=asked.rule.name,
                group=group.name,
                resource=asked.rule.resource,
                limit=_limit(blank, amount, used, pools, self._owed),
                used=used,
                node_pools=frozenset(pools),
                is_enforced=asked.rule.enforcement is Enforcement.DENY,
                error=amount.error,
                message=rules.told(asked, group.name, own),
            )


def pool_market(state: PoolState) -> PoolMarket:
    """A pool as limit rules see it."""
    return PoolMarket(state.pool, nodes=state.used.amount(NODES), gpus=gpu_count(state.used), types=())


def _blank(rule: LimitRule, group: Group, amount: Amount) -> Ceiling:
    """For what a node or a pod takes of it."""
    return Ceiling(rule.name, group.name, rule.resource, amount.limit, 0)


def _limit(blank: Ceiling, amount: Amount, used: int, pools: Iterable[str], owed: Mapping[str, Owed]) -> int:
    """Where the rule gives no number: what is used, and what takes the place of machines that were lost."""
    if not amount.error:
        return amount.limit
    lost = [owed[pool] for pool in pools if pool in owed]
    if blank.resource is LimitedResource.NODES:
        return used + sum(each.capacity.amount(NODES) for each in lost)
    return used + sum(blank.of_node(each.capacity, each.usd_per_hour) for each in lost)


@frozen
class _Machine:
    """A node with pods, or a claim in flight: ``key`` is its claim's name, else its node's."""

    key: str
    node_pool: str
    usd_per_hour: UsdPerHour


class _Standing:
    """What runs, is launching, or is leaving and may still run; each machine with its price."""

    def __init__(self, fleet: Fleet, gone: frozenset[str], market: Market) -> None:
        self._fleet, self._gone, self._market = fleet, gone, market

    @cached_property
    def _prices(self) -> Mapping[str, int]:
        sums: dict[str, int] = {}
        for sighting in self._fleet.sightings:
            if sighting.claim.name not in self._gone:
                pool = sighting.claim.node_pool
                sums[pool] = sums.get(pool, 0) + sighting.claim.usd_per_hour.micros
        for leaving in self._fleet.leaving:
            if leaving.may_run:
                pool = leaving.record.node_pool
                sums[pool] = sums.get(pool, 0) + leaving.record.usd_per_hour.micros
        for node in self._fleet.foreign_nodes:
            pool = node.labels.get(keys.NODE_POOL, "")
            if pool:
                sums[pool] = sums.get(pool, 0) + self._market.usd_per_hour(node.labels).micros
        return sums

    def usd_per_hour(self, pool: str) -> UsdPerHour:
        """What all machines of a pool cost; a node of somebody else's at today's price, where one is known."""
        return UsdPerHour(self._prices.get(pool, 0))

    @cached_property
    def by_claim(self) -> Mapping[str, _Machine]:
        return {
            each.claim.name: _Machine(each.claim.name, each.claim.node_pool, each.claim.usd_per_hour)
            for each in self._fleet.sightings
            if each.claim.name not in self._gone
        }

    @cached_property
    def _by_node(self) -> Mapping[str, _Machine]:
        found = {
            node.name: _Machine(node.name, node.labels.get(keys.NODE_POOL, ""), self._market.usd_per_hour(node.labels))
            for node in self._fleet.foreign_nodes
        }
        for leaving in self._fleet.leaving:
            record = leaving.record
            if leaving.may_run and record.node is not None:
                found[record.node] = _Machine(record.claim, record.node_pool, record.usd_per_hour)
        for each in self._fleet.sightings:
            for node in (each.node, *each.other_nodes):
                if node is not None and each.claim.name in self.by_claim:
                    found[node.name] = self.by_claim[each.claim.name]
        return found

    @cached_property
    def bound(self) -> Sequence[tuple[_Machine, Pod]]:
        """Every pod that is bound and has not finished, daemons' apart, with its machine. Those on a machine that is
        lost are on none any more; a node that is not shown may be there all the same."""
        lost = {
            node.name
            for each in self._fleet.sightings
            if each.claim.name in self._gone
            for node in (each.node, *each.other_nodes)
            if node is not None
        }
        return [
            (self._by_node.get(name) or _Machine(name, "", FREE), pod)
            for name, pods in self._fleet.pods_by_node.items()
            if name not in lost
            for pod in pods
            if not pod.is_daemon
        ]


class _OfPods:
    """One rule whose groups are of pods."""

    def __init__(
        self, asked: AskedLimit, rules: LimitRules, standing: _Standing, policy: Policy, owed: Mapping[str, Owed]
    ) -> None:
        self._asked, self._rules, self._standing, self._owed = asked, rules, standing, owed
        self._pools = {pool.name: pool for pool in policy.node_pools}

    def ceilings(self, waiting: Iterable[Pod], planned: Mapping[str, str]) -> Iterator[Ceiling]:
        """Of the groups that a waiting pod is in."""
        members: dict[Group, dict[str, set[PodKey]]] = {}
        on_their_way: dict[Group, dict[str, _Machine]] = {}
        for pod in waiting:
            machine = self._standing.by_claim.get(planned.get(str(pod.key), ""))
            for at, pool in self._places():
                group = self._rules.group_of_pod(self._asked, pod, pool)
                if group is None:
                    continue
                members.setdefault(group, {}).setdefault(at, set()).add(pod.key)
                if machine is not None and at in ("", machine.node_pool):
                    on_their_way.setdefault(group, {})[machine.key] = machine
        if not members:
            return
        used, machines = self._used(members)
        for group, pods in members.items():
            amount = self._rules.ceiling(self._asked, group, self._own_pool(group))
            if amount is not None:
                reached = {**machines[group], **on_their_way.get(group, {})}
                yield self._ceiling(group, amount, pods, used[group], reached)

    def _ceiling(
        self,
        group: Group,
        amount: Amount,
        pods: Mapping[str, set[PodKey]],
        requested: Resources,
        machines: Mapping[str, _Machine],
    ) -> Ceiling:
        blank = _blank(self._asked.rule, group, amount)
        used = blank.of_pod(requested)
        if self._asked.rule.resource in (LimitedResource.NODES, LimitedResource.USD_PER_HOUR):
            used = sum(blank.of_node(NOTHING, machine.usd_per_hour) for machine in machines.values())
        own = self._own_pool(group)
        return Ceiling(
            rule=self._asked.rule.name,
            group=group.name,
            resource=self._asked.rule.resource,
            limit=_limit(blank, amount, used, (own,) if own else self._pools, self._owed),
            used=used,
            node_pools=frozenset(pool for pool in pods if pool),
            pods={pool: frozenset(of_pool) for pool, of_pool in pods.items() if pool},
            elsewhere=frozenset(pods.get("", ())),
            counted=frozenset(machines),
            is_enforced=self._asked.rule.enforcement is Enforcement.DENY,
            error=amount.error,
            message=self._rules.told(self._asked, group.name, own),
        )

    def _used(
        self, groups: Iterable[Group]
    ) -> tuple[Mapping[Group, Resources], Mapping[Group, Mapping[str, _Machine]]]:
        """What the bound pods of each group request, and the machines that they are on."""
        sums: dict[Group, dict[str, int]] = {group: {} for group in groups}
        machines: dict[Group, dict[str, _Machine]] = {group: {} for group in sums}
        for machine, pod in self._standing.bound:
            group = self._rules.group_of_pod(self._asked, pod, self._pools.get(machine.node_pool))
            if group is None or group not in sums:
                continue
            machines[group][machine.key] = machine
            amounts = sums[group]
            for resource, amount in pod.placing.requests.items():
                amounts[resource] = amounts.get(resource, 0) + amount
        return {group: Resources(amounts) for group, amounts in sums.items()}, machines

    def _places(self) -> Iterable[tuple[str, NodePool | None]]:
        """Where a waiting pod may come to be, as far as the rule tells places apart."""
        return self._pools.items() if self._asked.is_of_some_pools else (("", None),)

    def _own_pool(self, group: Group) -> str:
        """Without ``groupBy`` each pool is a group of its own."""
        return group.name if self._asked.group_by is None else ""
