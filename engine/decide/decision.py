"""Snapshot + Policy + Catalog -> Plan."""

from __future__ import annotations

from attrs import evolve

from engine.decide.beyond_pools import BeyondPools
from engine.decide.budgets_asked import budget_rules
from engine.decide.ceilings import Ceilings
from engine.decide.departures import departures
from engine.decide.elsewhere import Elsewhere, answer_to, awaiting, replaced, with_savings
from engine.decide.ended_reservations import as_on_demand, changed
from engine.decide.fleet import Fleet
from engine.decide.foundation import foundation, has_changed
from engine.decide.guarding import Closed, guarded
from engine.decide.headroom import headroom_uses, spares_by_claim, without_spares
from engine.decide.held_launches import without_held
from engine.decide.holding import next_owed, owed_with
from engine.decide.idle_reservations import idle_reservations
from engine.decide.launches import Launches, launches
from engine.decide.machines import machines
from engine.decide.memory import next_ledger
from engine.decide.nominations import binding_differences, next_planned, nominations
from engine.decide.plan_hash import sealed
from engine.decide.question import problem_of, see
from engine.decide.remembered import drift_now
from engine.decide.requirement_rules import RequirementRules
from engine.model.catalog import Catalog
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, Foundation, RemovalRecord, node_sets
from engine.model.environment import Environment
from engine.model.money import total
from engine.model.plan import LimitUse, Plan, Removal, RemovalPhase
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot


def decide(snapshot: Snapshot, policy: Policy, catalog: Catalog, environment: Environment) -> Plan:
    """Everything that one pass would do, and a reason for all that it would not.

    Pure: the same inputs give a byte-identical plan, in whatever order pods, nodes, instances, pools or claims come. A
    claim leaves by a removal record only. A plan that changes nothing in the document carries the published one as it
    is, and document version 0 where none is published.
    """
    seen = see(snapshot, policy, catalog, environment)
    snapshot, fleet, brought, lost, learned = seen.snapshot, seen.fleet, seen.brought, seen.lost, seen.learned
    gone, owed = seen.gone, seen.owed
    rules = RequirementRules(policy, catalog, environment, snapshot)
    ceilings = Ceilings(fleet, gone, owed, policy, environment)
    budgets = budget_rules(fleet, policy, environment, snapshot)
    drift = drift_now(policy, catalog, environment, snapshot)
    waiting, published = fleet.waiting_pods, snapshot.document
    # Those that lose their node now look for a place beside those that wait; nothing is told to them before they do.
    asked, told_of = (*waiting, *seen.displaced), {pod.key for pod in waiting}
    mounting = seen.volumes.mounting(asked)

    def draft(closed: Closed) -> Plan:
        problem = problem_of(seen, asked, rules, ceilings, closed)
        solution = answer_to(seen, problem, closed)
        spares, whole = spares_by_claim(solution), solution
        known = machines(brought, gone, without_spares(whole).placements, policy, snapshot, spares, drift)
        elsewhere = Elsewhere(seen, asked, whole, rules, ceilings, closed, known)
        cap = environment.caps.removals
        leaving = departures(
            fleet,
            lost,
            brought,
            known,
            cap,
            budgets,
            snapshot,
            elsewhere,
            blocked=closed.remove,
            replacing=closed.replace,
            doom=seen.doomed,
        )
        whole = leaving.replacing.answer if leaving.replacing is not None else whole
        taken_over = replaced(seen, leaving.replacing, solution)
        solution = without_spares(whole)
        new = launches(solution.new_nodes, fleet, snapshot, policy, environment, taken_over)
        answers = without_held(solution, new.held, problem, policy, environment)
        standing = tuple(sighting.claim for sighting in fleet.sightings)
        repriced = as_on_demand(standing, snapshot, policy, catalog)
        document, foundation_changes = _document(fleet, repriced, leaving.removals, new, snapshot, policy, environment)
        planned = next_planned(learned, waiting, solution.placements, new.launches, document.claims)
        told = (*rules.verdicts(waiting), *ceilings.verdicts(answers.limits), *leaving.verdicts)
        return Plan(
            environment=environment.name,
            decided_at=snapshot.taken_at,
            base_version=published.version if published else 0,
            policy_digest=policy.digest,
            catalog_digest=catalog.digest,
            launches=new.launches,
            removals=with_savings(leaving.removals, published),
            kept=awaiting(leaving.kept, new.launches),
            placements=tuple(
                sorted((each for each in solution.placements if each.pod in told_of), key=lambda each: each.pod)
            ),
            unplaced=tuple(
                sorted(
                    (e for e in (*rules.told(answers.unplaced, asked), *mounting.refused) if e.pod in told_of),
                    key=lambda each: each.pod,
                )
            ),
            base_shortfalls=tuple(sorted(answers.base_shortfalls, key=lambda each: each.node_pool)),
            limits=tuple(sorted(answers.limits, key=_limit_order)),
            usd_per_hour_before=total(claim.usd_per_hour for claim in published.claims) if published else total(()),
            usd_per_hour_after=total(claim.usd_per_hour for claim in document.claims),
            document=document,
            foundation_changes=foundation_changes,
            repriced=changed(standing, repriced),
            ledger=next_ledger(learned, fleet, brought, known, document, planned, leaving.removals, snapshot),
            idle_reservations=idle_reservations(seen, new.launches),
            nominations=nominations(solution.placements, waiting),
            headroom=headroom_uses(problem, fleet, snapshot, whole, new.held, environment),
            binding_differences=binding_differences(fleet, snapshot),
            verdicts=tuple(sorted(told, key=lambda each: each.rule)),
            packing=answers.packing,
            paused=environment.paused or snapshot.paused,
        )

    guard = guarded(draft, policy, environment, snapshot)
    plan = guard.plan
    every = frozenset(pool.name for pool in policy.node_pools)
    closed_pools = every if guard.closes_launches else ceilings.closed_pools
    owed = owed_with(owed, (each for each in plan.removals if each.record.claim not in gone), snapshot.taken_at)
    owed = next_owed(owed, plan.launches, closed_pools, snapshot.taken_at)
    unplaced = BeyondPools(seen).told(plan.unplaced, mounting.pods)
    return sealed(evolve(plan, unplaced=unplaced, ledger=evolve(plan.ledger, owed=owed)), published)


