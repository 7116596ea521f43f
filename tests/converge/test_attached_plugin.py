"""The plugin that engines attach to: one for all, or a fresh one for each; gone with whoever started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.converge.attached_plugin import AttachedPlugin

# Prints its process id as its port, so that a test sees which one it got.
PLUGIN = '#!/bin/sh\necho "$$"\nexec sleep 60\n'


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    file = tmp_path / "pulumi-resource-aws"
    file.write_text(PLUGIN)
    file.chmod(0o755)
    return file


def port(attached: AttachedPlugin) -> int:
    with attached.attached() as variables:
        name, _, number = variables["PULUMI_DEBUG_PROVIDERS"].partition(":")
        assert name == "aws"
        return int(number)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def await_end(pid: int) -> None:
    deadline = time.monotonic() + 10
    while is_alive(pid):
        assert time.monotonic() < deadline, "the plugin runs on"
        time.sleep(0.01)


def found_on(path: Path, *, serves_many: bool = True) -> AttachedPlugin:
    return AttachedPlugin({"PATH": f"{path.parent}:/usr/bin:/bin"}, serves_many=serves_many)


def test_one_that_serves_many_is_started_once_and_again_when_it_died(plugin: Path) -> None:
    attached = found_on(plugin)
    first = port(attached)
    assert port(attached) == first

    os.kill(first, signal.SIGKILL)
    await_end(first)
    # The shell that waits for it needs a moment to see it.
    deadline = time.monotonic() + 10
    while (second := port(attached)) == first:
        assert time.monotonic() < deadline
        time.sleep(0.01)

    attached.stop()
    await_end(second)


def test_one_that_serves_a_single_engine_is_another_for_the_next(plugin: Path) -> None:
    attached = found_on(plugin, serves_many=False)

    first, second = port(attached), port(attached)

    assert first != second
    await_end(first)
    await_end(second)
    attached.stop()


@pytest.mark.parametrize("text", [None, "#!/bin/sh\necho no port\n", "#!/bin/sh\nexit 1\n"])
def test_one_that_does_not_start_leaves_it_to_the_engine(plugin: Path, text: str | None) -> None:
    plugin.unlink()
    if text is not None:
        plugin.write_text(text)
        plugin.chmod(0o755)
    attached = found_on(plugin)

    with attached.attached() as variables:
        assert variables == {}
    attached.stop()


def test_it_ends_with_the_process_that_started_it_however_that_ends(plugin: Path) -> None:
    script = (
        "import sys, time\n"
        "from engine.converge.attached_plugin import AttachedPlugin\n"
        "attached = AttachedPlugin({'PATH': sys.argv[1]}, serves_many=True)\n"
        "with attached.attached() as variables:\n"
        "    print(variables['PULUMI_DEBUG_PROVIDERS'], flush=True)\n"
        "    time.sleep(60)\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", script, f"{plugin.parent}:/usr/bin:/bin"], stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    started = int(starter.stdout.readline().strip().removeprefix("aws:"))
    assert is_alive(started)

    starter.kill()
    starter.wait()

    await_end(started)
