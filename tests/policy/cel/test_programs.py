"""What is known of a program besides its answer: what it reads, where it errs, what its parts came to; and batches."""

from __future__ import annotations

import pytest

from engine.policy.cel.engines import engine_named
from engine.policy.cel.port import Answer
from engine.policy.cel.types import CelType, Scalar
from tests.policy.cel.facts import ANY, ENGINES, TYPE, VARIABLES, answer, problems, record, taken_in, type_facts

on_both = pytest.mark.parametrize("engine", ENGINES)


def test_an_engine_that_is_none_is_refused_with_the_names() -> None:
    with pytest.raises(ValueError, match="cel-expr, cel-python"):
        engine_named("cel-go")


@on_both
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("(reason + 'x' + 'y').endsWith('xy')", True),
        ("('a' + 'b').matches('^ab$')", True),
        ("(now - (now - duration('90m'))).getMinutes()", 90),
        ("(duration('2h') - duration('30m')).getHours()", 1),
    ],
)
def test_what_a_sum_comes_to_has_the_methods_of_its_type(engine: str, source: str, value: object) -> None:
    assert answer(engine, source).value == value


@pytest.mark.parametrize(
    "source",
    [
        "pod.labels[?'no'].orValue('none')",
        "cel.bind(found, pod.labels[?'no'], found.hasValue() ? 'a' : 'none')",
        "[pod.labels[?'no']].map(found, found.orValue('none'))[0]",
    ],
)
def test_optionals_are_watched_without_what_they_hold(source: str) -> None:
    found = engine_named("cel-expr")
    told, parts = found.compile(source, VARIABLES, Scalar.STRING).observe(taken_in(found))
    assert told == Answer(value="none")
    assert parts[0].text == source
    assert not [part for part in parts if any(each.error for each in part.answers)]


@on_both
def test_the_least_int_has_no_rest(engine: str) -> None:
    assert answer(engine, "(pod.gpus - pod.gpus - 9223372036854775807 - 1) % -1").error


@on_both
def test_an_error_inside_of_others_is_told_in_its_own_words(engine: str) -> None:
    told = answer(engine, "1 - (-(pod.gpus * 9223372036854775807 * 2)) == 3").error
    assert told
    assert "overload" not in told
    assert "class" not in told


@on_both
@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("pod.gpus > 1", {"pod.gpus"}),
        ("pod.labels.tier == 'a' && pod.labels['app.io/team'] == 'b'", {"pod.labels.tier", "pod.labels.app.io/team"}),
        ("has(pod.labels.tier) && 'x' in pod.labels", {"pod.labels.tier", "pod.labels.x"}),
        ("pod.labels[reason] == ''", {"pod.labels.*", "reason"}),
        ("pod.labels['*'] == ''", {"pod.labels.*"}),
        ("size(pod.labels) == 1", {"pod.labels.*"}),
        ("pod.tolerations.all(t, t.key == pod.name)", {"pod.tolerations.*", "pod.name"}),
        ("pod.numbers[0] == 1 && now > pod.created", {"pod.numbers.*", "now", "pod.created"}),
        ("true ? pod.bound : pod.gpus == 1", {"pod.bound", "pod.gpus"}),
        ("1 == 2", set()),
    ],
)
def test_a_program_tells_what_it_reads(engine: str, source: str, reads: set[str]) -> None:
    assert engine_named(engine).compile(source, VARIABLES, Scalar.BOOL).reads == reads


@on_both
@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("pod.gpus > 1\n  && pod.labels.zz == 'é'", "zz"),
        ("'😀' == reason || int(pod.name) == 1", "int("),
        ("pod.tolerations.all(t, int(t.value) == 1)", "int("),
        ("pod.gpus / (pod.gpus - 2) == 1", "/"),
        ("pod.labels['zz'] == ''", "'zz'"),
    ],
)
def test_an_error_points_at_the_innermost_part_that_erred(engine: str, source: str, at: str) -> None:
    assert answer(engine, source).error_at == source.index(at)


