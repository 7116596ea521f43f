"""The disruption budgets of rules as one pass asks them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from engine.decide.fleet import Fleet
from engine.decide.wrong_clocks import by_the_right_clock
from engine.disruption.budget_rules import BudgetRules, Gone, PodsOn
from engine.model.environment import Environment
from engine.model.ledger import Disruption, Ledger
from engine.model.plan import Removal
from engine.model.policy import Policy
from engine.model.reason import VOLUNTARY_REASONS
from engine.model.rule import RuleKind
from engine.model.snapshot import Snapshot
from engine.policy.facts.values import cluster_facts
from engine.policy.rules.compiled import bundle_of
from engine.policy.windows import LONGEST_OPENING


def budget_rules(fleet: Fleet, policy: Policy, environment: Environment, snapshot: Snapshot) -> BudgetRules | None:
    """The rules at the snapshot's time, over the pods that the fleet has; None where there is no such rule."""
    pods = {sighting.claim.name: sighting.pods for sighting in fleet.sightings}
    return _rules(policy, environment, snapshot, lambda machine: pods.get(machine.claim.name, ()))


def rules_on_pools(policy: Policy, environment: Environment, snapshot: Snapshot) -> BudgetRules | None:
    """The same for whoever asks about pools alone; of single nodes it knows no pods."""
    return _rules(policy, environment, snapshot, lambda machine: ())


def _rules(policy: Policy, environment: Environment, snapshot: Snapshot, pods_on: PodsOn) -> BudgetRules | None:
    if not any(rule.kind is RuleKind.DISRUPTION_BUDGET for rule in policy.rules):
        return None
    facts, gone = cluster_facts(environment, snapshot), gone_before(snapshot)
    return BudgetRules(bundle_of(policy), policy.windows, facts, gone, pods_on, snapshot.taken_at)


def gone_before(snapshot: Snapshot) -> Gone:
    """What the ledger knows to have gone. Where nothing was ever published, nothing can have gone that it does not
    know; where something was, and the ledger is new, counting begins now."""
    right = by_the_right_clock(snapshot)
    return Gone(right.ledger.disruptions, _counted_since(right))


def with_disruptions(ledger: Ledger, removals: Iterable[Removal], snapshot: Snapshot) -> Mapping[str, Disruption]:
    """Removals by choice after a pass that does ``removals``; those of more than eight days ago are forgotten."""
    now = snapshot.taken_at
    known = {name: each for name, each in ledger.disruptions.items() if each.acted_at >= now - LONGEST_OPENING}
    for record in (removal.record for removal in removals):
        if record.reason in VOLUNTARY_REASONS:
            begun_at = known[record.claim].begun_at if record.claim in known else now
            known[record.claim] = Disruption(record.node_pool, record.reason, begun_at, acted_at=now)
    return dict(sorted(known.items()))


def counted_since(snapshot: Snapshot) -> datetime:
    """From when on the ledger is complete after this pass: later than what it forgets now. So a clock that runs days
    ahead for a pass does not make anybody believe that nothing went in the opening that holds."""
    forgotten = snapshot.taken_at - LONGEST_OPENING
    acted_at = (each.acted_at for each in snapshot.ledger.disruptions.values() if each.acted_at < forgotten)
    return max((_counted_since(snapshot), *(moment + datetime.resolution for moment in acted_at)))


def _counted_since(snapshot: Snapshot) -> datetime:
    if snapshot.ledger.counted_since is not None:
        return snapshot.ledger.counted_since
    was_published = snapshot.document is not None and snapshot.document.version > 0
    return snapshot.taken_at if was_published else snapshot.taken_at - LONGEST_OPENING
