"""Being asked to stop: once to finish what is under way, twice to break it off."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stop:
    """``request`` may come from a signal handler, so it only takes note; what it brings about runs in a thread.

    ``on_request`` is called with how often that makes it.
    """

    def __init__(self) -> None:
        self.times = 0
        self.on_request: Callable[[int], None] = lambda times: None

    @property
    def is_requested(self) -> bool:
        return self.times > 0

    @property
    def is_abort(self) -> bool:
        return self.times > 1

    def request(self) -> None:
        self.times += 1
        threading.Thread(target=self.on_request, args=(self.times,), name="stop", daemon=True).start()
