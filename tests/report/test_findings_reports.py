"""Findings of files and of the doctor, on terminals and for programs."""

from __future__ import annotations

import io
import json
from enum import Enum

import pytest
from attrs import frozen
from rich.console import Console

from engine.model.diagnostic import Diagnostic, Position, Severity
from engine.report.diagnostics_report import render_diagnostics
from engine.report.doctor_report import render_doctor
from engine.report.json_report import diagnostics_json, doctor_json
from tests.report.golden_text import assert_golden, printed

FINDINGS = (
    Diagnostic(
        Severity.ERROR,
        "unknown-field",
        "spec.template.spec has no field requirments",
        Position("policies/gpu.yaml", 12, 7, "      requirments:"),
        "did you mean requirements?",
    ),
    Diagnostic(
        Severity.WARNING,
        "old-spelling",
        "subnetSelector is the spelling of v1alpha5",
        Position("policies/gpu.yaml", 64, 2, "\tsubnetSelector:"),
    ),
    Diagnostic(Severity.ERROR, "no-such-class", "it names [gpu]", Position("policies/pool.yaml", 1, 1)),
)


def test_findings_show_place_rule_line_caret_and_hint() -> None:
    text = printed(render_diagnostics(FINDINGS, ("sandbox", "prod")))

    assert_golden("diagnostics.txt", text)
    lines = text.splitlines()
    assert lines[1].index("r") == lines[2].index("^")


def test_what_a_file_says_gives_the_terminal_no_orders() -> None:
    place = Position("policies/pool.yaml", 1, 4, "\x1b[2Jx: \x07")
    finding = Diagnostic(Severity.ERROR, "unknown-kind", "'\x1b]0;title\x07' is no kind\r", place, "did you mean \x7f?")
    text = printed(render_diagnostics([finding]))

    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert "'␛]0;title␇' is no kind␍" in text
    assert text.splitlines()[1].index("x") - 4 == len("  | ")


def test_the_caret_of_a_long_line_stays_in_sight() -> None:
    long = "x" * 500 + "HERE" + "y" * 500
    finding = Diagnostic(Severity.ERROR, "r", "m", Position("f.yaml", 1, 501, long))

    lines = printed(render_diagnostics([finding]), width=200).splitlines()

    assert lines[1].index("HERE") == lines[2].index("^")
    assert len(lines[1]) < 200


@pytest.mark.parametrize("column", [1, 30, 75, 140, 190])
def test_an_excerpt_fits_a_terminal_and_says_where_it_is_cut(column: int) -> None:
    line = "".join(chr(ord("a") + at % 26) for at in range(200))
    finding = Diagnostic(Severity.ERROR, "r", "m", Position("f.yaml", 1, column, line))

    _, shown, caret, _ = printed(render_diagnostics([finding]), width=80).splitlines()

    assert len(shown) <= 80
    assert shown[caret.index("^")] == line[column - 1]
    assert shown.endswith("…") is (column < 190)


def test_a_piped_finding_is_not_cut_at_the_width_of_a_terminal() -> None:
    line = "  image: " + "x" * 120
    finding = Diagnostic(Severity.ERROR, "r", "word " * 30, Position("a/very/long/path.yaml", 1, 3, line))
    file = io.StringIO()

    Console(file=file, width=80, highlight=False, soft_wrap=True).print(render_diagnostics([finding]))

    assert line in file.getvalue()
    assert len(file.getvalue().splitlines()) == 4


def test_no_findings_is_said() -> None:
    assert printed(render_diagnostics((), ("sandbox",))) == "sandbox: no findings\n"


class State(Enum):
    OK = "ok"
    MISSING = "missing"
    STAND_IN = "stand-in"


@frozen
class Found:
    name: str
    state: Enum
    detail: str
    hint: str = ""


FOUND = (
    Found("python", State.OK, "3.11.9"),
    Found("AWS plugin", State.STAND_IN, "the sandbox's own", "pulumi plugin install resource aws"),
    Found("pulumi", State.MISSING, "not on PATH", "nodewright doctor --install"),
)


def test_the_doctor_says_what_is_missing_and_what_to_do() -> None:
    assert_golden("doctor.txt", printed(render_doctor(FOUND)))
    assert printed(render_doctor(FOUND[:1])).endswith("All is here.\n")


def test_the_sandbox_of_an_environment_of_this_name_is_named_once() -> None:
    text = printed(render_doctor((Found("sandbox sandbox", State.OK, "runs"), Found("sandbox trial", State.OK, "x"))))

    assert [line.split()[0:2] for line in text.splitlines()[1:3]] == [["sandbox", "ok"], ["sandbox", "trial"]]


def test_findings_for_programs_have_their_place() -> None:
    told = json.loads(diagnostics_json(FINDINGS))

    assert (told["errors"], told["warnings"]) == (2, 1)
    assert told["findings"][0]["line"] == 12
    assert json.loads(doctor_json(FOUND))["findings"][2]["state"] == "missing"
