"""A stack's state, as `pulumi stack export` tells it, and the edits that recovery needs."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import field, frozen

from engine.converge import urns
from engine.model.fault import Fault

# Go writes nine digits of a second and Python reads six.
_NANOSECONDS = re.compile(r"(\.\d{6})\d+")


class StateUnreadable(Fault):
    """The exported state is not what this version knows."""


@frozen
class StackResource:
    """One resource of a state. `id` is empty for components. `init_errors`: it was made, but not wholly."""

    urn: str
    type: str
    id: str = ""
    provider: str = ""
    inputs: Mapping[str, Any] = field(factory=dict)
    outputs: Mapping[str, Any] = field(factory=dict)
    dependencies: tuple[str, ...] = ()
    init_errors: tuple[str, ...] = ()
    protect: bool = False
    # Replaced already, and still to be deleted: a second resource under the same URN.
    is_condemned: bool = False


@frozen
class PendingOperation:
    """An operation that was begun, and of whose end the state knows nothing. `kind`: creating, deleting, …"""

    urn: str
    type: str
    kind: str
    inputs: Mapping[str, Any] = field(factory=dict)


@frozen
class FoundPart:
    """Something that exists and that a state lacks. `parent` is a URN; without `inputs` they are those that exist."""

    urn: str
    type: str
    id: str
    parent: str
    inputs: Mapping[str, Any] = field(factory=dict)


@frozen
class StackState:
    """`resources` by URN; `condemned` apart. `raw` is the export itself, for edits."""

    stack: str
    resources: Mapping[str, StackResource]
    condemned: tuple[StackResource, ...]
    pending: tuple[PendingOperation, ...]
    raw: Mapping[str, Any]

    @property
    def is_empty(self) -> bool:
        """Whether it holds nothing: the stack's own root apart."""
        return not self.condemned and all(one.type == "pulumi:pulumi:Stack" for one in self.resources.values())

    def of_type(self, kind: str) -> tuple[StackResource, ...]:
        return tuple(one for one in self.resources.values() if one.type == kind)

    def instances_by_claim(self) -> dict[str, StackResource]:
        return {urns.name_of(one.urn): one for one in self.of_type(urns.INSTANCE) if not urns.is_stray(one.urn)}

    def strays(self) -> tuple[StackResource, ...]:
        """Machines that were taken in only to be deleted, and are still there."""
        return tuple(one for one in self.of_type(urns.INSTANCE) if urns.is_stray(one.urn))

    def provider_reference(self, name: str) -> str | None:
        """URN::ID of a provider, as the engine writes it."""
        for one in self.of_type(urns.PROVIDER):
            if urns.name_of(one.urn) == name:
                return f"{one.urn}::{one.id}"
        return None

    @property
    def written_at(self) -> datetime | None:
        """When the state was written last, in UTC; None when it does not say."""
        written = str((self.raw["deployment"].get("manifest") or {}).get("time") or "")
        try:
            return datetime.fromisoformat(_NANOSECONDS.sub(r"\1", written).replace("Z", "+00:00"))
        except ValueError:
            return None


def parse_state(stack: str, exported: str) -> StackState:
    """Raises StateUnreadable."""
    try:
        raw = json.loads(exported)
    except ValueError as error:
        raise _unreadable(stack, error) from None
    return state_of_export(stack, raw)


