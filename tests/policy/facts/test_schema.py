"""What each part of a rule may read, and that both engines take in what the facts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from engine.model.rule import RuleKind
from engine.policy.cel.engines import ENGINES, engine_named
from engine.policy.cel.port import DoesNotCompile
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, RecordField, Scalar
from engine.policy.facts.fixtures import default_of, fixture
from engine.policy.facts.schema import (
    NODE_POOL,
    POD,
    RECORDS,
    RULE_PARTS,
    VARIABLE_DOCS,
    VARIABLE_TYPES,
    part_of,
    variables_for,
)
from tests.policy.facts.test_values import SAMPLES

R, L, D, G = (
    RuleKind.REQUIREMENT_RULE,
    RuleKind.LIMIT_RULE,
    RuleKind.DISRUPTION_BUDGET,
    RuleKind.GUARDRAIL,
)


def readable(kind: RuleKind, part: str, *, time_sensitive: bool = False, grouped: bool = False) -> set[str]:
    return set(variables_for(kind, part, {}, (), time_sensitive=time_sensitive, grouped=grouped))


def inner_records(type_: CelType) -> Iterator[Record]:
    if isinstance(type_, ListOf):
        yield from inner_records(type_.element)
    elif isinstance(type_, MapOf):
        yield from inner_records(type_.value)
    elif isinstance(type_, Record):
        yield type_
        for each in type_.fields:
            yield from inner_records(each.type)


@pytest.mark.parametrize(
    ("kind", "part", "names"),
    [
        (R, "require", {"pod", "instanceType", "nodePool", "cluster", "params"}),
        (R, "prefer", {"pod", "instanceType", "nodePool", "cluster", "params"}),
        (L, "groupBy", {"pod", "nodePool", "cluster", "params"}),
        (L, "ceiling", {"group", "nodePool", "cluster", "params", "windows", "now"}),
        (D, "candidate", {"node", "reason", "nodePool", "cluster", "params", "windows", "now"}),
        (D, "budget", {"nodePool", "cluster", "params", "windows", "now"}),
        (D, "maxPerWindow", {"nodePool", "cluster", "params", "windows", "now"}),
        (G, "expression", {"plan", "cost", "cluster", "params", "windows", "now"}),
    ],
)
def test_each_part_reads_what_is_there_when_it_is_evaluated(kind: RuleKind, part: str, names: set[str]) -> None:
    assert readable(kind, part) == names


@pytest.mark.parametrize("part", ["require", "prefer", "matchConditions", "messageExpression"])
def test_a_requirement_rule_reads_the_time_only_when_it_says_so(part: str) -> None:
    assert not readable(R, part) & {"now", "windows"}
    assert readable(R, part, time_sensitive=True) >= {"now", "windows"}


def test_a_ceiling_of_groups_has_no_pool_to_read() -> None:
    for part in ("ceiling", "matchConditions", "messageExpression"):
        assert "nodePool" not in readable(L, part, grouped=True)
    assert "nodePool" in readable(L, "groupBy", grouped=True)


@pytest.mark.parametrize("kind", RULE_PARTS)
def test_a_condition_reads_nothing_that_a_part_of_its_rule_lacks(kind: RuleKind) -> None:
    """It is asked before each of them; only the grouping of a limit rule goes by pods, before there is a group."""
    asked = [part for part in RULE_PARTS[kind] if part.name not in ("groupBy", "messageExpression")]
    conditions = set(part_of(kind, "matchConditions").variables)
    assert all(conditions <= set(part.variables) for part in asked)


def test_parameters_and_windows_have_the_types_of_their_own() -> None:
    params = {"most": 5, "share": 0.5, "team": "ml", "strict": True}
    types = variables_for(G, "expression", params, ["night", "business"], time_sensitive=False)
    assert record_types(types["params"]) == {
        "most": Scalar.INT,
        "share": Scalar.DOUBLE,
        "team": Scalar.STRING,
        "strict": Scalar.BOOL,
    }
    assert record_types(types["windows"]) == {"business": Scalar.BOOL, "night": Scalar.BOOL}


def record_types(type_: CelType) -> Mapping[str, CelType]:
    assert isinstance(type_, Record)
    return {each.name: each.type for each in type_.fields}


def test_a_part_that_a_kind_does_not_have_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match="Guardrail has no part ceiling"):
        readable(G, "ceiling")


def test_everything_that_can_be_read_is_told_of() -> None:
    names = {name for parts in RULE_PARTS.values() for part in parts for name in part.variables}
    assert names == set(VARIABLE_DOCS)
    assert names - {"params", "windows"} == set(VARIABLE_TYPES)
    assert {record for type_ in VARIABLE_TYPES.values() for record in inner_records(type_)} == set(RECORDS)
    assert all(each.doc for record in RECORDS for each in record.fields)


# --- engines


def read_of(variable: str, field: RecordField) -> str:
    """A way to read the field whose outcome the portable subset can compare."""
    read = f"{variable}.{field.name}"
    return f"size({read})" if isinstance(field.type, ListOf | MapOf) else read


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", SAMPLES)
def test_an_engine_takes_in_facts_and_reads_every_field_of_them(engine: str, name: str) -> None:
    record, facts = SAMPLES[name]
    cel = engine_named(engine)
    bound = {"x": cel.bind(record, facts())}
    for each in record.fields:
        read = read_of("x", each)
        program = cel.compile(f"{read} == {read}", {"x": record}, Scalar.BOOL)
        assert program.evaluate(bound).value is True, each.name


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_an_engine_takes_in_fixtures(engine: str, record: Record) -> None:
    cel = engine_named(engine)
    same = f"{read_of('x', record.fields[0])} == {read_of('y', record.fields[0])}"
    bound = {"x": cel.bind(record, fixture(record, {})), "y": cel.bind(record, default_of(record))}
    assert cel.compile(same, {"x": record, "y": record}, Scalar.BOOL).evaluate(bound).value is True


@pytest.mark.parametrize("engine", ENGINES)
def test_a_label_that_a_pod_lacks_is_an_error_and_no_empty_text(engine: str) -> None:
    cel = engine_named(engine)
    program = cel.compile('pod.labels.tier != "gold"', {"pod": POD}, Scalar.BOOL)
    answer = program.evaluate({"pod": cel.bind(POD, fixture(POD, {}))})
    assert answer.value is None
    assert answer.error


@pytest.mark.parametrize("engine", ENGINES)
def test_a_field_that_is_not_in_the_schema_does_not_compile(engine: str) -> None:
    with pytest.raises(DoesNotCompile):
        engine_named(engine).compile("nodePool.node > 3", {"nodePool": NODE_POOL}, Scalar.BOOL)
