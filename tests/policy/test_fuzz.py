"""Whatever a file holds, loading it ends in a policy or in findings: never in a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.model.diagnostic import InvalidInput
from engine.policy.load import load_policy
from engine.policy.stack_file import load_environment
from tests import builders
from tests.policy.test_article_manifests import OWN
from tests.policy.test_node_classes import EVERYTHING as EVERY_CLASS_FIELD
from tests.policy.test_pool_values import EVERYTHING as EVERY_POOL_FIELD
from tests.policy.test_stack_file import FULL as FULL_STACK

ROOT = Path(__file__).parents[2]
POLICY_TEXTS = [EVERY_POOL_FIELD, EVERY_CLASS_FIELD, *OWN.values()]
DOCUMENTS = [document for text in POLICY_TEXTS for document in yaml.safe_load_all(text)]
STACK = yaml.safe_load(FULL_STACK)
# Half as many examples as usual keep the suite quick; each of them changes several places.
QUICK = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["In", "Never", "10%", "720h", "-1", "1e99", "9" * 400, "2024-01-01", "0x1F", "*", "", "@daily", "\x7f"]
    ),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=10), inner, max_size=3)),
    max_leaves=8,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) inside a document."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [(value, key) for key, _ in pairs] + [place for _, inner in pairs for place in places(inner)]


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> str:
    """The document with up to three of its parts replaced, removed, or set under another name."""
    changed = yaml.safe_load(yaml.safe_dump(document))
    for _ in range(draw(st.integers(1, 3))):
        options = places(changed)
        if not options:
            break
        container, key = draw(st.sampled_from(options))
        match draw(st.sampled_from(["replace", "remove", "rename", "repeat"])):
            case "replace":
                container[key] = draw(ANYTHING)
            case "remove":
                del container[key]
            case "rename" if isinstance(container, dict):
                container[draw(st.text(max_size=12))] = container.pop(key)
            case _ if isinstance(container, list):
                container.append(container[key])
    text: str = yaml.safe_dump(changed, allow_unicode=draw(st.booleans()))
    return text


def load(content: bytes) -> None:
    """Loads the file beside good ones, and asks only that findings point into a file."""
    beside = [("pool.yaml", EVERY_POOL_FIELD.encode()), ("class.yaml", EVERY_CLASS_FIELD.encode())]
    environment = builders.environment(default_node_class="gpu-nodes")
    for files in ([("f.yaml", content)], [("f.yaml", content), *beside]):
        try:
            found = load_policy(files, environment).warnings
        except InvalidInput as invalid:
            found = invalid.diagnostics
            assert any(each.severity.value == "error" for each in found)
        for each in found:
            assert each.position.line >= 1
            assert each.position.column >= 1
            assert each.message


@QUICK
@given(st.sampled_from(DOCUMENTS).flatmap(mutated))
def test_a_manifest_with_parts_changed_at_random_never_breaks_the_loader(text: str) -> None:
    load(text.encode())


@QUICK
@given(ANYTHING)
def test_any_yaml_value_never_breaks_the_loader(value: Any) -> None:
    load(yaml.safe_dump(value).encode())


@QUICK
@given(
    st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
)
def test_any_bytes_never_break_the_loader(content: bytes) -> None:
    load(content)


@QUICK
@given(st.sampled_from(POLICY_TEXTS), st.data())
def test_a_file_with_characters_changed_at_random_never_breaks_the_loader(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 5))
    into = data.draw(st.text(alphabet="abc:-{}[]&*!|>'\"%@`#,? \n\t0", max_size=5))
    load((text[:at] + into + text[at + length :]).encode())


@QUICK
@given(mutated(STACK))
def test_a_stack_file_with_parts_changed_at_random_never_breaks_the_loader(text: str) -> None:
    try:
        load_environment("test", "stack.yaml", text.encode())
    except InvalidInput as caught:
        invalid = caught
    else:
        return
    assert any(each.severity.value == "error" for each in invalid.diagnostics)


@pytest.mark.parametrize("text", [*POLICY_TEXTS])
def test_the_seeds_of_the_fuzz_are_good_themselves(text: str) -> None:
    beside = [("class.yaml", EVERY_CLASS_FIELD.encode())] if "name: gpu-nodes}" not in text.split("spec:")[0] else []
    environment = builders.environment(default_node_class="gpu-nodes")
    assert load_policy([("f.yaml", text.encode()), *beside], environment).digest
