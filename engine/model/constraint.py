"""What a pod or pool demands of a node, and a pod of the pods around it. Values only; scheduling/ has the algebra."""

from __future__ import annotations

import re
from enum import Enum

from attrs import frozen

from engine.model import labels as keys

# More digits are no integer of 64 bits, leading zeros apart.
_DECIMAL = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)


class Operator(str, Enum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"
    GTE = "Gte"
    LTE = "Lte"


@frozen
class Requirement:
    """One line of a node affinity term or of a pool's requirements. ``min_values`` is Karpenter's minValues."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()
    min_values: int | None = None

    def admits(self, value: str | None) -> bool:
        """Whether a node whose label has this value (None: no such label) meets the requirement.

        NotIn and DoesNotExist hold for an absent label, as in Kubernetes; a bound fails on a value that is no integer.
        """
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
        return value is not None and self._bounds(value)

    def _bounds(self, value: str) -> bool:
        number = whole_number(value)
        bound = whole_number(self.values[0]) if self.values else None
        if number is None or bound is None:
            return False
        match self.operator:
            case Operator.GT:
                return number > bound
            case Operator.LT:
                return number < bound
            case Operator.GTE:
                return number >= bound
            case _:
                return number <= bound

    def __str__(self) -> str:
        return " ".join(part for part in (self.key, self.operator.value, ",".join(self.values)) if part)


def whole_number(text: str) -> int | None:
    """The integer that Kubernetes reads in a label's value: decimal, of 64 bits; None where it reads none.

    Go's strconv.ParseInt with base 10, which unlike Python takes no ``1_000``.
    """
    if _DECIMAL.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


class TaintEffect(str, Enum):
    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@frozen
class Taint:
    key: str
    value: str
    effect: TaintEffect

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect.value}" if self.value else f"{self.key}:{self.effect.value}"


@frozen
class Toleration:
    """A pod's toleration; an empty ``key`` with ``exists`` tolerates everything, no ``effect`` every effect."""

    key: str = ""
    exists: bool = False
    value: str = ""
    effect: TaintEffect | None = None

    def tolerates(self, taint: Taint) -> bool:
        """The rule of k8s.io/api core/v1 Toleration.ToleratesTaint."""
        if self.effect is not None and self.effect is not taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.exists or (bool(self.key) and self.value == taint.value)


# What a node that is to leave is tainted with.
DISRUPTED = Taint(keys.DISRUPTED_TAINT, "", TaintEffect.NO_SCHEDULE)

# What a label selector demands of labels: all of it; ``()`` selects everything, None nothing.
LabelSelector = tuple[Requirement, ...] | None


@frozen
class TopologySpread:
    """A topology spread constraint (k8s.io/api core/v1 TopologySpreadConstraint).

    ``selector`` has matchLabelKeys in it already: the pod's own value under each. ``is_required`` is DoNotSchedule,
    else ScheduleAnyway. ``honors_affinity`` and ``honors_taints`` are the node inclusion policies, Honor as True.
    """

    key: str
    max_skew: int
    selector: LabelSelector
    is_required: bool = True
    min_domains: int | None = None
    honors_affinity: bool = True
    honors_taints: bool = False


@frozen
class PodTerm:
    """A pod affinity or anti-affinity term (core/v1 PodAffinityTerm) over the domains of ``key``.

    ``selector`` has matchLabelKeys and mismatchLabelKeys in it already. It looks at the pods of ``namespaces`` and of
    those whose labels ``namespace_selector`` selects; a term that names neither has the pod's own in ``namespaces``.
    ``weight`` is of a preferred term, 0 of a required one.
    """

    key: str
    selector: LabelSelector
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector = None
    weight: int = 0


@frozen
class PreferredNodeTerm:
    """A preferred node affinity term: nodes that meet all ``requirements`` are preferred by ``weight``, 1 to 100."""

    weight: int
    requirements: tuple[Requirement, ...]


@frozen(order=True)
class HostPort:
    """A port of its node that a pod takes. ``ip`` empty is every address of the node."""

    port: int
    protocol: str = "TCP"
    ip: str = ""

    def conflicts(self, other: HostPort) -> bool:
        """Whether two pods cannot have them on one node: the rule of kube-scheduler's NodePorts filter."""
        same = (self.port, self.protocol) == (other.port, other.protocol)
        return same and (not self.ip or not other.ip or self.ip == other.ip)
