"""Pods with constraints that the model does not hold: refused with the constraint's name, never placed."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model.pod import Pod


def unjudged(pod: Pod) -> Iterator[str]:
    """The kinds of constraint of a pod that nobody held its place against."""
    yield from pod.placing.unsupported
