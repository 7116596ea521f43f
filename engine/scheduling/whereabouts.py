"""Which pod it is that stands in another's way, by name: counts know only how many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from attrs import field, frozen

from engine.model.pod import Pod
from engine.scheduling.existing import World
from engine.scheduling.problem import ExistingNode, Problem
from engine.scheduling.topology.counter import Role, Sight
from engine.scheduling.topology.neighbourhood import Neighbourhood
from engine.scheduling.topology.ties import TieReader
from engine.scheduling.topology.topology import Topology


@frozen(eq=False, slots=False)
class Whereabouts:
    """``world`` holds the pods that are placed, ``existing`` the nodes that are its first members."""

    problem: Problem
    neighbourhood: Neighbourhood
    existing: Sequence[ExistingNode]
    world: World
    topology: Topology
    _found: dict[tuple[int, str, str], str] = field(factory=dict)
    _reader: TieReader = field(factory=TieReader)

    def counted_in(self, counter: int, key: str, domain: str) -> str:
        """One of the pods that the counter counts in the domain of the key: the first on the first node there."""
        asked = (counter, key, domain)
        if asked not in self._found:
            on_nodes = (sorted(pods, key=str) for pods in self._pods_in(key, domain))
            counted = (pod for pods in on_nodes for pod in pods if self._counts(counter, pod))
            self._found[asked] = next((str(pod.key) for pod in counted), "")
        return self._found[asked]

    def _pods_in(self, key: str, domain: str) -> Iterable[list[Pod]]:
        members, apart = self.topology.nodes_in(key, domain)
        for name in apart:
            yield list(self._standing[name])
        for member in members:
            node = self.existing[member].node if member < len(self.existing) else None
            bound = self._standing.get(node, ()) if node is not None else ()
            yield [*bound, *(self._waiting[pod] for pod in self.world.pods.get(member, ()))]

    def _counts(self, counter: int, pod: Pod) -> bool:
        if self.neighbourhood.counters[counter].role is Role.HOLDER:
            ties = self._reader.ties_of(pod)
            return ties is not None and self.neighbourhood.counters[counter] in ties.held
        return counter in self._sight.seen_by(pod.key.namespace, pod.labels)

    @cached_property
    def _standing(self) -> dict[str, Sequence[Pod]]:
        return {node.name: node.pods for node in self.problem.standing}

    @cached_property
    def _waiting(self) -> dict[object, Pod]:
        return {pod.key: pod for pod in self.problem.pods}

    @cached_property
    def _sight(self) -> Sight:
        return Sight(self.neighbourhood.counters, self.problem.namespaces)
