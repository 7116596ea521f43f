"""Small exported states for the tests of converging."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from engine.converge import urns
from engine.converge.state import StackState, parse_state
from engine.converge.urns import Urns
from tests.converge.documents import claim, template

STACK = "test"
NAMES = Urns(STACK)


def resource(urn: str, kind: str, id_: str = "", **more: Any) -> dict[str, Any]:
    return {"urn": urn, "type": kind, "id": id_, "custom": bool(id_), **more}


def instance(name: str, id_: str, *, init_errors: Iterable[str] = (), **more: Any) -> dict[str, Any]:
    return resource(NAMES.claim(claim(name)), urns.INSTANCE, id_, initErrors=list(init_errors), **more)


def stray(id_: str) -> dict[str, Any]:
    return resource(NAMES.stray(id_), urns.INSTANCE, id_)


def launch_template(name: str) -> dict[str, Any]:
    return resource(NAMES.template(template(name)), urns.LAUNCH_TEMPLATE, f"lt-{name}")


def providers() -> list[dict[str, Any]]:
    return [
        resource(NAMES.provider(name), urns.PROVIDER, f"id-of-{name}") for name in (urns.EVERYTHING_ELSE, urns.LAUNCHES)
    ]


def foundation(digest: str, parts: Iterable[str] = ()) -> dict[str, Any]:
    outputs = {urns.DIGEST: digest, urns.PARTS: list(parts)}
    return resource(NAMES.foundation(STACK), urns.FOUNDATION, outputs=outputs)


def exported(
    *resources: Mapping[str, Any], pending: Iterable[str] = (), time: str = "2026-11-30T12:00:00.123456789Z"
) -> str:
    operations = [
        {"resource": resource(NAMES.claim(claim(name)), urns.INSTANCE), "type": "creating"} for name in pending
    ]
    deployment = {"manifest": {"time": time}, "resources": list(resources), "pending_operations": operations}
    return json.dumps({"version": 3, "deployment": deployment})


def state_of(*resources: Mapping[str, Any], **more: Any) -> StackState:
    return parse_state(STACK, exported(*resources, **more))
