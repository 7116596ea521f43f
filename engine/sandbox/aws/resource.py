"""What all resource types share: checking, comparing, creating, reading, updating and deleting from a table."""

import itertools
import random
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from attrs import frozen

from engine.sandbox.aws.config import ProviderConfig
from engine.sandbox.aws.schema import Difference, Failure, Input, Rules, blank, compare, failures, with_defaults
from engine.sandbox.aws.session import AwsError, Region, UnreachableError
from engine.sandbox.aws.tagging import change_ec2_tags, effective_tags, own_tags
from engine.sandbox.aws.waiting import WaitError
from engine.sandbox.aws.wire import UNKNOWN, Properties, Value, has_unknown

TAGS = Input("tags")
REGION = Input("region", computed=True, replaces=True)

AUTO_NAME_DIGITS = 7
MINUTE_SECONDS = 60.0

# Everything that a call to AWS can end in.
CallError = (AwsError, UnreachableError, WaitError)


class PartialError(Exception):
    """The thing exists in AWS, but a step after its creation, or of its update, failed."""

    def __init__(self, identity: str, outputs: Properties, cause: Exception) -> None:
        super().__init__(str(cause) if isinstance(cause, CallError) else f"{type(cause).__name__}: {cause}")
        self.identity = identity
        self.outputs = outputs


@frozen
class Named:
    """How a resource type names its things: `name` fixed, from `namePrefix`, or from the logical name."""

    longest: int


