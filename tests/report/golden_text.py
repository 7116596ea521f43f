"""Golden texts: what reports print, kept in files. NODEWRIGHT_UPDATE_GOLDEN=1 writes them anew, for a diff."""

from __future__ import annotations

import io
import os
from pathlib import Path

from rich.console import Console, RenderableType

GOLDEN = Path(__file__).with_name("golden")


def printed(renderable: RenderableType, width: int = 100) -> str:
    """Without colour, every blank as it is printed."""
    file = io.StringIO()
    Console(file=file, width=width, highlight=False).print(renderable)
    return file.getvalue()


def assert_golden(name: str, text: str) -> None:
    file = GOLDEN / name
    if os.environ.get("NODEWRIGHT_UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert file.exists(), f"{file} is missing: run with NODEWRIGHT_UPDATE_GOLDEN=1 and read what it wrote"
    assert text == file.read_text(encoding="utf-8"), f"{name} has changed; NODEWRIGHT_UPDATE_GOLDEN=1 accepts it"
