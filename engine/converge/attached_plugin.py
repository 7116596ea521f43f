"""An AWS plugin that runs before an update needs it: engines attach to it instead of starting their own.

Starting the plugin costs an update half a second with our stand-in and more with the official one.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

PLUGIN = "pulumi-resource-aws"

# The plugin ends when our end of the pipe closes, however we end: the official one looks after no parent. A shell
# gives its background commands no input of their own, hence the third descriptor.
_UNTIL_WE_END = 'exec 3<&0; "$0" & plugin=$!; (cat <&3; kill "$plugin") >/dev/null 2>&1 & wait "$plugin"'


class AttachedPlugin:
    """An AWS plugin that runs for as long as its session. Safe to use from many threads.

    Our stand-in serves any number of engines, one after another or at once: it keeps a configuration for each
    connection. The official plugin has one for its process, and an engine that ends tells its plugins to cancel
    whatever they are doing. So it is good for one engine, and another one is started for the next.
    """

    def __init__(self, variables: Mapping[str, str], plugin: Path | None = None, *, serves_many: bool) -> None:
        """`variables` are its whole environment; without `plugin` it is the first on their PATH."""
        self._variables = variables
        self._plugin = str(plugin) if plugin else shutil.which(PLUGIN, path=variables.get("PATH", ""))
        self._serves_many = serves_many
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._port = ""

    def start(self) -> None:
        """Start it when it does not run, without waiting until it can be used."""
        with self._lock:
            self._start_if_dead()

    @contextlib.contextmanager
    def attached(self) -> Iterator[Mapping[str, str]]:
        """The variables by which one engine attaches; the plugin is started, or started again when it died.

        None where it does not start: an engine then starts its own, and says what is wrong with it.
        """
        with self._lock:
            self._start_if_dead()
            if not self._port:
                self._port = self._announced_port()
            variables = {"PULUMI_DEBUG_PROVIDERS": f"aws:{self._port}"} if self._port else {}
        try:
            yield variables
        finally:
            if not self._serves_many:
                self.stop()
                self.start()

    def stop(self) -> None:
        """Idempotent; a later use starts it again."""
        with self._lock:
            process, self._process, self._port = self._process, None, ""
        if process is not None:
            _ended(process)

    def _start_if_dead(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            _ended(self._process)
            self._process = None
        self._port = ""
        if self._plugin is None:
            return
        # Ctrl-C in a terminal reaches its whole process group, and a plugin that is gone leaves half-made machines.
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _UNTIL_WE_END, self._plugin],
            env=dict(self._variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def _announced_port(self) -> str:
        process = self._process
        port = process.stdout.readline().strip() if process and process.stdout else ""
        return port if port.isdigit() else ""


def _ended(process: subprocess.Popen[str]) -> None:
    if process.stdin:
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)
    if process.stdout:
        process.stdout.close()
