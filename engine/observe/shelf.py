"""One kind's objects as they are known now, decoded; their JSON is not kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from attrs import evolve

from engine.model.pod import Pod
from engine.model.snapshot import ObjectProblem
from engine.observe.kinds import Kind
from engine.observe.kubernetes import Key, Seen
from engine.observe.sharing import Sharing


class Shelf:
    """What changes it says whether a decision could differ. Not for several threads at once, ``see`` aside.

    ``see`` may run in one thread while others use the rest.
    """

    def __init__(self, kind: Kind, now: Callable[[], datetime]) -> None:
        self.kind = kind
        self._now = now
        self._sharing = Sharing()
        self._values: dict[Key, Any] = {}
        self._problems: dict[Key, ObjectProblem] = {}
        self._held_until: dict[Key, datetime] = {}
        # All values in order and the place of each in it, until a key comes or goes.
        self._sorted: list[Any] | None = []
        self._places: dict[Key, int] = {}
        self._in_order: tuple[Any, ...] | None = ()
        self._problems_in_order: tuple[ObjectProblem, ...] | None = ()

    def __len__(self) -> int:
        return len(self._values)

    def see(self, raw: Any, position: int) -> Seen:
        """Decode one object's JSON."""
        found = self.kind.see(raw, position)
        return evolve(found, value=self._sharing.shared(found.value))

    def replace(self, all_seen: Iterable[Seen]) -> bool:
        """These and no others."""
        listed = {each.key: each for each in all_seen}
        gone = [key for key in (*self._values, *self._problems) if key not in listed]
        changes = [self.remove(key) for key in gone] + [self.put(each) for each in listed.values()]
        return any(changes)

    def put(self, seen: Seen) -> bool:
        """One object, new or changed."""
        key = seen.key
        is_new = self._note_problem(key, seen.problem)
        value = self._after_hold(seen)
        if value is None:
            return self._drop_value(key) or is_new
        before = self._values.get(key)
        if before == value:
            return is_new
        self._set(key, value)
        return True

    def remove(self, key: Key) -> bool:
        """One object that is gone."""
        self._held_until.pop(key, None)
        return self._note_problem(key, None) | self._drop_value(key)

    def value(self, key: Key) -> Any | None:
        return self._values.get(key)

    def by_key(self) -> Mapping[Key, Any]:
        return self._values

    def in_order(self) -> tuple[Any, ...]:
        """All values by namespace and name; the same tuple until one changes."""
        self._end_holds()
        if self._in_order is None:
            if self._sorted is None:
                keys = sorted(self._values)
                self._places = {key: place for place, key in enumerate(keys)}
                self._sorted = [self._values[key] for key in keys]
            self._in_order = tuple(self._sorted)
        return self._in_order

    def problems(self) -> tuple[ObjectProblem, ...]:
        """Of the objects that are broken, by namespace and name."""
        if self._problems_in_order is None:
            self._problems_in_order = tuple([self._problems[key] for key in sorted(self._problems)])
        return self._problems_in_order

    def _after_hold(self, seen: Seen) -> Any:
        self._held_until.pop(seen.key, None)
        if seen.held_until is None:
            return seen.value
        if seen.held_until <= self._now():
            return _released(seen.value)
        self._held_until[seen.key] = seen.held_until
        return seen.value

    def _end_holds(self) -> None:
        now = self._now() if self._held_until else None
        for key in [key for key, ends_at in self._held_until.items() if now is not None and ends_at <= now]:
            del self._held_until[key]
            self._set(key, _released(self._values[key]))

    def _set(self, key: Key, value: Any) -> None:
        if key not in self._values:
            self._sorted = None
        elif self._sorted is not None:
            self._sorted[self._places[key]] = value
        self._values[key] = value
        self._in_order = None

    def _note_problem(self, key: Key, problem: ObjectProblem | None) -> bool:
        if self._problems.get(key) == problem:
            return False
        if problem is None:
            del self._problems[key]
        else:
            self._problems[key] = problem
        self._problems_in_order = None
        return True

    def _drop_value(self, key: Key) -> bool:
        if self._values.pop(key, None) is None:
            return False
        self._sorted = self._in_order = None
        return True


def _released(pod: Any) -> Pod:
    released: Pod = evolve(pod, do_not_disrupt=False)
    return released
