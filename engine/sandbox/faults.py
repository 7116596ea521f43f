"""Faults that the sandbox's EC2 endpoint is told to commit: no capacity, errors, delays, its own death.

They are read from a JSON file, `{"faults": [...]}`, whenever that file changes, and each is counted from then on:

    {"fault": "no-capacity", "instance_type": "g5.xlarge", "zone": "*", "capacity_type": "spot", "times": 2}
    {"fault": "delay", "action": "RunInstances", "seconds": 1.5, "times": null}
    {"fault": "error", "action": "CreateTags", "code": "RequestLimitExceeded", "message": "…", "status": 503,
     "times": 1}
    {"fault": "die", "at": 3, "when": "after"}

`*` matches anything, `times: null` means always, and `die` ends the server at its `at`-th RunInstances after the
file was read, `before` or `after` performing it, once.
"""

import json
import threading
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import asdict, field, fields, frozen

CAPACITY_MESSAGE = (
    "We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone}). "
    "Our system will be working on provisioning additional capacity."
)
SPOT_CAPACITY_MESSAGE = "There is no Spot capacity available that matches your request."

Moment = Literal["before", "after"]


class FaultFileError(Exception):
    """The faults' file cannot be used; the message names the file, the entry and what was expected."""


@frozen
class Call:
    """One request as faults see it; the last three are empty except for RunInstances."""

    action: str
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""


@frozen
class NoCapacity:
    """RunInstances answers InsufficientInstanceCapacity for matching offerings."""

    instance_type: str = "*"
    zone: str = "*"
    capacity_type: str = "*"
    times: int | None = None

    def matches(self, call: Call) -> bool:
        return (
            call.action == "RunInstances"
            and fnmatchcase(call.instance_type, self.instance_type)
            and fnmatchcase(call.zone, self.zone)
            and fnmatchcase(call.capacity_type, self.capacity_type)
        )


@frozen
class Delay:
    """The action is answered `seconds` later."""

    action: str
    seconds: float
    times: int | None = None

    def matches(self, call: Call) -> bool:
        return fnmatchcase(call.action, self.action)


@frozen
class Error:
    """The action is refused with an error of AWS's shape; 5xx and throttling codes are what clients retry."""

    action: str
    code: str
    message: str = "injected by the sandbox"
    status: int = 400
    times: int | None = None
    instance_type: str = "*"

    def matches(self, call: Call) -> bool:
        return fnmatchcase(call.action, self.action) and fnmatchcase(call.instance_type, self.instance_type)


@frozen
class Die:
    """The server ends itself at its `at`-th RunInstances, `before` or `after` performing it."""

    at: int
    when: Moment = "before"
    times: int | None = 1

    def matches(self, call: Call) -> bool:
        return call.action == "RunInstances"


Fault = NoCapacity | Delay | Error | Die

_KINDS: dict[str, type[Fault]] = {"no-capacity": NoCapacity, "delay": Delay, "error": Error, "die": Die}
_NAMES = {kind: name for name, kind in _KINDS.items()}


@frozen
class Refusal:
    """An error to answer: AWS's code and message, and the HTTP status."""

    code: str
    message: str
    status: int


@frozen
class Effects:
    """What is to happen to one call."""

    delay_seconds: float = 0
    refusal: Refusal | None = None
    die: Moment | None = None


def write_faults(file: Path, faults: Iterable[Fault]) -> None:
    """Replace the file's faults in one step; a running server takes them up with its next request."""
    entries = [{"fault": _NAMES[type(fault)], **asdict(fault)} for fault in faults]
    unfinished = file.with_name(file.name + ".part")
    unfinished.write_text(json.dumps({"faults": entries}, indent=1), encoding="utf-8")
    unfinished.rename(file)


def read_faults(file: Path) -> tuple[Fault, ...]:
    """The faults in `file`, none if there is no such file. Raises FaultFileError."""
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except ValueError as error:
        raise FaultFileError(f"{file}: not JSON: {error}") from error
    entries = document.get("faults") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise FaultFileError(f'{file}: expected an object with a list, {{"faults": [...]}}')
    return tuple(_fault(file, index, entry) for index, entry in enumerate(entries))


def _fault(file: Path, index: int, entry: Any) -> Fault:
    where = f"{file}: faults[{index}]"
    kind = _KINDS.get(str(entry.get("fault"))) if isinstance(entry, Mapping) else None
    if kind is None:
        raise FaultFileError(f'{where}: expected an object whose "fault" is one of {", ".join(_KINDS)}')
    given = {key: value for key, value in entry.items() if key != "fault"}
    unknown = given.keys() - {attribute.name for attribute in fields(kind)}
    if unknown:
        raise FaultFileError(f"{where}: unknown {', '.join(sorted(unknown))}")
    try:
        fault = kind(**given)
    except TypeError as error:
        raise FaultFileError(f"{where}: {error}") from error
    if isinstance(fault, Die) and fault.when not in get_args(Moment):
        raise FaultFileError(f'{where}: "when" is "before" or "after", not {fault.when!r}')
    return fault


@frozen
class _Count:
    """A fault and how often it has matched; mutable through its one-element list."""

    fault: Fault
    matched: list[int] = field(factory=lambda: [0])

    def spend(self) -> bool:
        self.matched[0] += 1
        return self.fault.times is None or self.matched[0] <= self.fault.times


class FaultBook:
    """The faults of one file, re-read when it changes. Safe to use from many threads."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._spent = file.with_name(file.name + ".spent")
        self._lock = threading.Lock()
        self._seen: tuple[int, int] | None = None
        self._counts: list[_Count] = []

    def effects_on(self, call: Call) -> Effects:
        """What happens to this call; counts it. Raises FaultFileError when the file cannot be used."""
        with self._lock:
            self._refresh()
            delay_seconds, refusal, death = 0.0, None, None
            for count in self._counts:
                fault = count.fault
                if not fault.matches(call):
                    continue
                if isinstance(fault, Die):
                    death = death or self._death(count, fault)
                elif isinstance(fault, Delay):
                    delay_seconds += fault.seconds if count.spend() else 0
                elif refusal is None and count.spend():
                    refusal = _refusal(fault, call)
            return Effects(delay_seconds, refusal, death)

    def _death(self, count: _Count, fault: Die) -> Moment | None:
        count.matched[0] += 1
        if count.matched[0] != fault.at:
            return None
        # The next server reads the same file and is not to die of the same fault.
        self._spent.write_text(self._identity(), encoding="utf-8")
        return fault.when

    def _refresh(self) -> None:
        try:
            status = self._file.stat()
            seen = (status.st_mtime_ns, status.st_ino)
        except FileNotFoundError:
            seen = (0, 0)
        if seen == self._seen:
            return
        faults = read_faults(self._file)
        self._seen = seen
        died = self._spent.is_file() and self._spent.read_text(encoding="utf-8") == self._identity()
        self._counts = [_Count(fault) for fault in faults if not (died and isinstance(fault, Die))]

    def _identity(self) -> str:
        return "-".join(str(part) for part in self._seen or ())


def _refusal(fault: NoCapacity | Error, call: Call) -> Refusal:
    if isinstance(fault, Error):
        return Refusal(fault.code, fault.message, fault.status)
    if call.capacity_type == "spot":
        return Refusal("InsufficientInstanceCapacity", SPOT_CAPACITY_MESSAGE, 500)
    message = CAPACITY_MESSAGE.format(instance_type=call.instance_type, zone=call.zone)
    return Refusal("InsufficientInstanceCapacity", message, 500)
