"""Files that are no YAML, or YAML that would do harm: told at their place, never a traceback."""

from __future__ import annotations

import pytest

from engine.policy import yaml_reader
from engine.policy.findings import Findings
from engine.policy.located import Fields, Items, Scalar, find, plain
from engine.policy.yaml_reader import MAX_FILE_BYTES, read_documents


def read(content: bytes) -> tuple[list[object], list[tuple[str, int, int]]]:
    findings = Findings()
    documents = read_documents("f.yaml", content, findings)
    told = [(found.rule, found.position.line, found.position.column) for found in findings.in_file_order]
    return [document.root for document in documents], told


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a: [1, x\n", ("yaml-syntax", 2, 1)),
        (b"a:\n\t- b\n", ("yaml-syntax", 2, 1)),
        (b"a: b: c\n", ("yaml-syntax", 1, 5)),
        (b"a: 'x\n", ("yaml-syntax", 2, 1)),
        (b"a: 1\nvolum", ("yaml-syntax", 2, 6)),
        (b"a: *x\n", ("unknown-alias", 1, 4)),
        (b"a: &a [*a]\n", ("unknown-alias", 1, 8)),
        (b"a: 1\nb: 2\na: 3\n", ("duplicate-key", 3, 1)),
        (b"x: !!python/object/apply:os.system [ls]\n", ("unsafe-tag", 1, 4)),
        (b"x: !secret y\n", ("unsafe-tag", 1, 4)),
        (b"x: !!binary aGk=\n", ("unsafe-tag", 1, 4)),
        (b"? [a]\n: b\n", ("bad-key", 1, 3)),
        (b"a: 1\n<<: 3\n", ("bad-key", 2, 5)),
        (b"\xc3\xa9: x\n\xff\n", ("not-utf8", 2, 1)),
        (b"\xff\xfea\x00", ("not-utf8", 1, 1)),
        (b"ab: x\nc\x00d: y\n", ("control-character", 2, 2)),
        (b'a: "x\\e[31m"\n', ("control-character", 1, 4)),
        (b'"\\x7f": x\n', ("control-character", 1, 1)),
        (b"\x89PNG", ("not-utf8", 1, 1)),
        (b"%YAML 3.0\n--- a\n", ("yaml-syntax", 1, 1)),
    ],
)
def test_broken_yaml_is_told_at_its_place(content: bytes, told: tuple[str, int, int]) -> None:
    assert read(content)[1] == [told]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"require: 'gold' in params.tiers\nmessage: m\n", "whole expression in quotes of the other kind"),
        (b"x:\n  - require: \"a\" == 'a'\n    message: m\n", "whole expression in quotes of the other kind"),
        (b"require: !instanceType.nvlink\n", "an expression begins with !, quote all of it"),
        (b"require: pod.gpus > 0 ? 'a' : 'b'\n", "quote a value that has a colon in it"),
    ],
)
def test_an_expression_that_yaml_takes_for_something_else_gets_a_hint_how_to_quote_it(
    content: bytes, hint: str
) -> None:
    findings = Findings()
    read_documents("f.yaml", content, findings)
    [told] = findings.in_file_order
    assert hint in told.hint


def test_a_tab_gets_a_hint_about_spaces() -> None:
    findings = Findings()
    read_documents("f.yaml", b"a:\n\t- b\n", findings)
    assert "spaces" in findings.in_file_order[0].hint


def test_documents_before_a_syntax_error_are_kept_and_so_is_the_error() -> None:
    roots, told = read(b"a: 1\n---\nb: 2\n---\nc: [\n")
    assert len(roots) == 2
    assert [rule for rule, _, _ in told] == ["yaml-syntax"]


def test_a_duplicate_key_hides_nothing_that_follows_it() -> None:
    _, told = read(b"a: 1\na: 2\nb: 1\nb: 2\n")
    assert told == [("duplicate-key", 2, 1), ("duplicate-key", 4, 1)]


def test_empty_documents_are_no_objects_and_no_errors() -> None:
    assert read(b"") == ([], [])
    assert read(b"# only a comment\n") == ([], [])
    roots, told = read(b"---\n---\na: 1\n---\n")
    assert [root for root in roots if root is not None and plain(root)]
    assert told == []


