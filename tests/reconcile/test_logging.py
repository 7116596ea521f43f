"""What a loop's log says of its passes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from attrs import evolve

from engine.reconcile.log_options import LogFormat, LogLevel
from engine.reconcile.logging import LoggingObserver, configure_logging
from engine.report.summary import PassReport, PassResult, report_of
from tests.builders import NOON
from tests.report import scenes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def lines(level: LogLevel = LogLevel.INFO, result: PassResult = PassResult.CONVERGED) -> list[dict[str, Any]]:
    """What one pass leaves in a log that is piped."""
    file = io.StringIO()
    observer = LoggingObserver(configure_logging("sandbox", level=level, file=file))
    plan = scenes.empty_plan() if result is PassResult.IDLE else scenes.plan()
    report = report_of("7", NOON, scenes.snapshot(), plan, result, total_seconds=1.25)
    observer.pass_begins("7")
    observer.decided(scenes.snapshot(), plan, report)
    if result is not PassResult.IDLE:
        observer.converged(evolve(scenes.outcome(), stack="sandbox.1", plan_hash=plan.hash))
    observer.pass_ended(report)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def test_a_piped_log_is_json_lines_that_name_environment_pass_and_plan() -> None:
    written = lines()

    decided = written[0]
    assert {key: value for key, value in decided.items() if key != "timestamp"} == {
        "event": "decided",
        "level": "info",
        "environment": "sandbox",
        "pass_id": "7",
        "plan": "9f8e7d6c5b4a",
        "launches": 5,
        "removals": 3,
        "waiting": 1,
        "refused": {"limit-reached": 8, "no-type-fits": 1},
        "usd_per_hour": "$15.88/h",
    }
    assert {line["environment"] for line in written} == {"sandbox"}
    assert written[-1]["event"].startswith("sandbox pass 7: stacks converged, 5 launched")
    assert (written[-1]["result"], written[-1]["seconds"]) == ("converged", 1.25)


def test_refused_launches_are_warnings_and_failures_are_errors() -> None:
    levels = {line["claim"]: line["level"] for line in lines() if "claim" in line and "stack" in line}

    assert levels == {
        "gpu-core-00001": "info",
        "gpu-core-00002": "info",
        "gpu-core-00004": "info",
        "gpu-core-00003": "warning",
        "gpu-batch-00007": "error",
        "gpu-elastic-00009": "info",
    }
    [failure] = [line for line in lines() if line["event"] == "foundation failed"]
    assert failure["stack"] == "sandbox.1"


def test_an_idle_pass_is_told_only_when_asked_for() -> None:
    assert lines(result=PassResult.IDLE) == []
    assert [line["event"] for line in lines(LogLevel.DEBUG, PassResult.IDLE)][:2] == ["pass begins", "decided"]


@pytest.mark.parametrize(
    ("log_format", "file", "is_json"),
    [
        (LogFormat.AUTO, io.StringIO, True),
        (LogFormat.AUTO, Terminal, False),
        (LogFormat.JSON, Terminal, True),
        (LogFormat.CONSOLE, io.StringIO, False),
    ],
)
def test_the_format_follows_the_terminal_unless_it_is_given(
    log_format: LogFormat, file: type[io.StringIO], is_json: bool
) -> None:
    stream = file()

    configure_logging("sandbox", log_format=log_format, file=stream).info("hello", count=3)

    assert stream.getvalue().startswith("{") is is_json
    assert "hello" in stream.getvalue()


def test_no_secret_gets_into_a_log() -> None:
    file = io.StringIO()
    logger = configure_logging("sandbox", file=file)

    logger.info(
        "refused: bearer eyJhbGciOi.x", session_token="t0p", message="AKIAABCDEFGHIJKLMNOP may not; password=hunter2 x"
    )

    [line] = [json.loads(line) for line in file.getvalue().splitlines()]
    assert line["event"] == "refused: bearer ***"
    assert line["session_token"] == "***"
    assert line["message"] == "*** may not; password=*** x"


def test_a_pass_that_failed_is_an_error_without_a_plan() -> None:
    file = io.StringIO()
    observer = LoggingObserver(configure_logging("sandbox", file=file))
    observer.pass_begins("8")

    observer.pass_ended(PassReport("8", "sandbox", NOON, PassResult.FAILED, words="the API server gave no answer"))

    [line] = [json.loads(line) for line in file.getvalue().splitlines()]
    assert (line["level"], line["pass_id"], "plan" in line) == ("error", "8", False)
    assert "the API server gave no answer" in line["event"]
