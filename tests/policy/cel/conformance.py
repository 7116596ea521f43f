"""CEL's own conformance cases on both engines, and the table of pass rates in the docs.

``python -m tests.policy.cel.conformance`` writes the table anew. The cases stand beside the checkout; see their README
for the format. They use what facts of ours never have (bytes, unsigned numbers, containers), so the libraries are
driven beneath `CelEngine.compile` here, in the very environments and with the very evaluators that the engines use.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import frozen
from cel_expr_python import cel
from celpy import celtypes

from engine.policy.cel.interpreter import FUNCTIONS, Interpreter, new_environment
from engine.policy.cel.messages import CONFIGURATION

CASES = Path(__file__).parents[3].parent / "shared" / "data" / "cel-spec" / "simple.jsonl"
TABLE = Path(__file__).parents[3] / "docs" / "cel-conformance.md"
FILES = (
    *("basic", "logic", "comparisons", "conversions", "fields", "integer_math", "fp_math", "lists", "macros"),
    *("macros2", "string", "string_ext", "math_ext", "optionals", "timestamps", "type_deduction", "namespace"),
    *("parse", "bindings_ext", "network_ext"),
)
"""Those that bear on policies; the others are about protobuf messages, enums and encoders."""

Case = Mapping[str, Any]
Typed = tuple[str, Any]
"""A value with the name of its type: an int is no uint."""

_WELL_KNOWN = {"timestamp": "google.protobuf.Timestamp", "duration": "google.protobuf.Duration"}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@frozen
class Rate:
    passed: int
    of: int


def cases() -> list[Case]:
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


def rates(all_cases: Iterable[Case], passes: Callable[[Case], bool]) -> dict[str, Rate]:
    found: dict[str, Rate] = {name: Rate(0, 0) for name in FILES}
    for case in all_cases:
        if (rate := found.get(case["file"])) is not None and not case.get("check_only"):
            found[case["file"]] = Rate(rate.passed + passes(case), rate.of + 1)
    return found


def total(found: Mapping[str, Rate]) -> Rate:
    return Rate(sum(each.passed for each in found.values()), sum(each.of for each in found.values()))


def expected(value: Mapping[str, Any]) -> Typed:
    """A case's value in the form that both engines' answers are brought to."""
    ((kind, inner),) = value.items()
    match kind:
        case "int" | "uint" | "duration_ns":
            return kind, int(inner)
        case "double":
            return kind, float(inner)
        case "bytes":
            return kind, base64.b64decode(inner)
        case "list":
            return kind, tuple(expected(each) for each in inner)
        case "map":
            return kind, {expected(key): expected(each) for key, each in inner}
        case "timestamp":
            return kind, (int(inner[0]), int(inner[1]))
        case _:
            return kind, inner


def are_same(left: Typed, right: Typed) -> bool:
    """Equal, of one type, all the way down; here NaN is NaN."""
    if left[0] != right[0]:
        return False
    if left[0] == "double":
        return bool(left[1] == right[1]) or (math.isnan(left[1]) and math.isnan(right[1]))
    if left[0] == "list":
        return len(left[1]) == len(right[1]) and all(map(are_same, left[1], right[1]))
    if left[0] == "map":
        return left[1].keys() == right[1].keys() and all(are_same(each, right[1][key]) for key, each in left[1].items())
    return bool(left[1] == right[1])


def cel_expr_passes(case: Case) -> bool:
    try:
        library = cel.NewEnv(
            config=CONFIGURATION,
            variables={name: _declared(type_) for name, type_ in case.get("type_env", {}).items()},
            container=case.get("container"),
        )
        expression = library.compile(case["expr"], disable_check=bool(case.get("disable_check")))
        if "type" in case and not _is_deduced(expression.return_type(), case["type"]):
            return False
        found = expression.eval(data={name: _plain(value) for name, value in case.get("bindings", {}).items()})
    except (RuntimeError, ValueError, TypeError):
        return bool(case.get("error"))
    if found.type() == cel.Type.ERROR:
        return bool(case.get("error"))
    return not case.get("error") and are_same(_of_cel_expr(found), expected(case["value"]))


def cel_python_passes(case: Case) -> bool:
    try:
        environment = new_environment(package=case.get("container"))
        bindings = {name: _of_celtypes(expected(value)) for name, value in case.get("bindings", {}).items()}
        tree = environment.compile(case["expr"])
        found = Interpreter(environment, tree, FUNCTIONS).evaluate(bindings)
        return not case.get("error") and are_same(_of_cel_python(found), expected(case["value"]))
    except Exception:  # the library lets errors of all kinds out
        return bool(case.get("error"))


def _declared(type_: Any) -> Any:
    if isinstance(type_, dict):
        ((kind, inner),) = type_.items()
        return cel.Type.List(_declared(inner)) if kind == "list" else cel.Type.Map(*map(_declared, inner))
    return getattr(cel.Type, type_.upper())


def _is_deduced(found: Any, type_: Any) -> bool:
    return isinstance(type_, str | dict) and _type_text(type_) == found.name().lower().replace(" ", "")


def _type_text(type_: Any) -> str:
    if isinstance(type_, dict):
        ((kind, inner),) = type_.items()
        return f"{kind}<{','.join(map(_type_text, inner if isinstance(inner, list) else [inner]))}>"
    return str(type_)


def _plain(value: Mapping[str, Any]) -> Any:
    return _plain_of(expected(value))


def _plain_of(value: Typed) -> Any:
    kind, inner = value
    match kind:
        case "list":
            return [_plain_of(each) for each in inner]
        case "map":
            return {_plain_of(key): _plain_of(each) for key, each in inner.items()}
        case "timestamp":
            return _EPOCH + timedelta(seconds=inner[0], microseconds=inner[1] // 1000)
        case "duration_ns":
            return timedelta(microseconds=inner // 1000)
        case _:
            return inner


def _of_cel_expr(found: Any) -> Typed:
    kind = found.type().name().split("<")[0].lower()
    match kind:
        case "list":
            return kind, tuple(_of_cel_expr(each) for each in found.value())
        case "map":
            return kind, {_key(key): _of_cel_expr(each) for key, each in found.value().items()}
        case "timestamp":
            return kind, _seconds(found.plain_value())
        case "duration":
            return "duration_ns", found.plain_value() // timedelta(microseconds=1) * 1000
        case "type":
            name = found.plain_value().name().split("<")[0].lower()
            return kind, {"null": "null_type", **_WELL_KNOWN}.get(name, name)
        case _:
            return kind, found.plain_value()


def _key(key: Any) -> Typed:
    kind = "bool" if isinstance(key, bool) else "int" if isinstance(key, int) else "string"
    return kind, key


def _seconds(moment: datetime) -> tuple[int, int]:
    seconds, micros = divmod((moment - _EPOCH) // timedelta(microseconds=1), 1_000_000)
    return seconds, micros * 1000


_CELTYPES: dict[str, Callable[[Any], Any]] = {
    "bool": celtypes.BoolType,
    "int": celtypes.IntType,
    "uint": celtypes.UintType,
    "double": celtypes.DoubleType,
    "string": celtypes.StringType,
    "bytes": celtypes.BytesType,
    "null": lambda _: None,
}


def _of_celtypes(value: Typed) -> Any:
    kind, inner = value
    if kind == "list":
        return celtypes.ListType([_of_celtypes(each) for each in inner])
    if kind == "map":
        return celtypes.MapType({_of_celtypes(key): _of_celtypes(each) for key, each in inner.items()})
    return _CELTYPES[kind](inner)


def _of_cel_python(found: Any) -> Typed:
    """A plain Python value, which the library gives instead of its own in places, passes for what it stands for."""
    if isinstance(found, list):
        return "list", tuple(_of_cel_python(each) for each in found)
    if isinstance(found, dict):
        return "map", {_of_cel_python(key): _of_cel_python(each) for key, each in found.items()}
    for types, name, read in _READ:
        if isinstance(found, types):
            return name, read(found)
    return type(found).__name__, found


_READ: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (type(None), "null", lambda _: None),
    (celtypes.BoolType, "bool", bool),
    (celtypes.UintType, "uint", int),
    (celtypes.IntType, "int", int),
    (float, "double", float),
    (str, "string", str.__str__),
    (bytes, "bytes", bytes),
    (timedelta, "duration_ns", lambda found: found // timedelta(microseconds=1) * 1000),
    (datetime, "timestamp", _seconds),
    (type, "type", lambda found: _TYPE_NAMES.get(found, "")),
)


_TYPE_NAMES: dict[type, str] = {
    celtypes.BoolType: "bool",
    celtypes.IntType: "int",
    celtypes.UintType: "uint",
    celtypes.DoubleType: "double",
    celtypes.StringType: "string",
    celtypes.BytesType: "bytes",
    celtypes.ListType: "list",
    celtypes.MapType: "map",
    celtypes.TypeType: "type",
    type(None): "null_type",
}

ENGINES: dict[str, Callable[[Case], bool]] = {"cel-expr": cel_expr_passes, "cel-python": cel_python_passes}


def table(found: Mapping[str, Mapping[str, Rate]]) -> str:
    """The page of the docs."""
    names = list(found)
    lines = [
        "# CEL: what the engines pass of the language's own tests",
        "",
        "Written by `python -m tests.policy.cel.conformance`; a test holds it to what the engines do.",
        "",
        "The cases are those of cel-spec's simple tests that involve no protobuf message and evaluate something.",
        "Types are compared strictly: an int is no uint. A case that expects an error passes with any error.",
        "`cel-expr` checks and evaluates all rules by default. `cel-python` is the second opinion, and runs the",
        "portable subset only: what it lacks here (string and math functions, optionals, conversions of bytes) is",
        "refused there with `cel-not-portable` before anything is evaluated.",
        "",
        f"| file | {' | '.join(names)} |",
        f"|---|{'---:|' * len(names)}",
    ]
    lines += [f"| {file} | {' | '.join(_cell(found[name][file]) for name in names)} |" for file in FILES]
    sums = [total(found[name]) for name in names]
    lines.append(
        f"| **all** | {' | '.join(f'**{_cell(each)} = {100 * each.passed / each.of:.1f} %**' for each in sums)} |"
    )
    return "\n".join(lines) + "\n"


def _cell(rate: Rate) -> str:
    return f"{rate.passed}/{rate.of}"


def main() -> None:
    all_cases = cases()
    TABLE.write_text(table({name: rates(all_cases, passes) for name, passes in ENGINES.items()}), encoding="utf-8")
    for name, passes in ENGINES.items():
        if "-v" in sys.argv:
            for case in all_cases:
                if case["file"] in FILES and not case.get("check_only") and not passes(case):
                    print(name, case["file"], case["section"], case["name"], case["expr"])


if __name__ == "__main__":
    main()
