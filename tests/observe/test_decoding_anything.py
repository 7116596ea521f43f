"""Any JSON is read or told, and never raises."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.observe.kubernetes import decode_daemon_sets, decode_nodes, decode_pods
from tests.observe.kubernetes_objects import (
    FULL_DAEMON_SET,
    FULL_NODE,
    FULL_POD,
)

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below: list[tuple[Any, ...]] = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            below += _paths(inner, (*path, key))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            below += _paths(inner, (*path, position))
    return below


@settings(max_examples=300, deadline=None)
@given(
    case=st.sampled_from([(decode_pods, FULL_POD), (decode_nodes, FULL_NODE), (decode_daemon_sets, FULL_DAEMON_SET)]),
    where=st.integers(min_value=0),
    junk=ANY_JSON,
)
@example(case=(decode_pods, FULL_POD), where=1, junk={"name": []})
def test_any_json_in_any_place_is_read_or_told_and_never_raises(case: Any, where: int, junk: Any) -> None:
    decode, whole = case
    broken = copy.deepcopy(whole)
    paths = _paths(broken)
    path = paths[where % len(paths)]
    if path:
        holder = broken
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = junk
    else:
        broken = junk

    values, problems = decode([broken, whole])

    assert len(problems) <= 1
    assert values[-1] == decode([whole])[0][0]


@settings(max_examples=100, deadline=None)
@given(items=st.lists(ANY_JSON, max_size=3))
def test_arbitrary_json_never_raises(items: list[Any]) -> None:
    for decode in (decode_pods, decode_nodes, decode_daemon_sets):
        values, problems = decode(items)
        assert len(problems) <= len(items)
        assert len(values) <= len(items)
