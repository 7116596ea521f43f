"""How tables and lists look: one style for all screens, readable at 100 columns and usable at 80."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from engine.model.money import UsdPerHour

INDENT = 2
_EXAMPLES = 3
_HASH_DIGITS = 12


def table(*columns: str) -> Table:
    """A table without lines. A name that starts with ``>`` is right-aligned, one with ``~`` may wrap."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for column in columns:
        name = column.lstrip(">~")
        made.add_column(
            name,
            justify="right" if column.startswith(">") else "left",
            no_wrap=not column.startswith("~"),
            overflow="fold",
        )
    return made


@frozen
class ByWidth:
    """One of two renderings of the same: ``narrow`` where there are fewer than ``columns`` columns."""

    wide: RenderableType
    narrow: RenderableType
    columns: int = 96

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.wide if options.max_width >= self.columns else self.narrow


def indented(content: RenderableType, by: int = INDENT) -> Padding:
    """Indented as a whole, its wrapped lines too."""
    if isinstance(content, Text):
        # A cell wraps by its column's rule; a bare text would be cut off on a console that leaves lines unwrapped.
        cell = table("~")
        cell.show_header = False
        cell.add_row(content)
        content = cell
    return Padding(content, (0, 0, 0, by), expand=False)


def add_row(rows: Table, *cells: str | Text) -> None:
    """Names and messages come from outside, so nothing in a cell is taken for markup."""
    rows.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in cells))


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


def examples(names: Sequence[str], *, every: bool = False) -> str:
    """The first few of many names: ``a, b, c and 12 more``."""
    shown = names if every else names[:_EXAMPLES]
    rest = len(names) - len(shown)
    return ", ".join(shown) + (f" and {rest:,} more" if rest else "")


def zones_in_short(zones: Iterable[str], region: str) -> str:
    """``b`` or ``a,b,c`` in a column that is headed by the region; a zone of another region in full."""
    return ",".join(zone.removeprefix(region) for zone in sorted(set(zones)))
