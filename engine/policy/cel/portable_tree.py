"""An expression of the portable subset as cel-python parses it, its types checked without any other engine's help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import lark
from celpy.celparser import CELParseError

from engine.policy.cel.port import DoesNotCompile, Problem, Span
from engine.policy.cel.portable_functions import (
    FUNCTIONS,
    MACROS,
    METHODS,
    OPERATORS,
    are_alike,
    result_of,
    shown,
)
from engine.policy.cel.source_tree import Form, Node
from engine.policy.cel.text_literals import read_text
from engine.policy.cel.tokens import Tokens
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar
from engine.policy.findings import did_you_mean

NOT_PORTABLE = "cel-not-portable"

_OPERATIONS = {
    "relation_lt": "_<_",
    "relation_le": "_<=_",
    "relation_gt": "_>_",
    "relation_ge": "_>=_",
    "relation_eq": "_==_",
    "relation_ne": "_!=_",
    "relation_in": "@in",
    "addition_add": "_+_",
    "addition_sub": "_-_",
    "multiplication_mul": "_*_",
    "multiplication_div": "_/_",
    "multiplication_mod": "_%_",
}
_LITERALS = {"INT_LIT": Scalar.INT, "FLOAT_LIT": Scalar.DOUBLE, "BOOL_LIT": Scalar.BOOL}
_INT_BOUND = 2**63
_TEXTS = frozenset({"STRING_LIT", "MLSTRING_LIT"})

Typed = tuple[Node, CelType]


class Refused(Exception):
    """Carries the one problem at which checking stopped."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.message)


def parsed(parse: Any, source: str) -> Any:
    """The library's tree. Raises DoesNotCompile for syntax, and for syntax that is not portable."""
    tokens = Tokens(source)
    for token in tokens.all:
        if token.text in {".?", "[?"} or token.text[0] == "`":
            message = "optional values and names in back quotes are not in the portable subset"
            raise DoesNotCompile((Problem(token.start, NOT_PORTABLE, message, "ask `'key' in MAP` first"),))
    try:
        return parse(source)
    except CELParseError as error:
        raise DoesNotCompile((_syntax_problem(tokens, error.line, error.column),)) from None
    except RecursionError:
        raise DoesNotCompile((Problem(0, "cel-too-deep", "the expression is nested too deep"),)) from None


def _syntax_problem(tokens: Tokens, line: int | None, column: int | None) -> Problem:
    if line is None or column is None or line < 1:
        return Problem(len(tokens.source.rstrip()), "cel-syntax", "the expression ends too early")
    starts = [0, *(at + 1 for at, char in enumerate(tokens.source) if char == "\n")]
    offset = min(starts[line - 1] + column - 1, len(tokens.source))
    rest = [token for token in tokens.all if token.start >= offset]
    if not rest:
        return Problem(len(tokens.source.rstrip()), "cel-syntax", "the expression ends too early")
    return Problem(rest[0].start, "cel-syntax", f"did not expect {rest[0].text} here")


