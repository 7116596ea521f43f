"""How tables and lists look: one style for all screens, readable at 100 columns and usable at 60."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from engine.model.money import UsdPerHour

INDENT = 2
# The column of a bar: it has no heading, and what it draws stands beside it as a number.
BAR = ""
_EXAMPLES = 3
_HASH_DIGITS = 12
_WIDE_GAP, _NARROW_GAP = 2, 1
# A column of sentences is not squeezed below this, lest it becomes one word a line.
_NARROWEST_SENTENCE = 24
_LONGEST_UNBROKEN = 60


class Rows:
    """A table without lines in which no number, name or price is ever cut off.

    Where the screen is too narrow, columns of ``gives_way`` are left out, the first named first; then the others stand
    closer; where that does not help either, each row becomes a paragraph of ``HEADING VALUE`` pairs.
    """

    def __init__(self, columns: Sequence[str], gives_way: Sequence[str], *, has_header: bool) -> None:
        self._names = [column.lstrip(">~") for column in columns]
        self._marks = [column[: len(column) - len(name)] for column, name in zip(columns, self._names, strict=True)]
        self._gives_way = gives_way
        self._has_header = has_header
        self._rows: list[list[Text]] = []

    def add(self, *cells: str | Text) -> None:
        """Names and messages come from outside, so nothing in a cell is taken for markup."""
        self._rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widest = self._needed(range(len(self._names)), _WIDE_GAP, whole=True)
        return Measurement(min(widest, options.max_width), min(widest, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for shown, gap in self._arrangements():
            if self._needed(shown, gap) <= options.max_width:
                yield self._as_table(shown, gap)
                return
        yield from self._as_paragraphs(options.max_width)

    def _arrangements(self) -> Iterator[tuple[list[int], int]]:
        """Columns and the gap between them, the most comfortable first."""
        for count in range(len(self._gives_way) + 1):
            left_out = self._gives_way[:count]
            shown = [at for at, name in enumerate(self._names) if name not in left_out]
            yield shown, _WIDE_GAP
        yield shown, _NARROW_GAP

    def _needed(self, shown: Iterable[int], gap: int, *, whole: bool = False) -> int:
        """The width below which something would be cut off; ``whole``: without wrapping anything."""
        widths = [self._widest(at) if whole or "~" not in self._marks[at] else self._narrowest(at) for at in shown]
        return sum(widths) + gap * (len(widths) - 1)

    def _widest(self, at: int) -> int:
        heading_width = cell_len(self._names[at]) if self._has_header else 0
        lines = (line for row in self._rows for line in row[at].plain.split("\n"))
        return max([heading_width, *(cell_len(line) for line in lines)])

    def _narrowest(self, at: int) -> int:
        words = (word for row in self._rows for word in row[at].plain.split())
        longest_word = min(max((cell_len(word) for word in words), default=0), _LONGEST_UNBROKEN)
        return min(self._widest(at), max(longest_word, _NARROWEST_SENTENCE))

    def _as_table(self, shown: Sequence[int], gap: int) -> Table:
        made = Table(
            box=None,
            pad_edge=False,
            padding=(0, gap, 0, 0),
            header_style="dim",
            show_edge=False,
            show_header=self._has_header,
        )
        for at in shown:
            wraps = "~" in self._marks[at]
            made.add_column(
                self._names[at],
                justify="right" if ">" in self._marks[at] else "left",
                no_wrap=not wraps,
                min_width=self._narrowest(at) if wraps else self._widest(at),
                overflow="fold",
            )
        for row in self._rows:
            made.add_row(*(row[at] for at in shown))
        return made

    def _as_paragraphs(self, width: int) -> Iterator[RenderableType]:
        for row in self._rows:
            first, *others = zip(self._names, row, strict=True)
            yield first[1]
            pairs = [self._pair(name, cell) for name, cell in others if name != BAR or not self._has_header]
            for line in _joined(pairs, width - INDENT):
                yield indented(line)

    def _pair(self, name: str, cell: Text) -> Text:
        return Text.assemble((f"{name} ", "dim"), cell) if self._has_header else cell


class Indented:
    """Indented as a whole, its wrapped lines too."""

    def __init__(self, content: RenderableType, by: int) -> None:
        self._content = content
        self._by = by

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # A pipe leaves lines unwrapped; what hangs beneath something is wrapped even there, to keep its shape.
        narrower = options.update(width=max(options.max_width - self._by, 1), no_wrap=False, overflow="fold")
        for line in Segment.split_lines(console.render(self._content, narrower)):
            yield Segment(" " * self._by)
            yield from line
            yield Segment.line()


class Screen:
    """A whole report. Blanks that a table leaves at the end of its lines are dropped."""

    def __init__(self, *parts: RenderableType) -> None:
        self._content = Group(*parts)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in Segment.split_lines(console.render(self._content, options)):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            if line:
                text, style, _ = line.pop()
                yield from line
                yield Segment(text.rstrip(" "), style)
            yield Segment.line()


def table(*columns: str, gives_way: Sequence[str] = (), has_header: bool = True) -> Rows:
    """A table. A column that starts with ``>`` is right-aligned, one with ``~`` may wrap; ``gives_way`` names those
    that a narrow screen goes without, the first one first.
    """
    return Rows(columns, gives_way, has_header=has_header)


def indented(content: RenderableType, by: int = INDENT) -> Indented:
    """Beneath what it belongs to."""
    return Indented(content, by)


def in_table(price: UsdPerHour) -> str:
    """A price under a heading that names the unit."""
    return str(price).removesuffix("/h").replace("$", "")


def heading(title: str, note: str = "") -> Text:
    """A section's title, with the sum of it beside."""
    text = Text(title, style="bold")
    return text.append(f"  {note}", style="not bold") if note else text


def short_hash(digest: str) -> str:
    """Enough of a digest to name it."""
    return digest[:_HASH_DIGITS]


def examples(names: Sequence[str], *, every: bool = False, shown: int = _EXAMPLES) -> str:
    """The first few of many names: ``a, b, c and 12 more``."""
    named = names if every else names[:shown]
    rest = len(names) - len(named)
    return ", ".join(named) + (f" and {rest:,} more" if rest else "")


def zones_in_short(zones: Iterable[str], region: str) -> str:
    """``b`` or ``a,b,c`` in a column that is headed by the region; a zone of another region in full."""
    return ",".join(zone.removeprefix(region) for zone in sorted(set(zones)))


def _joined(pairs: Iterable[Text], width: int) -> Iterator[Text]:
    """Pairs side by side as far as they go; none is broken unless it is a sentence longer than a line."""
    line = Text()
    for pair in pairs:
        if line and line.cell_len + _WIDE_GAP + pair.cell_len > width:
            yield line
            line = Text()
        line = Text.assemble(line, " " * _WIDE_GAP, pair) if line else pair
    if line:
        yield line