def _limit_order(use: LimitUse) -> tuple[str, str, str, str]:
    return use.node_pool, use.resource, use.rule, use.group


def _document(
    fleet: Fleet,
    standing: tuple[Claim, ...],
    removals: tuple[Removal, ...],
    new: Launches,
    snapshot: Snapshot,
    policy: Policy,
    environment: Environment,
) -> tuple[DesiredDocument, bool]:
    """The document that this plan proposes, and whether its foundation is another than the published one's.

    ``standing`` are the fleet's claims as they are from now on.

    While the main stack is busy the foundation stays as it is: launches that would change it are held already, and what
    could be cleaned up waits.
    """
    published = snapshot.document
    released = [removal.record for removal in removals if removal.phase is RemovalPhase.RELEASE]
    leaves = {record.claim for record in released}
    staying = [claim for claim in standing if claim.name not in leaves]
    claims = (*staying, *(launch.claim for launch in new.launches))
    base = foundation(claims, new.templates, published, policy, environment)
    changes = has_changed(base, published)
    if environment.name in snapshot.busy_stacks:
        base, changes = published.foundation if published else base, False
    is_repriced = any(now is not sighting.claim for now, sighting in zip(standing, fleet.sightings, strict=True))
    if not (released or new.launches or changes or is_repriced):
        return published or _nothing(environment, base), False
    carried = [leaving.record for leaving in fleet.leaving]
    document = DesiredDocument(
        environment=environment.name,
        version=(published.version if published else 0) + 1,
        foundation=base,
        node_sets=node_sets(claims),
        removals=_in_claim_order((*carried, *released)),
    )
    return document, changes


def _nothing(environment: Environment, base: Foundation) -> DesiredDocument:
    return DesiredDocument(environment=environment.name, version=0, foundation=base, node_sets=())


def _in_claim_order(records: tuple[RemovalRecord, ...]) -> tuple[RemovalRecord, ...]:
    return tuple(sorted(records, key=lambda record: record.claim))
