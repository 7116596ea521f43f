"""The shape of a file of policy tests: PolicyTest of nodewright.dev/v1alpha1."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator, ValidationInfo

from engine.policy.fields import Count, PointInTime, Text, read_text, refuse
from engine.policy.findings import did_you_mean
from engine.policy.located import Scalar, describe
from engine.policy.node_pool_schema import ObjectMetaPart
from engine.policy.schema import Part
from engine.policy.shapes import shaped, text_like
from engine.policy.testing.cases import WITH_NUMBER, Dollars, Expectation, Outcome

_LONGEST_NAME = 200
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?")
_DOLLARS = re.compile(r"(0|[1-9][0-9]{0,8})(\.[0-9]{1,6})?")
_WORDS = "|".join(each.value for each in Outcome if each not in WITH_NUMBER)
_NUMBERED = "|".join(each.value for each in Outcome if each in WITH_NUMBER)


@shaped({"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME})
def _read_name(value: object, info: ValidationInfo) -> str:
    name = read_text(value, info).strip()
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        refuse("bad-name", "a case has a name on one line, of 200 characters at most", "say what it promises")
    return name


@shaped({"type": "string", "minLength": 1})
def _read_wanted_text(value: object, info: ValidationInfo) -> str:
    text = read_text(value, info)
    if not text.strip():
        refuse("bad-value", "an empty text occurs everywhere, so it proves nothing", "write a part of the message")
    return text


@shaped(text_like(rf"{_WORDS}|({_NUMBERED}) {_NUMBER.pattern}"))
def _read_expectation(value: object, info: ValidationInfo) -> Expectation:
    text = read_text(value, info)
    word, *rest = text.split()[:3] or [""]
    known = [each.value for each in Outcome]
    if word not in known:
        refuse("unknown-value", f"{text[:60]!r} is nothing that a rule says", did_you_mean(word, known))
    outcome = Outcome(word)
    if outcome not in WITH_NUMBER:
        if rest:
            refuse("bad-value", f"{word} stands alone, and here is {' '.join(rest)[:40]!r} after it", f"write {word}")
        return Expectation(outcome)
    if len(rest) != 1 or not _NUMBER.fullmatch(rest[0]):
        refuse("bad-value", f"{word} needs one number, found {' '.join(rest)[:40]!r}", f"write such as {word} 1")
    return Expectation(outcome, Decimal(rest[0]))


@shaped({"type": "object"})
def _read_facts(value: object) -> object:
    """Stays as it is written: what its fields mean is known once the rule is."""
    if not isinstance(value, dict):
        refuse("wrong-type", f"expected a map of fields, found {describe(value)}")
    return value


@shaped({})
def _read_fact(value: object) -> object:
    return value


@shaped(text_like(_DOLLARS.pattern))
def _read_dollars(value: object) -> Dollars:
    if not isinstance(value, Scalar) or not _DOLLARS.fullmatch(value.text):
        refuse("bad-value", f"{describe(value)} is no amount of dollars an hour", 'write such as "12.50"')
    return Dollars(value.text, Decimal(value.text))


Name = Annotated[str, PlainValidator(_read_name)]
WantedText = Annotated[str, PlainValidator(_read_wanted_text)]
Facts = Annotated[Any, PlainValidator(_read_facts)]
Fact = Annotated[Any, PlainValidator(_read_fact)]


class GivenPart(Part):
    """Facts by variable; a field, or ``FIELD.KEY`` for one entry of a map. ``windows`` are the names of open ones."""

    hints_by_field: ClassVar[dict[str, str]] = {"instanceTypes": "a case is about one instanceType"}
    pod: Facts = None
    instance_type: Facts = None
    node_pool: Facts = None
    node: Facts = None
    plan: Facts = None
    cost: Facts = None
    cluster: Facts = None
    params: Facts = None
    reason: Fact = None
    group: Fact = None
    now: Fact = None
    windows: list[Text] | None = None


class CasePart(Part):
    hints_by_field: ClassVar[dict[str, str]] = {"rules": "a case is about one rule; others go under alongside"}
    name: Name
    rule: Text
    alongside: list[Text] = Field(default_factory=list)
    given: GivenPart = GivenPart()
    expect: Annotated[Expectation, PlainValidator(_read_expectation)]
    message: WantedText | None = None


class PlanExpectationPart(Part):
    launches: Count | None = None
    removals: Count | None = None
    unplaced: Count | None = None
    added_usd_per_hour: Annotated[Dollars, PlainValidator(_read_dollars)] | None = None
    messages: list[WantedText] = Field(default_factory=list)


class ScenarioPart(Part):
    name: Name
    snapshot: WantedText
    at: PointInTime | None = None
    environment: Text = ""
    expect: PlanExpectationPart


class PolicyTestSpecPart(Part):
    defaults: GivenPart = GivenPart()
    cases: list[CasePart] = Field(default_factory=list)
    scenarios: list[ScenarioPart] = Field(default_factory=list)


class PolicyTestPart(Part):
    api_version: Text
    kind: Text
    metadata: ObjectMetaPart
    spec: PolicyTestSpecPart
