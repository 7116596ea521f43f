"""CEL written at random over the variables that a rule may read.

Most of it is right by its types, so that it gets as far as being evaluated; mistakes of every kind are strewn in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar
from tools.fuzzing.words import (
    DOUBLES,
    INTS,
    JUNK,
    MAP_KEYS,
    MOMENTS,
    ONLY_CEL_EXPR,
    PATTERNS,
    SPANS,
    TEXTS,
    TIME_PARTS,
    ZONES,
)

_BOOL, _INT, _DOUBLE, _STRING = Scalar.BOOL, Scalar.INT, Scalar.DOUBLE, Scalar.STRING
_DURATION, _TIMESTAMP = Scalar.DURATION, Scalar.TIMESTAMP


class ExpressionFuzz:
    """Writes expressions over ``variables``. ``mistakes`` is how probable one is at each part."""

    def __init__(self, rng: Random, variables: Mapping[str, CelType], mistakes: float) -> None:
        self._rng, self._mistakes = rng, mistakes
        self._scope: dict[str, CelType] = dict(variables)
        self._names = iter(f"x{number}" for number in range(10_000))
        self._writers: Mapping[CelType, Sequence[Callable[[int], str]]] = {
            _BOOL: (
                self._compare,
                self._compare,
                self._join,
                self._not,
                self._in,
                self._text_test,
                self._loop,
                self._has,
            ),
            _INT: (self._sum, self._sum, self._size, self._to_int, self._time_part, self._negative),
            _DOUBLE: (self._double_sum, self._to_double, self._negative_double),
            _STRING: (self._concat, self._to_string, self._only_cel_expr),
            _DURATION: (self._span_sum, self._span_between),
            _TIMESTAMP: (self._moment_sum,),
        }

    def expression(self, type_: CelType, depth: int) -> str:
        """An expression that is to come to the type; sometimes with its characters changed, too."""
        text = self._of(type_, depth)
        match self._rng.randrange(40):
            case 0:
                brackets = self._rng.choice((5, 20, 40, 200, 3000))
                return "(" * brackets + text + ")" * brackets
            case 1:
                return text + self._rng.choice(
                    (" // done", "\n// é", "//", " /* x */", ";", "\x00", "\ufeff", "\n\n\t")
                )
            case 2:
                joined = self._rng.choice((" + ", " || ", " && ", ", ", " == "))
                return joined.join([text] * self._rng.choice((3, 33, 150)))
            case 3 | 4 if self._mistakes:
                return self._spoilt(text)
        return text

    def _spoilt(self, text: str) -> str:
        for _ in range(self._rng.randint(1, 3)):
            at = self._rng.randint(0, len(text))
            inserted = self._rng.choice((*"()[]{}.,?:!&|<>=+-*/%'\"`\\ \n1a_é", "", "", "//", "in", "\u00a0", "\u2028"))
            text = text[:at] + inserted + text[at + self._rng.randint(0, 2) :]
        return text

    def _of(self, type_: CelType, depth: int) -> str:
        if self._rng.random() < self._mistakes:
            return self._mistake(depth)
        if depth <= 0 or self._rng.random() < 0.15 or type_ not in self._writers:
            return self._leaf(type_)
        if self._rng.random() < 0.08:
            gap = self._gap()
            parts = self._of(_BOOL, depth - 1), self._of(type_, depth - 1), self._of(type_, depth - 1)
            return f"({parts[0]}{gap}?{gap}{parts[1]}{gap}:{gap}{parts[2]})"
        written = self._rng.choice(self._writers[type_])(depth - 1)
        return f"({written})" if self._rng.random() < 0.7 else written

    def _mistake(self, depth: int) -> str:
        if self._rng.random() < 0.5:
            return self._rng.choice(JUNK)
        wrong = self._rng.choice((_BOOL, _INT, _DOUBLE, _STRING, _DURATION, _TIMESTAMP))
        return self._of(wrong, depth - 1) if depth > 0 else self._leaf(wrong)

    def _gap(self) -> str:
        return self._rng.choice((" ", " ", " ", "", "\n", "  ", " // why\n", "\t"))

    # --- leaves

    def _leaf(self, type_: CelType) -> str:
        paths = [path for path, found in self._paths() if found == type_]
        if paths and self._rng.random() < 0.75:
            return self._rng.choice(paths)
        match type_:
            case Scalar.BOOL:
                return self._rng.choice(("true", "false"))
            case Scalar.INT:
                return self._common(INTS, 6)
            case Scalar.DOUBLE:
                return self._common(DOUBLES, 5)
            case Scalar.STRING:
                return self._text()
            case Scalar.DURATION:
                return f"duration('{self._common(SPANS, 4)}')"
            case Scalar.TIMESTAMP:
                return f"timestamp('{self._common(MOMENTS, 1)}')"
            case ListOf(element):
                return f"[{', '.join(self._leaf(element) for _ in range(self._rng.randint(1, 4)))}]"
        return self._rng.choice(JUNK)

    def _common(self, options: Sequence[str], usual: int) -> str:
        """One of the usual first ones, mostly: an odd literal makes most expressions fail at once."""
        return self._rng.choice(options[:usual] if self._rng.random() < 1 - 3 * self._mistakes else options)

    def _text(self) -> str:
        word = self._rng.choice(TEXTS)
        quote = self._rng.choice(("'", '"', "'", '"', "'''", '"""'))
        escaped = "".join(self._character(each) for each in word)
        return f"{quote}{escaped}{quote}"

    def _character(self, char: str) -> str:
        if char == "\n":
            return "\\n"
        if self._rng.random() < 0.9:
            return char
        code = ord(char)
        forms = [
            f"\\U{code:08x}",
            *([f"\\u{code:04X}"] if code < 2**16 else []),
            *([f"\\x{code:02x}"] if code < 128 else []),
        ]
        return self._rng.choice([*forms, *([f"\\{code:03o}"] if code < 128 else [])])

    def _paths(self) -> Iterator[tuple[str, CelType]]:
        for name, type_ in self._scope.items():
            yield name, type_
            if isinstance(type_, Record):
                for each in type_.fields:
                    path = f"{name}.{each.name}"
                    yield path, each.type
                    yield from self._inside(path, each.type)

    def _inside(self, path: str, type_: CelType) -> Iterator[tuple[str, CelType]]:
        if isinstance(type_, MapOf):
            key = self._rng.choice(MAP_KEYS)
            yield f"{path}['{key}']", type_.value
            yield f"('{key}' in {path} ? {path}['{key}'] : {self._default(type_.value)})", type_.value
            if key.isidentifier() and key.isascii():
                yield f"{path}.{key}", type_.value
        elif isinstance(type_, ListOf) and not isinstance(type_.element, Record):
            yield f"{path}[{self._rng.choice(('0', '1', '-1'))}]", type_.element

    def _default(self, type_: CelType) -> str:
        return "0" if type_ == _INT else "'none'"

    def _lists(self) -> list[tuple[str, ListOf]]:
        return [(path, found) for path, found in self._paths() if isinstance(found, ListOf)]

    # --- what comes to each type

    def _compare(self, depth: int) -> str:
        type_ = self._rng.choice((_INT, _INT, _DOUBLE, _STRING, _DURATION, _TIMESTAMP, _BOOL))
        signs = ("==", "!=") if type_ is _BOOL else ("==", "!=", "<", "<=", ">", ">=")
        gap = self._gap()
        return f"{self._of(type_, depth)}{gap}{self._rng.choice(signs)}{gap}{self._of(type_, depth)}"

    def _join(self, depth: int) -> str:
        sign = self._rng.choice(("&&", "||"))
        return f"{self._gap()}{sign}{self._gap()}".join(
            self._of(_BOOL, depth) for _ in range(self._rng.choice((2, 2, 3)))
        )

    def _not(self, depth: int) -> str:
        return f"!({self._of(_BOOL, depth)})"

    def _in(self, depth: int) -> str:
        maps = [path for path, found in self._paths() if isinstance(found, MapOf)]
        if maps and self._rng.random() < 0.4:
            return f"{self._of(_STRING, depth)} in {self._rng.choice(maps)}"
        type_ = self._rng.choice((_INT, _STRING, _STRING, _DOUBLE, _DURATION, _BOOL))
        elements = ", ".join(self._of(type_, min(depth, 1)) for _ in range(self._rng.randint(1, 3)))
        return f"{self._of(type_, depth)} in [{elements}]"

    def _text_test(self, depth: int) -> str:
        method = self._rng.choice(("startsWith", "endsWith", "contains", "matches"))
        argument = f"'{self._rng.choice(PATTERNS)}'" if method == "matches" else self._of(_STRING, depth)
        return f"{self._of(_STRING, depth)}.{method}({argument})"

    def _has(self, depth: int) -> str:
        maps = [path for path, found in self._paths() if isinstance(found, MapOf)]
        return f"has({self._rng.choice(maps)}.{self._rng.choice(('tier', 'cpu', 'x'))})" if maps else self._not(depth)

    def _loop(self, depth: int) -> str:
        over, element = self._list(depth)
        macro = self._rng.choice(("all", "exists", "exists_one"))
        return self._with(element, lambda name: f"{over}.{macro}({name}, {self._of(_BOOL, depth)})")

    def _list(self, depth: int) -> tuple[str, CelType]:
        lists = self._lists()
        if lists and self._rng.random() < 0.7:
            path, found = self._rng.choice(lists)
            over, element = path, found.element
        else:
            element = self._rng.choice((_INT, _STRING, _DOUBLE))
            over = self._leaf(ListOf(element, 4))
        if self._rng.random() < 0.25:
            over = self._with(element, lambda name: f"{over}.filter({name}, {self._of(_BOOL, depth - 1)})")
        if self._rng.random() < 0.2:
            made = self._rng.choice((_INT, _STRING, _BOOL, _DURATION))
            over = self._with(element, lambda name: f"{over}.map({name}, {self._of(made, depth - 1)})")
            element = made
        return over, element

    def _with(self, element: CelType, written: Callable[[str], str]) -> str:
        name = (
            next(self._names) if self._rng.random() > self._mistakes else self._rng.choice(("pod", "x0", "variables"))
        )
        hidden = self._scope.get(name)
        self._scope[name] = element
        text = written(name)
        del self._scope[name]
        if hidden is not None:
            self._scope[name] = hidden
        return text

    def _sum(self, depth: int) -> str:
        return f"{self._of(_INT, depth)} {self._rng.choice(('+', '-', '*', '/', '%'))} {self._of(_INT, depth)}"

    def _double_sum(self, depth: int) -> str:
        return f"{self._of(_DOUBLE, depth)} {self._rng.choice(('+', '-', '*', '/'))} {self._of(_DOUBLE, depth)}"

    def _negative(self, depth: int) -> str:
        return f"-({self._of(_INT, depth)})"

    def _negative_double(self, depth: int) -> str:
        return f"-{self._leaf(_DOUBLE)}" if self._rng.random() < 0.5 else f"-({self._of(_DOUBLE, depth)})"

    def _size(self, depth: int) -> str:
        if self._rng.random() < 0.4:
            return f"size({self._of(_STRING, depth)})"
        over, _ = self._list(depth)
        return f"size({over})" if self._rng.random() < 0.5 else f"{over}.size()"

    def _to_int(self, depth: int) -> str:
        return f"int({self._of(self._rng.choice((_DOUBLE, _STRING, _INT)), depth)})"

    def _to_double(self, depth: int) -> str:
        return f"double({self._of(self._rng.choice((_INT, _INT, _DOUBLE)), depth)})"

    def _to_string(self, depth: int) -> str:
        return f"string({self._of(self._rng.choice((_INT, _STRING)), depth)})"

    def _concat(self, depth: int) -> str:
        return f"{self._of(_STRING, depth)} + {self._of(_STRING, depth)}"

    def _only_cel_expr(self, depth: int) -> str:
        return self._rng.choice(ONLY_CEL_EXPR) if self._rng.random() < self._mistakes * 4 else self._concat(depth)

    def _time_part(self, depth: int) -> str:
        if self._rng.random() < 0.3:
            return f"{self._of(_DURATION, depth)}.{self._rng.choice(TIME_PARTS[:3])}()"
        zone = f"'{self._common(ZONES, 5)}'" if self._rng.random() < 0.8 else ""
        return f"{self._of(_TIMESTAMP, depth)}.{self._rng.choice(TIME_PARTS)}({zone})"

    def _span_sum(self, depth: int) -> str:
        return f"{self._of(_DURATION, depth)} {self._rng.choice('+-')} {self._of(_DURATION, depth)}"

    def _span_between(self, depth: int) -> str:
        return f"{self._of(_TIMESTAMP, depth)} - {self._of(_TIMESTAMP, depth)}"

    def _moment_sum(self, depth: int) -> str:
        return f"{self._of(_TIMESTAMP, depth)} {self._rng.choice('+-')} {self._of(_DURATION, depth)}"
