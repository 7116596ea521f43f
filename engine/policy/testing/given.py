"""What a case gives, as facts that rules read: defaults for every field, what it says laid over them, and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property

from engine.model.diagnostic import Position
from engine.model.environment import Environment
from engine.model.policy import NodePool, Policy
from engine.model.rule import DisruptionBudget, Rule
from engine.policy.cel.port import Plain
from engine.policy.cel.types import CelType, Record, Scalar
from engine.policy.facts.fixtures import FixtureError, FixtureProblem, fixture, fixture_value
from engine.policy.facts.schema import NODE_POOL, VARIABLE_TYPES, params_record
from engine.policy.facts.values import Facts, node_pool_facts, window_facts
from engine.policy.findings import did_you_mean
from engine.policy.located import Fields, Items, Located, Path, find
from engine.policy.located import Scalar as Written
from engine.policy.rules.gather import stack_position
from engine.policy.rules.parts import VOLUNTARY
from engine.policy.rules.ruling import TypeAt
from engine.policy.rules.types_at import SoldType
from engine.policy.testing.cases import Case
from engine.policy.windows import is_open

USE = "use"
_CAPACITY_TYPE = "capacityType"
_ON_DEMAND = "on-demand"


class BadFacts(Exception):
    """What a case gives is no fact. All that is wrong with one variable, each at its place."""

    def __init__(self, problems: Sequence[tuple[Position, str, str, str]]) -> None:
        """``problems`` are place, rule id, message and hint."""
        super().__init__("; ".join(message for _, _, message, _ in problems))
        self.problems = tuple(problems)


class World:
    """What cases may take their facts from: the pools and windows of the policy, and what the catalog sells."""

    def __init__(self, policy: Policy, sold: Mapping[TypeAt, SoldType], environment: Environment) -> None:
        self.policy, self.sold, self.environment = policy, sold, environment


class Given:
    """The facts of one case, variable by variable, for one rule. Each may raise BadFacts."""

    def __init__(self, case: Case, rule: Rule, world: World) -> None:
        self._case, self._rule, self._world = case, rule, world

    def plain(self, variable: str) -> Plain:
        """The fact of that name, all its fields filled in."""
        match variable:
            case "instanceType":
                return self._instance_type()
            case "nodePool":
                return self.node_pool
            case "node":
                return self._node()
            case "cluster":
                here = self._world.environment
                return self._record(variable, {"environment": here.name, "region": here.region})
            case "params":
                return self._of(params_record(self._rule.params), variable, dict(self._rule.params))
            case "reason":
                return self.reason
            case "windows":
                return window_facts({name: name in self.open_windows for name in self._windows})
            case "now" | "group":
                return self._value(variable)
            case _:
                return self._record(variable, {})

    def says(self, variable: str) -> bool:
        """Whether the case, or the defaults of its file, say anything of the variable."""
        return self._written(variable)[1] is not None

    def place_of(self, variable: str) -> Position:
        """Where the variable is given; the case where it is not."""
        path, written = self._written(variable)
        return self._key_at(path) if written is not None else self._case.position

    def own(self) -> Sequence[tuple[str, Position]]:
        """The variables that the case itself gives, with the places of their names."""
        path = (*self._case.path, "given")
        fields = find(self._root, path)
        return [(name, self._key_at((*path, name))) for name in fields.fields] if isinstance(fields, Fields) else []

    def of_stack(self) -> Mapping[str, Position]:
        """The rule's parameters whose values are a stack file's, and where that sets them."""
        here, rule = self._world.environment, self._rule.name
        own = self._overrides("params")
        return {
            name: stack_position(here, f"params[{rule}][{name}]")
            for name in here.params.get(rule, {})
            if name not in own
        }

    @cached_property
    def node_pool(self) -> Facts:
        base: Facts = {}
        named = self._used("nodePool")
        if named is not None:
            name, place = named
            pool = self._world.policy.node_pool(name)
            if pool is None:
                hint = did_you_mean(name, [each.name for each in self._world.policy.node_pools])
                raise BadFacts([(place, "unknown-node-pool", f"there is no pool {name[:60]!r}", hint)])
            base = dict(node_pool_facts(pool, nodes=0, gpus=0))
        return self._record("nodePool", base)

    @property
    def matched_pool(self) -> NodePool:
        """The pool as ``match`` sees it."""
        facts = self.node_pool
        labels = facts["labels"]
        position = self._case.position
        told = {str(key): str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {}
        return NodePool(name=str(facts["name"]), node_class="", position=position, labels=told)

    @cached_property
    def reason(self) -> str:
        """One that budgets limit; the first of the rule's own where nobody says."""
        path, written = self._written("reason")
        own = self._rule.reasons if isinstance(self._rule, DisruptionBudget) else ()
        if written is None:
            return (own or VOLUNTARY)[0].value
        known = [each.value for each in VOLUNTARY]
        text = written.text if isinstance(written, Written) else ""
        if text not in known:
            message = f"reason is none that a budget limits: {text[:40]!r}"
            raise BadFacts([(self._key_at(path), "unknown-value", message, did_you_mean(text, known))])
        return text

    @cached_property
    def open_windows(self) -> frozenset[str]:
        """Those that the case names; without any word about it, those that are open at its ``now``."""
        path, written = self._written("windows")
        if not isinstance(written, Items):
            return self._open_at_now() if self.says("now") else frozenset()
        unknown = [
            (self._at((*path, number)), "unknown-window", f"there is no window {each.text[:60]!r}", self._hint(each))
            for number, each in enumerate(written.items)
            if isinstance(each, Written) and each.text not in self._windows
        ]
        if unknown:
            raise BadFacts(unknown)
        return frozenset(each.text for each in written.items if isinstance(each, Written))

    def _open_at_now(self) -> frozenset[str]:
        try:
            return frozenset(each.name for each in self._world.policy.windows if is_open(each, self.now))
        except (OverflowError, ValueError):
            message = "now is so near the end of the calendar that no window can be told"
            raise BadFacts([(self.place_of("now"), "bad-fact", message, "write a time of these years")]) from None

    @property
    def now(self) -> datetime:
        value = self._value("now")
        if not isinstance(value, datetime):
            raise TypeError(f"now is {value!r}")
        return value

    def _hint(self, written: Written) -> str:
        return did_you_mean(written.text, self._windows) or "the windows are those of the Calendars"

    @property
    def _windows(self) -> Sequence[str]:
        return [each.name for each in self._world.policy.windows]

    def _instance_type(self) -> Facts:
        base: Facts = {}
        named = self._used("instanceType")
        if named is not None:
            name, place = named
            given = self._overrides("instanceType").get(_CAPACITY_TYPE, _ON_DEMAND)
            sold = self._world.sold.get((name, str(given)))
            if sold is None:
                at = sorted(capacity_type for kind, capacity_type in self._world.sold if kind == name)
                message = f"the catalog of {self._world.environment.name} does not sell {name[:60]!r}"
                hint = did_you_mean(name, {kind for kind, _ in self._world.sold})
                if at:
                    message, hint = f"{message} as {str(given)[:40]}", f"it is sold as {', '.join(at)}"
                raise BadFacts([(place, "unknown-instance-type", message, hint)])
            base = dict(sold.facts)
        return self._record("instanceType", base)

    def _node(self) -> Facts:
        """A node of the pool that the case is about."""
        pool = self.node_pool["name"]
        facts = self._record("node", {"nodePool": pool})
        if facts["nodePool"] != pool:
            path, _ = self._written("node")
            message = f"the node is of the pool {facts['nodePool']}, and the case is about {pool}"
            raise BadFacts([(self._key_at(path), "contradiction", message, "give one of them, under nodePool")])
        return facts

    def _record(self, variable: str, base: Facts) -> Facts:
        type_ = NODE_POOL if variable == "nodePool" else VARIABLE_TYPES[variable]
        if not isinstance(type_, Record):
            raise TypeError(f"{variable} is no record")
        return self._of(type_, variable, base)

    def _of(self, record: Record, variable: str, base: Facts) -> Facts:
        overrides = self._overrides(variable)
        laid_over = {**{key: value for key, value in base.items() if key not in overrides}, **overrides}
        try:
            return fixture(record, laid_over)
        except FixtureError as error:
            raise BadFacts([self._placed(variable, each) for each in error.problems]) from None

    def _value(self, variable: str) -> Plain:
        type_: CelType = VARIABLE_TYPES[variable]
        path, written = self._written(variable)
        if written is None:
            return fixture_value(type_, "" if type_ is Scalar.STRING else _BEGINNING, variable)
        try:
            return fixture_value(type_, self._plain(written, path), variable)
        except FixtureError as error:
            place = self._key_at(path)
            told = [(place, "bad-fact", f"{each.path}: {each.message}", each.hint) for each in error.problems]
            raise BadFacts(told) from None

    def _overrides(self, variable: str) -> dict[str, Plain]:
        """What the defaults say, then what the case says; ``use`` apart."""
        found: dict[str, Plain] = {}
        for layer in self._layers(variable):
            fields = find(self._root, layer)
            if isinstance(fields, Fields):
                for key, written in fields.fields.items():
                    if not (key == USE and variable in ("instanceType", "nodePool")):
                        found.pop(key, None)
                        found[key] = self._plain(written, (*layer, key))
        return found

    def _used(self, variable: str) -> tuple[str, Position] | None:
        """What the facts are taken from, by the case itself or else by the defaults."""
        for layer in reversed(self._layers(variable)):
            written = find(self._root, (*layer, USE))
            if written is not None:
                place = self._at((*layer, USE))
                if not isinstance(written, Written) or not written.is_text:
                    message = f"{variable}.{USE} is the name of what the facts are taken from"
                    raise BadFacts([(place, "wrong-type", message, "write a name")])
                return written.text, place
        return None

    def _plain(self, written: Located, path: Path) -> Plain:
        if isinstance(written, Fields):
            return {key: self._plain(each, (*path, key)) for key, each in written.fields.items()}
        if isinstance(written, Items):
            return [self._plain(each, (*path, number)) for number, each in enumerate(written.items)]
        if written.value is None:
            message = "expected a value, found nothing: a fact is always there"
            raise BadFacts([(self._key_at(path), "bad-fact", message, "write one, or leave the field out")])
        return written.value

    def _placed(self, variable: str, problem: FixtureProblem) -> tuple[Position, str, str, str]:
        """Where the override stands that a problem is about: what the case says goes before the defaults."""
        for layer in reversed(self._layers(variable)):
            fields = find(self._root, layer)
            path = _path_to(fields, problem.path) if fields is not None else ()
            if path:
                return (
                    self._key_at((*layer, *path)),
                    "bad-fact",
                    f"{variable}.{problem.path}: {problem.message}",
                    problem.hint,
                )
        return self._case.position, "bad-fact", f"{variable}.{problem.path}: {problem.message}", problem.hint

    def _written(self, variable: str) -> tuple[Path, Located | None]:
        layers = self._layers(variable)
        for layer in reversed(layers):
            found = find(self._root, layer)
            if found is not None:
                return layer, found
        return layers[-1], None

    def _layers(self, variable: str) -> Sequence[Path]:
        return [(*layer, variable) for layer in self._case.given]

    @property
    def _root(self) -> Located:
        return self._case.item.root

    def _at(self, path: Path) -> Position:
        return self._case.item.at(path)

    def _key_at(self, path: Path) -> Position:
        return self._case.item.at_key(path)


_BEGINNING = "1970-01-01T00:00:00Z"


def _path_to(part: Located, spelled: str) -> Path:
    """The steps from a part to what ``labels.tier`` or ``pods[0].gpus`` spells, as far as they can be followed."""
    if isinstance(part, Fields):
        for key in sorted(part.fields, key=len, reverse=True):
            rest = spelled.removeprefix(key)
            if spelled.startswith(key) and (not rest or rest[0] in ".["):
                return (key, *_path_to(part.fields[key], rest.removeprefix(".")))
    elif isinstance(part, Items) and spelled.startswith("["):
        number, _, rest = spelled[1:].partition("]")
        if number.isdigit() and int(number) < len(part.items):
            return (int(number), *_path_to(part.items[int(number)], rest.removeprefix(".")))
    return ()
