"""The rules and calendars of all files put together: names, windows, pools, and the stack's values."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from attrs import evolve

from engine.model.diagnostic import Position
from engine.model.environment import Environment
from engine.model.policy import NodePool
from engine.model.rule import AnyRule, DisruptionBudget, Enforcement, ParameterValue, RuleKind, Window
from engine.policy.findings import Findings, ObjectFindings, did_you_mean
from engine.policy.located import text_at
from engine.policy.rules.calendar import read_calendar
from engine.policy.rules.compiled import selects
from engine.policy.rules.parameters import PARAMS
from engine.policy.rules.parts import is_identifier
from engine.policy.rules.read import VARIABLES, RuleRead, pool_position, pool_selector_position, read_rule

CALENDAR, POLICY_TEST = "Calendar", "PolicyTest"
RULE_KINDS = tuple(kind.value for kind in RuleKind)
OUR_KINDS = (*RULE_KINDS, CALENDAR, POLICY_TEST)


class RuleFiles:
    """What the files hold, gathered object by object."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._rules: list[RuleRead] = []
        self._windows: list[Window] = []
        self._calendars: dict[str, Position] = {}
        # What is there and could not be read has had its own errors told, and is not called missing too.
        self._unread_rules: set[str] = set()
        self._unread_windows: set[str] = set()

    def add(self, item: ObjectFindings, kind: str) -> None:
        """Reads one of OUR_KINDS."""
        name = text_at(item.root, ("metadata", "name")) or ""
        if kind == CALENDAR:
            calendar = read_calendar(item)
            self._windows += calendar.windows
            self._unread_windows |= calendar.unread
            self._check_calendar_name(name, item.at(("metadata", "name")))
        elif kind in RULE_KINDS:
            read = read_rule(item, RuleKind(kind))
            self._rules += [read] if read is not None else []
            self._unread_rules |= {name} if read is None else set()

    @property
    def window_names(self) -> tuple[str, ...]:
        """Of all windows that an expression could read, whether they could be read from their file or not."""
        return tuple(name for name in self._every_window if is_identifier(name))

    @property
    def _every_window(self) -> tuple[str, ...]:
        return tuple(sorted({window.name for window in self._windows} | self._unread_windows))

    def is_sound(self, name: str) -> bool:
        """Whether the rule still has all that its expressions may read: what was taken out as wrong was told."""
        parts = (PARAMS, VARIABLES)
        return not any(read.rule.name == name and any(map(read.findings.lacks_part, parts)) for read in self._rules)

    def windows(self) -> tuple[Window, ...]:
        """All windows in name order; a name that is there twice is told."""
        first: dict[str, Window] = {}
        for window in self._windows:
            if window.name in first:
                _duplicate("window", window.name, first[window.name].position, window.position, self._findings)
            first.setdefault(window.name, window)
        return tuple(first[name] for name in sorted(first))

    def rules(
        self, node_pools: Sequence[NodePool], unread_pools: Collection[str], environment: Environment | None
    ) -> tuple[AnyRule, ...]:
        """The rules in name order, with the environment's values and enforcement. What is wrong is told.

        ``unread_pools`` are names of pools that are there and could not be read.
        """
        self._check_names()
        self._check_stack(environment)
        windows = self._every_window
        for read in self._rules:
            self._check_pools(read, node_pools, unread_pools)
            if isinstance(read.rule, DisruptionBudget):
                self._check_windows(read, read.rule.windows, windows)
        settled = [_settled(read, environment) for read in self._rules]
        return tuple(sorted(settled, key=lambda rule: rule.name))

    def _check_calendar_name(self, name: str, position: Position) -> None:
        if name in self._calendars:
            _duplicate("Calendar", name, self._calendars[name], position, self._findings)
        self._calendars.setdefault(name, position)

    def _check_names(self) -> None:
        first: dict[str, Position] = {}
        for read in self._rules:
            name = read.rule.name
            if name in first:
                _duplicate("rule", name, first[name], read.rule.position, self._findings)
            first.setdefault(name, read.rule.position)

    def _check_pools(self, read: RuleRead, pools: Sequence[NodePool], unread: Collection[str]) -> None:
        match, names = read.rule.match, {*(pool.name for pool in pools), *unread}
        for index, name in enumerate(match.node_pools):
            if name not in names:
                message = f"the rule {read.rule.name} matches the pool {name}, which no file defines"
                self._findings.error(
                    pool_position(read, index), "unknown-node-pool", message, did_you_mean(name, names)
                )
        if match.node_pool_labels and not unread and not any(selects(match, pool) for pool in pools):
            message = f"the labels that {read.rule.name} asks for are those of no pool's nodes, so it says nothing"
            hint = "they stand in a pool under spec.template.metadata.labels"
            self._findings.warning(pool_selector_position(read), "matches-nothing", message, hint)

    def _check_windows(self, read: RuleRead, named: Sequence[str], known: Collection[str]) -> None:
        for index, name in enumerate(named):
            if name not in known:
                hint = did_you_mean(name, known) or "add a Calendar with it"
                message = f"no Calendar has a window {name}"
                read.findings.error(("spec", "windows", index), "unknown-window", message, hint)

    def _check_stack(self, environment: Environment | None) -> None:
        """The stack may speak of rules and parameters that are there."""
        if environment is None:
            return
        declared = {read.rule.name: [parameter.name for parameter in read.parameters] for read in self._rules}
        for key, rule, parameter in _named_in(environment):
            position = stack_position(environment, key)
            if rule not in declared:
                # Its parameters would only say the same again.
                if parameter is None and rule not in self._unread_rules:
                    message = f"nodewright:{key.partition('[')[0]} names the rule {rule}, which no policy file defines"
                    self._findings.error(position, "unknown-rule", message, did_you_mean(rule, declared))
            elif parameter is not None and parameter not in declared[rule]:
                message = f"the rule {rule} has no parameter {parameter}"
                self._findings.error(position, "unknown-param", message, did_you_mean(parameter, declared[rule]))


