"""The question of packing, in whole numbers only: classes of pods, kinds of node, limits. Values, and what is checked.

Amounts of a resource may have any unit, as long as a problem has one unit for each; money is in micro-dollars an hour.
"""

from __future__ import annotations

from attrs import field, frozen


@frozen
class PackClass:
    """``count`` pods that each take ``requests`` of a node's room and may go to ``kinds``, by index in the problem."""

    requests: tuple[int, ...]
    count: int
    kinds: frozenset[int]

    def fits(self, room: tuple[int, ...]) -> int:
        """How many of the class so much room holds, at most all of them."""
        within = [left // each for left, each in zip(room, self.requests, strict=True) if each]
        return min(self.count, *within) if within else self.count


@frozen
class NodeKind:
    """A node to be had for ``micros_per_hour``, what a node costs besides its price included.

    ``most``: no more than so many of it; None for as many as one likes. ``takes`` is what a node of the kind takes of
    each of the problem's limits, in their order.
    """

    room: tuple[int, ...]
    micros_per_hour: int
    most: int | None = None
    takes: tuple[int, ...] = ()


@frozen
class PackingProblem:
    """Order of classes and of kinds changes nothing in the answer but the indices that it names.

    ``limits`` bound what all nodes together take: GPUs of a pool, nodes of a group, money. Raises ValueError for
    negative amounts, for vectors of unequal length, and for a kind that is not there.
    """

    classes: tuple[PackClass, ...]
    kinds: tuple[NodeKind, ...]
    limits: tuple[int, ...] = field(default=())

    def __attrs_post_init__(self) -> None:
        lengths = {len(each.requests) for each in self.classes} | {len(each.room) for each in self.kinds}
        if len(lengths) > 1:
            raise ValueError(f"requests and rooms have {sorted(lengths)} amounts: expected one length for all")
        if any(len(each.takes) != len(self.limits) for each in self.kinds):
            raise ValueError(f"each kind must say what it takes of each of {len(self.limits)} limits")
        amounts = [(*each.requests, each.count) for each in self.classes]
        amounts += [(*each.room, *each.takes, each.micros_per_hour, each.most or 0) for each in self.kinds]
        if min(map(min, amounts), default=0) < 0 or min(self.limits, default=0) < 0:
            raise ValueError("requests, rooms, counts, prices and limits must not be negative")
        named = {each.kinds for each in self.classes if each.kinds}
        if any(min(kinds) < 0 or max(kinds) >= len(self.kinds) for kinds in named):
            raise ValueError(f"a class names a kind beyond the {len(self.kinds)} of the problem")


@frozen
class PackedNodes:
    """``nodes`` nodes of a kind that all hold the same: ``pods`` of each class by its index, zeros left out."""

    kind: int
    pods: tuple[tuple[int, int], ...]
    nodes: int


@frozen
class Packing:
    """An answer: every pod is on a node or among ``unplaced``, which counts by the index of the class.

    ``cost_micros`` is that of all nodes. ``lower_bound_micros`` is proven: no packing of the same pods that ``nodes``
    hold costs less an hour. ``steps`` is how many of the steps that were given were used.
    """

    nodes: tuple[PackedNodes, ...]
    unplaced: tuple[tuple[int, int], ...]
    cost_micros: int
    lower_bound_micros: int
    steps: int

    @property
    def gap(self) -> float:
        """By how much the cost is over the lower bound, as a part of it; 0 where nothing costs anything."""
        if not self.lower_bound_micros:
            return 0.0 if not self.cost_micros else float("inf")
        return self.cost_micros / self.lower_bound_micros - 1
