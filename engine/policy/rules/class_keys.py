"""What rules can tell pods, pools and moments apart by: the values at the paths that their programs read.

Two pods with equal values there get equal answers, so only one of them is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import cast

from attrs import frozen

from engine.model.pod import Placing, Pod
from engine.model.rule import Selection
from engine.policy.cel.port import Plain
from engine.policy.cel.types import MapOf, Scalar
from engine.policy.facts.schema import POD
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


def pod_values(paths: Iterable[ReadPath], pod: Pod, now: datetime) -> tuple[Hashable, ...]:
    """The same of a pod, in the order of the paths."""
    return tuple(read(pod, now) for read in _readers(paths))


class PodSorter:
    """The same of many pods, quick: what they ask for is often one value that thousands of them share."""

    def __init__(self, paths: Iterable[ReadPath], now: datetime) -> None:
        own = set(paths)
        of_placing = {path for path in own if path.field in _OF_PLACING}
        self._now = now
        self._of_placing = _readers(of_placing)
        self._of_pod = _readers(own - of_placing)
        # The placing is kept too, so that no other one comes to have its id.
        self._known: dict[int, tuple[Placing, int]] = {}
        self._numbers: dict[Hashable, int] = {}

    def key(self, pod: Pod) -> tuple[Hashable, ...]:
        """Equal for two pods if no rule can tell them apart; good for this sorter only."""
        known = self._known.get(id(pod.placing))
        if known is None:
            values = tuple([read(pod, self._now) for read in self._of_placing])
            known = (pod.placing, self._numbers.setdefault(values, len(self._numbers)))
            self._known[id(pod.placing)] = known
        return (known[1], *[read(pod, self._now) for read in self._of_pod])


# The fields of POD that follow from what a pod asks for alone.
_OF_PLACING = frozenset({"gpus", "cpuMillis", "memoryBytes", "requests", "nodeSelector", "tolerations"})

_Reader = Callable[[Pod, datetime], Hashable]


def _readers(paths: Iterable[ReadPath]) -> list[_Reader]:
    ordered = sorted(paths)
    if any(not path.field for path in ordered):
        ordered = [ReadPath("pod", field) for field in POD_FIELDS]
    return [_reader(path) for path in ordered]


def _reader(path: ReadPath) -> _Reader:
    read = POD_FIELDS[path.field]
    type_ = _POD_TYPES[path.field]
    if isinstance(type_, Scalar):
        return cast("_Reader", read)
    if path.key and isinstance(type_, MapOf):
        in_map = cast("Callable[[Pod, datetime], Mapping[str, Hashable]]", read)
        return lambda pod, now: in_map(pod, now).get(path.key, _MISSING)
    return lambda pod, now: _hashable(read(pod, now))


_POD_TYPES = {field.name: field.type for field in POD.fields}


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
