"""What of ours a PriorityClass is annotated with and nobody understands: its pods start nodes as without it."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from engine.model import labels
from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.model.workload import PriorityClass, Workload

_OURS = "nodewright.dev/"


def priority_diagnostics(workload: Workload, position: Position) -> tuple[Diagnostic, ...]:
    """A warning for each such annotation, by class and key; ``position`` is the snapshot's that shows the classes."""
    classes = sorted(workload.priority_classes, key=lambda each: each.name)
    return tuple(
        Diagnostic(Severity.WARNING, rule, message, position, hint)
        for each in classes
        for rule, message, hint in _misread(each)
    )


def priority_notes(workload: Workload) -> Iterator[Text]:
    """The same as notes beside a plan."""
    for found in priority_diagnostics(workload, Position("", 1, 1)):
        yield Text(f"{found.message}: {found.hint}", "yellow")


def _misread(priority_class: PriorityClass) -> Iterator[tuple[str, str, str]]:
    """A rule, a message and a hint for each."""
    start = f"PriorityClass {priority_class.name}: "
    for key, value in sorted(priority_class.annotations.items()):
        if key == labels.MAY_START_NODES and value not in ("true", "false"):
            message = f'{start}{key} is {value[:40]!r}, so its pods start nodes; expected "true" or "false"'
            yield "bad-annotation", message, 'write "false" for pods that start none'
        elif key.startswith(_OURS) and key != labels.MAY_START_NODES:
            message = f"{start}{key[:80]} is no annotation that Nodewright knows there, and is passed over"
            yield "unknown-annotation", message, f"the one of a PriorityClass is {labels.MAY_START_NODES}"
