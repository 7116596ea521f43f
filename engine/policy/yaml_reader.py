"""YAML bytes to located trees, built from parser events: a composer would recurse as deep as a hostile file likes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from attrs import frozen

from engine.policy.findings import Findings
from engine.policy.located import Fields, Items, Located, Place, Scalar, Source, copied, walk

MAX_FILE_BYTES = 4 * 2**20
_MAX_DEPTH = 64
_MAX_ALIASED_PARTS = 50_000
# As in: require: 'gold' in params.tiers
_QUOTED_AT_ITS_BEGIN = re.compile(r"""\s*(?:- +)?[\w.-]+: +(?:'[^']*'|"[^"]*") *[^\s#,}\]]""")
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)")
_OCTAL = re.compile(r"[-+]?0o?[0-7_]+")
_HEX = re.compile(r"[-+]?0x[0-9a-fA-F_]+")
_TAG = "tag:yaml.org,2002:"
_SAFE_TAGS = {_TAG + name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
# The C loader where PyYAML was built with libyaml; the same events come from the other.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@frozen
class SourceDocument:
    """One YAML document; ``root`` is None for an empty one."""

    source: Source
    root: Located | None


class _Refused(Exception):
    def __init__(self, rule: str, message: str, place: Place, hint: str = "") -> None:
        super().__init__(message)
        self.rule, self.message, self.place, self.hint = rule, message, place, hint


def read_documents(file: str, content: bytes, findings: Findings) -> list[SourceDocument]:
    """The documents of a file up to its first syntax error, which goes to ``findings``."""
    source = Source(file, ())
    if len(content) > MAX_FILE_BYTES:
        message = f"the file has {len(content):,} bytes; the most that is read is {MAX_FILE_BYTES:,}"
        findings.error(source.position(Place(1, 1)), "file-too-large", message, "split it, or keep data out of it")
        return []
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8", "replace")
        place = _place_after(before)
        source = Source(file, _LINE_BREAK.split(before))
        findings.error(source.position(place), "not-utf8", "the file is not UTF-8 text", "save it as UTF-8")
        return []
    source = Source(file, _LINE_BREAK.split(text))
    strange = _UNPRINTABLE.search(text)
    if strange:
        message = f"the control character U+{ord(strange[0]):04X} is not allowed in YAML"
        place = _place_after(text[: strange.start()])
        findings.error(source.position(place), "control-character", message, "remove it; this may be no text file")
        return []
    documents: list[SourceDocument] = []
    try:
        for root in _Composer(text, source, findings).documents():
            documents.append(SourceDocument(source, root))  # noqa: PERF401 - keeps those before a syntax error
    except _Refused as refused:
        findings.error(source.position(refused.place), refused.rule, refused.message, refused.hint)
    except yaml.MarkedYAMLError as error:
        _syntax_error(source, error, findings)
    except yaml.YAMLError as error:
        findings.error(source.position(Place(1, 1)), "yaml-syntax", f"not YAML: {error}")
    return documents


def _place_after(text: str) -> Place:
    lines = _LINE_BREAK.split(text)
    return Place(len(lines), len(lines[-1]) + 1)


def _syntax_error(source: Source, error: yaml.MarkedYAMLError, findings: Findings) -> None:
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    if place.line > len(source.lines):
        # The parser counts a line that an end without a line break does not have.
        place = Place(len(source.lines), len(source.lines[-1]) + 1)
    position = source.position(place)
    problem = error.problem or "this is not YAML"
    message = f"{problem} ({error.context})" if error.context else problem
    findings.error(position, "yaml-syntax", message, _syntax_hint(problem, position.source_line))


def _syntax_hint(problem: str, line: str) -> str:
    if "\t" in line[: len(line) - len(line.lstrip())] or ("cannot start any token" in problem and "\t" in line):
        return "YAML indents with spaces, never with tabs"
    if "mapping values are not allowed" in problem:
        return "quote a value that has a colon in it, and check the indentation of this line and the one above"
    if _QUOTED_AT_ITS_BEGIN.match(line):
        return "YAML ends the value with its second quote; put the whole expression in quotes of the other kind"
    if "block end" in problem or "block mapping" in problem:
        return "check the indentation of this line and the ones above it"
    return ""


class _Composer:
    def __init__(self, text: str, source: Source, findings: Findings) -> None:
        self._source, self._findings = source, findings
        self._loader = _Loader(text)
        self._anchors: dict[str, tuple[Located, int, int]] = {}
        self._aliased_parts = 0

    def documents(self) -> Iterator[Located | None]:
        try:
            while self._loader.check_event():
                event = self._loader.get_event()
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    root = self._part(self._loader.get_event(), 1)
                    yield None if isinstance(root, Scalar) and root.value is None else root
        finally:
            self._loader.dispose()

    def _part(self, event: Any, depth: int) -> Located:
        place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        if depth > _MAX_DEPTH:
            raise _Refused("too-deep", f"nested more than {_MAX_DEPTH} levels deep", place)
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(str(event.anchor), depth, place)
        self._refuse_unsafe_tag(event, place)
        part: Located
        if isinstance(event, yaml.ScalarEvent):
            part = self._scalar(event, place)
        elif isinstance(event, yaml.SequenceStartEvent):
            part = Items(place, list(self._items(depth)))
        else:
            part = self._map(place, depth)
        if event.anchor:
            parts = list(walk(part))
            self._anchors[event.anchor] = (part, len(parts), max(level for _, level in parts))
        return part

    def _items(self, depth: int) -> Iterator[Located]:
        while not isinstance(event := self._loader.get_event(), yaml.SequenceEndEvent):
            yield self._part(event, depth + 1)

    def _map(self, place: Place, depth: int) -> Fields:
        fields, merged = Fields(place), list[Located]()
        while not isinstance(event := self._loader.get_event(), yaml.MappingEndEvent):
            key = self._part(event, depth + 1)
            value = self._part(self._loader.get_event(), depth + 1)
            if not isinstance(key, Scalar):
                raise _Refused("bad-key", "a key must be a plain value, not a list or a map", key.place)
            if key.text == "<<" and isinstance(event, yaml.ScalarEvent) and event.implicit[0]:
                merged.append(value)
                continue
            if key.text in fields.fields:
                first = fields.key_places[key.text].line
                message = f"the key {key.text[:60]!r} is here twice in one map; the first is in line {first}"
                self._findings.error(self._source.position(key.place), "duplicate-key", message, "keep one of them")
                continue
            fields.put(key.text, value, key.place)
        for extra in merged:
            self._merge(fields, extra)
        return fields

    def _merge(self, fields: Fields, extra: Located) -> None:
        """YAML 1.1's merge key: what is written in the map itself wins."""
        if isinstance(extra, Items):
            for item in extra.items:
                self._merge(fields, item)
            return
        if not isinstance(extra, Fields):
            raise _Refused("bad-key", "<< merges maps only", extra.place)
        for key, value in extra.fields.items():
            if key not in fields.fields:
                fields.put(key, value, extra.key_places[key])

    def _aliased(self, anchor: str, depth: int, place: Place) -> Located:
        if anchor not in self._anchors:
            raise _Refused("unknown-alias", f"the alias *{anchor} has no anchor &{anchor} before it", place)
        part, size, height = self._anchors[anchor]
        self._aliased_parts += size
        if self._aliased_parts > _MAX_ALIASED_PARTS or depth + height > _MAX_DEPTH:
            message = "the aliases of this file unfold into more than a policy file can need"
            raise _Refused("alias-bomb", message, place, "write the parts out")
        return copied(part)

    def _refuse_unsafe_tag(self, event: Any, place: Place) -> None:
        tag = event.tag
        if tag is not None and tag != "!" and tag not in _SAFE_TAGS:
            shown = tag.removeprefix(_TAG)
            hint = "remove it, and write plain values; where an expression begins with !, quote all of it"
            raise _Refused("unsafe-tag", f"the YAML tag {shown!r} is not read", place, hint)

    def _scalar(self, event: Any, place: Place) -> Scalar:
        tag = event.tag
        if tag is None:
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        strange = _UNPRINTABLE.search(event.value)
        if strange:
            # Written as an escape it is YAML, and still nothing that a label, a name or a message can have in it.
            message = f"the control character U+{ord(strange[0]):04X} is in this text"
            self._findings.error(self._source.position(place), "control-character", message, "remove it")
        value = _value(str(tag).removeprefix(_TAG), event.value)
        spans_lines = event.style != "|" and event.end_mark.line > event.start_mark.line
        return Scalar(place, event.value, value, event.style == "|", event.style == ">" or spans_lines)


def _value(kind: str, text: str) -> str | int | float | bool | None:
    """The value as kubectl reads it; what YAML 1.1 alone would make of dates and of 12:30:00 stays a string."""
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return text.lower() in ("yes", "true", "on")
            case "int":
                return _integer(text)
            case "float":
                return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        pass
    return text


def _integer(text: str) -> int | str:
    digits = text.replace("_", "").lower()
    if _DECIMAL.fullmatch(text):
        return int(digits)
    if _HEX.fullmatch(text):
        return int(digits, 16)
    if _OCTAL.fullmatch(text):
        return int(digits.replace("o", ""), 8)
    return text
