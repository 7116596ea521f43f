"""What rules can tell pods, pools and moments apart by: the values at the paths that their programs read.

Two pods with equal values there get equal answers, so only one of them is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime

from attrs import frozen

from engine.model.pod import Pod
from engine.model.rule import Selection
from engine.policy.cel.port import Plain
from engine.policy.facts.values import POD_FIELDS

_WHOLE = "*"


class _Missing:
    """Stands for the value of a key that a map lacks."""


_MISSING = _Missing()


@frozen(order=True)
class ReadPath:
    """A field of a variable, or one ``key`` of a field that is a map; ``key`` empty is the whole field.

    ``field`` empty is the whole variable.
    """

    variable: str
    field: str = ""
    key: str = ""

    @classmethod
    def of(cls, path: str) -> ReadPath:
        """From a program's ``reads``. Records are flat, so all that follows a field's name is one key of a map."""
        variable, _, rest = path.partition(".")
        field, _, key = rest.partition(".")
        return cls(variable, "" if field == _WHOLE else field, "" if key == _WHOLE else key)


def read_paths(reads: Iterable[str]) -> frozenset[ReadPath]:
    return frozenset(map(ReadPath.of, reads))


def paths_of_match(match: Selection) -> frozenset[ReadPath]:
    """What the structural match of a rule reads of a pod."""
    labels = {ReadPath("pod", "labels", each.key) for each in match.pod_labels}
    return frozenset(labels | ({ReadPath("pod", "namespace")} if match.namespaces else set()))


def values_at(paths: Sequence[ReadPath], facts: Mapping[str, Plain]) -> tuple[Hashable, ...]:
    """The values of one variable's fields, as ``facts`` gives them, in the order of the paths."""
    return tuple(
        _value(facts if not path.field else facts[path.field], path.key if path.field else "") for path in paths
    )


def pod_key(paths: Iterable[ReadPath], now: datetime) -> Callable[[Pod], tuple[Hashable, ...]]:
    """The same for pods, of which there are many: no field is worked out that nobody reads."""
    ordered = sorted(paths)
    if any(not path.field for path in ordered):
        ordered = [ReadPath("pod", field) for field in POD_FIELDS]
    readers = [(POD_FIELDS[path.field], path.key) for path in ordered]

    def key(pod: Pod) -> tuple[Hashable, ...]:
        return tuple(_value(read(pod, now), at) for read, at in readers)

    return key


def _value(found: Plain, key: str) -> Hashable:
    if key and isinstance(found, Mapping):
        return _hashable(found[key]) if key in found else _MISSING
    return _hashable(found)


def _hashable(found: Plain) -> Hashable:
    if isinstance(found, Mapping):
        return tuple((key, _hashable(value)) for key, value in sorted(found.items()))
    if isinstance(found, Sequence) and not isinstance(found, str):
        return tuple(map(_hashable, found))
    return found
