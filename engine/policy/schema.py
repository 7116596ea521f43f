"""From a located tree to a pydantic model, with every error told at its place, in words of our own."""

from __future__ import annotations

import types
import typing
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from engine.policy.findings import ObjectFindings, did_you_mean
from engine.policy.located import Fields, Path, Scalar, describe, find, plain, written

M = TypeVar("M", bound="Part")
_EXPECTED = {"model_type": "a map", "dict_type": "a map", "list_type": "a list"}
_MAX_ROUNDS = 50


class Part(BaseModel):
    """A map in a file. ``hints_by_field`` are for fields that people put here although they belong elsewhere."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, alias_generator=to_camel)
    hints_by_field: ClassVar[dict[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        """As for the API server: ``field: null`` says nothing about the field."""
        if not isinstance(data, dict):
            return data
        known = field_names(cls)
        return {key: value for key, value in data.items() if not (key in known and _is_null(value))}


def _is_null(value: object) -> bool:
    return isinstance(value, Scalar) and value.value is None


def field_names(model: type[Part]) -> set[str]:
    """The names of a part's fields as they stand in a file."""
    return {field.alias or name for name, field in model.model_fields.items()}


def written_name(part: Part, name: str) -> str:
    """A part's field as it stands in a file."""
    return type(part).model_fields[name].alias or name


def validated(model: type[M], findings: ObjectFindings) -> M | None:
    """The object as its model, or None when too much of it is wrong.

    What is wrong is told, taken out of the tree, and the rest is looked at again, so that one mistake hides no other.
    """
    broken: list[Path] = []
    for _ in range(_MAX_ROUNDS):
        try:
            return model.model_validate(plain(findings.root), context=findings)
        except ValidationError as invalid:
            errors = invalid.errors(include_url=False)
        pruned = [_told_and_pruned(model, error, findings, broken, errors) for error in errors]
        # A list must be pruned from its end, or the places of what follows would shift.
        for path in sorted({path for path in pruned if path}, key=_from_the_end, reverse=True):
            findings.take_out(path)
        if any(not path for path in pruned):
            return None
        broken += pruned
    return None


def _from_the_end(path: Path) -> list[tuple[int, int, str]]:
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in path]


def _told_and_pruned(
    model: type[Part], error: ErrorDetails, findings: ObjectFindings, broken: list[Path], all_errors: list[ErrorDetails]
) -> Path:
    """Tells one error; the part to take out so that the rest can be read."""
    path: Path = error["loc"]
    # Pydantic's word for "the key itself", unless somebody named a field so.
    is_of_key = path[-1:] == ("[key]",) and find(findings.root, path) is None
    path = path[:-1] if is_of_key else path
    match error["type"]:
        case "missing":
            # What was told and taken out is not told again as missing.
            if path not in broken and not _is_misspelt(path, all_errors):
                _missing(path, findings)
            return path[:-1]
        case "extra_forbidden":
            _unknown(model, path, findings)
        case kind if kind in _EXPECTED:
            message = f"{written(path) or 'the document'} is {_EXPECTED[kind]}, found {describe(error['input'])}"
            findings.error(path, "wrong-type", message)
        case rule:
            context = error.get("ctx", {})
            tell = findings.error_at_key if is_of_key else findings.error
            tell(path, rule, f"{written(path)}: {error['msg']}", str(context.get("hint", "")))
    return path


def _is_misspelt(path: Path, errors: list[ErrorDetails]) -> bool:
    """Whether an unknown field beside the missing one is it, misspelt: that is one mistake, told once."""
    siblings = [error["loc"] for error in errors if error["type"] == "extra_forbidden"]
    unknown = [str(loc[-1]) for loc in siblings if loc[:-1] == path[:-1]]
    return any(did_you_mean(name, [str(path[-1])]).startswith("did you") for name in unknown)


def _missing(path: Path, findings: ObjectFindings) -> None:
    above = find(findings.root, path[:-1])
    position = findings.at_key(path[:-1]) if path[:-1] else findings.at(())
    beside = ", ".join(above.fields) if isinstance(above, Fields) and above.fields else "nothing"
    message = f"{written(path)} is missing; found {beside}"
    findings.findings.error(position, "missing-field", message)


def _unknown(model: type[Part], path: Path, findings: ObjectFindings) -> None:
    name = str(path[-1])
    part = _model_at(model, path[:-1])
    hint = part.hints_by_field.get(name) or did_you_mean(name, field_names(part))
    findings.error_at_key(path, "unknown-field", f"{written(path)} is no field of {_owner(path)}", hint)


def _owner(path: Path) -> str:
    return written(path[:-1]) or "this object"


def _model_at(model: type[Part], path: Path) -> type[Part]:
    """The model that reads the part at a path."""
    annotation: Any = model
    for step in path:
        if isinstance(annotation, type) and issubclass(annotation, Part):
            fields = {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}
            annotation = _inside(fields.get(str(step)))
        else:
            annotation = _inside(typing.get_args(annotation)[-1]) if typing.get_args(annotation) else Part
    return annotation if isinstance(annotation, type) and issubclass(annotation, Part) else Part


def _inside(annotation: Any) -> Any:
    """An optional's or an annotated type's own type."""
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType):
        return next(_inside(option) for option in typing.get_args(annotation) if option is not type(None))
    if origin is typing.Annotated:
        return _inside(typing.get_args(annotation)[0])
    return annotation
