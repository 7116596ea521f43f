"""What stands between a document and a stack's state. Pure: nothing is read or run here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from attrs import frozen

from engine.converge import urns
from engine.converge.faults import ConvergeRefused
from engine.converge.state import StackState
from engine.converge.urns import Urns
from engine.model.claim import Claim
from engine.model.document import DesiredDocument, LaunchTemplate
from engine.model.lane import lane_part, stack_of
from engine.model.node import Instance


@frozen
class Stray:
    """A machine of a claim that left by record, of which the stack does not know."""

    claim: str
    instance_id: str


@frozen
class Duplicate:
    """A machine beside, or left over from, the one of its claim. `kept` is the one that the stack holds or adopts;
    None once that one leaves or has left."""

    claim: str
    instance_id: str
    kept: str | None


@frozen
class Changes:
    """Everything that has to happen to a stack.

    `launches` are claims that the state lacks; `adoptions` are instance ids, by claim name, of those whose machine
    runs already. `removals` are URNs of instances that leave; `strays` are machines whose claim left by record
    while the stack never knew them, each the only one that its claim ever had. `duplicates` are left alone.
    `unfinished` claims are in the state with errors of their making while their machine lives: another update
    finishes them. `half_made` are such claims, by name, whose machine is gone or not seen. `foundation_is_stale`: a
    full update is needed.
    """

    launches: tuple[Claim, ...]
    adoptions: Mapping[str, str]
    removals: tuple[str, ...]
    strays: tuple[Stray, ...]
    new_templates: tuple[LaunchTemplate, ...]
    gone_templates: tuple[str, ...]
    unfinished: tuple[Claim, ...]
    half_made: tuple[str, ...]
    duplicates: tuple[Duplicate, ...]
    foundation_is_stale: bool

    @property
    def declared(self) -> tuple[Claim, ...]:
        """The claims that an update makes or finishes."""
        return (*self.launches, *self.unfinished)

    @property
    def is_empty(self) -> bool:
        return not (
            self.declared
            or self.removals
            or self.strays
            or self.new_templates
            or self.gone_templates
            or self.foundation_is_stale
        )


def changes_between(
    document: DesiredDocument,
    state: StackState,
    instances: Iterable[Instance],
    *,
    environment: str,
    foundation_digest: str,
    known_ids: Mapping[str, str],
) -> Changes:
    """What one lane of the environment needs: the one whose `state` is given. The foundation is the main lane's.

    `instances` are the environment's: those of other lanes' claims are passed over. `known_ids` are the instance ids
    that are remembered, by claim name: the machines that records are about.

    Raises ConvergeRefused when the state holds an instance that the document neither keeps there nor records as gone.
    """
    refuse_unrecorded_removals(document, state)
    is_main = state.stack == environment
    stack_urns = Urns(state.stack)
    _, claims, records = lane_part(document, state.stack, environment)
    held = state.instances_by_claim()
    instances = tuple(_of_lane(instances, document, state, environment))
    running = _running_by_claim(instances)
    alive = {instance.id for of_claim in running.values() for instance in of_claim}
    half_made = tuple(claim for claim in claims if claim.name in held and held[claim.name].init_errors)
    launches = tuple(claim for claim in claims if claim.name not in held)
    wanted = {claim.name for claim in claims}
    taken_in = {one.id: one.urn for one in state.strays()}
    removals = tuple(sorted([one.urn for name, one in held.items() if name not in wanted] + list(taken_in.values())))
    recorded = {record.claim for record in records}
    unheld = {
        claim: [instance for instance in of_claim if instance.id not in taken_in]
        for claim, of_claim in sorted(running.items())
        if claim not in wanted | held.keys()
    }
    recorded_ones = _machines_of_records(recorded, instances, known_ids)
    strays = tuple(
        Stray(claim, instance.id)
        for claim, of_claim in unheld.items()
        for instance in of_claim
        if recorded_ones.get(claim) == instance.id
    )
    left_over = tuple(
        Duplicate(claim, instance.id, None)
        for claim, of_claim in unheld.items()
        for instance in of_claim
        if recorded_ones.get(claim) != instance.id
    )
    adoptions = {claim.name: running[claim.name][0].id for claim in launches if claim.name in running}
    declared = document.foundation.launch_templates if is_main else ()
    templates = {stack_urns.template(template): template for template in declared}
    return Changes(
        launches=launches,
        adoptions=adoptions,
        removals=removals,
        strays=strays,
        new_templates=tuple(template for urn, template in templates.items() if urn not in state.resources),
        gone_templates=_gone_templates(state, templates.keys(), set(removals)),
        unfinished=tuple(claim for claim in half_made if held[claim.name].id in alive),
        half_made=tuple(sorted(claim.name for claim in half_made if held[claim.name].id not in alive)),
        duplicates=(
            *_duplicates(running, {**{name: one.id for name, one in held.items()}, **adoptions}, wanted),
            *left_over,
        ),
        foundation_is_stale=is_main and _is_stale(state, stack_urns.foundation(environment), foundation_digest),
    )


def foundation_stands(state: StackState, environment: str, digest: str) -> bool:
    """Whether the main stack's state holds the foundation as declared, so that other lanes can launch onto it."""
    return not _is_stale(state, Urns(state.stack).foundation(environment), digest)


