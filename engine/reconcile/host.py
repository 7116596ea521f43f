"""What the process lends a loop: clocks, chance and threads."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from attrs import field, frozen

Work = Callable[[], None]


def _thread(name: str, work: Work) -> None:
    # A daemon: a second Ctrl-C must be able to end the process whatever a thread waits for.
    threading.Thread(target=work, name=name, daemon=True).start()


@frozen
class Host:
    """``now`` is the wall clock, in UTC, only ever written down; all waiting goes by ``monotonic``, in seconds.

    ``chance`` is uniform in [0, 1). ``start`` runs work of that name in the background.
    """

    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random
    start: Callable[[str, Work], None] = _thread
