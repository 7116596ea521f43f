"""Judges a whole plan by the Kubernetes documentation, apart from everything that made it.

Nothing here imports the scheduler, the decision or the rules' evaluation: only values, and its own reading of
Kubernetes and of Karpenter. So what CEL rules say of pods is not judged here, only what holds without them.
"""

from __future__ import annotations

from engine.model.catalog import Catalog
from engine.model.environment import Environment
from engine.model.plan import Plan
from engine.model.policy import Policy
from engine.model.snapshot import Snapshot
from tests.scheduling.checker.document import base_capacity, document, money
from tests.scheduling.checker.launches import purchases
from tests.scheduling.checker.limits import within_caps, within_limits
from tests.scheduling.checker.min_values import shown_values
from tests.scheduling.checker.places import world_of
from tests.scheduling.checker.placing import placings
from tests.scheduling.checker.pods import answers
from tests.scheduling.checker.priority import priority_first
from tests.scheduling.checker.reservations import within_reservations
from tests.scheduling.checker.ties import torn_ties
from tests.scheduling.checker.violation import Violation


def violations(
    snapshot: Snapshot, plan: Plan, policy: Policy, environment: Environment, catalog: Catalog
) -> tuple[Violation, ...]:
    """Everything that is wrong with a plan; empty when it is right."""
    return (
        *answers(snapshot, plan),
        *placings(snapshot, plan, policy, catalog),
        *torn_ties(world_of(snapshot, plan, policy)),
        *priority_first(snapshot, plan, policy, catalog),
        *purchases(snapshot, plan, policy, environment, catalog),
        *within_reservations(snapshot, plan, policy),
        *shown_values(snapshot, plan, policy, environment, catalog),
        *within_limits(snapshot, plan, policy, environment, catalog),
        *within_caps(plan, environment),
        *document(snapshot, plan),
        *money(snapshot, plan),
        *base_capacity(snapshot, plan, policy, environment),
    )