def refuse_unrecorded_removals(document: DesiredDocument, state: StackState) -> None:
    """Raises ConvergeRefused when a state holds an instance that the document neither keeps there nor records as gone.

    That is no decision but a loss: of a document, of a file, of half a program. Nor does a claim ever move to another
    stack: that would launch it there a second time.
    """
    kept = {claim.name for claim in document.claims if claim.stack == state.stack}
    known = kept | {record.claim for record in document.removals}
    lost = tuple(sorted(one.urn for name, one in state.instances_by_claim().items() if name not in known))
    if lost:
        raise ConvergeRefused(
            f"stack {state.stack!r} holds {len(lost)} instance(s) that version {document.version} of the desired "
            f"document neither keeps nor records as removed: {', '.join(map(urns.name_of, lost))}",
            lost,
            (
                "nothing was changed; restore the documents of this environment (`store` in its stack file)",
                "or take the environment down with nodewright destroy",
            ),
        )


def _of_lane(
    instances: Iterable[Instance], document: DesiredDocument, state: StackState, environment: str
) -> Iterator[Instance]:
    """The machines that this lane answers for: of its claims and records; in the main lane those of nobody, too."""
    lane_of = {record.claim: stack_of(record, environment) for record in document.removals}
    lane_of.update({claim.name: claim.stack for claim in document.claims})
    held = state.instances_by_claim()
    for instance in instances:
        if instance.claim in held or lane_of.get(instance.claim, environment) == state.stack:
            yield instance


def _running_by_claim(instances: Iterable[Instance]) -> dict[str, list[Instance]]:
    """Machines that live, by claim tag; the oldest first."""
    by_claim: dict[str, list[Instance]] = {}
    for instance in sorted(instances, key=lambda one: (one.launched_at, one.id)):
        if instance.claim and instance.is_alive:
            by_claim.setdefault(instance.claim, []).append(instance)
    return by_claim


def _machines_of_records(
    recorded: Iterable[str], instances: Iterable[Instance], known_ids: Mapping[str, str]
) -> dict[str, str]:
    """The machine that each record is about: the remembered one, else the only one that EC2 shows, dead ones counted.

    Of several, a record that was decided for one must not let another go: pods may run on it, and nothing drained it.
    """
    shown: dict[str, list[str]] = {}
    for instance in instances:
        shown.setdefault(instance.claim, []).append(instance.id)
    only = {claim: ids[0] for claim, ids in shown.items() if len(ids) == 1}
    return {claim: known_ids.get(claim) or only[claim] for claim in recorded if claim in known_ids or claim in only}


def _duplicates(
    running: Mapping[str, list[Instance]], kept: Mapping[str, str], wanted: Collection[str]
) -> tuple[Duplicate, ...]:
    return tuple(
        Duplicate(claim, instance.id, kept[claim] if claim in wanted else None)
        for claim, of_claim in sorted(running.items())
        if claim in kept
        for instance in of_claim
        if instance.id != kept[claim]
    )


def _gone_templates(state: StackState, declared: Iterable[str], removals: set[str]) -> tuple[str, ...]:
    """Templates that are declared no more, except those that an instance which stays was launched from."""
    in_use = {
        dependency for one in state.of_type(urns.INSTANCE) if one.urn not in removals for dependency in one.dependencies
    }
    keep = in_use | set(declared)
    return tuple(sorted(one.urn for one in state.of_type(urns.LAUNCH_TEMPLATE) if one.urn not in keep))


def _is_stale(state: StackState, component: str, digest: str) -> bool:
    """Whether the foundation does not stand as declared: its digest is stored only when all of it stood."""
    found = state.resources.get(component)
    has_providers = all(state.provider_reference(name) for name in (urns.EVERYTHING_ELSE, urns.LAUNCHES))
    if found is None or not has_providers or state.condemned:
        return True
    parts = [state.resources.get(str(urn)) for urn in found.outputs.get(urns.PARTS) or ()]
    all_stand = all(part is not None and not part.init_errors for part in parts)
    return found.outputs.get(urns.DIGEST) != digest or not all_stand
