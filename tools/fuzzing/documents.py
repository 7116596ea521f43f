"""Policy files changed at random: what is shipped, its trees and its characters. The same seed gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import yaml

from engine.policy.json_schema import json_schema_of_all
from tools.fuzzing.words import EDGES, FRAGMENTS, KEYS, KINDS, VERSIONS

ROOT = Path(__file__).parents[2]
STACK = "stacks/Pulumi.sandbox.yaml"

# The quicker ones, where PyYAML was built with libyaml.
Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Place = tuple[Any, Any]
"""A container and the key or index of one of its parts."""

# Beyond it a float does not hold a whole number exactly, and much further on none at all.
_EXACT = 2**53


class Shipped:
    """What is in the project's policies/ and its stack file. ``tests`` are of kind PolicyTest."""

    def __init__(self) -> None:
        every = {
            file.relative_to(ROOT).as_posix(): file.read_bytes() for file in sorted((ROOT / "policies").rglob("*.yaml"))
        }
        self.tests = {name: content for name, content in every.items() if name.endswith(".test.yaml")}
        self.policies = {name: content for name, content in every.items() if name not in self.tests}
        self.stack = (ROOT / STACK).read_bytes()
        self.definitions: Mapping[str, Any] = json_schema_of_all()["$defs"]
        self._parsed: dict[str, list[Any]] = {}

    def documents(self, name: str, content: bytes) -> list[Any]:
        """The documents of a shipped file, to be changed."""
        if name not in self._parsed:
            self._parsed[name] = [each for each in yaml.safe_load_all(content) if each is not None]
        return deepcopy(self._parsed[name])

    def beside(self, changed: str) -> dict[str, bytes]:
        """What a changed file needs around it, and no more, so that loading is quick."""
        needed: tuple[str, ...] = (
            "policies/node-classes.yaml",
            "policies/gpu-core.yaml",
            "policies/calendars/office.yaml",
        )
        if "pool-dollars" in changed:
            needed += ("policies/gpu-elastic.yaml", "policies/gpu-inference.yaml")
        return {name: self.policies[name] for name in needed if name in self.policies and name != changed}


