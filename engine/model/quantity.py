"""Kubernetes quantities as exact integers, and bundles of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
NVIDIA_GPU = "nvidia.com/gpu"
NODES = "nodes"
NEURON_CORE = "aws.amazon.com/neuroncore"
# Kubernetes' name for how many volumes a node takes; the CSI driver's name follows. Never a part of a limit.
ATTACHABLE_VOLUMES = "attachable-volumes-"

ACCELERATORS = (
    NVIDIA_GPU,
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    NEURON_CORE,
    "habana.ai/gaudi",
    "qualcomm.com/qaic",
)

_SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
# The digits are bounded so that a hostile exponent cannot make an integer that fills memory.
_QUANTITY = re.compile(r"([+-]?)(\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:([eE][+-]?\d{1,2})|([a-zA-Z]{0,2}))", re.ASCII)
_MILLICORES = 1000
_SHOWN_CHARACTERS = 80


class QuantityError(ValueError):
    """A text is no Kubernetes quantity, or one that makes no sense for its resource."""


def parse_quantity(text: str | int | float) -> Fraction:
    """The exact value of a Kubernetes quantity such as ``500m``, ``16Gi``, ``1e3`` or ``1000Ti``.

    The grammar is resource.Quantity's (k8s.io/apimachinery, pkg/api/resource).
    Raises QuantityError.
    """
    written = str(text).strip()
    match = _QUANTITY.fullmatch(written)
    if match is None:
        raise QuantityError(
            f"{written[:_SHOWN_CHARACTERS]!r} is not a quantity; write a number with a unit such as 500m, 4, 16Gi"
        )
    sign, digits, exponent, suffix = match.groups()
    if suffix and suffix not in _SUFFIXES:
        known = ", ".join(unit for unit in _SUFFIXES if unit)
        raise QuantityError(f"{written!r} has the unknown unit {suffix!r}; the units are {known}")
    value = Fraction(digits) * _SUFFIXES[suffix or ""]
    if exponent:
        value *= Fraction(10) ** int(exponent[1:])
    return -value if sign == "-" else value


def base_units(resource: str, text: str | int | float) -> int:
    """A quantity in the resource's base unit: millicores for cpu, bytes for memory and storage, else a count.

    Rounds up, as Kubernetes does. Raises QuantityError, also for a negative amount.
    """
    value = parse_quantity(text)
    if value < 0:
        raise QuantityError(f"{text!r} is negative; {resource} needs zero or more")
    scaled = value * _MILLICORES if resource == CPU else value
    return -(-scaled.numerator // scaled.denominator)


class Resources(Mapping[str, int]):
    """An immutable bundle of amounts in base units; a resource that is not named is zero.

    Iterates in name order, so equal bundles print and hash alike.
    """

    __slots__ = ("_accelerators", "_amounts", "_hash")

    def __init__(self, amounts: Mapping[str, int] | Iterable[tuple[str, int]] = ()) -> None:
        pairs = amounts.items() if isinstance(amounts, Mapping) else amounts
        self._amounts: dict[str, int] = dict(sorted(pairs))
        self._hash: int | None = None
        self._accelerators: tuple[str, ...] | None = None

    @classmethod
    def _of(cls, amounts: dict[str, int], *, in_order: bool) -> Resources:
        """Of a dictionary that nobody else has, in name order or not: sorting takes longer than the sum itself."""
        new = cls.__new__(cls)
        new._amounts = amounts if in_order else dict(sorted(amounts.items()))
        new._hash = new._accelerators = None
        return new

    @classmethod
    def parse(cls, amounts: Mapping[str, str | int | float]) -> Resources:
        """From a Kubernetes resource list; raises QuantityError naming the resource."""
        parsed = {}
        for resource, text in amounts.items():
            try:
                parsed[resource] = base_units(resource, text)
            except QuantityError as error:
                raise QuantityError(f"{resource}: {error}") from None
        return cls(parsed)

    def __getitem__(self, resource: str) -> int:
        return self._amounts[resource]

    def __iter__(self) -> Iterator[str]:
        return iter(self._amounts)

    def __len__(self) -> int:
        return len(self._amounts)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._amounts.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self._amounts == other._amounts

    def __repr__(self) -> str:
        return f"Resources({self._amounts!r})"

    def amount(self, resource: str) -> int:
        """The amount in base units; zero when the resource is not named."""
        return self._amounts.get(resource, 0)

    def __add__(self, other: Resources) -> Resources:
        total = dict(self._amounts)
        for resource, amount in other._amounts.items():
            total[resource] = total.get(resource, 0) + amount
        # Names that were there keep their places.
        return self._of(total, in_order=len(total) == len(self._amounts))

    def __sub__(self, other: Resources) -> Resources:
        """What is left; an amount may become negative (a node that is overcommitted)."""
        return self.less(other, 1)

    def less(self, other: Resources, times: int) -> Resources:
        """What is left once the other is taken off so many times."""
        left = dict(self._amounts)
        for resource, amount in other._amounts.items():
            left[resource] = left.get(resource, 0) - amount * times
        return self._of(left, in_order=len(left) == len(self._amounts))

    def __mul__(self, times: int) -> Resources:
        return self._of({resource: amount * times for resource, amount in self._amounts.items()}, in_order=True)

    def less_each(self, others: Iterable[Resources]) -> Resources:
        """What is left once all of them are taken off."""
        left = dict(self._amounts)
        for other in others:
            for resource, amount in other._amounts.items():
                left[resource] = left.get(resource, 0) - amount
        return self._of(left, in_order=len(left) == len(self._amounts))

    def fits_in(self, room: Resources) -> bool:
        """Whether each amount asked for is there; a request of zero always fits."""
        available = room._amounts
        return all(amount <= available.get(name, 0) for name, amount in self._amounts.items() if amount > 0)

    def times_in(self, room: Resources) -> int:
        """How many bundles like this one the room holds; a request of zero takes nothing."""
        available = room._amounts
        fitting = sys.maxsize
        for resource, amount in self._amounts.items():
            if amount > 0:
                count = available.get(resource, 0) // amount
                if count <= 0:
                    return 0
                if count < fitting:
                    fitting = count
        return fitting

    def shortfalls(self, room: Resources) -> Iterator[tuple[str, int, int]]:
        """Each (resource, asked, available) that does not fit, in name order."""
        for resource, amount in self._amounts.items():
            available = room.amount(resource)
            if amount > 0 and amount > available:
                yield resource, amount, available

    def accelerators(self) -> tuple[str, ...]:
        """The accelerator resources with an amount above zero, in name order."""
        if self._accelerators is None:
            self._accelerators = tuple(
                name for name, amount in self._amounts.items() if amount > 0 and name in ACCELERATORS
            )
        return self._accelerators


NOTHING = Resources()


def format_amount(resource: str, amount: int) -> str:
    """An amount in base units as a person would write it: ``3.5`` cpu, ``15510Mi`` memory, ``4`` GPUs."""
    if resource == CPU:
        return f"{amount / _MILLICORES:g}"
    if resource in (MEMORY, EPHEMERAL_STORAGE):
        for unit in ("Ti", "Gi", "Mi", "Ki"):
            size = int(_SUFFIXES[unit])
            if amount and amount % size == 0:
                return f"{amount // size}{unit}"
        return f"{amount / 2**20:.0f}Mi" if amount >= 2**20 else str(amount)
    return str(amount)
