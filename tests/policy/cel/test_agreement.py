"""On the portable subset both engines come to the same: the same value, or an error at the same place."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.policy.cel.cel_python import portable_problems
from engine.policy.cel.engines import engine_named
from engine.policy.cel.types import Scalar
from tests.policy.cel.facts import ANY, NOON, POD_FACTS, VARIABLES, answer, problems, taken_in

engine_named("cel-python")  # raises the recursion limit, which is not to happen in the midst of an example

Texts = st.SearchStrategy[str]
_OPERATORS = {Scalar.INT: "+-*/%", Scalar.DOUBLE: "+-*/", Scalar.STRING: "+"}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")

_LEAVES: dict[Scalar, Texts] = {
    Scalar.BOOL: st.sampled_from(["true", "false", "pod.bound", "has(pod.labels.tier)", "has(pod.requests.gpu)"]),
    Scalar.INT: st.sampled_from(
        (
            *("0", "-1", "7", "9223372036854775807", "pod.gpus", "pod.requests.cpu", "pod.requests['gpu']"),
            *("size(pod.name)", "pod.numbers[0]", "pod.numbers[5]", "instanceType.gpuCount", "int(pod.price)"),
            *("int(pod.labels.tier)", "now.getHours()", "now.getDayOfWeek('Asia/Tokyo')", "pod.labels.size()"),
            "pod.waiting.getMinutes()",
        )
    ),
    Scalar.DOUBLE: st.sampled_from(["0.0", "-1.5", "1e308", "pod.price", "double(pod.gpus)"]),
    Scalar.STRING: st.sampled_from(
        (
            *("''", "'a\\n\\u00e9'", "r'\\d'", "pod.name", "pod.labels.tier", "pod.labels['no']", "reason"),
            *("string(pod.gpus)", "pod.tolerations[0].key", "pod.tolerations[1].value", "instanceType.labels.zone"),
        )
    ),
    Scalar.DURATION: st.sampled_from(["duration('90m')", "duration('-1.5s')", "pod.waiting", "(now - pod.created)"]),
    Scalar.TIMESTAMP: st.sampled_from(["now", "pod.created", "pod.starts[0]", "timestamp('2026-03-08T12:00:00.5Z')"]),
}


def _texts(type_: Scalar, depth: int) -> Texts:
    leaf = _LEAVES[type_]
    if depth == 0:
        return leaf
    inner = _texts(type_, depth - 1)
    condition = _texts(Scalar.BOOL, depth - 1)
    grown = [leaf, st.builds("({} ? {} : {})".format, condition, inner, inner)]
    if type_ in _OPERATORS:
        grown.append(st.builds("({} {} {})".format, inner, st.sampled_from(_OPERATORS[type_]), inner))
    if type_ is Scalar.INT:
        grown.append(st.builds("pod.numbers.map(n, n * {})[1]".format, inner))
        grown.append(st.builds("size(pod.numbers.filter(n, n > {}))".format, inner))
    if type_ is Scalar.TIMESTAMP:
        grown.append(st.builds("({} - {})".format, inner, _texts(Scalar.DURATION, depth - 1)))
    if type_ is Scalar.BOOL:
        grown += [_comparison(each, depth) for each in Scalar]
        grown += [
            st.builds("({} {} {})".format, inner, st.sampled_from(["&&", "||"]), inner),
            st.builds("!{}".format, inner),
            st.builds("pod.tolerations.{}(t, t.value == {} || {})".format, _loops(), _texts(Scalar.STRING, 0), inner),
            st.builds("pod.labels.{}(k, {} && pod.labels[k] != 'x')".format, _loops(), inner),
            st.builds("{}.{}({})".format, _texts(Scalar.STRING, 0), _text_tests(), _texts(Scalar.STRING, depth - 1)),
            st.builds("({} in [{}, {}])".format, *[_texts(Scalar.INT, depth - 1)] * 3),
        ]
    return st.one_of(grown)


def _comparison(type_: Scalar, depth: int) -> Texts:
    operators = ("==", "!=") if type_ is Scalar.BOOL else _COMPARISONS
    inner = _texts(type_, depth - 1)
    return st.builds("({} {} {})".format, inner, st.sampled_from(operators), inner)


def _loops() -> Texts:
    return st.sampled_from(["all", "exists", "exists_one"])


def _text_tests() -> Texts:
    return st.sampled_from(["contains", "startsWith", "endsWith"])


_PODS = st.fixed_dictionaries(
    {
        "gpus": st.integers(-2, 9),
        "price": st.floats(allow_nan=True, allow_infinity=True) | st.just(1.5),
        "bound": st.booleans(),
        "labels": st.dictionaries(st.sampled_from(["tier", "a", "x"]), st.sampled_from(["gold", "7", "é"])),
        "numbers": st.lists(st.integers(-3, 3), max_size=4),
        "waiting": st.integers(-(10**9), 10**9).map(lambda micros: timedelta(microseconds=micros)),
        "created": st.integers(-(10**6), 10**6).map(lambda seconds: NOON + timedelta(seconds=seconds)),
    }
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(Scalar)).flatmap(lambda type_: _texts(type_, 2)), _PODS)
def test_both_engines_come_to_the_same(source: str, pod: dict[str, Any]) -> None:
    first, second = problems("cel-expr", source, ANY), problems("cel-python", source, ANY)
    if first or second:
        assert {each.rule for each in first} == {each.rule for each in second}
        return
    ours, theirs = answer("cel-expr", source, **pod), answer("cel-python", source, **pod)
    assert (ours.value, type(ours.value), bool(ours.error)) == (theirs.value, type(theirs.value), bool(theirs.error))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(list(Scalar)).flatmap(lambda type_: _texts(type_, 2)))
def test_both_engines_read_the_same_facts(source: str) -> None:
    if problems("cel-expr", source, ANY) or problems("cel-python", source, ANY):
        return
    first, second = (engine_named(name).compile(source, VARIABLES, ANY) for name in ("cel-expr", "cel-python"))
    assert (first.reads, first.result) == (second.reads, second.result)


def test_both_engines_observe_the_same_parts() -> None:
    source = "pod.gpus > 1 && pod.tolerations.exists(t, int(t.value) == 2 || t.key == 'gpu') ? pod.labels.tier : reason"
    seen = []
    for name in ("cel-expr", "cel-python"):
        engine = engine_named(name)
        found, parts = engine.compile(source, VARIABLES, Scalar.STRING).observe(taken_in(engine, **POD_FACTS))
        seen.append((found, [(each.text, each.is_bool, [one.value for one in each.answers]) for each in parts]))
    assert seen[0] == seen[1]


def test_what_only_one_engine_takes_is_named_as_not_portable() -> None:
    for source in (
        "pod.labels[?'a'].orValue('') == ''",
        "math.greatest(pod.gpus, 2) == 2",
        "cel.bind(x, pod.gpus, x == 2)",
        "pod.name.lowerAscii() == 'a'",
        "{'a': 1}.size() == 1",
        "string(pod.price) == '1.5'",
        "pod == pod",
        "pod.labels.map(k, k) == ['tier']",
        "pod.labels.all(k, v, v == 'a')",
        "dyn(pod.gpus) == 2.0",
        "duration('1ns') < pod.waiting",
    ):
        assert problems("cel-expr", source) == (), source
        assert {each.rule for each in portable_problems(source, VARIABLES)} == {"cel-not-portable"}, source
    assert portable_problems("pod.gpus == 2 && pod.labels.tier == 'gold'", VARIABLES) == ()
