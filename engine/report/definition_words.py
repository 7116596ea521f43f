"""What differs in the files, in words: a rule that did nothing at a recorded moment may do much at another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.report.diff_report import PARAMETER, Change, DefinitionChange, PartChange

_IN_SHORT, _SENTENCES = 3, 8
_TEXT_CHARACTERS = 200
_ENFORCEMENT = "enforcement"


def definition_sentences(definitions: Iterable[DefinitionChange]) -> Iterator[str]:
    """Of rules and windows that come, go or act otherwise, a sentence each; what is left over is only counted."""
    told = [each for each in _weightiest_first(definitions) if each.is_of_rules]
    yield from (f"{definition_words(each)}." for each in told[:_SENTENCES])
    rest = len(told) - _SENTENCES
    if rest > 0:
        yield f"And {rest:,} more, below."


def definitions_in_short(definitions: Iterable[DefinitionChange]) -> str:
    """``Guardrail plan-cost: deny → warn; LimitRule team-gpus is removed; and 3 more``; each but once."""
    told = list(dict.fromkeys(definition_words(each) for each in _weightiest_first(definitions)))
    rest = len(told) - _IN_SHORT
    return "; ".join(told[:_IN_SHORT]) + (f"; and {rest:,} more" if rest > 0 else "")


def definition_words(definition: DefinitionChange) -> str:
    """``Guardrail plan-cost: deny → warn``, ``LimitRule gpus is removed``, ``window nights: duration changes``."""
    name = f"{definition.kind} {definition.name}"
    if definition.change is not Change.CHANGED:
        return f"{name} is {definition.change.value}"
    parts = ", ".join(map(_part_words, definition.weighty_parts))
    return f"{name}: {parts}" if parts else f"{name} changes"


def _part_words(part: PartChange) -> str:
    """Of an expression, that it changes: its text stands below."""
    name = part.name.removeprefix(PARAMETER)
    if part.name != _ENFORCEMENT and name == part.name:
        return f"{name} changes"
    values = part_values(part)
    told = values if part.name == _ENFORCEMENT else f"{name} {values}"
    return f"{told} ({part.place})" if part.place else told


def part_values(part: PartChange) -> str:
    """``40 → 10``, each in one line and not too long."""
    return " → ".join(map(_text, (part.text.base, part.text.head)))


def _text(text: str | None) -> str:
    if text is None:
        return "nothing"
    line = " ".join(text.split())
    return line if len(line) <= _TEXT_CHARACTERS else f"{line[: _TEXT_CHARACTERS - 1]}…"


def _weightiest_first(definitions: Iterable[DefinitionChange]) -> Sequence[DefinitionChange]:
    """What decisions may go by; first what is gone, or acts no more as it did."""
    with_effect = [each for each in definitions if each.has_effect]
    return sorted(with_effect, key=lambda each: (not each.is_of_rules, not _is_softer(each)))


def _is_softer(definition: DefinitionChange) -> bool:
    return definition.change is Change.REMOVED or any(part.name == _ENFORCEMENT for part in definition.parts)