def _named_in(environment: Environment) -> Iterator[tuple[str, str, str | None]]:
    for rule, values in environment.params.items():
        yield f"params[{rule}]", rule, None
        yield from ((f"params[{rule}][{name}]", rule, name) for name in values)
    yield from ((f"enforcement[{rule}]", rule, None) for rule in environment.enforcement)


def stack_position(environment: Environment, key: str) -> Position:
    """Where the stack file speaks of a rule; its beginning where that is not known."""
    return environment.rule_positions.get(key, Position(f"stacks/Pulumi.{environment.name}.yaml", 1, 1))


def _duplicate(what: str, name: str, first: Position, second: Position, findings: Findings) -> None:
    message = f"the {what} {name} is here twice; the first is in {first.file} line {first.line}"
    findings.error(second, "duplicate-name", message, "rename or remove one of them")


def _settled(read: RuleRead, environment: Environment | None) -> AnyRule:
    name = read.rule.name
    enforcement: Enforcement = read.rule.enforcement
    if environment is not None:
        enforcement = environment.enforcement.get(name, enforcement)
    rule: AnyRule = evolve(read.rule, params=dict(_values(read, environment)), enforcement=enforcement)
    return rule


def _values(read: RuleRead, environment: Environment | None) -> Iterator[tuple[str, ParameterValue]]:
    """Each parameter's value; one that has none, or a wrong one, is told and gets a value of its type."""
    rule = read.rule.name
    given = environment.params.get(rule, {}) if environment is not None else {}
    for parameter in read.parameters:
        value = parameter.default
        if parameter.name in given and environment is not None:
            position = stack_position(environment, f"params[{rule}][{parameter.name}]")
            value = parameter.taken(given[parameter.name], _shown(given[parameter.name]), _tell(read, position))
        elif value is None and not read.findings.lacks_part((*PARAMS, parameter.name)):
            stack = f"of {environment.name} " if environment is not None else ""
            message = f"the parameter {parameter.name} has no default, and no stack file {stack}gives it a value"
            hint = f"add default, or set nodewright:params: {{{rule}: {{{parameter.name}: …}}}}"
            read.findings.error_at_key((*PARAMS, parameter.name), "missing-param", message, hint)
        yield parameter.name, _OF_TYPE[parameter.type] if value is None else value


_OF_TYPE: dict[str, ParameterValue] = {"bool": False, "int": 0, "double": 0.0, "string": ""}


def _tell(read: RuleRead, position: Position) -> Any:
    def refuse(rule: str, message: str, hint: str) -> None:
        read.findings.findings.error(position, rule, message, hint)

    return refuse


def _shown(value: ParameterValue) -> str:
    return f'"{value[:60]}"' if isinstance(value, str) else str(value).lower()[:40]
