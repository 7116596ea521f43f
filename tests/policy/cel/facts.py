"""A small schema, and facts of it taken in by both engines."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from engine.policy.cel.engines import engine_named
from engine.policy.cel.port import Answer, Bound, CelEngine, DoesNotCompile, Problem
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, RecordField, Scalar

ENGINES = ("cel-expr", "cel-python")
ANY = tuple(Scalar)
NOON = datetime(2026, 3, 8, 12, 0, 0, tzinfo=UTC)


def record(name: str, /, **fields: CelType) -> Record:
    return Record(name, tuple(RecordField(each, type_, "") for each, type_ in fields.items()))


TOLERATION = record("Toleration", key=Scalar.STRING, value=Scalar.STRING)
POD = record(
    "Pod",
    name=Scalar.STRING,
    gpus=Scalar.INT,
    price=Scalar.DOUBLE,
    bound=Scalar.BOOL,
    labels=MapOf(Scalar.STRING),
    requests=MapOf(Scalar.INT),
    tolerations=ListOf(TOLERATION, 16),
    numbers=ListOf(Scalar.INT, 10_000),
    waiting=Scalar.DURATION,
    created=Scalar.TIMESTAMP,
    starts=ListOf(Scalar.TIMESTAMP, 4),
)
TYPE = record("InstanceType", name=Scalar.STRING, gpuCount=Scalar.INT, labels=MapOf(Scalar.STRING))
VARIABLES: Mapping[str, CelType] = {"pod": POD, "instanceType": TYPE, "now": Scalar.TIMESTAMP, "reason": Scalar.STRING}

POD_FACTS: Mapping[str, Any] = {
    "name": "web-é",
    "gpus": 2,
    "price": 1.5,
    "bound": False,
    "labels": {"tier": "gold", "app.io/team": "search"},
    "requests": {"cpu": 4},
    "tolerations": [{"key": "spot", "value": "1"}, {"key": "gpu", "value": "x"}],
    "numbers": [1, 2, 3],
    "waiting": timedelta(hours=1),
    "created": NOON - timedelta(hours=2),
    "starts": [NOON],
}


def type_facts(name: str = "g5.xlarge", gpus: int = 1, **labels: str) -> Mapping[str, Any]:
    return {"name": name, "gpuCount": gpus, "labels": labels}


def taken_in(engine: CelEngine, **pod: Any) -> dict[str, Bound]:
    return {
        "pod": engine.bind(POD, {**POD_FACTS, **pod}),
        "instanceType": engine.bind(TYPE, type_facts(zone="a")),
        "now": engine.bind(Scalar.TIMESTAMP, NOON),
        "reason": engine.bind(Scalar.STRING, "Drifted"),
    }


def answer(engine: str, source: str, **pod: Any) -> Answer:
    """What the source comes to, of whatever scalar type it is."""
    found = engine_named(engine)
    return found.compile(source, VARIABLES, ANY).evaluate(taken_in(found, **pod))


def problems(engine: str, source: str, result: CelType | tuple[CelType, ...] = Scalar.BOOL) -> tuple[Problem, ...]:
    """Why the source does not compile; () when it does."""
    try:
        engine_named(engine).compile(source, VARIABLES, result)
    except DoesNotCompile as refused:
        return refused.problems
    return ()
