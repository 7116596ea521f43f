"""Records as protobuf messages, made while running: what cel-expr checks field by field, and evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cel_expr_python import cel
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory, timestamp_pb2

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
_INT_BOUND = 2**63

_EXTENSIONS = """\
name: nodewright
extensions:
- name: optional
- name: strings
- name: math
- name: bindings
- name: two-var-comprehensions
"""
"""Not ``lists``: ``lists.range`` of a large number takes all memory."""

Intake = Callable[[Any, str], Any]
"""Takes a plain value in; the text is its path, for the error."""


class RecordMessages:
    """The message types of all Records seen so far; records that are equal share one.

    Two different records may bear one name, as each rule's own ``params`` do: the later gets a numbered name.
    """

    def __init__(self) -> None:
        self.pool = descriptor_pool.DescriptorPool()
        for each in (duration_pb2, timestamp_pb2):
            self.pool.AddSerializedFile(each.DESCRIPTOR.serialized_pb)
        self._configuration = cel.NewEnvConfigFromYaml(_EXTENSIONS)
        self._names: dict[Record, str] = {}
        self._records: dict[str, Record] = {}
        self._intakes: dict[CelType, Intake] = {
            **_SCALAR_INTAKES,
            Scalar.DURATION: _duration_intake(self._message_class("google.protobuf.Duration")),
            Scalar.TIMESTAMP: _timestamp_intake(self._message_class("google.protobuf.Timestamp")),
        }
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
        return cel.NewEnv(descriptor_pool=self.pool, config=self._configuration, variables=dict(variables))

    def anywhere(self, value: Any) -> Any:
        """The value as the library takes it in any place: a timedelta or datetime only does where one is declared."""
        if isinstance(value, timedelta):
            return self._intakes[Scalar.DURATION](value, "")
        if isinstance(value, datetime):
            return self._intakes[Scalar.TIMESTAMP](value, "")
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

    def intake(self, type_: CelType) -> Intake:
        """What takes plain values of the type in. It raises TypeError or ValueError, naming the path."""
        if (known := self._intakes.get(type_)) is None:
            known = self._intakes[type_] = self._new_intake(type_)
        return known

    def _new_intake(self, type_: CelType) -> Intake:
        match type_:
            case ListOf(element):
                return _list_intake(self.intake(element))
            case MapOf(value):
                return _map_intake(self.intake(value))
            case Record():
                made = self._message_class(self.name_of(type_))
                return _record_intake(made, type_, {each.name: self.intake(each.type) for each in type_.fields})
            case Scalar():
                raise AssertionError(f"{type_} has its intake from the start")

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
        message.field.add(name=name, number=number, type=kind, type_name=type_name, label=label)


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


def split_micros(micros: int) -> dict[str, int]:
    """Microseconds as the fields of a protobuf Duration: both parts bear the sign."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    sign = -1 if micros < 0 else 1
    return {"seconds": sign * seconds, "nanos": sign * rest * 1000}


def _wrong(path: str, expected: str, value: object) -> TypeError:
    return TypeError(f"{path}: expected {expected}, got {type(value).__name__} {value!r:.80}")


def _bool_intake(value: Any, path: str) -> bool:
    if type(value) is not bool:
        raise _wrong(path, "a bool", value)
    return value


def _int_intake(value: Any, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(path, "an int", value)
    if not -_INT_BOUND <= value < _INT_BOUND:
        raise ValueError(f"{path}: {value} does not fit into 64 bits")
    return value


def _double_intake(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(path, "a double", value)
    return float(value)


def _string_intake(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong(path, "a string", value)
    return str(value) if type(value) is str else str.__str__(value)


def _duration_intake(made: Any) -> Intake:
    def take(value: Any, path: str) -> Any:
        if not isinstance(value, timedelta):
            raise _wrong(path, "a timedelta", value)
        return made(**split_micros(value // _MICROSECOND))

    return take


def _timestamp_intake(made: Any) -> Intake:
    def take(value: Any, path: str) -> Any:
        if not isinstance(value, datetime):
            raise _wrong(path, "a datetime", value)
        if value.tzinfo is None:
            raise ValueError(f"{path}: {value!r} has no time zone")
        seconds, micros = divmod((value - _EPOCH) // _MICROSECOND, 1_000_000)
        return made(seconds=seconds, nanos=micros * 1000)

    return take


_SCALAR_INTAKES: Mapping[CelType, Intake] = {
    Scalar.BOOL: _bool_intake,
    Scalar.INT: _int_intake,
    Scalar.DOUBLE: _double_intake,
    Scalar.STRING: _string_intake,
}


def _list_intake(element: Intake) -> Intake:
    def take(value: Any, path: str) -> list[Any]:
        if isinstance(value, str | Mapping) or not isinstance(value, Sequence):
            raise _wrong(path, "a list", value)
        return [element(each, f"{path}[]") for each in value]

    return take


def _map_intake(inner: Intake) -> Intake:
    def take(value: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise _wrong(path, "a map", value)
        return {_string_intake(key, f"{path}, a key"): inner(each, path) for key, each in value.items()}

    return take


def _record_intake(made: Any, record: Record, fields: Mapping[str, Intake]) -> Intake:
    names = fields.keys()
    known = [(name, f"{record.name}.{name}", intake) for name, intake in fields.items()]

    def take(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise _wrong(path, f"a record {record.name}", value)
        if value.keys() != names:
            raise ValueError(f"{path}: {_difference(record, set(names), set(value))}")
        return made(**{name: intake(value[name], where) for name, where, intake in known})

    return take


def _difference(record: Record, expected: set[str], given: set[str]) -> str:
    missing, unknown = sorted(expected - given), sorted(given - expected)
    parts = [f"without {', '.join(missing)}"] if missing else []
    parts += [f"with {', '.join(map(str, unknown))}, which it does not have"] if unknown else []
    return f"a record {record.name} {' and '.join(parts)}"
