"""RE2, the regular expressions of CEL: linear in time, without references back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]

_QUIET = re2.Options()
_QUIET.log_errors = False


@lru_cache(maxsize=256)
def compiled_pattern(pattern: str) -> Any:
    """Raises re2.error for what is no pattern."""
    return re2.compile(pattern, options=_QUIET)


def pattern_error(pattern: str) -> str:
    """Why the text is no pattern; "" when it is one."""
    try:
        compiled_pattern(pattern)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
    return ""
