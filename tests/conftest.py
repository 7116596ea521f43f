"""What tests of several rooms share."""

from __future__ import annotations

import socket

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing of what it promises.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def unused_port() -> int:
    """A port of loopback that refuses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
