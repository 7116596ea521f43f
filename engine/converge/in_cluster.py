"""The Pulumi stack of what is installed in the cluster: ``ENVIRONMENT.cluster``.

It is a stack of its own, so that an API server that is away holds up no launch, and no launch pays for the Kubernetes
plugin (docs/decisions/0007-in-cluster-stack.md). It has its project where the lanes have theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from engine.converge import urns
from engine.converge.events import Event, StepDone, StepStarted, errors_by_urn
from engine.converge.faults import StackMissing, fault_of
from engine.converge.in_cluster_objects import DIGEST, POOL_ANNOTATION, READ_ANNOTATION
from engine.converge.lane_project import lane_project
from engine.converge.pulumi_process import OnEvent, PulumiCli
from engine.converge.pulumi_stack import PulumiStack
from engine.converge.recovery import RUN_PROGRAM, forget_pending
from engine.converge.state import StackState
from engine.converge.update import GO_ON, refusing
from engine.model.environment import Environment
from engine.model.in_cluster import AddOns, ChangeKind, InstallOutcome, ObjectChange, StandingAddOns

# Objects that a person deleted are made again, and what a person changed is set right.
_LOOK_FIRST = "--refresh"
_OBJECTS = "kubernetes:"
_DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
_NAMESPACE = "kubernetes:core/v1:Namespace"
_STACK = "pulumi:pulumi:Stack"
_KINDS = {
    "create": ChangeKind.CREATE,
    "update": ChangeKind.UPDATE,
    "replace": ChangeKind.REPLACE,
    "create-replacement": ChangeKind.REPLACE,
    "delete-replaced": ChangeKind.REPLACE,
    "delete": ChangeKind.DELETE,
}
_SHOWN_CHARACTERS = 600
# The engine's closing words, when the reasons were given before.
_SAYS_NOTHING = ("update failed", "destroy failed", "preview failed")


def stack_name(environment: str) -> str:
    return f"{environment}.cluster"


class InClusterStack:
    """Drives that stack. Remembers nothing itself."""

    def __init__(self, pulumi: Path, project: Path, environment: Environment, variables: Mapping[str, str]) -> None:
        """`project` is the environment's, which holds `stacks/`.

        `variables` are the whole environment of the CLI's processes, with the Kubernetes plugin on PATH.
        """
        folder = lane_project(project, environment.name, stack_name(environment.name))
        self._cluster = environment.cluster
        # A run that was killed may have made an object that the state does not know; its name is ours all the same.
        told = {**variables, "PULUMI_K8S_UPSERT_EXISTING_OBJECTS": "true"}
        self._stack = PulumiStack(PulumiCli(pulumi, folder, told), stack_name(environment.name))

    def standing(self) -> StandingAddOns:
        """What it holds, from its state alone: no plugin is started. Raises Fault."""
        try:
            state = self._stack.state()
        except StackMissing:
            return StandingAddOns()
        return StandingAddOns(
            digest=_digest_of(state) if not state.pending else "",
            images=dict(_images(state)),
            owns_namespace=bool(state.of_type(_NAMESPACE)),
            is_empty=state.is_empty,
        )

    def preview(self, add_ons: AddOns) -> tuple[ObjectChange, ...]:
        """What `apply` would change, compared with what the cluster holds now. Raises Fault."""
        self._stack.ensure()
        done = self._stack.operate(
            "preview", [_LOOK_FIRST, RUN_PROGRAM], program=self._program(add_ons), on_event=_unseen
        )
        if not done.succeeded:
            raise fault_of(done, self._stack.name, f"previewing stack {self._stack.name}")
        return _changes(event for event in done.told.events if isinstance(event, StepStarted))

    def apply(self, add_ons: AddOns, on_event: OnEvent) -> InstallOutcome:
        """Make the cluster hold what the add-ons say, and none of ours besides. Raises Fault if it could not begin."""
        self._stack.ensure()
        forget_pending(self._stack, self._stack.state(), keep=())
        return self._operated("up", [_LOOK_FIRST, RUN_PROGRAM, GO_ON], self._program(add_ons), on_event)

    def remove(self, on_event: OnEvent) -> InstallOutcome:
        """Delete all of it. The empty stack stays. Raises Fault when it could not begin."""
        if self.standing().is_empty:
            return InstallOutcome()
        forget_pending(self._stack, self._stack.state(), keep=())
        from engine.converge.in_cluster_program import declare_provider

        program = refusing(lambda: declare_provider(self._cluster))
        return self._operated("destroy", [_LOOK_FIRST, RUN_PROGRAM, GO_ON], program, on_event)

    def _program(self, add_ons: AddOns) -> Any:
        # Importing pulumi_kubernetes takes a second of CPU, which nothing else should pay.
        from engine.converge.in_cluster_program import declare_add_ons

        return refusing(lambda: declare_add_ons(add_ons, self._cluster))

    def _operated(self, verb: str, arguments: list[str], program: Any, on_event: OnEvent) -> InstallOutcome:
        done = self._stack.operate(verb, arguments, program=program, on_event=on_event)
        failures = tuple(_failures(done.told.events))
        if not done.succeeded and not failures and not done.was_interrupted:
            raise fault_of(done, self._stack.name, f"running `pulumi {verb}` on stack {self._stack.name}")
        return InstallOutcome(
            changes=_changes(event for event in done.told.events if isinstance(event, StepDone)),
            failures=failures,
            was_interrupted=done.was_interrupted,
        )


def _changes(steps: Iterable[StepStarted | StepDone]) -> tuple[ObjectChange, ...]:
    """One for each object, by kind and name, whatever order they were begun in; a replacement is several steps."""
    found: dict[str, ObjectChange] = {}
    for step in steps:
        kind = _kind_of(step.urn)
        if kind and step.op in _KINDS:
            found.setdefault(step.urn, ObjectChange(_KINDS[step.op], kind, urns.name_of(step.urn)))
    return tuple(sorted(found.values(), key=lambda one: (one.kind, one.name)))


def _failures(events: Iterable[Event]) -> Iterator[str]:
    for urn, message in errors_by_urn(events).items():
        kind = _kind_of(urn)
        if not kind and message in _SAYS_NOTHING:
            continue
        named = f"{kind} {urns.name_of(urn)}" if kind else "pulumi"
        yield f"{named}: {message[:_SHOWN_CHARACTERS]}"


def _kind_of(urn: str) -> str:
    """`DaemonSet` of a Kubernetes object; empty for anything else in the stack."""
    kind = urns.type_of(urn) if urn else ""
    return kind.rsplit(":", 1)[-1] if kind.startswith(_OBJECTS) else ""


def _digest_of(state: StackState) -> str:
    return next((str(one.outputs.get(DIGEST) or "") for one in state.of_type(_STACK)), "")


def _images(state: StackState) -> Iterator[tuple[str, tuple[str, ...]]]:
    for one in state.of_type(_DAEMON_SET):
        told = (one.inputs.get("metadata") or {}).get("annotations") or {}
        if POOL_ANNOTATION in told:
            yield told[POOL_ANNOTATION], tuple(filter(None, str(told.get(READ_ANNOTATION) or "").split(",")))


def _unseen(_: object) -> None:
    return None
