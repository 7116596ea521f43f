"""Records as protobuf messages, made while running: what cel-expr checks field by field, and evaluates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

from engine.policy.cel.intake import Intakes
from engine.policy.cel.types import CelType, ListOf, MapOf, Record, Scalar

PACKAGE = "nodewright"

_FIELD = descriptor_pb2.FieldDescriptorProto
_FIELD_TYPES = {
    Scalar.BOOL: _FIELD.TYPE_BOOL,
    Scalar.INT: _FIELD.TYPE_INT64,
    Scalar.DOUBLE: _FIELD.TYPE_DOUBLE,
    Scalar.STRING: _FIELD.TYPE_STRING,
}
_WELL_KNOWN = {Scalar.DURATION: ".google.protobuf.Duration", Scalar.TIMESTAMP: ".google.protobuf.Timestamp"}
_CHECKED_AS = {
    Scalar.BOOL: cel.Type.BOOL,
    Scalar.INT: cel.Type.INT,
    Scalar.DOUBLE: cel.Type.DOUBLE,
    Scalar.STRING: cel.Type.STRING,
    Scalar.DURATION: cel.Type.DURATION,
    Scalar.TIMESTAMP: cel.Type.TIMESTAMP,
}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

_EXTENSIONS = """\
name: nodewright
extensions:
- name: optional
- name: strings
- name: math
- name: bindings
- name: two-var-comprehensions
"""
CONFIGURATION = cel.NewEnvConfigFromYaml(_EXTENSIONS)
"""Without ``lists``: ``lists.range`` of a large number takes all memory."""


class RecordMessages:
    """The message types of all Records seen so far; records that are equal share one.

    Two different records may bear one name, as each rule's own ``params`` do: the later gets a numbered name.
    """

    def __init__(self) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        for each in (duration_pb2, timestamp_pb2):
            self.pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
        self._names: dict[Record, str] = {}
        self._records: dict[str, Record] = {}
        self._duration = self._message_class("google.protobuf.Duration")
        self._timestamp = self._message_class("google.protobuf.Timestamp")
        self.intakes = Intakes(
            scalars={Scalar.DURATION: self.anywhere, Scalar.TIMESTAMP: self.anywhere},
            records=lambda record: self._message_class(self.name_of(record)),
        )
        self._batches: dict[Record, Any] = {}

    def checked_as(self, type_: CelType) -> Any:
        """The type as the checker knows it."""
        match type_:
            case Scalar():
                return _CHECKED_AS[type_]
            case ListOf(element):
                return cel.Type.List(self.checked_as(element))
            case MapOf(value):
                return cel.Type.Map(cel.Type.STRING, self.checked_as(value))
            case Record():
                return cel.Type(self.name_of(type_))

    def declaring(self, variables: Mapping[str, Any]) -> Any:
        """The library's environment for variables that have the library's types."""
        return cel.NewEnv(descriptor_pool=self.pool, config=CONFIGURATION, variables=dict(variables))

    def anywhere(self, value: Any) -> Any:
        """The value as the library takes it in any place: a timedelta or datetime only does where one is declared."""
        if isinstance(value, timedelta):
            micros = value // _MICROSECOND
            seconds, rest = divmod(abs(micros), 1_000_000)
            sign = -1 if micros < 0 else 1
            return self._duration(seconds=sign * seconds, nanos=sign * rest * 1000)
        if isinstance(value, datetime):
            seconds, rest = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
            return self._timestamp(seconds=seconds, nanos=rest * 1000)
        return value

    @property
    def records(self) -> Mapping[str, Record]:
        """The record behind each message's full name."""
        return self._records

    def name_of(self, record: Record) -> str:
        """The full name of the record's message."""
        if (known := self._names.get(record)) is not None:
            return known
        for each in record.fields:
            for inner in _records_in(each.type):
                self.name_of(inner)
        name = self._free_name(record.name)
        file = descriptor_pb2.FileDescriptorProto(name=f"{name}.proto", package=PACKAGE, syntax="proto3")
        file.dependency.extend(self._dependencies(record))
        message = file.message_type.add(name=name.removeprefix(f"{PACKAGE}."))
        # As JSON, which nobody writes these as, aB and a_b would have one name.
        message.options.deprecated_legacy_json_field_conflicts = True
        for number, each in enumerate(record.fields, start=1):
            self._add_field(message, name, each.name, number, each.type)
        self.pool.Add(file)
        self._names[record] = name
        self._records[name] = record
        return name

    def batch_of(self, record: Record) -> tuple[str, Any]:
        """A message that holds many of the record in its field ``items``: its full name and its class.

        One message of sixty goes into an evaluation faster than a list of sixty messages.
        """
        if record not in self._batches:
            name = self.name_of(record)
            batch = f"{name}__batch"
            file = descriptor_pb2.FileDescriptorProto(name=f"{batch}.proto", package=PACKAGE, syntax="proto3")
            file.dependency.append(f"{name}.proto")
            message = file.message_type.add(name=batch.removeprefix(f"{PACKAGE}."))
            message.field.add(
                name="items", number=1, type=_FIELD.TYPE_MESSAGE, type_name=f".{name}", label=_FIELD.LABEL_REPEATED
            )
            self.pool.Add(file)
            self._batches[record] = (batch, self._message_class(batch))
        found: tuple[str, Any] = self._batches[record]
        return found

    def _message_class(self, name: str) -> Any:
        return message_factory.GetMessageClass(self.pool.FindMessageTypeByName(name))

    def _free_name(self, wanted: str) -> str:
        name, number = f"{PACKAGE}.{wanted}", 1
        while name in self._records:
            number += 1
            name = f"{PACKAGE}.{wanted}_{number}"
        return name

    def _dependencies(self, record: Record) -> list[str]:
        inner = {f"{self.name_of(nested)}.proto" for each in record.fields for nested in _records_in(each.type)}
        return [*sorted(inner), "google/protobuf/duration.proto", "google/protobuf/timestamp.proto"]

    def _add_field(self, message: Any, full_name: str, name: str, number: int, type_: CelType) -> None:
        match type_:
            case ListOf(element):
                _refuse_nested(full_name, name, element)
                self._add_single(message, name, number, element, _FIELD.LABEL_REPEATED)
            case MapOf(value):
                _refuse_nested(full_name, name, value)
                entry = message.nested_type.add(name=f"{name[:1].upper()}{name[1:]}Entry")
                entry.options.map_entry = True
                self._add_single(entry, "key", 1, Scalar.STRING, _FIELD.LABEL_OPTIONAL)
                self._add_single(entry, "value", 2, value, _FIELD.LABEL_OPTIONAL)
                message.field.add(
                    name=name,
                    json_name=name,
                    number=number,
                    type=_FIELD.TYPE_MESSAGE,
                    type_name=f".{full_name}.{entry.name}",
                    label=_FIELD.LABEL_REPEATED,
                )
            case _:
                self._add_single(message, name, number, type_, _FIELD.LABEL_OPTIONAL)

    def _add_single(self, message: Any, name: str, number: int, type_: CelType, label: Any) -> None:
        match type_:
            case Record():
                kind: Any = _FIELD.TYPE_MESSAGE
                type_name: str | None = f".{self.name_of(type_)}"
            case Scalar() if type_ in _WELL_KNOWN:
                kind, type_name = _FIELD.TYPE_MESSAGE, _WELL_KNOWN[type_]
            case _:
                kind, type_name = _FIELD_TYPES[Scalar(type_)], None
        message.field.add(name=name, json_name=name, number=number, type=kind, type_name=type_name, label=label)


def _records_in(type_: CelType) -> Sequence[Record]:
    match type_:
        case Record():
            return (type_,)
        case ListOf(inner) | MapOf(inner):
            return _records_in(inner)
        case _:
            return ()


def _refuse_nested(record: str, name: str, inner: CelType) -> None:
    if isinstance(inner, ListOf | MapOf):
        raise TypeError(f"field {name} of {record} is a list or map of lists or maps: put a record in between")