class PortableReader:
    """Reads one source's tree. ``variables`` are those of the rule."""

    def __init__(self, source: str, variables: Mapping[str, CelType]) -> None:
        self._tokens = Tokens(source)
        self._variables = variables
        self.problems: list[Problem] = []
        self._readers: dict[str, Callable[[Any, Mapping[str, CelType]], Typed]] = {
            "primary": self._primary,
            "expr": self._choice,
            "conditionalor": lambda tree, bound: self._chain(tree, "_||_", bound),
            "conditionaland": lambda tree, bound: self._chain(tree, "_&&_", bound),
            "relation": self._operation,
            "addition": self._operation,
            "multiplication": self._operation,
            "unary": self._unary,
            "member_dot": self._field,
            "member_dot_arg": self._method,
            "member_index": self._index,
        }

    def read(self, tree: Any) -> Typed:
        """The checked tree. Raises Refused at the first problem that leaves a type unknown."""
        return self._typed(tree, {})

    def _typed(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        while len(tree.children) == 1 and isinstance(tree.children[0], lark.Tree) and tree.data != "primary":
            tree = tree.children[0]
        reader = self._readers.get(str(tree.data))
        if reader is None:
            raise self._refused(tree, "records cannot be made in the portable subset")
        return reader(tree, bound)

    def _primary(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        child = tree.children[0]
        match str(child.data):
            case "literal":
                return self._literal(tree, child.children[0])
            case "ident":
                return self._name(tree, str(child.children[0]), bound)
            case "paren_expr":
                return self._typed(child.children[0], bound)
            case "list_lit":
                return self._list(tree, child, bound)
            case "ident_arg":
                return self._function(tree, child, bound)
            case _:
                raise self._refused(tree, "maps cannot be made in the portable subset, nor names begin with a dot")

    def _literal(self, tree: Any, token: Any) -> Typed:
        at = self._tokens.place(token.start_pos + (str(token)[0] == "-"))
        if self._tokens.all[at].end != token.end_pos:
            raise Refused(Problem(token.start_pos, "cel-syntax", f"{token} is no number or text of CEL"))
        if token.type in _TEXTS:
            try:
                text = read_text(str(token))
            except ValueError as error:
                raise Refused(Problem(token.start_pos, "cel-syntax", str(error))) from None
            return self._made(Form.LITERAL, "", (), tree, Scalar.STRING, text=text)
        if token.type not in _LITERALS:
            raise self._refused(tree, "null, bytes and unsigned numbers are not in the portable subset")
        if token.type == "INT_LIT" and not -_INT_BOUND <= int(str(token), 0 if "x" in token else 10) < _INT_BOUND:
            raise Refused(Problem(token.start_pos, "cel-invalid", f"{token} does not fit into 64 bits"))
        return self._made(Form.LITERAL, "", (), tree, _LITERALS[token.type])

    def _name(self, tree: Any, name: str, bound: Mapping[str, CelType]) -> Typed:
        known = {**self._variables, **bound}
        if name not in known:
            message = f"there is no variable {name} here"
            raise Refused(Problem(tree.meta.start_pos, "cel-unknown-name", message, did_you_mean(name, known)))
        return self._made(Form.NAME, name, (), tree, known[name])

    def _list(self, tree: Any, child: Any, bound: Mapping[str, CelType]) -> Typed:
        if not child.children:
            raise self._refused(tree, "an empty list has no type in the portable subset", "use size(LIST) == 0")
        typed = [self._typed(each, bound) for each in child.children[0].children]
        parts, types = [each[0] for each in typed], [each[1] for each in typed]
        if any(not are_alike(types[0], each) for each in types):
            raise self._refused(tree, "a list's elements have to be of one type in the portable subset")
        return self._made(Form.COLLECTION, "[]", parts, tree, ListOf(types[0], len(parts)))

    def _choice(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        typed = [self._typed(each, bound) for each in tree.children]
        parts, types = [each[0] for each in typed], [each[1] for each in typed]
        pointer = self._sign_after(parts[0], "?")
        if types[0] is not Scalar.BOOL or not (types[1] == types[2] or are_alike(types[1], types[2])):
            self._no_overload(pointer, "?:", types)
        return self._made(Form.CALL, "_?_:_", parts, tree, types[1], pointer)

    def _chain(self, tree: Any, word: str, bound: Mapping[str, CelType]) -> Typed:
        links: list[Any] = []
        while str(tree.data) == {"_||_": "conditionalor", "_&&_": "conditionaland"}[word] and len(tree.children) == 2:
            links.insert(0, tree)
            tree = tree.children[0]
        typed = [self._typed(each, bound) for each in (tree, *(link.children[1] for link in links))]
        for number, (_, type_) in enumerate(typed):
            if type_ is not Scalar.BOOL:
                at = self._sign_after(typed[max(number - 1, 0)][0], word.strip("_"))
                self._no_overload(at, word.strip("_"), [type_])
        parts = [each[0] for each in typed]
        return self._made(Form.CALL, word, parts, links[-1], Scalar.BOOL, self._sign_after(parts[0], word.strip("_")))

    def _operation(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        operator, right_tree = tree.children
        word = _OPERATIONS[str(operator.data)]
        (left, left_type), (right, right_type) = (
            self._typed(operator.children[0], bound),
            self._typed(right_tree, bound),
        )
        sign = "in" if word == "@in" else word.strip("_")
        pointer = self._sign_after(left, sign)
        result: CelType | None
        if word in {"_==_", "_!=_"}:
            result = Scalar.BOOL if are_alike(left_type, right_type) else None
        elif word == "@in":
            result = Scalar.BOOL if _may_hold(right_type, left_type) else None
        else:
            result = result_of(OPERATORS[word], (left_type, right_type))
        if result is None:
            self._no_overload(pointer, sign, [left_type, right_type])
            result = left_type if word[1] in "+-*/%" else Scalar.BOOL
        return self._made(Form.CALL, word, (left, right), tree, result, pointer)

    def _unary(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        operator, operand = tree.children
        word = {"unary_not": "!_", "unary_neg": "-_"}[str(operator.data)]
        part, type_ = self._typed(operand, bound)
        result = result_of(OPERATORS[word], (type_,))
        if result is None:
            self._no_overload(tree.meta.start_pos, word[0], [type_])
        return self._made(Form.CALL, word, (part,), tree, result or type_)

    def _field(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        part, type_ = self._typed(tree.children[0], bound)
        name, at = str(tree.children[1]), tree.children[1].start_pos
        return self._made(Form.FIELD, name, (part,), tree, self._field_type(type_, name, at), at)

    def _field_type(self, type_: CelType, name: str, at: int) -> CelType:
        if isinstance(type_, MapOf):
            return type_.value
        if not isinstance(type_, Record):
            raise Refused(Problem(at, "cel-no-overload", f"{shown(type_)} has no fields"))
        fields = {each.name: each.type for each in type_.fields}
        if name not in fields:
            message = f"{type_.name} has no field {name}"
            raise Refused(Problem(at, "cel-unknown-name", message, did_you_mean(name, fields)))
        return fields[name]

    def _index(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        (part, type_), (key, key_type) = (self._typed(each, bound) for each in tree.children)
        match type_:
            case ListOf(element) if key_type is Scalar.INT:
                return self._made(Form.CALL, "_[_]", (part, key), tree, element, key.span.start)
            case MapOf(value) if key_type is Scalar.STRING:
                return self._made(Form.CALL, "_[_]", (part, key), tree, value, key.span.start)
        message = f"[ ] does not work on {shown(type_)} and {shown(key_type)}"
        raise Refused(Problem(key.span.start, "cel-no-overload", message))

    def _function(self, tree: Any, child: Any, bound: Mapping[str, CelType]) -> Typed:
        name = str(child.children[0])
        arguments = child.children[1].children if len(child.children) == 2 else []
        if name == "has":
            return self._presence(tree, arguments, bound)
        typed = [self._typed(each, bound) for each in arguments]
        return self._called(tree, name, typed, FUNCTIONS, tree.meta.start_pos)

    def _presence(self, tree: Any, arguments: Sequence[Any], bound: Mapping[str, CelType]) -> Typed:
        inner = arguments[0] if len(arguments) == 1 else tree
        while len(inner.children) == 1 and isinstance(inner.children[0], lark.Tree):
            inner = inner.children[0]
        if str(inner.data) != "member_dot":
            raise Refused(
                Problem(tree.meta.start_pos, "cel-invalid", "has() takes a field, as in has(pod.labels.tier)")
            )
        selected, _ = self._field(inner, bound)
        return self._made(Form.PRESENCE, selected.word, selected.parts, tree, Scalar.BOOL)

    def _method(self, tree: Any, bound: Mapping[str, CelType]) -> Typed:
        name = str(tree.children[1])
        arguments = tree.children[2].children if len(tree.children) == 3 else []
        root = _plain_name(tree.children[0])
        if root is not None and root not in self._variables and root not in bound:
            raise self._refused(tree, f"{root}.{name}() is not in the portable subset")
        target = self._typed(tree.children[0], bound)
        if name in MACROS:
            return self._loop(tree, name, target, arguments, bound)
        typed = [target, *(self._typed(each, bound) for each in arguments)]
        return self._called(tree, name, typed, METHODS, tree.children[1].start_pos)

    def _called(self, tree: Any, name: str, typed: Sequence[Typed], known: Mapping[str, Any], pointer: int) -> Typed:
        parts, types = [each[0] for each in typed], [each[1] for each in typed]
        if name == "size" and len(types) == 1 and (types[0] is Scalar.STRING or isinstance(types[0], ListOf | MapOf)):
            return self._made(Form.CALL, name, parts, tree, Scalar.INT, pointer)
        if name not in known:
            message = f"{name}() is not in the portable subset"
            raise Refused(Problem(pointer, NOT_PORTABLE, message, did_you_mean(name, (*known, *MACROS, "size"))))
        result = result_of(known[name], types)
        if result is None:
            message = f"{name}() does not take ({', '.join(map(shown, types))}) in the portable subset"
            raise Refused(Problem(pointer, NOT_PORTABLE, message))
        return self._made(Form.CALL, name, parts, tree, result, pointer)

    def _loop(self, tree: Any, name: str, over: Typed, arguments: Sequence[Any], bound: Mapping[str, CelType]) -> Typed:
        at = tree.children[1].start_pos
        if len(arguments) != MACROS[name]:
            raise Refused(Problem(at, NOT_PORTABLE, f"{name}(NAME, EXPRESSION) takes two in the portable subset"))
        variable = _plain_name(arguments[0])
        if variable is None:
            raise Refused(Problem(arguments[0].meta.start_pos, "cel-invalid", f"{name}() takes a name first"))
        match over[1]:
            case ListOf(element, most):
                inner: CelType = element
            case MapOf(_, most) if name not in {"map", "filter"}:
                inner = Scalar.STRING
            case MapOf():
                raise Refused(Problem(at, NOT_PORTABLE, f"{name}() over a map gives a list in no certain order"))
            case other:
                raise Refused(Problem(at, "cel-no-overload", f"{shown(other)} cannot be looped over"))
        body, type_ = self._typed(arguments[1], {**bound, variable: inner})
        if name != "map" and type_ is not Scalar.BOOL:
            self._no_overload(at, f"{name}()", [type_])
        result = ListOf(type_ if name == "map" else inner, most) if name in {"map", "filter"} else Scalar.BOOL
        return self._made(Form.LOOP, name, (over[0], body), tree, result, tree.meta.start_pos, (variable,))

    def _made(
        self,
        form: Form,
        word: str,
        parts: Sequence[Node],
        tree: Any,
        type_: CelType,
        pointer: int | None = None,
        variables: tuple[str, ...] = (),
        text: str | None = None,
    ) -> Typed:
        start, end = self._tokens.balanced(tree.meta.start_pos, tree.meta.end_pos)
        node = Node(
            form=form,
            word=word,
            parts=tuple(parts),
            variables=variables,
            span=Span(start, end),
            pointer=start if pointer is None else pointer,
            is_bool=type_ is Scalar.BOOL,
            record=type_.name if isinstance(type_, Record) else "",
            text=text,
            message=tree,
        )
        return node, type_

    def _sign_after(self, node: Node, sign: str) -> int:
        place = self._tokens.place(node.span.end)
        while place + 1 < len(self._tokens.all) and self._tokens.all[place].text != sign:
            place += 1
        return self._tokens.all[place].start

    def _no_overload(self, at: int, sign: str, types: Sequence[CelType]) -> None:
        """Noted, and gone on: what the operator would have given is known all the same."""
        hint = "write 5.0 or double(COUNT)" if set(types) == {Scalar.INT, Scalar.DOUBLE} else ""
        self.problems.append(
            Problem(at, "cel-no-overload", f"{sign} does not work on {' and '.join(map(shown, types))}", hint)
        )

    def _refused(self, tree: Any, message: str, hint: str = "") -> Refused:
        return Refused(Problem(tree.meta.start_pos, NOT_PORTABLE, message, hint))


def _may_hold(container: CelType, item: CelType) -> bool:
    match container:
        case ListOf(element):
            return are_alike(element, item)
        case MapOf():
            return item is Scalar.STRING
        case _:
            return False


def _plain_name(tree: Any) -> str | None:
    while isinstance(tree, lark.Tree) and len(tree.children) == 1:
        if tree.data == "ident":
            return str(tree.children[0])
        tree = tree.children[0]
    return None
