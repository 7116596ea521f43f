"""One EC2 endpoint for all tests of a folder, on a free port, ended with the session.

A folder's conftest imports what it wants of this, and so has an endpoint that no other folder's tests see.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.sandbox.ec2 import FAULTS_FILE, Ec2Endpoint, ec2_down, ec2_up


@pytest.fixture(scope="session")
def ec2_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    state = tmp_path_factory.mktemp("ec2")
    yield state
    ec2_down(state)


@pytest.fixture
def ec2_endpoint(ec2_state: Path) -> Iterator[Ec2Endpoint]:
    """Running and without faults. Its state is the session's: a test tells its instances by their tags."""
    (ec2_state / FAULTS_FILE).unlink(missing_ok=True)
    yield ec2_up(ec2_state)
    (ec2_state / FAULTS_FILE).unlink(missing_ok=True)