class Resource(ABC):
    """One resource type. Subclasses give the table and perform the calls; they hold no state."""

    token: ClassVar[str]
    # As the official plugin's errors call it: "creating EC2 Instance: …".
    noun: ClassVar[str]
    inputs: ClassVar[tuple[Input, ...]]
    outputs: ClassVar[tuple[str, ...]] = ()
    rules: ClassVar[Rules] = Rules()
    named: ClassVar[Named | None] = None
    tagged: ClassVar[bool] = True
    regional: ClassVar[bool] = True
    deletes_before_replacing: ClassVar[bool] = False
    create_seconds: ClassVar[float] = 20 * MINUTE_SECONDS
    update_seconds: ClassVar[float] = 20 * MINUTE_SECONDS
    delete_seconds: ClassVar[float] = 20 * MINUTE_SECONDS

    # What a subclass performs. `timeout` is in seconds; `known` is the state as last seen, inputs included.

    @abstractmethod
    def make(self, aws: Region, inputs: Properties, timeout: float) -> str:
        """The create call itself; answers the id."""

    def settle(self, aws: Region, identity: str, inputs: Properties, timeout: float) -> None:
        """What follows the create call before the thing is ready: waits, and settings of their own calls."""
        return

    @abstractmethod
    def look(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        """The thing's properties as AWS has them, None when it is gone."""

    def alter(
        self, aws: Region, identity: str, old: Properties, new: Properties, changed: frozenset[str], timeout: float
    ) -> str:
        """Update in place whatever of `changed` is not tags; answers the id, which rarely changes."""
        return identity

    @abstractmethod
    def remove(self, aws: Region, identity: str, known: Properties, timeout: float) -> None:
        """Delete and wait until it is gone; something that is not there is no error."""

    def retag(self, aws: Region, identity: str, known: Properties, new: Mapping[str, str]) -> None:
        """Bring the tags to `new`; EC2's way, which IAM and EKS replace."""
        change_ec2_tags(aws, identity, known.get("tagsAll") or {}, new)

    def also_replaces(
        self, aws: Region, identity: str, difference: Difference, state: Properties, new: Properties
    ) -> set[str]:
        """Changed inputs that replace only in some cases."""
        return set()

    def unknown_after(self, changed: frozenset[str], state: Properties) -> set[str]:
        """Outputs that an update in place will change."""
        return set()

    # What all of them do.

    @classmethod
    def table(cls) -> tuple[Input, ...]:
        common = (*([TAGS] if cls.tagged else []), *([REGION] if cls.regional else []))
        return (*cls.inputs, *common)

    def check(
        self, config: ProviderConfig, logical_name: str, seed: bytes, old: Properties, given: Properties
    ) -> tuple[Properties, list[Failure]]:
        """The inputs as they will be stored, defaults, name and effective tags included, and what is wrong."""
        inputs = with_defaults(self.table(), given)
        found = failures(self.table(), self.rules, given)
        if "tagsAll" in given:
            found.append(Failure("tagsAll", "tagsAll is set by the provider; use tags"))
        if self.named and blank(inputs.get("name")) and blank(inputs.get("namePrefix")):
            inputs["name"] = _auto_name(logical_name, seed, old.get("name"), self.named.longest)
        if self.tagged:
            inputs["tagsAll"] = effective_tags(config, inputs.get("tags"))
        return inputs, found

    def diff(self, aws: Region, identity: str, old: Properties, state: Properties, new: Properties) -> Difference:
        """What changed between the stored and the new inputs, and what of it replaces the thing."""
        old = _with_region(old, aws) if self.regional else old
        new = _with_region(new, aws) if self.regional else new
        table = (*self.table(), *([Input("tagsAll")] if self.tagged else []))
        found = compare(table, old, state, new)
        replacing = found.replacing | (self.also_replaces(aws, identity, found, {**old, **state}, new) & found.changed)
        return Difference(found.changed, frozenset(replacing), found.paths)

    def planned(self, aws: Region, inputs: Properties) -> Properties:
        """The outputs of a create that is only previewed."""
        unset = {one.name: UNKNOWN for one in self.inputs if one.computed and one.name not in inputs}
        return {**dict.fromkeys(self.outputs, UNKNOWN), **unset, **_with_region(inputs, aws, self.regional)}

    def planned_update(self, aws: Region, state: Properties, new: Properties, changed: frozenset[str]) -> Properties:
        """The outputs of an update that is only previewed."""
        dropped = {one.name for one in self.table() if not one.computed and one.name not in new}
        kept = {key: value for key, value in state.items() if key not in dropped}
        unknown = dict.fromkeys(self.unknown_after(changed, state), UNKNOWN)
        return {**kept, **_with_region(new, aws, self.regional), **unknown}

    def create(self, aws: Region, inputs: Properties, timeout: float) -> tuple[str, Properties]:
        """Create, settle and read back. Raises a CallError, or PartialError once the thing exists."""
        identity = self.make(aws, inputs, timeout or self.create_seconds)
        try:
            self.settle(aws, identity, inputs, timeout or self.create_seconds)
            outputs = self.read(aws, identity, inputs)
            if outputs is None:
                raise WaitError(f"reading {self.noun} ({identity}): couldn't find resource")
        except Exception as error:
            # Whatever went wrong, a defect of ours included: what exists must not be forgotten.
            raise PartialError(identity, self._as_far_as_known(aws, identity, inputs), error) from error
        return identity, outputs

    def read(self, aws: Region, identity: str, known: Properties) -> Properties | None:
        """The thing's state: what AWS says, and what was known where AWS says nothing. None when it is gone."""
        seen = self.look(aws, identity, known)
        if seen is None:
            return None
        outputs = {**self._as_far_as_known(aws, identity, known), **seen}
        if self.tagged:
            remote = seen.get("tagsAll") or {}
            outputs["tagsAll"] = remote
            outputs["tags"] = own_tags(aws.session.config, remote, known.get("tags") or {})
        return {key: value for key, value in outputs.items() if value is not None}

    def refreshed_inputs(self, inputs: Properties, outputs: Properties) -> Properties:
        """The stored inputs with what has drifted taken from the outputs, so that the next update sees it."""
        fresh = dict(inputs)
        names = {one.name: one for one in (*self.table(), *([Input("tagsAll")] if self.tagged else []))}
        for name, one in names.items():
            seen = outputs.get(name)
            stays = name not in inputs and (name not in ("tags", "tagsAll") or blank(seen))
            if stays or name not in outputs or _moved(one, inputs.get(name), seen):
                continue
            fresh[name] = seen
        return fresh

    def imported_inputs(self, outputs: Properties) -> Properties:
        """The inputs of a thing that was not made here: the engine compares them with the program's."""
        return {
            one.name: outputs[one.name]
            for one in (*self.table(), Input("tagsAll"))
            if not blank(outputs.get(one.name)) and outputs[one.name] != one.default
        }

    def update(
        self, aws: Region, identity: str, old: Properties, state: Properties, new: Properties, timeout: float
    ) -> Properties:
        """Tags first, then the rest, then read back. Raises PartialError when a step fails."""
        known = {**old, **state}
        changed = self.diff(aws, identity, old, state, new).changed
        try:
            if self.tagged:
                self.retag(aws, identity, known, new.get("tagsAll") or {})
            identity = self.alter(aws, identity, known, new, changed, timeout or self.update_seconds)
            outputs = self.read(aws, identity, {**_kept(known, self.table()), **new})
        except CallError as error:
            raise PartialError(identity, state, error) from error
        if outputs is None:
            raise PartialError(identity, state, WaitError(f"reading {self.noun} ({identity}): couldn't find resource"))
        return outputs

    def _as_far_as_known(self, aws: Region, identity: str, known: Properties) -> Properties:
        return {**_with_region(known, aws, self.regional), "id": identity}


def unique_name(prefix: str) -> str:
    """A name from a prefix, as Terraform makes it: 26 characters that sort by time."""
    with _name_lock:
        count = next(_name_count)
    return f"{prefix}{time.strftime('%Y%m%d%H%M%S', time.gmtime())}{count & 0xFFFFFFFFFFFF:012x}"


_name_lock = threading.Lock()
_name_count = itertools.count(random.getrandbits(40))


def _auto_name(logical_name: str, seed: bytes, before: Value, longest: int) -> str:
    """The logical name and seven hex digits; a name that was made so before is kept."""
    stem = logical_name[: longest - AUTO_NAME_DIGITS - 1]
    if isinstance(before, str) and re.fullmatch(re.escape(stem) + f"-[0-9a-f]{{{AUTO_NAME_DIGITS}}}", before):
        return before
    digits = random.Random(seed or None).getrandbits(4 * AUTO_NAME_DIGITS)
    return f"{stem}-{digits:0{AUTO_NAME_DIGITS}x}"


def _with_region(properties: Properties, aws: Region, regional: bool = True) -> Properties:
    return {**properties, "region": properties.get("region") or aws.name} if regional else dict(properties)


def _moved(one: Input, stored: Value, seen: Value) -> bool:
    """Whether the stored value still stands for what was seen."""
    if has_unknown(stored):
        return True
    if isinstance(stored, dict) and isinstance(seen, dict) and one.parts:
        return all(stored.get(key) == seen.get(key) for key in stored)
    return (blank(stored) and blank(seen)) or one.same(stored, seen)


def _kept(known: Properties, table: tuple[Input, ...]) -> Properties:
    """State without the inputs that a program may have dropped."""
    dropped = {one.name for one in table if not one.computed}
    return {key: value for key, value in known.items() if key not in dropped}
