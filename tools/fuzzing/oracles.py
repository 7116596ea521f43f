"""What must hold of any policy file, whatever is in it: of what is told about it, and of what loads."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from functools import cache
from io import StringIO
from pathlib import Path

from rich.console import Console, RenderableType

import engine
from engine.model.diagnostic import Diagnostic, InvalidInput
from engine.model.environment import Environment
from engine.model.policy import Policy
from engine.policy.load import load_policy
from engine.report.diagnostics_report import render_diagnostics
from engine.report.github_report import github_commands
from engine.report.json_report import diagnostics_json

Files = Sequence[tuple[str, bytes]]

_RULE_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# A terminal takes these for orders; a file's author is not to give any.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x84\x86-\x9f]")
INSIDES = re.compile(r"Traceback|object at 0x|<class |NoneType|pydantic|celpy|lark\.|PlainValidator|\battrs\b")
_PYTHON_ERROR = re.compile(
    r"\b(Key|Value|Type|Attribute|Index|Overflow|Recursion|Runtime|Assertion|UnicodeEncode)Error\b"
)
_NOWHERE = "policies"


class Nonsense(Exception):
    """Something that must hold does not. ``promise`` names it, the same for every case that breaks it."""

    def __init__(self, promise: str, seen: str = "") -> None:
        self.promise = promise
        super().__init__(f"{promise}: {seen}" if seen else promise)


def promise(holds: bool, named: str, seen: object = "") -> None:
    if not holds:
        raise Nonsense(named, f"{seen!r:.600}" if not isinstance(seen, str) else seen[:600])


# --- findings


def loaded(files: Files, environment: Environment | None) -> tuple[Policy | None, tuple[Diagnostic, ...]]:
    """The policy where the files load, and all that is told of them. Whatever else is raised goes through."""
    try:
        policy = load_policy(files, environment)
    except InvalidInput as invalid:
        findings = invalid.diagnostics
        promise(any(each.severity.value == "error" for each in findings), "what is refused has an error")
        return None, findings
    promise(all(each.severity.value == "warning" for each in policy.warnings), "what loads has warnings only")
    return policy, policy.warnings


def check_findings(findings: Sequence[Diagnostic], files: Files) -> None:
    """Each has a place that is there, a stable id and words for people; all can be shown in every form."""
    lines = {name: _LINE_BREAK.split(text_of(content)) for name, content in files}
    whole = "\n".join(text_of(content) for _, content in files)
    for each in findings:
        place = each.position
        promise(place.file in lines or place.file == _NOWHERE, "a finding names a file that was given", place)
        of_file = lines.get(place.file, [""])
        promise(1 <= place.line <= len(of_file), "a finding's line is in its file", place)
        promise(1 <= place.column <= len(of_file[place.line - 1]) + 2, "a finding's column is in its line", place)
        promise(each.rule in rule_ids() and bool(_RULE_ID.fullmatch(each.rule)), "a rule id is stable", each.rule)
        promise(bool(each.message.strip()), "a message says something", each)
        said = f"{each.message} {each.hint}"
        promise(not INSIDES.search(said) or INSIDES.search(whole) is not None, "a message tells no insides", said)
        promise(not _PYTHON_ERROR.search(said) or "Error" in whole, "a message names no exception of Python", said)
        promise(len(each.message) <= 1000, "a message can be read", said)
    check_shown(findings)


def check_shown(findings: Sequence[Diagnostic]) -> None:
    """Text, JSON and GitHub's commands can all be made, and written to a terminal or a file."""
    text = shown(render_diagnostics(findings, ("fuzzed",)))
    control = _CONTROL.search(text)
    promise(control is None, "what is shown gives a terminal no orders", control and repr(text[: control.end()][-80:]))
    told = json.loads(encodable(diagnostics_json(findings)))
    promise(told["errors"] + told["warnings"] == len(findings), "JSON tells each finding")
    promise(encodable(github_commands(findings)).count("\n") == len(findings), "GitHub gets a line for each finding")


def shown(renderable: RenderableType) -> str:
    out = StringIO()
    Console(file=out, width=100, no_color=True, color_system=None, force_terminal=False).print(renderable)
    return encodable(out.getvalue())


def encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Nonsense("what is shown can be written as UTF-8", ascii(text)) from None
    return text


def text_of(content: bytes) -> str:
    return content.decode("utf-8-sig", "replace")


@cache
def rule_ids() -> frozenset[str]:
    """Every text in the engine's source that could be a rule id: one made up of what a file says is none of them."""
    sources = Path(engine.__file__).parent.rglob("*.py")
    trees = (ast.parse(source.read_text()) for source in sources)
    texts = (each.value for tree in trees for each in ast.walk(tree) if isinstance(each, ast.Constant))
    return frozenset(each for each in texts if isinstance(each, str) and _RULE_ID.fullmatch(each))
