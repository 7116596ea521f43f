"""A resource type's inputs as a table, and what follows from the table alone: checking and comparing.

The rules come from terraform-provider-aws, on which the official plugin stands: an input that is *computed* keeps
the cloud's value when the program leaves it out; one that *replaces* cannot be changed in place.
"""

from collections.abc import Callable, Iterable, Mapping

from attrs import field, frozen

from engine.sandbox.aws.wire import UNKNOWN, Properties, Value, has_unknown

Same = Callable[[Value, Value], bool]


def equal(old: Value, new: Value) -> bool:
    return bool(old == new)


def equal_as_sets(old: Value, new: Value) -> bool:
    """Lists whose order means nothing to AWS."""
    return sorted(map(repr, old or ())) == sorted(map(repr, new or ()))


@frozen
class Input:
    """One input property, by its name on the wire.

    `says_wrong` is given a known value and answers what is wrong with it, or nothing. `parts` describes the
    properties of an input that is an object. An input that is not `performed` may be present in the official
    plugin only: any value but its default or an empty one is refused.
    """

    name: str
    required: bool = False
    computed: bool = False
    replaces: bool = False
    default: Value = None
    same: Same = equal
    says_wrong: Callable[[Value], str] = lambda _value: ""
    parts: tuple["Input", ...] = ()
    performed: bool = True


@frozen
class Failure:
    """An input that cannot be accepted, as the engine shows it."""

    property: str
    reason: str


@frozen
class Difference:
    """The top-level inputs that changed, those of them that replace, and the exact paths for display."""

    changed: frozenset[str] = frozenset()
    replacing: frozenset[str] = frozenset()
    paths: tuple[str, ...] = field(default=())


@frozen
class Rules:
    """What holds between inputs: groups of names of which at most, exactly or at least one may be given."""

    exclusive: tuple[tuple[str, ...], ...] = ()
    exactly_one: tuple[tuple[str, ...], ...] = ()
    at_least_one: tuple[tuple[str, ...], ...] = ()


def blank(value: Value) -> bool:
    """Absent as far as Terraform's schema goes: nothing, or the type's zero value."""
    return value is None or (value is not UNKNOWN and value in ("", 0, False, [], {}))


def with_defaults(table: Iterable[Input], given: Mapping[str, Value]) -> Properties:
    """The inputs with the table's defaults filled in, inside objects that are given too."""
    filled = dict(given)
    for one in table:
        value = filled.get(one.name)
        if value is None and one.default is not None:
            filled[one.name] = one.default
        elif one.parts and isinstance(value, dict):
            filled[one.name] = with_defaults(one.parts, value)
    return filled


def failures(table: Iterable[Input], rules: Rules, given: Mapping[str, Value]) -> list[Failure]:
    """Everything that is wrong with the inputs, all at once."""
    table = tuple(table)
    found = _failures_of_each(table, given, path="")
    for group in rules.exclusive:
        present = [name for name in group if _given(given, name)]
        if len(present) > 1:
            found.append(Failure(present[0], f'"{present[0]}": conflicts with {", ".join(present[1:])}'))
    for group in (*rules.exactly_one, *rules.at_least_one):
        if not any(_given(given, name) for name in group):
            found.append(Failure(group[0], f"one of `{','.join(group)}` must be specified"))
    for group in rules.exactly_one:
        present = [name for name in group if _given(given, name)]
        if len(present) > 1:
            found.append(Failure(present[0], f"only one of `{','.join(group)}` can be specified, but {present} were"))
    return found


def _failures_of_each(table: tuple[Input, ...], given: Mapping[str, Value], path: str) -> list[Failure]:
    known = {one.name: one for one in table}
    found = [
        Failure(path + name, f"unexpected property {path + name!r}")
        for name in sorted(given.keys() - known.keys() - {"tagsAll", "__defaults"})
    ]
    for one in table:
        value = given.get(one.name)
        if value is None:
            if one.required:
                found.append(Failure(path + one.name, f"Missing required property '{path + one.name}'"))
        elif not one.performed:
            if not blank(value) and value != one.default:
                found.append(Failure(path + one.name, _not_performed(path + one.name)))
        else:
            if one.parts and isinstance(value, dict):
                found += _failures_of_each(one.parts, value, f"{path}{one.name}.")
            wrong = "" if has_unknown(value) else one.says_wrong(value)
            found += [Failure(path + one.name, f"{path}{one.name}: {wrong}")] if wrong else []
    return found


def _not_performed(name: str) -> str:
    return f"nodewright's stand-in for the AWS plugin does not perform '{name}'; the official plugin does"


def _given(inputs: Mapping[str, Value], name: str) -> bool:
    return inputs.get(name) is not None and inputs.get(name) not in ("", [], {})


def compare(
    table: Iterable[Input], old: Mapping[str, Value], state: Mapping[str, Value], new: Mapping[str, Value]
) -> Difference:
    """How `new` inputs differ from the `old` ones; `state` holds what the cloud chose for computed ones."""
    changed: set[str] = set()
    replacing: set[str] = set()
    paths: list[str] = []
    for one in table:
        moved = _moved(one, old.get(one.name), state.get(one.name), new.get(one.name))
        if moved:
            changed.add(one.name)
            paths += [path for path, _ in moved]
            if any(replaces for _, replaces in moved):
                replacing.add(one.name)
    return Difference(frozenset(changed), frozenset(replacing), tuple(paths))


def _moved(one: Input, old: Value, state: Value, new: Value) -> list[tuple[str, bool]]:
    """The paths under one input that changed, each with whether it replaces."""
    if new is None and (one.computed or blank(old)):
        return []
    if old is None:
        # What an import found equal to its default is not written down.
        old = state if one.computed and state is not None else one.default
    if one.parts and isinstance(new, dict) and isinstance(old, dict):
        known = state if isinstance(state, dict) else {}
        inner = [
            move
            for part in one.parts
            for move in _moved(part, old.get(part.name), known.get(part.name), new.get(part.name))
        ]
        return [(f"{one.name}.{path}", replaces or one.replaces) for path, replaces in inner]
    if has_unknown(new):
        return [(one.name, one.replaces)]
    if (blank(old) and blank(new)) or (old is not None and new is not None and one.same(old, new)):
        return []
    return [(one.name, one.replaces)]
