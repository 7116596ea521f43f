"""Equal parts of many objects kept once: ten thousand pods come from a few templates."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any, TypeVar

from attrs import evolve

from engine.model.node import Node
from engine.model.pod import Placing, Pod, PodKey

_Part = TypeVar("_Part")
# Parts of objects that are long gone are forgotten together once so many have gathered.
_MOST_PARTS = 50_000


class Sharing:
    """Not for several threads at once."""

    def __init__(self) -> None:
        self._parts: dict[Any, Any] = {}

    def shared(self, value: Any) -> Any:
        """An equal value whose parts are those that were shared before."""
        if isinstance(value, Pod):
            return self._pod(value)
        if isinstance(value, Node):
            return evolve(value, labels=self._texts(value.labels), taints=self._part(value.taints, value.taints))
        return value

    def _pod(self, pod: Pod) -> Pod:
        return evolve(
            pod,
            key=PodKey(intern(pod.key.namespace), pod.key.name),
            placing=self._placing(pod.placing),
            node_name=intern(pod.node_name) if pod.node_name else pod.node_name,
            labels=self._texts(pod.labels),
            owner=self._part(pod.owner, pod.owner),
            images=self._part(pod.images, pod.images),
        )

    def _placing(self, placing: Placing) -> Placing:
        return self._part(placing.content, placing)

    def _texts(self, texts: Mapping[str, str]) -> Mapping[str, str]:
        key = tuple(sorted(texts.items()))
        known: Mapping[str, str] | None = self._parts.get(key)
        if known is not None:
            return known
        return self._part(key, {intern(name): intern(text) for name, text in texts.items()})

    def _part(self, key: Any, part: _Part) -> _Part:
        if len(self._parts) >= _MOST_PARTS:
            self._parts.clear()
        known: _Part = self._parts.setdefault(key, part)
        return known