def state_of_export(stack: str, raw: Mapping[str, Any]) -> StackState:
    """The state of an export that was read already. Raises StateUnreadable."""
    try:
        deployment = raw["deployment"]
        found = [_resource(one) for one in deployment.get("resources") or []]
        pending = tuple(
            PendingOperation(
                one["resource"]["urn"], one["resource"]["type"], one["type"], one["resource"].get("inputs") or {}
            )
            for one in deployment.get("pending_operations") or []
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(stack, error) from None
    return StackState(
        stack=stack,
        resources={one.urn: one for one in found if not one.is_condemned},
        condemned=tuple(one for one in found if one.is_condemned),
        pending=pending,
        raw=raw,
    )


def _unreadable(stack: str, error: Exception) -> StateUnreadable:
    return StateUnreadable(
        f"the state of stack {stack!r} cannot be read: {type(error).__name__}: {error}",
        f"see `pulumi stack export --stack {stack}`; `pulumi stack history` shows what changed it last",
    )


def without_pending(state: StackState, drop: Callable[[PendingOperation], bool]) -> str:
    """The export less the pending operations that `drop` chooses, to be imported again.

    To be used only when it is known what became of them: a create that is forgotten is a machine that nobody owns.
    """
    raw = copy.deepcopy(dict(state.raw))
    kept = [
        one
        for one, read in zip(raw["deployment"].get("pending_operations") or [], state.pending, strict=True)
        if not drop(read)
    ]
    raw["deployment"]["pending_operations"] = kept
    return json.dumps(raw)


def with_finished_creates(state: StackState, ids: Mapping[str, str]) -> str:
    """The export with creates that were cut off taken as done: `ids` are what they made, by URN.

    Their inputs are those of the cut-off create; a refresh brings inputs and outputs in line with what exists.
    """
    raw = copy.deepcopy(dict(state.raw))
    deployment = raw["deployment"]
    finished = [one for one in deployment["pending_operations"] if one["resource"]["urn"] in ids]
    for one in finished:
        resource = one["resource"]
        id_ = ids[resource["urn"]]
        deployment["resources"].append({**resource, "id": id_, "outputs": {**resource.get("inputs", {}), "id": id_}})
    deployment["pending_operations"] = [one for one in deployment["pending_operations"] if one not in finished]
    return json.dumps(raw)


def with_found_parts(state: StackState, found: Iterable[FoundPart]) -> str:
    """The export with parts that exist and that it lacks. The state must hold their parents and providers.

    A refresh brings them in line with what exists; of a part without inputs it makes an import, for it has no outputs
    either. Each outlives those after it.
    """
    raw = copy.deepcopy(dict(state.raw))
    provider = state.provider_reference(urns.EVERYTHING_ELSE)
    before: list[str] = []
    for part in found:
        raw["deployment"]["resources"].append(
            {
                "urn": part.urn,
                "custom": True,
                "id": part.id,
                "type": part.type,
                "inputs": dict(part.inputs),
                "outputs": {**part.inputs, "id": part.id} if part.inputs else {},
                "parent": part.parent,
                "provider": provider,
                "dependencies": list(before),
            }
        )
        before.append(part.urn)
    return json.dumps(raw)


def with_strays(state: StackState, instance_ids: Iterable[str]) -> str:
    """The export with further machines, known by nothing but their ids.

    For machines that are to be deleted: a refresh fills in the rest. They depend on the network, so that it outlives
    them. The state must hold the launches' provider.
    """
    raw = copy.deepcopy(dict(state.raw))
    network = [one.urn for kind in (urns.SUBNET, urns.SECURITY_GROUP) for one in state.of_type(kind)]
    provider = state.provider_reference(urns.LAUNCHES)
    for instance_id in instance_ids:
        raw["deployment"]["resources"].append(
            {
                "urn": urns.Urns(state.stack).stray(instance_id),
                "custom": True,
                "id": instance_id,
                "type": urns.INSTANCE,
                "inputs": {},
                "outputs": {"id": instance_id},
                "provider": provider,
                "dependencies": network,
            }
        )
    return json.dumps(raw)


def _resource(raw: Mapping[str, Any]) -> StackResource:
    return StackResource(
        urn=raw["urn"],
        type=raw["type"],
        id=raw.get("id") or "",
        provider=raw.get("provider") or "",
        inputs=raw.get("inputs") or {},
        outputs=raw.get("outputs") or {},
        dependencies=tuple(raw.get("dependencies") or ()),
        init_errors=tuple(raw.get("initErrors") or ()),
        protect=bool(raw.get("protect")),
        is_condemned=bool(raw.get("delete")),
    )
