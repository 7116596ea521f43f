"""What disruption budgets allow over days to come, from the files alone: no cluster and no account is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache

from attrs import frozen

from engine.converge.store import FileStore, StoredFileUnreadable, StoreUnavailable
from engine.disruption.budget_rules import BudgetRules, Gone
from engine.disruption.timetable import timetable
from engine.model.document import DesiredDocument
from engine.model.environment import Environment
from engine.model.fault import Fault
from engine.model.policy import NodePool, Policy
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import cluster_facts, gpu_count
from engine.policy.rules.compiled import bundle_of
from engine.policy.windows import LONGEST_OPENING
from engine.reconcile.workspace import Workspace
from engine.report.calendar_report import CalendarScreen

# A pool of this many nodes is supposed where nothing tells its size.
SUPPOSED_NODES = 10
_WEEK = timedelta(days=7)


@frozen
class PoolSize:
    nodes: int
    gpus: int


def calendars(
    workspace: Workspace,
    names: Sequence[str],
    *,
    at: datetime,
    length: timedelta = _WEEK,
    pool: str | None = None,
    nodes: int | None = None,
) -> tuple[CalendarScreen, ...]:
    """The calendars of the environments of these names (none: all) from ``at`` on. ``nodes`` is each pool's size.

    Raises Fault where there is no such environment or pool, InvalidInput where a file is wrong.
    """
    chosen = tuple(names) or workspace.environment_names()
    if not chosen:
        raise Fault(f"{workspace.stacks} holds no Pulumi.ENV.yaml", "write one: an environment starts as a stack file")
    return tuple(_of_environment(workspace, name, at, length, pool, nodes) for name in chosen)


def _of_environment(
    workspace: Workspace, name: str, at: datetime, length: timedelta, pool: str | None, nodes: int | None
) -> CalendarScreen:
    environment = workspace.environment(name)
    policy = workspace.policy(environment)
    document = None if nodes is not None else _published(workspace, environment)
    return calendar_of(policy, environment, document, at=at, length=length, pool=pool, nodes=nodes)


def calendar_of(
    policy: Policy,
    environment: Environment,
    document: DesiredDocument | None,
    *,
    at: datetime,
    length: timedelta = _WEEK,
    pool: str | None = None,
    nodes: int | None = None,
) -> CalendarScreen:
    """The calendar of a policy over ``length`` from ``at`` on; the pools are as large as ``document`` has them, else
    ``nodes`` nodes each. Raises Fault where there is no such pool."""
    pools = _pools(policy, pool)
    sizes, told = _sizes(policy, document, nodes)
    windows = policy.windows
    bundle = bundle_of(policy)
    cluster = cluster_facts(environment, Snapshot(environment=environment.name, taken_at=at))
    cluster |= {
        "nodes": sum(each.nodes for each in sizes.values()),
        "gpus": sum(each.gpus for each in sizes.values()),
    }

    # As many pools share one moment, so do they the rules' view of it.
    @cache
    def rules_at(moment: datetime) -> BudgetRules:
        # Nothing is supposed to have gone yet in any opening.
        nothing_gone = Gone({}, moment - LONGEST_OPENING)
        return BudgetRules(bundle, windows, cluster, nothing_gone, lambda machine: (), moment)

    end = at + length
    return CalendarScreen(
        environment=environment.name,
        start=at,
        end=end,
        sizes=told,
        pools=tuple(
            timetable(each, sizes[each.name].nodes, sizes[each.name].gpus, rules_at, windows, at, end) for each in pools
        ),
    )


def _pools(policy: Policy, name: str | None) -> tuple[NodePool, ...]:
    if name is None:
        return policy.node_pools
    found = policy.node_pool(name)
    if found is None:
        known = ", ".join(pool.name for pool in policy.node_pools) or "none"
        raise Fault(f"there is no node pool {name}", f"pools here: {known}")
    return (found,)


def _sizes(policy: Policy, document: DesiredDocument | None, nodes: int | None) -> tuple[Mapping[str, PoolSize], str]:
    if document is not None:
        counted = {pool.name: PoolSize(0, 0) for pool in policy.node_pools}
        for claim in document.claims:
            if claim.node_pool in counted:
                size = counted[claim.node_pool]
                counted[claim.node_pool] = PoolSize(size.nodes + 1, size.gpus + gpu_count(claim.capacity))
        return counted, f"pools as large as the published document has them, version {document.version}"
    supposed = SUPPOSED_NODES if nodes is None else nodes
    told = f"each pool supposed to have {supposed} nodes"
    if nodes is None:
        told += ", since nothing is published here yet; --nodes N supposes another number"
    return {pool.name: PoolSize(supposed, supposed) for pool in policy.node_pools}, told


def _published(workspace: Workspace, environment: Environment) -> DesiredDocument | None:
    """The environment's document, when there is one here; one that cannot be read is as good as none."""
    try:
        document = FileStore(workspace.store_root(environment), environment.name).document()
    except (StoreUnavailable, StoredFileUnreadable):
        return None
    return document if document is not None and document.version > 0 else None
