"""How long the sandbox's machines take from launch to running: at once, or as long as a person says.

NODEWRIGHT_SANDBOX_LAUNCH_SECONDS is read by the EC2 endpoint when it starts, which shows an instance as `pending` that
long, and by the stand-in for the AWS plugin, which waits for it as the official plugin does.
"""

import os
import re
import time
from collections.abc import Mapping
from typing import Any

LAUNCH_SECONDS_VARIABLE = "NODEWRIGHT_SANDBOX_LAUNCH_SECONDS"

_PENDING, _RUNNING = ("pending", 0), ("running", 16)


def launch_seconds(environment: Mapping[str, str] = os.environ) -> float:
    """Seconds from launch to running; 0 where nothing, or no number, is said."""
    try:
        return max(0.0, float(environment.get(LAUNCH_SECONDS_VARIABLE, "0")))
    except ValueError:
        return 0.0


class Booting:
    """The instances that moto runs already and that are not to be seen so yet.

    To be used by one thread at a time: moto's tables are not made for more.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, tuple[Any, float]] = {}

    def begin(self, answer: bytes, region: str) -> None:
        """Take the instances of a RunInstances answer back to `pending`."""
        if not self._seconds:
            return
        from moto.core.models import DEFAULT_ACCOUNT_ID
        from moto.ec2.models import ec2_backends

        ec2 = ec2_backends[DEFAULT_ACCOUNT_ID][region]
        for identity in re.findall(rb"<instanceId>(i-[0-9a-f]+)</instanceId>", answer):
            instance = ec2.get_instance(identity.decode())
            _show(instance, _PENDING)
            self._until[instance.id] = (instance, time.monotonic() + self._seconds)

    def advance(self) -> None:
        """Let those run whose time has come; one that was terminated meanwhile stays so."""
        now = time.monotonic()
        for identity, (instance, until) in list(self._until.items()):
            if now >= until:
                if instance.state == _PENDING[0]:
                    _show(instance, _RUNNING)
                del self._until[identity]


def _show(instance: Any, state: tuple[str, int]) -> None:
    instance._state.name, instance._state.code = state
