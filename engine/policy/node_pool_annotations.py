"""Our own annotations on a NodePool: how long its machines may take to come up, whether it is paused, and what it does
with open reservations, and with machines that EC2 may soon take."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from attrs import frozen

from engine.model import labels
from engine.model.duration import format_duration
from engine.model.policy import OnRebalance, UnhealthyLimit
from engine.model.reservation import OpenReservations
from engine.policy.annotated_spans import Span, read_span
from engine.policy.findings import ObjectFindings
from engine.policy.located import Path

_ANNOTATIONS: Path = ("metadata", "annotations")
_LONGEST, _SHORTEST = timedelta(hours=24), timedelta(seconds=1)
_SPANS = {
    labels.LAUNCH_DEADLINE: Span(timedelta(minutes=5), _LONGEST, _SHORTEST),
    labels.REGISTRATION_DEADLINE: Span(timedelta(minutes=15), _LONGEST, _SHORTEST),
    labels.INITIALIZATION_DEADLINE: Span(timedelta(minutes=30), _LONGEST, _SHORTEST),
    labels.ACCELERATOR_GRACE: Span(timedelta(minutes=5), _LONGEST),
}
BRING_UP_ANNOTATIONS = (
    *_SPANS,
    labels.PAUSED,
    labels.OPEN_RESERVATIONS,
    labels.ON_REBALANCE,
    labels.UNHEALTHY_LIMIT,
)


@frozen
class BringUp:
    """The fields of NodePool of the same names."""

    launch_deadline: timedelta
    registration_deadline: timedelta
    initialization_deadline: timedelta
    accelerator_grace: timedelta
    paused: str


def read_bring_up(annotations: Mapping[str, str], findings: ObjectFindings) -> BringUp:
    """The settings, Karpenter's hard-coded times where none is written; what is wrong goes to ``findings``."""
    spans = {key: read_span(key, span, annotations, findings) for key, span in _SPANS.items()}
    registered, whole = spans[labels.REGISTRATION_DEADLINE], spans[labels.INITIALIZATION_DEADLINE]
    if registered > whole:
        written = [key for key in (labels.INITIALIZATION_DEADLINE, labels.REGISTRATION_DEADLINE) if key in annotations]
        message = (
            f"{labels.REGISTRATION_DEADLINE} {format_duration(registered)} is longer than "
            f"{labels.INITIALIZATION_DEADLINE} {format_duration(whole)}; both run from the launch on"
        )
        findings.error((*_ANNOTATIONS, written[0]), "contradiction", message, "make the first the shorter one")
    return BringUp(
        launch_deadline=spans[labels.LAUNCH_DEADLINE],
        registration_deadline=registered,
        initialization_deadline=whole,
        accelerator_grace=spans[labels.ACCELERATOR_GRACE],
        paused=_paused(annotations, findings),
    )


def _paused(annotations: Mapping[str, str], findings: ObjectFindings) -> str:
    text = annotations.get(labels.PAUSED)
    if text is None or text.strip():
        return (text or "").strip()
    message = f"{labels.PAUSED} is empty; its value says why the pool is paused"
    findings.error((*_ANNOTATIONS, labels.PAUSED), "bad-annotation", message, "say why, or remove the annotation")
    return ""


def read_open_reservations(annotations: Mapping[str, str], findings: ObjectFindings) -> OpenReservations:
    """Whether on-demand machines may run in open reservations that nobody aims at; not so where nothing is written."""
    text = annotations.get(labels.OPEN_RESERVATIONS, OpenReservations.LEAVE.value)
    known = {each.value: each for each in OpenReservations}
    if text not in known:
        message = (
            f"{labels.OPEN_RESERVATIONS} is {text[:40]!r}; it says what on-demand launches do with open reservations"
        )
        findings.error((*_ANNOTATIONS, labels.OPEN_RESERVATIONS), "bad-annotation", message, 'write "use" or "leave"')
    return known.get(text, OpenReservations.LEAVE)


def read_on_rebalance(annotations: Mapping[str, str], findings: ObjectFindings) -> OnRebalance:
    """Whether machines leave on EC2's mere recommendation; not so where nothing is written, as with Karpenter."""
    text = annotations.get(labels.ON_REBALANCE, OnRebalance.IGNORE.value)
    known = {each.value: each for each in OnRebalance}
    if text not in known:
        message = f"{labels.ON_REBALANCE} is {text[:40]!r}; it says what becomes of a machine that EC2 may soon take"
        findings.error((*_ANNOTATIONS, labels.ON_REBALANCE), "bad-annotation", message, 'write "replace" or "ignore"')
    return known.get(text, OnRebalance.IGNORE)


def read_unhealthy_limit(annotations: Mapping[str, str], findings: ObjectFindings) -> UnhealthyLimit:
    """Up to how many unhealthy nodes any is taken down: a count, or a share of the pool's nodes."""
    text = annotations.get(labels.UNHEALTHY_LIMIT)
    if text is None:
        return UnhealthyLimit()
    digits, is_share = text.removesuffix("%"), text.endswith("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 6) or (is_share and int(digits) > 100):
        message = f"{labels.UNHEALTHY_LIMIT} is {text[:40]!r}; it is a number of nodes, or a share of them up to 100%"
        findings.error((*_ANNOTATIONS, labels.UNHEALTHY_LIMIT), "bad-annotation", message, 'write "2" or "20%"')
        return UnhealthyLimit()
    return UnhealthyLimit(percent=int(digits)) if is_share else UnhealthyLimit(nodes=int(digits))
