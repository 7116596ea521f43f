"""The messages in which cel-expr hands out a checked expression, described by hand: no package brings them.

Names and numbers are those of ``cel.expr.CheckedExpr``, the public interchange format of CEL; fields that nothing here
reads are kept as unknown ones, so what is read and written again is whole.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int64": _FIELD.TYPE_INT64,
    "int32": _FIELD.TYPE_INT32,
    "uint64": _FIELD.TYPE_UINT64,
    "double": _FIELD.TYPE_DOUBLE,
    "string": _FIELD.TYPE_STRING,
    "bytes": _FIELD.TYPE_BYTES,
    "bool": _FIELD.TYPE_BOOL,
}

# message -> "name type number", a type with [] is repeated, a field with | is in the message's oneof, <T> is a map
# from int64. Enums travel as int32.
_SHAPES = {
    "Constant": (
        "null_value int32 1 |",
        "bool_value bool 2 |",
        "int64_value int64 3 |",
        "uint64_value uint64 4 |",
        "double_value double 5 |",
        "string_value string 6 |",
        "bytes_value bytes 7 |",
    ),
    "Ident": ("name string 1",),
    "Select": ("operand Expr 1", "field string 2", "test_only bool 3"),
    "Call": ("target Expr 1", "function string 2", "args Expr[] 3"),
    "CreateList": ("elements Expr[] 1", "optional_indices int32[] 2"),
    "Entry": ("id int64 1", "field_key string 2 |", "map_key Expr 3 |", "value Expr 4", "optional_entry bool 5"),
    "CreateStruct": ("message_name string 1", "entries Entry[] 2"),
    "Comprehension": (
        "iter_var string 1",
        "iter_var2 string 8",
        "iter_range Expr 2",
        "accu_var string 3",
        "accu_init Expr 4",
        "loop_condition Expr 5",
        "loop_step Expr 6",
        "result Expr 7",
    ),
    "Expr": (
        "id int64 2",
        "const_expr Constant 3 |",
        "ident_expr Ident 4 |",
        "select_expr Select 5 |",
        "call_expr Call 6 |",
        "list_expr CreateList 7 |",
        "struct_expr CreateStruct 8 |",
        "comprehension_expr Comprehension 9 |",
    ),
    "SourceInfo": ("positions <int32> 4", "macro_calls <Expr> 5"),
    "Type": ("primitive int32 3 |", "message_type string 9 |"),
    "CheckedExpr": ("type_map <Type> 3", "source_info SourceInfo 5", "expr Expr 4"),
}
_PACKAGE = "cel.expr"
BOOL_PRIMITIVE = 1


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="checked.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _SHAPES.items():
        message = file.message_type.add(name=name)
        for each in fields:
            _add(message, *each.split())
    return file


def _add(message: Any, name: str, kind: str, number: str, choice: str = "") -> None:
    if kind.startswith("<"):
        entry = message.nested_type.add(name="".join(part.title() for part in name.split("_")) + "Entry")
        entry.options.map_entry = True
        _add(entry, "key", "int64", "1")
        _add(entry, "value", kind.strip("<>"), "2")
        kind = f"{message.name}.{entry.name}[]"
    if choice and not message.oneof_decl:
        message.oneof_decl.add(name="kind")
    single = kind.removesuffix("[]")
    field = message.field.add(
        name=name,
        number=int(number),
        type=_SCALARS.get(single, _FIELD.TYPE_MESSAGE),
        label=_FIELD.LABEL_REPEATED if kind.endswith("[]") else _FIELD.LABEL_OPTIONAL,
    )
    if single not in _SCALARS:
        field.type_name = f".{_PACKAGE}.{single}"
    if choice:
        field.oneof_index = 0


_POOL = descriptor_pool.DescriptorPool()
_POOL.Add(_file())
CheckedExpr = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.CheckedExpr"))


def read_checked(serialized: bytes) -> Any:
    """The checked expression in what the library serialises."""
    return CheckedExpr.FromString(any_pb2.Any.FromString(serialized).value)


def write_checked(checked: Any) -> bytes:
    """What the library takes in again."""
    wrapped = any_pb2.Any(type_url=f"type.googleapis.com/{_PACKAGE}.CheckedExpr", value=checked.SerializeToString())
    return bytes(wrapped.SerializeToString())
