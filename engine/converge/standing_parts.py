"""A foundation that stands while its stack does not know it, because the stack's state was lost: found and taken in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pulumi

from engine.converge import urns
from engine.converge.claims import NodeSets
from engine.converge.faults import fault_of
from engine.converge.ground import FoundationParts, R, owned_tags
from engine.converge.providers import declare_providers
from engine.converge.pulumi_process import OnEvent
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.recovery import FoundationFinder, refreshed_ground
from engine.converge.state import FoundPart, StackState, with_found_parts
from engine.converge.urns import Urns
from engine.model.document import DesiredDocument
from engine.model.environment import Environment


def parts_that_stand(
    document: DesiredDocument, environment: Environment, finder: FoundationFinder, stack: str
) -> tuple[FoundPart, ...]:
    """The parts of this foundation, launch templates included, that exist and are this environment's, in the order in
    which they refer to each other. Raises Fault when AWS cannot be asked, NetworkTooSmall.
    """
    # Importing pulumi_aws takes seconds of CPU, which only a whole update, or this, should pay.
    from engine.converge.foundation import lay_foundation

    search = _Search(finder, environment.name, Urns(stack))
    lay_foundation(search, document.foundation, environment, pulumi.ResourceOptions(), protect=False)
    for template in document.foundation.launch_templates:
        id_ = finder.find(urns.LAUNCH_TEMPLATE, {"name": template.name, "tags": dict(template.tags)})
        if id_ is not None:
            node_set = search.urns.node_set(template.node_pool)
            search.found.append(FoundPart(search.urns.template(template), urns.LAUNCH_TEMPLATE, id_, node_set))
    return tuple(search.found)


def network_that_stands(environment: Environment, finder: FoundationFinder) -> str | None:
    """The id of a VPC that carries this environment's tags. Raises Fault when AWS cannot be asked."""
    return finder.find(urns.VPC, {"tags": owned_tags(environment, environment.name)})


def holds_no_part(state: StackState) -> bool:
    """Whether a state holds neither machines nor parts: it is new, or was lost."""
    own = {"pulumi:pulumi:Stack", urns.PROVIDER, *urns.COMPONENTS}
    return not state.condemned and all(one.type in own for one in state.resources.values())


def with_parts(
    stack: PulumiStack,
    environment: Environment,
    found: Iterable[FoundPart],
    pools: Iterable[str],
    on_event: OnEvent,
) -> StackState:
    """The state of a stack that holds no part, with the providers and with the parts that were found. Raises Fault.

    `pools` are those whose launch templates were looked for.
    """
    named = sorted(set(pools))

    def bare() -> None:
        declare_providers(environment)
        FoundationParts(environment.name)
        node_sets = NodeSets()
        for pool in named:
            node_sets.of(pool)

    done = stack.operate("up", program=bare, on_event=on_event)
    if not done.succeeded:
        raise fault_of(done, stack.name, f"preparing stack {stack.name} for what stands already")
    parts = tuple(found)
    if not parts:
        return stack.state()
    stack.replace_state(with_found_parts(stack.state(), parts))
    return refreshed_ground(stack, environment, stack.state(), on_event)


class _Part(pulumi.Resource):
    """What another part may refer to; `id` is None when the part does not exist. No engine hears of it."""

    def __init__(self, id_: str | None, name: str | None) -> None:
        # Without Resource's own, which would register it.
        self.id, self.name = id_, name
        # As much of a role's ARN as its name tells; of other parts nobody is found by it.
        self.arn = f"role/{name}" if name else None


class _Search:
    """Looks each part up instead of making it."""

    def __init__(self, finder: FoundationFinder, environment: str, stack_urns: Urns) -> None:
        self._finder = finder
        self._environment = environment
        self.urns = stack_urns
        self.found: list[FoundPart] = []

    def make(self, kind: type[R], part: str, options: pulumi.ResourceOptions, /, **inputs: Any) -> R:
        """A stand-in for the part; one that refers to a part which does not exist, does not exist either."""
        token = str(vars(kind)["pulumi_type"])
        is_possible = all(value is not None for value in inputs.values())
        wired = _in_wire_form(inputs)
        id_ = self._finder.find(token, wired) if is_possible else None
        if id_ is not None:
            if token == urns.ACCESS_ENTRY:
                wired["principalArn"] = id_.partition(":")[2]
            parent = self.urns.foundation(self._environment)
            self.found.append(FoundPart(self.urns.of_foundation(token, part), token, id_, parent, wired))
        name = inputs.get("name") if id_ is not None else None
        return cast("R", _Part(id_, name))


def _in_wire_form(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {_camel(name): value for name, value in inputs.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
