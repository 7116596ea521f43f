"""One kind's shelf while it is kept current, and whether it may be believed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from engine.model.snapshot import ObjectProblem
from engine.observe.board import Board
from engine.observe.cluster import gap
from engine.observe.karpenter_objects import LIVE_FOR_SECONDS
from engine.observe.kubernetes import Key, Seen
from engine.observe.shelf import Shelf

# Longer than a watch may be silent: what is silent for longer is a thread that hangs.
_BELIEVED_FOR_SECONDS = 240.0


class LiveKind:
    """A watch's sink: changes go to the shelf under the board's lock, and are told to the board."""

    def __init__(self, shelf: Shelf, board: Board, monotonic: Callable[[], float]) -> None:
        self.shelf = shelf
        self._board = board
        self._monotonic = monotonic
        self._doubt = "it was not listed yet"
        self._excuse = ""
        self._heard_at: float | None = None
        self._renewed_at: dict[Any, float] = {}

    def see(self, raw: Any, position: int) -> Seen:
        return self.shelf.see(raw, position)

    def is_empty(self) -> bool:
        with self._board.lock:
            return len(self.shelf) == 0

    def replace(self, all_seen: Iterable[Seen]) -> None:
        with self._board.lock:
            if self.shelf.kind.is_heartbeat:
                listed = list(all_seen)
                self._note_renewals(listed)
                self._tell(self.shelf.replace(listed))
            else:
                self._tell(self.shelf.replace(all_seen))

    def put(self, seen: Seen) -> None:
        with self._board.lock:
            if self.shelf.kind.is_heartbeat:
                tells = self._note_renewals([seen])
                self.shelf.put(seen)
                self._tell(tells)
            else:
                self._tell(self.shelf.put(seen))

    def remove(self, key: Key) -> None:
        with self._board.lock:
            self._tell(self.shelf.remove(key))

    def heard(self) -> None:
        self._heard_at = self._monotonic()

    def trust(self, rests: bool = False) -> None:
        with self._board.lock:
            self._heard_at = None if rests else self._monotonic()
            self._judge(doubt="", excuse="")

    def doubt(self, why: str) -> None:
        with self._board.lock:
            self._judge(doubt=why, excuse="")

    def excuse(self, why: str) -> None:
        with self._board.lock:
            self._heard_at = None
            self._judge(doubt="", excuse=why)

    def unsynced(self) -> str:
        """Why nothing may be decided from it; empty when it may. Under the board's lock."""
        if self._doubt:
            return self._doubt
        if self._heard_at is not None and self._monotonic() - self._heard_at > _BELIEVED_FOR_SECONDS:
            return f"nothing was heard of it for {self._monotonic() - self._heard_at:.0f} s"
        return ""

    def gap(self) -> ObjectProblem | None:
        """That it cannot be read, where decisions are made without it. Under the board's lock."""
        return gap(self.shelf.kind, self._excuse) if self._excuse else None

    def seconds_since_renewal(self) -> dict[Any, float]:
        """For each value of a heartbeat kind that was seen to change: how long ago. Under the board's lock."""
        now = self._monotonic()
        values = self.shelf.by_key()
        return {values[key]: now - at for key, at in self._renewed_at.items() if key in values}

    def _judge(self, doubt: str, excuse: str) -> None:
        if excuse != self._excuse:
            self._board.changed()
        if doubt != self._doubt:
            self._board.wake()
        self._doubt, self._excuse = doubt, excuse

    def _tell(self, is_change: bool) -> None:
        if is_change:
            self._board.changed()

    def _note_renewals(self, all_seen: Iterable[Seen]) -> bool:
        """Whether any came to life: a heartbeat that only goes on is no change."""
        now = self._monotonic()
        came_to_life = False
        for seen in all_seen:
            before = self.shelf.value(seen.key)
            if before is None or before == seen.value:
                came_to_life = came_to_life or before is None
                continue
            last = self._renewed_at.get(seen.key)
            came_to_life = came_to_life or last is None or now - last > LIVE_FOR_SECONDS
            self._renewed_at[seen.key] = now
        return came_to_life
