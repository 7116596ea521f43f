"""How a log is written; apart from what writes it, so that a command line can be read without loading that."""

from __future__ import annotations

from enum import Enum


class LogFormat(str, Enum):
    """``auto`` is the console's on a terminal, else JSON lines."""

    AUTO = "auto"
    CONSOLE = "console"
    JSON = "json"


class LogLevel(str, Enum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