class DocumentFuzz:
    """Makes changed files. ``expression`` writes CEL, to be put where a rule has some."""

    def __init__(self, rng: Random, shipped: Shipped, expression: Callable[[], str]) -> None:
        self._rng, self._shipped, self._expression = rng, shipped, expression
        self._is_deep = False

    def file(self) -> tuple[str, bytes]:
        """The name of a shipped file, and what has become of it."""
        groups = [self._shipped.policies] * 16 + [self._shipped.tests] * 3
        groups.append({STACK: self._shipped.stack})
        group = self._rng.choice(groups)
        name = self._rng.choice(sorted(group))
        documents = self._shipped.documents(name, group[name])
        if self._rng.random() < 0.15:
            return name, self._bytes_changed(group[name].decode())
        for _ in range(self._rng.choice((1, 1, 1, 1, 2, 2, 4))):
            self._change(documents)
        text = self._written(documents)
        return name, self._bytes_changed(text) if self._rng.random() < 0.1 else text.encode("utf-8", "surrogatepass")

    # --- trees

    def _change(self, documents: list[Any]) -> None:
        options = _places(documents, 0)
        if not options:
            return
        changes = (
            *(
                self._drop,
                self._repeat,
                self._rename,
                self._swap,
                self._nest,
                self._retitle,
                self._lengthen,
                self._spoil,
            ),
            *[self._replace] * 3,
            *[self._nudge] * 4,
            *[self._grow] * 5,
            *[self._say] * 2,
        )
        self._rng.choice(changes)(documents, self._rng.choice(options))

    def _drop(self, _documents: list[Any], place: Place) -> None:
        del place[0][place[1]]

    def _repeat(self, _documents: list[Any], place: Place) -> None:
        container, key = place
        # The very same object is written as an anchor and its alias.
        again = container[key] if self._rng.random() < 0.5 else deepcopy(container[key])
        if isinstance(container, list):
            container.insert(self._rng.randint(0, len(container)), again)
        else:
            container[self._misspelt(key)] = again

    def _rename(self, _documents: list[Any], place: Place) -> None:
        container, key = place
        if isinstance(container, dict):
            container[self._rng.choice((self._misspelt(key), self._rng.choice(KEYS)))] = container.pop(key)

    def _swap(self, documents: list[Any], place: Place) -> None:
        other = self._rng.choice(_places(documents, 0))
        mine, theirs = place[0][place[1]], other[0][other[1]]
        # A part that held the other would hold itself.
        if not _holds(mine, theirs) and not _holds(theirs, mine):
            place[0][place[1]], other[0][other[1]] = theirs, mine

    def _nest(self, _documents: list[Any], place: Place) -> None:
        inner = place[0][place[1]]
        # Deep once: several such would be more than PyYAML can write.
        levels = self._rng.choice((1, 1, 2) if self._is_deep else (1, 1, 2, 40, 100))
        self._is_deep |= levels > 2
        for _ in range(levels):
            inner = [inner] if self._rng.random() < 0.5 else {"a": inner}
        place[0][place[1]] = inner

    def _retitle(self, documents: list[Any], _place: Place) -> None:
        document = self._rng.choice(documents)
        if isinstance(document, dict):
            key, values = self._rng.choice((("kind", KINDS), ("apiVersion", VERSIONS)))
            document[key] = self._rng.choice(values)
            if str(document.get("kind")).endswith("List"):
                document["items"] = [deepcopy(self._rng.choice(documents)) for _ in range(self._rng.randint(0, 2))]

    def _lengthen(self, _documents: list[Any], place: Place) -> None:
        container, key = place
        if isinstance(container[key], list) and container[key]:
            container[key] = container[key] * self._rng.choice((2, 60, 300))
        elif isinstance(container[key], str):
            container[key] = container[key] * self._rng.choice((2, 50, 2000))

    def _replace(self, _documents: list[Any], place: Place) -> None:
        place[0][place[1]] = self._any(2)

    def _nudge(self, _documents: list[Any], place: Place) -> None:
        """Another number where there is one, in text too: mostly one that is still good."""
        value = place[0][place[1]]
        if isinstance(value, int | float):
            third = value / 3 if abs(value) < _EXACT else value // 3
            place[0][place[1]] = self._rng.choice((value + 1, value * 2, value - 1, 0, 1, 100, -value, third))
        elif isinstance(value, str):
            amounts = ("0", "1", "3", "59", "60", "100", "101", "-1", "1.5", "007", "99999999999")
            place[0][place[1]] = re.sub(r"\d+", lambda _: self._rng.choice(amounts), value, count=1)

    def _spoil(self, _documents: list[Any], place: Place) -> None:
        if isinstance(place[0][place[1]], str):
            place[0][place[1]] = self._misspelt(place[0][place[1]])

    def _say(self, documents: list[Any], _place: Place) -> None:
        rules = [each for each in documents if isinstance(each, dict) and isinstance(each.get("spec"), dict)]
        if rules:
            parts = (
                "require",
                "prefer",
                "ceiling",
                "groupBy",
                "candidate",
                "budget",
                "expression",
                "messageExpression",
            )
            spec = self._rng.choice(rules)["spec"]
            spec[self._rng.choice([each for each in parts if each in spec] or parts)] = self._expression()

    def _grow(self, documents: list[Any], _place: Place) -> None:
        """Adds a field that the schema knows, with a value that is about right: so every field is met."""
        document = self._rng.choice(documents)
        definition = self._shipped.definitions.get(str(document.get("kind"))) if isinstance(document, dict) else None
        if definition is not None:
            self._grow_at(document, definition)

    def _grow_at(self, part: Any, schema: Mapping[str, Any]) -> None:
        options = self._options(schema)
        if isinstance(part, list) and part and "items" in options:
            self._grow_at(self._rng.choice(part), options["items"])
        elif isinstance(part, dict) and options.get("properties"):
            known = options["properties"]
            deeper = [key for key in known if isinstance(part.get(key), dict | list)]
            if deeper and self._rng.random() < 0.8:
                key = self._rng.choice(deeper)
                self._grow_at(part[key], known[key])
            else:
                key = self._rng.choice(sorted(known))
                part[key] = self._like(known[key], 4)

    def _options(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in schema:
            schema = self._shipped.definitions[str(schema["$ref"]).rpartition("/")[2]]
        several = schema.get("anyOf") or schema.get("oneOf")
        return self._options(self._rng.choice(several)) if several else schema

    def _like(self, schema: Mapping[str, Any], depth: int) -> Any:
        options = self._options(schema)
        if depth == 0 or self._rng.random() < 0.1:
            return self._any(1)
        if "const" in options or "enum" in options:
            return options["const"] if "const" in options else self._rng.choice(options["enum"])
        kind = options.get("type", "string")
        kind = self._rng.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self._map_like(options, depth)
        if kind == "array":
            return [self._like(options.get("items", {}), depth - 1) for _ in range(self._rng.randint(0, 3))]
        if kind == "boolean":
            return self._rng.random() < 0.5
        if kind in ("integer", "number"):
            bounds = [options[each] for each in ("minimum", "maximum", "exclusiveMinimum") if each in options]
            return self._rng.choice([*bounds, *(bound + 1 for bound in bounds), 0, 1, 2, 50, -1, 10**9, 0.5])
        return self._rng.choice((*EDGES, "1h", "10%", "5", "1Gi", "gpu-core", "gpu-al2023", "business", "weekend", "1"))

    def _map_like(self, options: Mapping[str, Any], depth: int) -> dict[Any, Any]:
        properties, required = options.get("properties", {}), options.get("required", ())
        made = {
            key: self._like(shape, depth - 1)
            for key, shape in properties.items()
            if key in required or self._rng.random() < 0.4
        }
        values = options.get("additionalProperties")
        if isinstance(values, dict):
            keys = self._rng.sample(("cpu", "memory", "nvidia.com/gpu", "nodes", "team", "a", "x/y", "1", ""), 2)
            made |= {key: self._like(values, depth - 1) for key in keys}
        return made

    def _any(self, depth: int) -> Any:
        if depth == 0 or self._rng.random() < 0.8:
            return self._rng.choice(EDGES)
        if self._rng.random() < 0.5:
            return [self._any(depth - 1) for _ in range(self._rng.randint(0, 3))]
        return {self._rng.choice(KEYS): self._any(depth - 1) for _ in range(self._rng.randint(0, 3))}

    def _misspelt(self, word: object) -> str:
        text = str(word)
        at = self._rng.randint(0, len(text))
        inserted = self._rng.choice(("x", "", "", "-", ".", " ", "A", "0", "é", "\n", "\x07", "/", ":", "_", "(", "'"))
        return text[:at] + inserted + text[at + self._rng.choice((0, 1, 1, 2)) :]

    def _written(self, documents: list[Any]) -> str:
        text: str = yaml.dump_all(
            documents,
            Dumper=Dumper,
            allow_unicode=self._rng.random() < 0.7,
            default_flow_style=self._rng.choice((None, False, False, True)),
            default_style=self._rng.choice((*[None] * 20, '"', "'", "|", ">")),
            width=self._rng.choice((20, 80, 10_000, 10_000, 10_000, 10_000)),
            indent=self._rng.choice((2, 2, 4)),
            sort_keys=self._rng.random() < 0.5,
        )
        return text

    # --- characters

    def _bytes_changed(self, text: str) -> bytes:
        for _ in range(self._rng.choice((1, 1, 2, 4))):
            text = self._text_changed(text)
        content = text.encode("utf-8", "surrogatepass")
        match self._rng.randrange(12):
            case 0 if content:
                at = self._rng.randrange(len(content))
                return content[:at] + bytes([content[at] ^ (1 << self._rng.randrange(8))]) + content[at + 1 :]
            case 1:
                return content[: self._rng.randint(0, len(content))]
            case 2:
                return b"\xef\xbb\xbf" + content
            case 3:
                return text.encode("utf-16", "surrogatepass")
            case 4:
                return content.replace(b"\n", self._rng.choice((b"\r\n", b"\r", b"\n\n", b"\xc2\x85")))
        return content

    def _text_changed(self, text: str) -> str:
        lines = text.split("\n")
        at = self._rng.randrange(len(lines))
        match self._rng.randrange(8):
            case 0:
                lines[at] = " " * self._rng.randint(0, 8) + lines[at].lstrip()
            case 1:
                lines[at] = lines[at].replace("  ", "\t", 1)
            case 2:
                lines.insert(at, lines[self._rng.randrange(len(lines))])
            case 3:
                del lines[at : at + self._rng.randint(1, 3)]
            case 4:
                other = self._rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case 5:
                bomb = "a0: &a0 [x, x]\n" + "".join(
                    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
                )
                lines.insert(
                    at, self._rng.choice((bomb, "x: &a {y: *a}", "[" * 3000, "{a: " * 200, "a: " * 50, "- " * 90))
                )
            case _:
                here = self._rng.randint(0, len(lines[at]))
                lines[at] = lines[at][:here] + self._rng.choice(FRAGMENTS) + lines[at][here + self._rng.randint(0, 2) :]
        return "\n".join(lines)


def _places(value: Any, depth: int) -> list[Place]:
    if depth > 12 or not isinstance(value, dict | list):
        return []
    keys = list(value) if isinstance(value, dict) else list(range(min(len(value), 40)))
    return [(value, key) for key in keys] + [place for key in keys for place in _places(value[key], depth + 1)]


def _holds(outer: Any, inner: Any) -> bool:
    if outer is inner:
        return True
    parts = outer.values() if isinstance(outer, dict) else outer if isinstance(outer, list) else ()
    return any(_holds(each, inner) for each in parts)
