"""Rules of policy as values: CEL texts, and what frames them. policy/ reads them from files and evaluates them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import Enum

from attrs import field, frozen

from engine.model.constraint import Requirement
from engine.model.diagnostic import Position
from engine.model.reason import DisruptionReason

ParameterValue = bool | int | float | str


class RuleKind(str, Enum):
    REQUIREMENT_RULE = "RequirementRule"
    LIMIT_RULE = "LimitRule"
    DISRUPTION_BUDGET = "DisruptionBudget"
    GUARDRAIL = "Guardrail"


class Enforcement(str, Enum):
    """``deny`` acts; ``warn`` tells what it would have done, as a warning; ``audit`` only counts it."""

    DENY = "deny"
    WARN = "warn"
    AUDIT = "audit"


class ActionClass(str, Enum):
    """What a guardrail may block: launches, removals by choice, and replacements."""

    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


class LimitedResource(str, Enum):
    """``memory`` is in bytes, ``cpu`` in cores, ``usdPerHour`` in dollars an hour, the others are counts."""

    GPUS = "gpus"
    NODES = "nodes"
    CPU = "cpu"
    MEMORY = "memory"
    USD_PER_HOUR = "usdPerHour"


@frozen
class Expression:
    """A CEL text as a person wrote it. ``position`` is where its first character stands; it is no part of its meaning.

    ``column_step`` is the column at which every further line of a block begins, counted from 1.
    """

    text: str
    position: Position = field(eq=False, repr=False)
    column_step: int = field(default=1, eq=False, repr=False)


@frozen
class NamedExpression:
    """A match condition, or a variable that later expressions of the same rule read as ``variables.NAME``."""

    name: str
    expression: Expression


@frozen
class Selection:
    """What a rule is about, without CEL. ``()`` selects everything; of several parts all must hold.

    ``node_pools`` are names; ``node_pool_labels``, ``pod_labels`` are label selectors, ANDed; ``namespaces`` are the
    pods'. A part that is about pods says nothing of a node pool, and the other way round.
    """

    node_pools: tuple[str, ...] = ()
    node_pool_labels: tuple[Requirement, ...] = ()
    namespaces: tuple[str, ...] = ()
    pod_labels: tuple[Requirement, ...] = ()


@frozen(kw_only=True)
class Rule:
    """What all kinds share. ``name`` is the stable id, unique among all kinds.

    ``params`` are typed values: the stack's where it gives any, else the defaults. ``message`` is never empty;
    ``message_expression`` gives a better one where it can be evaluated. ``is_time_sensitive`` lets a requirement rule
    read ``now`` and ``windows``; the other kinds may always.
    """

    name: str
    position: Position = field(eq=False, repr=False)
    match: Selection = Selection()
    match_conditions: tuple[NamedExpression, ...] = ()
    params: Mapping[str, ParameterValue] = field(factory=dict)
    variables: tuple[NamedExpression, ...] = ()
    enforcement: Enforcement = Enforcement.DENY
    message: str
    message_expression: Expression | None = None
    remedy: str = ""
    docs: str = ""
    labels: Mapping[str, str] = field(factory=dict)
    is_portable: bool = True
    is_time_sensitive: bool = False


@frozen(kw_only=True)
class RequirementRule(Rule):
    """Which instance types a pod may get (``require``, a bool), or likes (``prefer``, 0 to 1, times ``weight``).

    Exactly one of the two is there. Evaluated for a pod and an instance type at one capacity type.
    """

    require: Expression | None = None
    prefer: Expression | None = None
    weight: float = 1.0

    @property
    def kind(self) -> RuleKind:
        return RuleKind.REQUIREMENT_RULE


@frozen(kw_only=True)
class LimitRule(Rule):
    """A ceiling as a number, in the unit of ``resource``. ``group_by`` None is one group for each node pool.

    ``group_by`` gives a group's name, from ``pod`` or ``nodePool``; the ceiling, which may read ``group``, holds for
    each group apart.
    """

    resource: LimitedResource
    ceiling: Expression
    group_by: Expression | None = None

    @property
    def kind(self) -> RuleKind:
        return RuleKind.LIMIT_RULE


@frozen(kw_only=True)
class DisruptionBudget(Rule):
    """Which nodes may go (``candidate``), how many at once (``budget``), how many per opening (``max_per_window``).

    Counted for each node pool apart. ``reasons`` ``()`` is every voluntary reason. ``windows`` ``()`` is always; while
    none of them is open, nothing goes when ``blocks_outside``, else this rule says nothing.
    """

    reasons: tuple[DisruptionReason, ...] = ()
    windows: tuple[str, ...] = ()
    blocks_outside: bool = True
    candidate: Expression | None = None
    budget: Expression | None = None
    max_per_window: Expression | None = None

    @property
    def kind(self) -> RuleKind:
        return RuleKind.DISRUPTION_BUDGET


@frozen(kw_only=True)
class Guardrail(Rule):
    """An invariant on the finished plan: where ``expression`` is false, or errs, what it ``blocks`` is not done."""

    expression: Expression
    blocks: tuple[ActionClass, ...]

    @property
    def kind(self) -> RuleKind:
        return RuleKind.GUARDRAIL


AnyRule = RequirementRule | LimitRule | DisruptionBudget | Guardrail


@frozen
class Window:
    """A named window of a Calendar: open for ``duration`` from each time of its ``schedules``, 5-field cron lines.

    ``time_zone`` is an IANA name. A local time that daylight saving skips does not fire, one that it repeats fires
    twice; openings that overlap are one.
    """

    name: str
    schedules: tuple[str, ...]
    duration: timedelta
    time_zone: str = "UTC"
    position: Position = field(eq=False, repr=False, kw_only=True)
