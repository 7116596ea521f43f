"""The types that expressions are checked against. They keep their hashes: engines look things up by them."""

from __future__ import annotations

from enum import Enum

from attrs import frozen


class Scalar(str, Enum):
    BOOL = "bool"
    INT = "int"
    DOUBLE = "double"
    STRING = "string"
    DURATION = "duration"
    TIMESTAMP = "timestamp"


@frozen(cache_hash=True)
class ListOf:
    """``most`` elements at most: what the cost of a loop is reckoned from, and cut off at."""

    element: CelType
    most: int


@frozen(cache_hash=True)
class MapOf:
    """A map with text keys. Reading a key that is not there is an error, never an empty value."""

    value: CelType
    most: int = 64


@frozen(cache_hash=True)
class RecordField:
    name: str
    type: CelType
    doc: str


@frozen(cache_hash=True)
class Record:
    """A value with named fields, all of them always there: no field reads as nothing, so none can do so in silence."""

    name: str
    fields: tuple[RecordField, ...]
    doc: str = ""


CelType = Scalar | ListOf | MapOf | Record
