"""Runs a Pulumi program against the SDK's mocks and keeps what it registered, options included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pulumi
from attrs import frozen
from google.protobuf import json_format
from pulumi.runtime.mocks import MockCallArgs, MockMonitor, MockResourceArgs, Mocks

STACK = "test"


@frozen
class Registered:
    """One resource of a program. `dependencies` are URNs."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    protect: bool
    dependencies: frozenset[str]
    import_id: str
    retain_on_delete: bool
    ignore_changes: tuple[str, ...]
    delete_before_replace: bool


class _Ids(Mocks):
    def new_resource(self, args: MockResourceArgs) -> tuple[str, dict[Any, Any]]:
        return f"id-of-{args.name}", dict(args.inputs)

    def call(self, args: MockCallArgs) -> dict[Any, Any]:
        raise AssertionError(f"the program asks {args.token}; it is to be declared from its document alone")


class _Recorder(MockMonitor):
    def __init__(self) -> None:
        super().__init__(_Ids())
        self.registered: list[Registered] = []

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 (gRPC names it)
        answer = super().RegisterResource(request)
        self.registered.append(
            Registered(
                urn=_real(answer.urn),
                type=request.type,
                name=request.name,
                inputs=json_format.MessageToDict(request.object),
                parent=_real(request.parent),
                provider=_real(request.provider),
                protect=request.protect,
                dependencies=frozenset(map(_real, request.dependencies)),
                import_id=request.importId,
                retain_on_delete=request.retainOnDelete,
                ignore_changes=tuple(request.ignoreChanges),
                delete_before_replace=request.deleteBeforeReplace,
            )
        )
        return answer


def _real(urn: str) -> str:
    """The engine leaves the stack out of its children's URNs; the mocks do not."""
    return urn.replace("pulumi:pulumi:Stack$", "")


def registered_by(program: Callable[[], None]) -> dict[str, Registered]:
    """What the program registers, by URN. Raises what it raises."""
    recorder = _Recorder()
    pulumi.runtime.set_mocks(recorder.mocks, project="nodewright", stack=STACK, preview=False, monitor=recorder)
    failure: list[BaseException] = []

    def run() -> None:
        try:
            program()
        except Exception as error:
            failure.append(error)

    pulumi.runtime.test(run)()
    if failure:
        raise failure[0]
    return {one.urn: one for one in recorder.registered}
