"""Structured logs of passes: for people on a terminal, JSON lines for whatever collects them elsewhere."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog
from structlog.typing import FilteringBoundLogger, Processor

from engine.model.outcome import Outcome, OutcomeStatus
from engine.model.plan import Plan, RemovalPhase
from engine.model.snapshot import Snapshot
from engine.reconcile.log_options import LogFormat, LogLevel
from engine.report.summary import PassReport, PassResult, summary_line
from engine.report.tables import short_hash

_SECRET_KEY = re.compile(r"token|secret|password|passphrase|authorization|credential|private_?key", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|(?<=bearer )\S+|(?<=token=)[^\s&]+|(?<=password=)[^\s&]+", re.IGNORECASE
)
_HIDDEN = "***"
_FAILED = (OutcomeStatus.FAILED_OTHER, OutcomeStatus.UNKNOWN)
# Nothing to tell on the console unless it is asked for: the loop would say so every few seconds.
_QUIET = (PassResult.IDLE, PassResult.STANDBY)


def configure_logging(
    environment: str,
    *,
    log_format: LogFormat = LogFormat.AUTO,
    level: LogLevel = LogLevel.INFO,
    file: TextIO | None = None,
) -> FilteringBoundLogger:
    """A logger whose every line names the environment; standard error unless ``file`` is another. Nothing global."""
    stream = file or sys.stderr
    on_terminal = stream.isatty()
    as_json = log_format is LogFormat.JSON or (log_format is LogFormat.AUTO and not on_terminal)
    rendering: list[Processor] = (
        [structlog.processors.JSONRenderer(ensure_ascii=False)]
        if as_json
        else [structlog.dev.ConsoleRenderer(colors=on_terminal, pad_event_to=0)]
    )
    logger: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            structlog.processors.format_exc_info,
            *rendering,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.name)),
        context_class=dict,
    )
    return logger.bind(environment=environment)


class LoggingObserver:
    """Tells of passes in a log; each line carries the pass's id, and the plan's hash once there is a plan."""

    def __init__(self, logger: FilteringBoundLogger) -> None:
        self._logger = logger
        self._pass = logger

    def pass_begins(self, pass_id: str) -> None:
        self._pass = self._logger.bind(pass_id=pass_id)
        self._pass.debug("pass begins")

    def decided(self, snapshot: Snapshot, plan: Plan, report: PassReport) -> None:
        self._pass = self._pass.bind(plan=short_hash(plan.hash))
        tell = self._pass.debug if plan.is_empty else self._pass.info
        tell(
            "decided",
            launches=len(plan.launches),
            removals=len(plan.removals),
            waiting=report.waiting,
            refused=dict(report.refused),
            usd_per_hour=str(plan.usd_per_hour_after),
        )
        for launch in plan.launches:
            self._pass.debug(
                "launch",
                claim=launch.claim.name,
                node_pool=launch.claim.node_pool,
                offering=launch.claim.inputs.offering_key,
                reason=launch.reason.value,
                pods=len(launch.pods),
            )
        for removal in plan.removals:
            record = removal.record
            self._pass.info(
                "drain" if removal.phase is RemovalPhase.MARK else "release",
                claim=record.claim,
                node=record.node,
                reason=record.reason.value,
                rule=record.rule,
            )

    def converged(self, outcome: Outcome) -> None:
        """Of a lane, perhaps in its own thread and after its pass is over: the plan's hash says which it belongs to."""
        lane = self._logger.bind(stack=outcome.stack, plan=short_hash(outcome.plan_hash), version=outcome.version)
        for one in outcome.claims:
            fields = {"claim": one.claim, "offering": one.offering, "instance": one.instance_id}
            if one.status in _FAILED:
                lane.error(one.status.value, **fields, code=one.code, message=one.message)
            elif one.status is OutcomeStatus.FAILED_CAPACITY:
                lane.warning(one.status.value, **fields, code=one.code, message=one.message)
            else:
                lane.info(one.status.value, **fields)
        for failure in outcome.foundation_failures:
            lane.error("foundation failed", message=failure)

    def pass_ended(self, report: PassReport) -> None:
        if report.result is PassResult.FAILED:
            tell = self._pass.error
        else:
            tell = self._pass.debug if report.result in _QUIET else self._pass.info
        tell(summary_line(report), result=report.result.label, seconds=round(report.total_seconds, 3))


def _without_secrets(logger: Any, method: str, fields: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Nothing here is meant to hold a secret; messages of others might."""
    for key, value in fields.items():
        if _SECRET_KEY.search(key):
            fields[key] = _HIDDEN
        elif isinstance(value, str):
            fields[key] = _SECRET_TEXT.sub(_HIDDEN, value)
    return fields
