"""The requirement algebra: which values a label may have, what two sides have in common, and how to say it.

Karpenter's rows (pkg/scheduling/requirement.go and requirements.go there), with Kubernetes' meaning where they differ:
a label that is absent is a value of its own, so Exists and NotIn stay apart after an intersection, and bounds that
contradict each other admit nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import evolve, field, frozen

from engine.model.constraint import Operator, Requirement, whole_number
from engine.model.labels import ALIASES, WELL_KNOWN

_OWNED_DOMAINS = ("karpenter.sh", "karpenter.k8s.aws")
_SHOWN_VALUES = 8


def canonical_key(key: str) -> str:
    """The present name of a label key; beta names of arch, os, zone, region and instance type are old ones."""
    return ALIASES.get(key, key)


def canonical_labels(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Labels under their present names; a present name that is there already wins over its alias."""
    if not any(key in labels for key in ALIASES):
        return labels
    renamed = {canonical_key(key): value for key, value in labels.items() if key in ALIASES}
    return {**renamed, **{key: value for key, value in labels.items() if key not in ALIASES}}


def is_custom(key: str) -> bool:
    """Whether a pool may give its nodes this label freely: it is no well-known fact and in no domain of Karpenter's."""
    domain = key.partition("/")[0]
    return key not in WELL_KNOWN and not any(domain == own or domain.endswith(f".{own}") for own in _OWNED_DOMAINS)


@frozen
class ValueSet:
    """A set of values of one label key. ``complement``: all values but ``values``, within the inclusive bounds.

    ``absent``: a node without the label will do as well. A finite set carries no bounds: they have filtered it.
    """

    values: frozenset[str] = frozenset()
    complement: bool = False
    lower: int | None = None
    upper: int | None = None
    absent: bool = False
    min_values: int | None = field(default=None, eq=False)

    @classmethod
    def of(cls, requirement: Requirement) -> ValueSet:
        """The values that one requirement admits; a bound that is no integer admits none."""
        values, floor = frozenset(requirement.values), requirement.min_values
        match requirement.operator:
            case Operator.IN:
                return cls(values, min_values=floor)
            case Operator.NOT_IN:
                return cls(values, complement=True, absent=True, min_values=floor)
            case Operator.EXISTS:
                return cls(complement=True, min_values=floor)
            case Operator.DOES_NOT_EXIST:
                return cls(absent=True, min_values=floor)
        bound = whole_number(requirement.values[0]) if requirement.values else None
        if bound is None:
            return cls(min_values=floor)
        match requirement.operator:
            case Operator.GT:
                return cls(complement=True, lower=bound + 1, min_values=floor)
            case Operator.GTE:
                return cls(complement=True, lower=bound, min_values=floor)
            case Operator.LT:
                return cls(complement=True, upper=bound - 1, min_values=floor)
            case _:
                return cls(complement=True, upper=bound, min_values=floor)

    @property
    def is_empty(self) -> bool:
        """Whether not even a node without the label will do."""
        return not (self.absent or self.complement or self.values)

    def admits(self, value: str | None) -> bool:
        """Whether a node with this value of the label (None: without it) is in the set."""
        if value is None:
            return self.absent
        if (value in self.values) is self.complement:
            return False
        return self._within_bounds(value)

    def intersection(self, other: ValueSet) -> ValueSet:
        """What both admit; the greater of both ``min_values``."""
        lower = max((bound for bound in (self.lower, other.lower) if bound is not None), default=None)
        upper = min((bound for bound in (self.upper, other.upper) if bound is not None), default=None)
        shared = ValueSet(
            complement=self.complement and other.complement,
            lower=lower,
            upper=upper,
            absent=self.absent and other.absent,
            min_values=max(filter(None, (self.min_values, other.min_values)), default=None),
        )
        if shared.complement:
            if lower is not None and upper is not None and lower > upper:
                return evolve(shared, complement=False, lower=None, upper=None)
            return evolve(shared, values=self.values | other.values)
        finite, rest = (self, other) if not self.complement else (other, self)
        kept = frozenset(value for value in finite.values if rest.admits(value))
        return evolve(shared, values=kept, lower=None, upper=None)

    def least(self) -> str | None:
        """The value that a node is given when nothing says which: always the same one; None when there is none.

        The first in text order of a finite set, the number nearest a bound, else ``any``.
        """
        if not self.complement:
            return min(self.values, default=None)
        for candidate in self._candidates():
            if candidate not in self.values:
                return candidate if self._within_bounds(candidate) else None
        return None

    def _candidates(self) -> Iterator[str]:
        # One more than is excluded, so that one of them is free.
        tries = range(len(self.values) + 1)
        if self.lower is not None:
            return (str(self.lower + step) for step in tries)
        if self.upper is not None:
            return (str(self.upper - step) for step in tries)
        return (f"any-{step}" if step else "any" for step in tries)

    def _within_bounds(self, value: str) -> bool:
        if self.lower is None and self.upper is None:
            return True
        number = whole_number(value)
        if number is None:
            return False
        return (self.lower is None or number >= self.lower) and (self.upper is None or number <= self.upper)

    def __str__(self) -> str:
        if not self.complement:
            return shown_values(self.values) if self.values else ("no such label" if self.absent else "nothing")
        bounds = [f"at least {self.lower}"] if self.lower is not None else []
        bounds += [f"at most {self.upper}"] if self.upper is not None else []
        but = f"but {shown_values(self.values)}" if self.values else ""
        start = " and ".join(bounds) or ("anything" if self.absent else "any value")
        return f"{start} {but}".strip()


