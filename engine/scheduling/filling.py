"""Nodes whose pods all fit into the room that other nodes leave: nothing is bought, and nobody else moves.

It decides what to try, no more: room and who is admitted are all that it knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from attrs import define
from numpy.typing import NDArray

from engine.scheduling.layout import Layout
from engine.scheduling.movable import MovableNode, NodeName
from engine.scheduling.packing.search import Ints


def filling(layout: Layout) -> tuple[MovableNode, ...]:
    """Nodes that can go together, in claim order: those are tried first that cost most for each of their pods.

    Nobody comes to a node without pods, which goes in any case, and nobody leaves one that others came to.
    """
    empty = [node for node in layout.estate.movable if not node.pods]
    held = [node for node in layout.estate.movable if node.pods]
    if not held:
        return tuple(empty)
    rooms = _Rooms.of(layout)
    for node in empty:
        rooms.close(node)
    held.sort(key=lambda each: (-each.usd_per_hour.micros / len(each.pods), each.claim))
    going = [node for node in held if rooms.take(node, [layout.class_of[pod.key] for pod in node.pods])]
    return tuple(sorted([*empty, *going], key=lambda each: each.claim))


@define(eq=False)
class _Rooms:
    """What is ``left`` on each node, by resource; whom it ``takes``, by class; and which nodes got pods."""

    at: Mapping[NodeName, int]
    left: Ints
    takes: NDArray[np.bool_]
    requests: Ints
    came: set[int]

    @classmethod
    def of(cls, layout: Layout) -> _Rooms:
        standing = layout.standing
        return cls(
            at={each.name: place for place, each in enumerate(standing)},
            left=np.array([layout.amounts(each.room) for each in standing], dtype=np.int64),
            takes=np.array([[number in each.takes for each in standing] for number in range(len(layout.classes))]),
            requests=np.array(layout.requests, dtype=np.int64),
            came=set(),
        )

    def close(self, node: MovableNode) -> None:
        self.takes[:, self.at[node.name]] = False

    def take(self, node: MovableNode, pods: Iterable[int]) -> bool:
        """Whether the node's pods, told by class, have found room on others; else all is as it was.

        The largest comes first, and each takes the room of which it leaves least.
        """
        own, before = self.at[node.name], self.left.copy()
        scale = np.maximum(1, before.max(axis=0))
        sizes = (self.requests / scale).sum(axis=1)
        chosen: set[int] = set()
        for number in sorted(pods, key=lambda each: (-sizes[each], each)):
            asked = self.requests[number]
            fitting = np.flatnonzero(self.takes[number] & (self.left >= asked).all(axis=1))
            fitting = fitting[fitting != own]
            if own in self.came or not len(fitting):
                self.left = before
                return False
            place = int(fitting[np.argmin((self.left[fitting] / scale).sum(axis=1))])
            self.left[place] -= asked
            chosen.add(place)
        self.came |= chosen
        self.close(node)
        return True
