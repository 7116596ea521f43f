"""What ``explain`` answers, as values: what a pass does about one pod, node or rule, and the values that decide it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from attrs import Factory, frozen

from engine.disruption.explained import BudgetExplanation
from engine.model.pending import Pending
from engine.model.rule import Enforcement, ParameterValue, RuleKind


@frozen
class Step:
    """A sub-expression of a rule: as it is written, with its values in place (``22 >= 80``), and what it came to."""

    text: str
    values: str
    outcome: str


@frozen
class RuleSaid:
    """One rule's word about one thing, such as an instance type or a reason to leave.

    ``outcome`` is what its expression came to; ``message`` is the rule's, where it does not let the thing be.
    """

    rule: str
    enforcement: Enforcement
    about: str
    outcome: str
    message: str = ""
    steps: tuple[Step, ...] = ()


@frozen
class PoolSaid:
    """What one pool has for the pod, or its first refusal; rules are asked about the types nearest to the pod."""

    node_pool: str
    words: str
    rules: tuple[RuleSaid, ...] = ()


@frozen
class PodExplanation:
    """``outcome`` is a sentence; ``losers`` are offerings that would have done, each with what it costs more.

    ``ignored`` is what the pod asks for that is of no use for new nodes, where it asks for something else as well.
    """

    pod: str
    workload: str
    environment: str
    at: datetime
    asks: str
    outcome: str
    losers: tuple[str, ...] = ()
    pools: tuple[PoolSaid, ...] = ()
    ignored: tuple[str, ...] = ()


@frozen
class NodeExplanation:
    """``outcome`` says whether the machine leaves, and why or why not; ``to_change`` what would make it otherwise.
    ``code`` is the stay reason's, or the phase of its removal: ``mark`` or ``release``.

    ``pending`` is what a machine that stays is to go for all the same, once nothing keeps it. ``grace`` says what its
    pool's terminationGracePeriod means for it, empty where there is none, or nothing to go for. ``drained_by``: by then
    what is left on it is deleted, since it is marked. ``expires_at`` is when its time comes, or came; None is never.
    """

    node: str
    claim: str
    node_pool: str
    machine: str
    environment: str
    at: datetime
    outcome: str
    code: str = ""
    to_change: str = ""
    pending: tuple[Pending, ...] = ()
    grace: str = ""
    drained_by: datetime | None = None
    expires_at: datetime | None = None
    rules: tuple[RuleSaid, ...] = ()
    budgets: tuple[BudgetExplanation, ...] = ()


@frozen
class InForce:
    """A rule as one environment has it."""

    environment: str
    enforcement: Enforcement
    params: Mapping[str, ParameterValue]


@frozen
class RuleExplanation:
    """``settings`` and ``expressions`` are the rule's fields, by their YAML names: those without CEL and those with it.

    ``matches`` are counts by what is counted; ``now`` what it does at this moment, each a sentence.
    """

    rule: str
    kind: RuleKind
    place: str
    message: str
    environment: str
    at: datetime
    in_force: tuple[InForce, ...]
    expressions: Mapping[str, str]
    matches: Mapping[str, int]
    node_pools: tuple[str, ...] = ()
    errors: int = 0
    sample: str = ""
    now: tuple[str, ...] = ()
    said: tuple[RuleSaid, ...] = ()
    budgets: tuple[BudgetExplanation, ...] = ()
    settings: Mapping[str, str] = Factory(dict)


Explanation = PodExplanation | NodeExplanation | RuleExplanation
