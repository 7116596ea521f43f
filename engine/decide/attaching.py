"""How many volumes more a node takes, as an amount of room: only where some waiting pod asks for volumes at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from attrs import evolve, frozen

from engine.catalog.attach_limits import EBS_DRIVER, volume_limit
from engine.decide.fleet import Fleet, Sighting
from engine.decide.volumes import Volumes
from engine.model.catalog import Catalog, InstanceType
from engine.model.policy import NodeClass, Policy
from engine.model.quantity import ATTACHABLE_VOLUMES, Resources
from engine.model.snapshot import Snapshot
from engine.scheduling.problem import ExistingNode, NodeOption, PoolState

# A node that limits nothing must have room for any number, and room is a number: more than pods on a node could ask.
_ANY_NUMBER = 10**6


@frozen(eq=False)
class _Widened:
    """A pool's options with the room for volumes in them: good for the very same options, asked for the same."""

    given: tuple[NodeOption, ...]
    drivers: tuple[str, ...]
    node_class: NodeClass
    options: tuple[NodeOption, ...]


# The last ones of each pool, so that what was worked out about them stays good from pass to pass.
_WIDENED: dict[str, _Widened] = {}


class AttachRoom:
    """The room for volumes of ``drivers``, on nodes that stand and on those that could be made.

    A node that has its CSINode takes what that says; of one of ours that has none yet it is predicted, as it was when
    the node was planned. Any number of a driver for which neither is known.
    """

    def __init__(
        self, drivers: Sequence[str], volumes: Volumes, snapshot: Snapshot, policy: Policy, catalog: Catalog
    ) -> None:
        self._drivers = tuple(drivers)
        self._volumes = volumes
        self._snapshot = snapshot
        self._policy = policy
        self._catalog = catalog

    def on_existing(self, existing: tuple[ExistingNode, ...], fleet: Fleet) -> tuple[ExistingNode, ...]:
        """The nodes with the room for volumes that is left beside those of the pods there."""
        if not self._drivers:
            return existing
        sightings = {sighting.claim.name: sighting for sighting in fleet.sightings}
        return tuple(self._on_one(each, sightings.get(each.claim or ""), fleet) for each in existing)

    def _on_one(self, existing: ExistingNode, sighting: Sighting | None, fleet: Fleet) -> ExistingNode:
        claim = sighting.claim if sighting is not None else None
        pods = sighting.pods if sighting is not None else fleet.pods_by_node.get(existing.node or "", ())
        kind = self._types.get(claim.inputs.instance_type) if claim is not None else None
        node_class = self._policy.node_class(claim.node_class) if claim is not None else None
        predicted = self._predicted(kind, node_class)
        told = {driver: self._limits.get((existing.node, driver)) for driver in self._drivers}
        limits = {ATTACHABLE_VOLUMES + driver: limit for driver, limit in told.items() if limit is not None}
        attached = self._volumes.attached(pods)
        room = Resources({**existing.room, **predicted, **limits})
        return evolve(existing, room=room - Resources((name, attached.amount(name)) for name in predicted))

    def widened(self, states: tuple[PoolState, ...]) -> tuple[PoolState, ...]:
        """The pools with the room for volumes in what they can make."""
        return tuple(map(self._with_room, states)) if self._drivers else states

    def _with_room(self, state: PoolState) -> PoolState:
        node_class = self._policy.node_class(state.pool.node_class)
        if node_class is None or not state.options:
            return state
        last = _WIDENED.get(state.pool.name)
        if (
            last is None
            or last.given is not state.options
            or (last.drivers, last.node_class) != (self._drivers, node_class)
        ):
            options = tuple(
                evolve(each, allocatable=each.allocatable + self._predicted(each.instance_type, node_class))
                for each in state.options
            )
            last = _WIDENED[state.pool.name] = _Widened(state.options, self._drivers, node_class, options)
        return evolve(state, options=last.options)

    def _predicted(self, kind: InstanceType | None, node_class: NodeClass | None) -> Resources:
        amounts = dict.fromkeys((ATTACHABLE_VOLUMES + driver for driver in self._drivers), _ANY_NUMBER)
        if kind is not None and node_class is not None and EBS_DRIVER in self._drivers:
            amounts[ATTACHABLE_VOLUMES + EBS_DRIVER] = volume_limit(kind, node_class)
        return Resources(amounts)

    @cached_property
    def _limits(self) -> dict[tuple[str | None, str], int]:
        return {(limit.node, limit.csi_driver): limit.volumes for limit in self._snapshot.workload.attach_limits}

    @cached_property
    def _types(self) -> dict[str, InstanceType]:
        return {kind.name: kind for kind in self._catalog.instance_types}


def without_volumes(allocatable: Resources) -> Resources:
    """What a claim says of its node: how many volumes it takes is asked anew each time."""
    if not any(name.startswith(ATTACHABLE_VOLUMES) for name in allocatable):
        return allocatable
    return Resources((name, amount) for name, amount in allocatable.items() if not name.startswith(ATTACHABLE_VOLUMES))
