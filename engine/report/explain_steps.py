"""An evaluation step by step: each bool of an expression with the values that it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from engine.model.duration import format_duration
from engine.policy.cel.port import Answer, Observed
from engine.report.explain_report import Step

_TURNS_SHOWN = 3


def steps_of(observed: Sequence[Observed]) -> tuple[Step, ...]:
    """The bools of an expression, outermost first; the whole of it, too, where that is no bool."""
    shown = [each for at, each in enumerate(observed) if each.is_bool or at == 0]
    return tuple(Step(_in_a_line(each.text), _values(each, observed), _outcome(each.answers)) for each in shown)


def answer_words(answer: Answer) -> str:
    """``true``, ``0.5``, ``"gold"``, ``error: no such key: tier``."""
    return f"error: {answer.error}" if answer.error else _value(answer.value)


def _values(whole: Observed, observed: Iterable[Observed]) -> str:
    """The text with what its parts came to in their place, where these are no bools; empty where nothing is told."""
    inside = [each for each in observed if each is not whole and _is_within(each, whole)]
    outermost = [each for each in inside if not any(_is_within(each, other) for other in inside if other is not each)]
    if not outermost or any(each.is_bool or len(each.answers) != 1 for each in outermost):
        return ""
    text, at, parts = whole.text, whole.span.start, []
    for each in sorted(outermost, key=lambda part: part.span.start):
        parts += [text[at - whole.span.start : each.span.start - whole.span.start], _outcome(each.answers)]
        at = each.span.end
    return _in_a_line("".join([*parts, text[at - whole.span.start :]]))


def _is_within(part: Observed, whole: Observed) -> bool:
    inner, outer = part.span, whole.span
    return outer.start <= inner.start and inner.end <= outer.end and inner != outer


def _outcome(answers: Sequence[Answer]) -> str:
    told = [answer_words(each) for each in answers[:_TURNS_SHOWN]]
    more = f" and {len(answers) - _TURNS_SHOWN} more" if len(answers) > _TURNS_SHOWN else ""
    return ", ".join(told) + more if told else "not reached"


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case timedelta():
            return format_duration(value)
        case datetime():
            return f"{value:%Y-%m-%dT%H:%M:%SZ}"
        case _:
            return str(value)


def _in_a_line(text: str) -> str:
    return " ".join(text.split())