def shown_values(values: Iterable[str]) -> str:
    """Values as a person reads them: sorted, and cut where the list grows long."""
    names = sorted(set(values))
    more = len(names) - _SHOWN_VALUES
    return ", ".join(names[:_SHOWN_VALUES]) + (f" and {more} more" if more > 0 else "")


@frozen
class Requirements:
    """A value set for each key; a key that is not named is not constrained."""

    sets: Mapping[str, ValueSet]

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Requirements:
        """All of the requirements at once, beta keys under their present names."""
        sets: dict[str, ValueSet] = {}
        for requirement in requirements:
            key, admitted = canonical_key(requirement.key), ValueSet.of(requirement)
            sets[key] = sets[key].intersection(admitted) if key in sets else admitted
        return cls(sets)

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Requirements:
        """Labels as requirements of one value each."""
        return cls({key: ValueSet(frozenset((value,))) for key, value in canonical_labels(labels).items()})

    def intersection(self, other: Requirements) -> Requirements:
        """What meets both."""
        sets = dict(self.sets)
        for key, admitted in other.sets.items():
            sets[key] = sets[key].intersection(admitted) if key in sets else admitted
        return Requirements(sets)

    def admits(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with exactly these labels meets all."""
        present = canonical_labels(labels)
        return all(admitted.admits(present.get(key)) for key, admitted in self.sets.items())

    def barring_key(self, labels: Mapping[str, str]) -> str | None:
        """The first key, in name order, by which a pool with these requirements may not make such a node.

        A custom key that the labels lack bars nothing: the pool still has it to choose (see offers.PoolOffers).
        """
        present = canonical_labels(labels)
        for key, admitted in sorted(self.sets.items()):
            left_to_choose = key not in present and is_custom(key)
            if not left_to_choose and not admitted.admits(present.get(key)):
                return key
        return None

    def conflict(self, wanted: Requirements, may_be_undefined: frozenset[str] = frozenset()) -> str | None:
        """The first key, in name order, on which a node made from these cannot be what is wanted; None: compatible.

        A key that is not named here is a label that the node will not have, so only NotIn and DoesNotExist hold for
        it; except the keys that ``may_be_undefined``: WELL_KNOWN for a new node, none for an existing one.
        """
        for key in sorted(wanted.sets):
            offered = self.sets.get(key)
            if offered is None:
                if key not in may_be_undefined and not wanted.sets[key].absent:
                    return key
            elif offered.intersection(wanted.sets[key]).is_empty:
                return key
        return None