@pytest.mark.parametrize("opening", [b"[", b"{a: ", b"- "])
def test_deep_nesting_is_refused_and_breaks_nothing(opening: bytes) -> None:
    _, told = read(opening * 200_000)
    assert told[0][0] in ("yaml-syntax", "too-deep")


def test_nesting_that_closes_is_refused_for_its_depth() -> None:
    assert read(b"[" * 100 + b"]" * 100)[1] == [("too-deep", 1, 65)]


def test_aliases_that_unfold_without_end_are_refused() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]".encode() for n in range(1, 9)]
    assert read(b"\n".join(lines))[1][0][0] == "alias-bomb"


def test_aliases_that_nest_without_end_are_refused() -> None:
    lines = [b"a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]".encode() for n in range(1, 100)]
    assert read(b"\n".join(lines))[1][0][0] == "alias-bomb"


def test_a_file_above_the_bound_is_not_read_at_all() -> None:
    assert read(b"#" * (MAX_FILE_BYTES + 1)) == ([], [("file-too-large", 1, 1)])
    assert read(b"#" * MAX_FILE_BYTES) == ([], [])


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    roots, told = read(b"\xef\xbb\xbfa: 1\n")
    assert told == []
    assert isinstance(roots[0], Fields)
    assert list(roots[0].fields) == ["a"]


def test_what_an_alias_stands_for_can_be_changed_alone() -> None:
    (root,), _ = read(b"a: &x {b: 1}\nc: *x\n")
    assert isinstance(root, Fields)
    first, second = root.fields["a"], root.fields["c"]
    assert isinstance(first, Fields)
    assert isinstance(second, Fields)
    first.take("b")
    assert list(second.fields) == ["b"]


def test_a_merge_key_adds_what_is_not_there() -> None:
    (root,), _ = read(b"a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n")
    assert isinstance(root, Fields)
    merged = root.fields["d"]
    assert isinstance(merged, Fields)
    values = {key: part.value for key, part in merged.fields.items() if isinstance(part, Scalar)}
    assert values == {"b": 1, "c": 3}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1", 1),
        ("0x1F", 31),
        ("010", 8),
        ("1.5", 1.5),
        ("yes", True),
        ("Off", False),
        ("~", None),
        ('"1"', "1"),
        ("!!str 1", "1"),
        ("2024-01-01", "2024-01-01"),
        ("1:30:00", "1:30:00"),
        ("1" * 5000, "1" * 5000),
        ("g5.xlarge", "g5.xlarge"),
    ],
)
def test_values_are_as_kubectl_reads_them_and_keep_their_spelling(written: str, value: object) -> None:
    (root,), told = read(f"a: {written}\n".encode())
    part = find(root, ("a",)) if isinstance(root, Fields | Items | Scalar) else None
    assert told == []
    assert isinstance(part, Scalar)
    assert part.value == value
    assert type(part.value) is type(value)
    assert part.text == written.removeprefix("!!str ").strip('"')


def test_places_count_characters_and_every_kind_of_line_break() -> None:
    (root,), _ = read("é: ä\r\nb:\u2028  - c\n".encode())
    assert isinstance(root, Fields)
    assert root.key_places["b"].line == 2
    (first, second), _ = read("'é€': x\n---\na: 1\n".encode())
    assert isinstance(first, Fields)
    assert first.fields["é€"].place.column == 7
    assert isinstance(second, Fields)
    assert second.key_places["a"].line == 3


def test_the_loader_without_libyaml_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"a: &x [1, 'two', ~]\nb: {<<: {c: *x}, d: on}\n"
    (fast,), _ = read(content)
    monkeypatch.setattr(yaml_reader, "_Loader", __import__("yaml").SafeLoader)
    (portable,), _ = read(content)
    assert repr(portable) == repr(fast)


def test_what_a_file_says_at_length_is_told_in_short() -> None:
    findings = Findings()
    read_documents("f.yaml", b"a: *" + b"x" * 5_000 + b"\n", findings)
    (found,) = findings.in_file_order
    assert found.message.startswith("the alias *xxx")
    assert len(found.message) == 1_000
    assert found.message.endswith("…")
