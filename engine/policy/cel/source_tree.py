"""A checked expression as a person wrote it: loops as one thing, and each part's place in the source."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from attrs import frozen

from engine.policy.cel.checked_messages import BOOL_PRIMITIVE
from engine.policy.cel.port import Span
from engine.policy.cel.tokens import Tokens

CHAINS = frozenset({"_&&_", "_||_"})


class Form(str, Enum):
    LITERAL = "literal"
    NAME = "name"
    FIELD = "field"
    PRESENCE = "has()"
    CALL = "call"
    COLLECTION = "collection"
    LOOP = "loop"
    BIND = "bind"


@frozen(eq=False)
class Node:
    """A part of an expression. ``parts`` are in the source's order.

    ``word`` is a name, a field's name, a function or a loop's macro. Of a LOOP the first part is what it goes over and
    the others are evaluated at each turn, with ``variables`` set; of a BIND the second has the first as a name.
    ``pointer`` is where a caret points: at the key that was not there, the operator that erred.
    ``text`` is a text literal's value; ``message`` is the part as the library has it.
    """

    form: Form
    word: str
    parts: tuple[Node, ...]
    variables: tuple[str, ...]
    span: Span
    pointer: int
    is_bool: bool
    record: str
    text: str | None
    message: Any

    def walk(self) -> Iterator[Node]:
        """This part and all below, outermost first."""
        yield self
        for part in self.parts:
            yield from part.walk()


def source_tree(source: str, checked: Any) -> Node:
    """The tree of a checked expression of this source."""
    return _Reader(source, checked).node(checked.expr)


class _Reader:
    def __init__(self, source: str, checked: Any) -> None:
        self._tokens = Tokens(source)
        self._positions = checked.source_info.positions
        self._types = checked.type_map

    def node(self, message: Any) -> Node:
        at = self._positions.get(message.id, 0)
        match message.WhichOneof("kind"):
            case "ident_expr":
                return self._made(Form.NAME, message.ident_expr.name, (), message, self._token_span(at), at)
            case "select_expr":
                return self._field(message, at)
            case "call_expr":
                return self._call(message, at)
            case "list_expr":
                parts = tuple(map(self.node, message.list_expr.elements))
                return self._made(Form.COLLECTION, "[]", parts, message, (at, self._tokens.closing_end(at)), at)
            case "struct_expr":
                parts = tuple(self._entries(message.struct_expr))
                span = (self._word_before(at), self._tokens.closing_end(at))
                return self._made(Form.COLLECTION, "{}", parts, message, span, at)
            case "comprehension_expr":
                return self._loop(message, at)
            case _:
                return self._made(Form.LITERAL, "", (), message, self._literal_span(at), at)

    def _field(self, message: Any, at: int) -> Node:
        select = message.select_expr
        operand = self.node(select.operand)
        if select.test_only:
            span = (self._word_before(at), self._tokens.closing_end(at))
            return self._made(Form.PRESENCE, select.field, (operand,), message, span, at)
        name = self._tokens.all[min(self._tokens.place(at) + 1, len(self._tokens.all) - 1)]
        span = (operand.span.start, name.end)
        return self._made(Form.FIELD, select.field, (operand,), message, span, name.start)

    def _call(self, message: Any, at: int) -> Node:
        call = message.call_expr
        parts = tuple(map(self.node, ([call.target] if call.HasField("target") else []) + list(call.args)))
        sign = self._tokens.all[self._tokens.place(at)].text
        start, end, pointer = at, at + len(sign), at
        if sign[0] == "(":
            start, end = self._word_before(at), self._tokens.closing_end(at)
            pointer = self._tokens.all[self._tokens.place(at) - 1].start if call.HasField("target") else start
        elif sign[0] == "[":
            end = self._tokens.closing_end(at)
            pointer = parts[-1].span.start
        if call.function in CHAINS:
            parts = tuple(self._unchained(call.function, parts))
        if parts:
            start, end = min(start, parts[0].span.start), max(end, parts[-1].span.end)
        return self._made(Form.CALL, call.function, parts, message, (start, end), pointer)

    def _unchained(self, function: str, parts: tuple[Node, ...]) -> Iterator[Node]:
        """The links of ``a && b && c`` in a row: that the parser pairs them up means nothing to a person."""
        for part in parts:
            if part.form is Form.CALL and part.word == function and not self._is_in_parentheses(part.span):
                yield from part.parts
            else:
                yield part

    def _is_in_parentheses(self, span: Span) -> bool:
        before = self._tokens.place(span.start) - 1
        return before >= 0 and self._tokens.partners.get(before) == self._tokens.place(span.end)

    def _entries(self, struct: Any) -> Iterator[Node]:
        for entry in struct.entries:
            if entry.HasField("map_key"):
                yield self.node(entry.map_key)
            yield self.node(entry.value)

    def _loop(self, message: Any, at: int) -> Node:
        loop = message.comprehension_expr
        paren = self._tokens.place(at)
        word = self._tokens.all[max(paren - 1, 0)].text
        name_at = self._tokens.all[min(paren + 1, len(self._tokens.all) - 1)].start
        span_end = self._tokens.closing_end(at)
        if word == "bind":
            parts = (self.node(loop.accu_init), self.node(loop.result))
            span = (self._word_before(at), span_end)
            return self._made(Form.BIND, word, parts, message, span, span[0], (loop.accu_var,))
        over = self.node(loop.iter_range)
        turn = tuple(self.node(each) for each in self._written(loop.loop_step, at, name_at))
        variables = (loop.iter_var, loop.iter_var2) if loop.iter_var2 else (loop.iter_var,)
        return self._made(
            Form.LOOP, word, (over, *turn), message, (over.span.start, span_end), self._word_before(at), variables
        )

    def _written(self, message: Any, loop_at: int, name_at: int) -> Iterator[Any]:
        """What of a loop's turn stands in the source; what the macro adds has the place of the macro itself."""
        at = self._positions.get(message.id, loop_at)
        if at != loop_at:
            if at != name_at or message.WhichOneof("kind") != "ident_expr":
                yield message
            return
        inner = message.call_expr if message.WhichOneof("kind") == "call_expr" else message.list_expr
        for each in [*getattr(inner, "args", ()), *getattr(inner, "elements", ())]:
            yield from self._written(each, loop_at, name_at)

    def _made(
        self,
        form: Form,
        word: str,
        parts: tuple[Node, ...],
        message: Any,
        span: tuple[int, int],
        pointer: int,
        variables: tuple[str, ...] = (),
    ) -> Node:
        type_ = self._types.get(message.id)
        return Node(
            form=form,
            word=word,
            parts=parts,
            variables=variables,
            span=Span(*self._tokens.balanced(*span)),
            pointer=pointer,
            is_bool=type_ is not None and type_.primitive == BOOL_PRIMITIVE,
            record=type_.message_type if type_ is not None else "",
            text=_text(message),
            message=message,
        )

    def _token_span(self, at: int) -> tuple[int, int]:
        token = self._tokens.all[self._tokens.place(at)]
        return token.start, token.end

    def _literal_span(self, at: int) -> tuple[int, int]:
        start, end = self._token_span(at)
        if self._tokens.source[start] == "-" and (place := self._tokens.place(at)) + 1 < len(self._tokens.all):
            end = self._tokens.all[place + 1].end
        return start, end

    def _word_before(self, at: int) -> int:
        """Where the dotted name right before a bracket begins."""
        place = self._tokens.place(at) - 1
        if place < 0 or self._tokens.all[place].kind != "word":
            return at
        while place > 1 and self._tokens.all[place - 1].text == "." and self._tokens.all[place - 2].kind == "word":
            place -= 2
        return self._tokens.all[place].start


def _text(message: Any) -> str | None:
    if message.WhichOneof("kind") == "const_expr" and message.const_expr.WhichOneof("kind") == "string_value":
        return str(message.const_expr.string_value)
    return None