@on_both
def test_an_items_error_does_not_spoil_the_others(engine: str) -> None:
    found = engine_named(engine)
    program = found.compile("instanceType.labels.zone == 'a' && pod.gpus > 1", VARIABLES, Scalar.BOOL)
    zones = [type_facts(zone="a"), type_facts(), type_facts(zone="b"), type_facts(zone="a"), type_facts()]
    answers = program.evaluate_each(taken_in(found), "instanceType", [found.bind(TYPE, each) for each in zones])
    assert [each.value for each in answers] == [True, None, False, True, None]
    assert answers[1] == answers[4] == Answer(error='there is no key "zone"', error_at=20)


def test_a_batch_that_takes_too_many_turns_is_cut_up() -> None:
    found = engine_named("cel-expr")
    source = "pod.numbers.all(n, n >= 0 || instanceType.gpuCount > 0)"
    program = found.compile(source, VARIABLES, Scalar.BOOL)
    facts = taken_in(found, numbers=list(range(6_000)))
    items = [found.bind(TYPE, type_facts(gpus=each)) for each in range(5)]
    assert program.evaluate_each(facts, "instanceType", items) == (Answer(value=True),) * 5


@on_both
def test_a_batch_on_what_is_not_read_is_one_answer_for_all(engine: str) -> None:
    found = engine_named(engine)
    program = found.compile("pod.gpus", VARIABLES, Scalar.INT)
    items = [found.bind(TYPE, type_facts())] * 3
    assert program.evaluate_each(taken_in(found), "instanceType", items) == (Answer(value=2),) * 3
    assert program.evaluate_each(taken_in(found), "instanceType", []) == ()


@on_both
def test_observing_tells_each_part_that_was_reached(engine: str) -> None:
    found = engine_named(engine)
    program = found.compile("pod.gpus == 3 && pod.bound || pod.numbers.all(n, n < 2)", VARIABLES, Scalar.BOOL)
    _, parts = program.observe(taken_in(found))
    seen = {each.text: [one.value for one in each.answers] for each in parts if each.is_bool}
    assert seen == {
        "pod.gpus == 3 && pod.bound || pod.numbers.all(n, n < 2)": [False],
        "pod.gpus == 3 && pod.bound": [False],
        "pod.gpus == 3": [False],
        "pod.numbers.all(n, n < 2)": [False],
        "n < 2": [True, False],
    }


@on_both
def test_one_of_several_results_is_told(engine: str) -> None:
    found = engine_named(engine)
    assert found.compile("pod.gpus", VARIABLES, (Scalar.DOUBLE, Scalar.INT)).result is Scalar.INT
    assert found.compile("pod.price", VARIABLES, (Scalar.DOUBLE, Scalar.INT)).result is Scalar.DOUBLE
    with pytest.raises(TypeError):
        found.compile("pod.labels", VARIABLES, VARIABLES["pod"])


@on_both
def test_records_of_one_name_stay_apart(engine: str) -> None:
    found = engine_named(engine)
    for name in ("least", "most"):
        params = record("Params", **{name: Scalar.INT})
        variables: dict[str, CelType] = {"params": params}
        program = found.compile(f"params.{name} == 3", variables, Scalar.BOOL)
        assert program.evaluate({"params": found.bind(params, {name: 3})}) == Answer(value=True)


@on_both
def test_other_facts_are_taken_in_anew(engine: str) -> None:
    found = engine_named(engine)
    program = found.compile("pod.gpus", VARIABLES, Scalar.INT)
    assert [program.evaluate(taken_in(found, gpus=each)).value for each in (1, 2, 1)] == [1, 2, 1]


def test_all_problems_are_told_at_their_places() -> None:
    source = "pod.gpsu == 1 || po.gpus == 1\n || pod.price > 3"
    found = problems("cel-expr", source, ANY)
    assert [(source[each.offset :][:4], each.rule, each.hint) for each in found] == [
        ("gpsu", "cel-unknown-name", "did you mean gpus?"),
        ("po.g", "cel-unknown-name", "did you mean pod?"),
        ("> 3", "cel-no-overload", "write 3.0"),
    ]
