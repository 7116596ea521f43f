"""Property values as Pulumi's engine sends them: protobuf structs with markers for what is unknown or secret.

The markers are Pulumi's (sdk/proto, "properties"). They are decoded here rather than by the SDK, whose import
would double the provider's start-up time.
"""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import struct_pb2

_MARKER = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"
_OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"

# A property's value: None, bool, int, float, str, list, dict or UNKNOWN. A resource's properties: a dict of them.
Value = Any
Properties = dict[str, Value]


class Unknown:
    """A value that will be known only when something else has been created."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()


def decode(struct: struct_pb2.Struct) -> Properties:
    """Plain values: secrets and outputs unwrapped, references as ids, nulls left out, whole numbers as int."""
    return _present({key: _decoded(value) for key, value in struct.fields.items()})


def encode(properties: Mapping[str, Value]) -> struct_pb2.Struct:
    """The struct for the engine; UNKNOWN becomes Pulumi's marker, None is left out."""
    struct = struct_pb2.Struct()
    for key, value in properties.items():
        if value is not None:
            struct.fields[key].CopyFrom(_encoded(value))
    return struct


def has_unknown(value: Value) -> bool:
    """Whether the value or anything inside it is unknown."""
    if isinstance(value, Mapping):
        return any(has_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(has_unknown(inner) for inner in value)
    return value is UNKNOWN


def _decoded(value: struct_pb2.Value) -> Value:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _decoded_object(value.struct_value)
    if kind == "list_value":
        return [_decoded(inner) for inner in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value == _UNKNOWN_TEXT else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _decoded_object(struct: struct_pb2.Struct) -> Value:
    fields = struct.fields
    marker = fields[_MARKER].string_value if _MARKER in fields else ""
    if marker == _SECRET:
        return _decoded(fields["value"])
    if marker == _OUTPUT:
        return _decoded(fields["value"]) if "value" in fields else UNKNOWN
    if marker == _RESOURCE:
        return _decoded(fields["id"]) if "id" in fields else _decoded(fields["urn"])
    return _present({key: _decoded(value) for key, value in fields.items()})


def _encoded(value: Value) -> struct_pb2.Value:
    if value is None:
        return struct_pb2.Value(null_value=struct_pb2.NULL_VALUE)
    if value is UNKNOWN:
        return struct_pb2.Value(string_value=_UNKNOWN_TEXT)
    if isinstance(value, bool):
        return struct_pb2.Value(bool_value=value)
    if isinstance(value, int | float):
        return struct_pb2.Value(number_value=value)
    if isinstance(value, str):
        return struct_pb2.Value(string_value=value)
    if isinstance(value, Mapping):
        return struct_pb2.Value(struct_value=encode(value))
    return struct_pb2.Value(list_value=struct_pb2.ListValue(values=[_encoded(inner) for inner in value]))


def _present(properties: Properties) -> Properties:
    return {key: value for key, value in properties.items() if value is not None}
