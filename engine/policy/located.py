"""What a person wrote, as a tree whose every part knows its place in the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from engine.model.diagnostic import Position

_LONGEST_SHOWN_LINE = 400

Path = tuple[str | int, ...]


@frozen
class Place:
    """A line and a column, both from 1."""

    line: int
    column: int


@frozen
class Source:
    """A file's display path and its lines, for carets."""

    file: str
    lines: Sequence[str] = field(repr=False, eq=False)

    def position(self, place: Place) -> Position:
        line = self.lines[place.line - 1] if 0 < place.line <= len(self.lines) else ""
        return Position(self.file, place.line, place.column, line[:_LONGEST_SHOWN_LINE])


@define(eq=False)
class Scalar:
    """One value. ``text`` is as it was written, so that 1.10 or 010 is not lost where a string is meant.

    ``is_block`` is a literal block, whose lines are the file's; ``is_folded`` one whose lines YAML joined.
    """

    place: Place
    text: str
    value: str | int | float | bool | None
    is_block: bool = False
    is_folded: bool = False

    @property
    def is_text(self) -> bool:
        return isinstance(self.value, str)


@define(eq=False)
class Items:
    place: Place
    items: list[Located] = field(factory=list)


@define(eq=False)
class Fields:
    """A map; ``key_places`` says where each key stands."""

    place: Place
    fields: dict[str, Located] = field(factory=dict)
    key_places: dict[str, Place] = field(factory=dict)

    def put(self, key: str, value: Located, key_place: Place) -> None:
        self.fields[key] = value
        self.key_places[key] = key_place

    def take(self, key: str) -> tuple[Located, Place] | None:
        """Removes a key; its value and place, or None when it is absent."""
        if key not in self.fields:
            return None
        return self.fields.pop(key), self.key_places.pop(key)


Located = Scalar | Items | Fields


def find(root: Located, path: Path) -> Located | None:
    """The part at a path, or None."""
    part: Located | None = root
    for step in path:
        part = _step(part, step)
    return part


def _step(part: Located | None, step: str | int) -> Located | None:
    if isinstance(part, Fields) and isinstance(step, str):
        return part.fields.get(step)
    if isinstance(part, Items) and isinstance(step, int) and 0 <= step < len(part.items):
        return part.items[step]
    return None


def fields_at(root: Located, path: Path) -> Fields | None:
    """The map at a path, or None when there is none or something else."""
    part = find(root, path)
    return part if isinstance(part, Fields) else None


def text_at(root: Located, path: Path) -> str | None:
    """The string at a path, or None when there is none or something else."""
    part = find(root, path)
    return part.value if isinstance(part, Scalar) and isinstance(part.value, str) else None


def value_place(root: Located, path: Path) -> Place:
    """Where the value at a path begins; of a part that is missing, where the nearest part above it is named."""
    part = find(root, path)
    return part.place if part is not None else key_place(root, path)


def key_place(root: Located, path: Path) -> Place:
    """Where the key at a path stands; of a part that is missing, where the nearest part above it is named."""
    while path:
        above = find(root, path[:-1])
        last = path[-1]
        if isinstance(above, Fields) and isinstance(last, str) and last in above.key_places:
            return above.key_places[last]
        part = find(root, path)
        if part is not None:
            return part.place
        path = path[:-1]
    return root.place


def remove(root: Located, path: Path) -> bool:
    """Takes the part at a path out of the tree; whether it was there."""
    above = find(root, path[:-1]) if path else None
    if isinstance(above, Fields) and path[-1] in above.fields:
        above.take(str(path[-1]))
        return True
    if isinstance(above, Items) and isinstance(path[-1], int) and path[-1] < len(above.items):
        del above.items[path[-1]]
        return True
    return False


def plain(part: Located) -> object:
    """Dicts and lists for pydantic; scalars stay as they are, so that a field may see how it was written."""
    if isinstance(part, Fields):
        return {key: plain(value) for key, value in part.fields.items()}
    if isinstance(part, Items):
        return [plain(item) for item in part.items]
    return part


def copied(part: Located) -> Located:
    """A deep copy: what an alias stands for may then be changed on its own."""
    if isinstance(part, Fields):
        fields = {key: copied(value) for key, value in part.fields.items()}
        return Fields(part.place, fields, dict(part.key_places))
    if isinstance(part, Items):
        return Items(part.place, [copied(item) for item in part.items])
    return Scalar(part.place, part.text, part.value, part.is_block, part.is_folded)


def walk(part: Located, depth: int = 1) -> Iterator[tuple[Located, int]]:
    """Every part with its depth, itself included."""
    yield part, depth
    inside = part.fields.values() if isinstance(part, Fields) else part.items if isinstance(part, Items) else ()
    for child in inside:
        yield from walk(child, depth + 1)


def describe(part: object) -> str:
    """What a person would call this value: ``a list``, ``the number 5``, ``"abc"``."""
    if isinstance(part, Fields | dict):
        return "a map"
    if isinstance(part, Items | list):
        return "a list"
    if not isinstance(part, Scalar):
        return "something else"
    match part.value:
        case None:
            return "nothing"
        case bool():
            return part.text
        case int() | float():
            return f"the number {part.text[:40]}"
        case _:
            return f'"{part.text[:60]}"'


def written(path: Path) -> str:
    """A path as people write it: ``spec.template.spec.requirements[2].values[0]``; keys with dots in brackets."""
    shown = ""
    for step in path:
        if isinstance(step, int) or "." in step or "/" in step:
            shown += f"[{step}]"
        else:
            shown += f".{step}" if shown else step
    return shown
